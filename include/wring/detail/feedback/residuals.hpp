// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <wring/compressor/concept.hpp>
#include <wring/detail/feedback/kernels.hpp>
#include <wring/detail/random/philox.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

/// What is owed to the values of a tensor that is moved in one way.
namespace wring::inline v0::detail::feedback {

/// Where the residuals of a piece lie: as they are, or as codes and scales of groups.
template <class Wide> struct Place {
  Wide* full = nullptr;
  std::int8_t* codes = nullptr;
  Wide* scales = nullptr;
};

/// The residuals of all values for one encoding, in either form. Empty until something is encoded.
template <class Wide, class Space> struct Run {
  Kokkos::View<Wide*, Space> full;
  Kokkos::View<std::int8_t*, Space> codes;
  Kokkos::View<Wide*, Space> scales;

  bool empty() const { return full.extent(0) == 0 && codes.extent(0) == 0; }
};

/// The number of an encoding that no operation has: carried residuals are rounded by draws of their own.
inline constexpr std::uint32_t first_carried = 1u << 16;

/// The residuals of one course (see Opening::course), by number of encoding.
template <class Wide, class Space> class Residuals {
 public:
  std::size_t first = 0, count = 0;  ///< the values of the tensor that they are for
  std::uint64_t quantity = 0;        ///< what is moved: courses that have it in common owe to the same sums
  std::size_t alone = 0;             ///< Opening::alone
  std::vector<Run<Wide, Space>> runs;

  bool empty() const {
    return std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.empty(); });
  }

  /// Those of an operation. Its values are cut into groups: pieces begin at the part of a rank, or a multiple of 512 values behind it.
  void shape(const Opening& o) {
    alone = o.alone;
    if (!parts_.empty()) return;  // as it was the last time
    std::vector<std::size_t> begins;
    std::size_t begin = 0;
    if (o.counts.empty() || o.count < o.total) {
      begins.push_back(0);
    } else {
      for (const std::size_t n : o.counts) begins.push_back(begin), begin += n;
    }
    shape(o.first, o.count, begins);
  }
  void shape(std::size_t first_value, std::size_t values, std::span<const std::size_t> begins) {
    first = first_value, count = values, groups_ = 0, parts_.clear();
    for (std::size_t p = 0; p < begins.size(); ++p) {
      parts_.push_back({begins[p], groups_});
      groups_ += groups_of((p + 1 < begins.size() ? begins[p + 1] : count) - begins[p]);
    }
  }
  std::vector<std::size_t> begins() const {
    std::vector<std::size_t> all;
    for (const Part& part : parts_) all.push_back(part.begin);
    return all;
  }
  std::size_t groups() const { return groups_; }

  /// Those of the values [at, at + n), zeros at first.
  Place<Wide> of(int encoding, std::size_t at, std::size_t n, bool eight_bits) {
    const auto k = static_cast<std::size_t>(encoding);
    if (at < first || at - first > count || n > count - (at - first))
      throw CodecError(sentence("error feedback: values ", at, " to ", at + n, " are none of this rank's"));
    if (k >= runs.size()) runs.resize(k + 1);
    allocate(runs[k], eight_bits);
    if (!eight_bits) return {runs[k].full.data() + (at - first)};
    return {nullptr, runs[k].codes.data() + (at - first), runs[k].scales.data() + group_of(at - first)};
  }

  /// Calls `f(first, n)` for what the parts have of the values [at, at + n).
  template <class F> void for_each_part(std::size_t at, std::size_t n, F f) const {
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const std::size_t begin = std::max(at, first + parts_[p].begin),
                        end = std::min(at + n, first + end_of(p));
      if (begin < end) f(begin, end - begin);
    }
  }

  /// Whether all that this rank alone owes there can be owed here.
  bool takes_from(const Residuals& other) const {
    return &other != this && alone > 0 && other.quantity == quantity && other.first >= first &&
           other.first - first <= count && other.count <= count - (other.first - first);
  }

  /// Takes over what this rank alone owes there: it is owed to the first encoding here. Synchronises.
  template <class T, class Exec>
  void take(const Exec& exec, Residuals& other, bool eight_bits, const RandomStream& draws) {
    for (std::size_t k = 0; k < std::min(other.alone, other.runs.size()); ++k) {
      if (other.runs[k].empty()) continue;
      if (runs.empty()) runs.resize(1);
      if (runs[0].empty() && first == other.first && count == other.count && begins() == other.begins())
        runs[0] = std::move(other.runs[k]);
      else
        add<T>(exec, other.values(k), other.first - first, eight_bits, draws,
               first_carried + static_cast<std::uint32_t>(k));
      other.runs[k] = {};
    }
  }

  /// All residuals of one encoding, on the host.
  std::vector<Wide> values(std::size_t k) const {
    const auto copy = [](const auto& view) {
      return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
    };
    const Run<Wide, Space>& run = runs[k];
    if (run.codes.extent(0) == 0) {
      const auto full = copy(run.full);
      return {full.data(), full.data() + full.extent(0)};
    }
    const auto codes = copy(run.codes);
    const auto scales = copy(run.scales);
    std::vector<Wide> all(count);
    for (std::size_t p = 0; p < parts_.size(); ++p)
      for (std::size_t i = parts_[p].begin; i < end_of(p); ++i)
        all[i] =
            static_cast<Wide>(codes(i)) * scales(parts_[p].group + (i - parts_[p].begin) / residual_group);
    return all;
  }

 private:
  struct Part {
    std::size_t begin, group;
  };

  static std::size_t groups_of(std::size_t n) { return (n + residual_group - 1) / residual_group; }
  std::size_t end_of(std::size_t part) const {
    return part + 1 < parts_.size() ? parts_[part + 1].begin : count;
  }

  void allocate(Run<Wide, Space>& run, bool eight_bits) const {
    if (!eight_bits) {
      if (run.full.extent(0) != count) run.full = Kokkos::View<Wide*, Space>("wring::residuals", count);
    } else if (run.codes.extent(0) != count || run.scales.extent(0) != groups_) {
      run.codes = Kokkos::View<std::int8_t*, Space>("wring::residuals", count);
      run.scales = Kokkos::View<Wide*, Space>("wring::residuals", groups_);
    }
  }

  /// Adds to what is owed to the first encoding, from the value `at` here on. `encoding`: none that operations have, whose draws this is
  /// to have nothing to do with.
  template <class T, class Exec>
  void add(const Exec& exec, const std::vector<Wide>& more, std::size_t at, bool eight_bits,
           const RandomStream& draws, std::uint32_t encoding) {
    std::vector<Wide> sums = runs[0].empty() ? std::vector<Wide>(count) : values(0);
    for (std::size_t i = 0; i < more.size(); ++i) sums[at + i] += more[i];
    const Kokkos::View<const Wide*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(sums.data(), count);
    const auto all = Kokkos::create_mirror_view_and_copy(Space(), host);
    allocate(runs[0], eight_bits);
    if (!eight_bits) return Kokkos::deep_copy(runs[0].full, all);
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const std::size_t begin = parts_[p].begin;
      pack<T>(exec,
              {all.data() + begin, runs[0].codes.data() + begin, runs[0].scales.data() + parts_[p].group,
               end_of(p) - begin, first + begin, draws, encoding});
    }
    exec.fence("wring::feedback");
  }

  std::size_t group_of(std::size_t at) const {
    auto part = std::upper_bound(parts_.begin(), parts_.end(), at,
                                 [](std::size_t i, const Part& p) { return i < p.begin; });
    --part;
    if ((at - part->begin) % residual_group != 0)
      throw CodecError("error feedback: a piece begins within a group of residuals");
    return part->group + (at - part->begin) / residual_group;
  }

  std::vector<Part> parts_;
  std::size_t groups_ = 0;
};

}  // namespace wring::inline v0::detail::feedback
