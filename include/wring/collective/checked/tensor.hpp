// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <wring/bound.hpp>
#include <wring/collective/executor/agreement/magnitudes.hpp>
#include <wring/collective/executor/memory/buffers.hpp>
#include <wring/operation.hpp>
#include <wring/view/kinds.hpp>
#include <wring/view/pack.hpp>

namespace wring::inline v0::detail {

/// Elements [first, last) of a whole tensor.
struct ElementRange {
  std::size_t first = 0, last = 0;
  std::size_t count() const { return last - first; }
  bool holds(const ElementRange& part) const { return first <= part.first && part.last <= last; }
  ElementRange within(const ElementRange& other) const {
    const std::size_t begin = std::max(first, other.first);
    return {begin, std::max(begin, std::min(last, other.last))};
  }
};

/// The elements of a view in row-major order, in memory of the host: where they are if that can be, else a copy in `kept`.
template <class T, class Exec, class View>
std::span<const T> on_host(const Exec& exec, const View& view, std::vector<T>& kept, bool always_copy) {
  const Shape shape = shape_of(view);
  using Host = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  if (shape.flat() && host_accessible_v<Exec> && !always_copy) return {view.data(), shape.size()};
  kept.resize(shape.size());
  if constexpr (host_accessible_v<Exec>) {
    pack<T>(exec, view.data(), shape, std::span<T>(kept));
    exec.fence("wring::check");
  } else {
    const Buffer<typename Exec::memory_space> flat(shape.size() * sizeof(T));
    T* values = reinterpret_cast<T*>(flat.data());
    pack<T>(exec, view.data(), shape, std::span<T>(values, shape.size()));
    Kokkos::deep_copy(
        exec, Host(kept.data(), kept.size()),
        Kokkos::View<const T*, typename Exec::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
            values, shape.size()));
    exec.fence("wring::check");
  }
  return kept;
}

/// One tensor of a checked operation: a copy of what this rank handed in, where its result will be, and whose elements are whose.
template <class T> class CheckedTensor {
 public:
  template <class Exec, class Item> void keep(const Exec& exec, const Item& item, bool hands_in) {
    static_assert(!AdaptedView<decltype(item.out)>, "wring: Checked takes views without symmetric or scaled");
    bound_ = item.bound;
    counts_.assign(item.counts.begin(), item.counts.end());
    const auto out = plain_view<Exec>(item.out);
    output_size_ = shape_of(out).size();
    output_ = [exec, out, this] { return on_host<T>(exec, out, kept_output_, false); };
    if (!hands_in) return;
    bring_up_to_date<Exec>(item.in);
    on_host<T>(exec, plain_view<Exec>(item.in), input_, true);
    if constexpr (FloatElement<T>) {
      std::unique_ptr<Buffer<Kokkos::HostSpace>> workspace;
      if (bound_)
        magnitudes = measure<T>(Kokkos::DefaultHostExecutionSpace(), std::span<const T>(input_), bound_->kind,
                                workspace);
    }
  }

  /// Once the operation has ended well, so that lengths and counts are known to be right.
  void arrange(Collective collective, int root, int rank, int ranks) {
    collective_ = collective, root_ = root, rank_ = static_cast<std::size_t>(rank);
    const auto p = static_cast<std::size_t>(ranks);
    total_ = collective == Collective::reduce_scatter ? input_.size() : output_size_;
    const bool by_rank = collective == Collective::reduce_scatter || collective == Collective::allgather;
    if (by_rank && counts_.empty()) counts_.assign(p, total_ / p);
    ends_.assign(p, total_);
    if (by_rank) std::partial_sum(counts_.begin(), counts_.end(), ends_.begin());
    result_ = output_();
  }

  std::size_t total() const { return total_; }
  const std::optional<Bound>& bound() const { return bound_; }

  /// The elements that a rank hands in, and those it gets.
  ElementRange inputs_of(std::size_t rank) const {
    if (collective_ == Collective::allgather) return part(rank);
    return {0, collective_ != Collective::broadcast || static_cast<int>(rank) == root_ ? total_ : 0};
  }
  ElementRange outputs_of(std::size_t rank) const {
    return collective_ == Collective::reduce_scatter ? part(rank) : ElementRange{0, total_};
  }

  /// This rank's own among `range`.
  std::span<const T> input(const ElementRange& range) const { return cut(input_, inputs_of(rank_), range); }
  std::span<const T> output(const ElementRange& range) const {
    return cut(result_, outputs_of(rank_), range);
  }

  /// The longest beginning of `range` whose elements all have the same ranks behind them.
  ElementRange alike(const ElementRange& range) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), range.first);
    return {range.first, end == ends_.end() ? range.last : std::min(range.last, *end)};
  }

  Magnitudes magnitudes;                                   ///< of this rank's input, then of all ranks'
  double error = std::numeric_limits<double>::infinity();  ///< the bound in units of the data

 private:
  ElementRange part(std::size_t rank) const { return {rank == 0 ? 0 : ends_[rank - 1], ends_[rank]}; }

  static std::span<const T> cut(std::span<const T> values, const ElementRange& whole,
                                const ElementRange& range) {
    const ElementRange part = range.within(whole);
    return part.count() == 0 ? std::span<const T>() : values.subspan(part.first - whole.first, part.count());
  }

  Collective collective_ = Collective::allreduce;
  int root_ = 0;
  std::size_t rank_ = 0, total_ = 0, output_size_ = 0;
  std::optional<Bound> bound_;
  std::vector<std::size_t> counts_, ends_;
  std::vector<T> input_, kept_output_;
  std::span<const T> result_;
  std::function<std::span<const T>()> output_;  ///< keeps the view alive
};

}  // namespace wring::inline v0::detail
