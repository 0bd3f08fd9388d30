// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <wring/compressor/concept.hpp>
#include <wring/detail/feedback/kernels.hpp>
#include <wring/detail/hash.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// What error feedback keeps between operations: for each tensor and each way in which operations have moved it, one vector for the first
/// encoding of every value, one for the second, and so on.
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

/// The residuals of one course (see Opening::course), by number of encoding.
template <class Wide, class Space> struct Residuals {
  std::size_t first = 0, count = 0;  ///< the values of the tensor that they are for
  std::vector<Run<Wide, Space>> runs;

  /// Cuts the values into groups: pieces begin at the part of a rank, or a multiple of 512 values behind it.
  void shape(const Opening& o) {
    first = o.first, count = o.count, parts_.clear();
    std::size_t groups = 0, begin = 0;
    const auto add = [&](std::size_t n) {
      parts_.push_back({begin, groups});
      begin += n, groups += groups_of(n);
    };
    if (o.counts.empty() || o.count < o.total)
      add(count);
    else
      for (const std::size_t n : o.counts) add(n);
    groups_ = groups;
  }

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
                        end = std::min(at + n, first + (p + 1 < parts_.size() ? parts_[p + 1].begin : count));
      if (begin < end) f(begin, end - begin);
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
      for (std::size_t i = parts_[p].begin; i < (p + 1 < parts_.size() ? parts_[p + 1].begin : count); ++i)
        all[i] =
            static_cast<Wide>(codes(i)) * scales(parts_[p].group + (i - parts_[p].begin) / residual_group);
    return all;
  }

 private:
  struct Part {
    std::size_t begin, group;
  };

  static std::size_t groups_of(std::size_t n) { return (n + residual_group - 1) / residual_group; }

  void allocate(Run<Wide, Space>& run, bool eight_bits) const {
    if (!eight_bits) {
      if (run.full.extent(0) != count) run.full = Kokkos::View<Wide*, Space>("wring::residuals", count);
    } else if (run.codes.extent(0) != count || run.scales.extent(0) != groups_) {
      run.codes = Kokkos::View<std::int8_t*, Space>("wring::residuals", count);
      run.scales = Kokkos::View<Wide*, Space>("wring::residuals", groups_);
    }
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

/// All of one tensor.
template <class Wide, class Space> struct Tensor {
  std::size_t total = 0;
  std::uint64_t steps = 0;  ///< operations completed
  Operation operation = Operation::sum;
  std::map<std::uint64_t, Residuals<Wide, Space>> courses;
  bool open = false;     ///< an operation is in flight
  bool encoded = false;  ///< and has encoded something
  bool damaged = false;  ///< one failed after that: some residuals are new, some old
};

template <class Wide, class Space> struct Memory {
  bool eight_bits = false;
  int rank = -1, ranks = 0;                                   ///< of the link; none yet
  std::vector<std::unique_ptr<Tensor<Wide, Space>>> tensors;  ///< by item; null: never used

  /// The tensor of an operation, now in use.
  Tensor<Wide, Space>& open(const Opening& o) {
    if (used() && (o.rank != rank || o.ranks != ranks))
      throw InvalidArgument(sentence("the feedback state is that of rank ", rank, " of ", ranks,
                                     ", this is rank ", o.rank, " of ", o.ranks));
    if (o.item >= tensors.size()) tensors.resize(o.item + 1);
    if (!tensors[o.item]) tensors[o.item] = std::make_unique<Tensor<Wide, Space>>();
    Tensor<Wide, Space>& tensor = *tensors[o.item];
    expect_same(tensor, o);
    rank = o.rank, ranks = o.ranks;
    tensor.total = o.total, tensor.operation = o.operation;
    Residuals<Wide, Space>& course = tensor.courses[course_of(o)];
    course.shape(o);
    tensor.open = true, tensor.encoded = false;
    return tensor;
  }

  /// Whether any operation has been completed.
  bool used() const {
    for (const auto& t : tensors)
      if (t && t->steps > 0) return true;
    return false;
  }

  static std::uint64_t course_of(const Opening& o) {
    return Hasher().add(o.course).add(o.first).add(o.count).value();
  }

  bool in_flight() const {
    for (const auto& t : tensors)
      if (t && t->open) return true;
    return false;
  }
  bool damaged() const {
    for (const auto& t : tensors)
      if (t && t->damaged) return true;
    return false;
  }

 private:
  static void expect_same(const Tensor<Wide, Space>& t, const Opening& o) {
    if (t.open) throw InvalidArgument("another operation with this feedback state is in flight");
    if (t.damaged)
      throw InvalidArgument("an operation with this feedback state has failed on its way: reset() or "
                            "restore() the state on all ranks");
    if (t.steps == 0) return;
    if (t.total != o.total)
      throw InvalidArgument(sentence("tensor ", o.item, " has ", o.total, " elements, its feedback state ",
                                     t.total, ": reset() where shapes or their order have changed"));
    if (t.operation != o.operation)
      throw InvalidArgument(sentence("the feedback state is one of a ", name_of(t.operation), ", not of a ",
                                     name_of(o.operation)));
  }
};

}  // namespace wring::inline v0::detail::feedback
