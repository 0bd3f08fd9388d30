// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <wring/collective/executor/execution.hpp>
#include <wring/collective/group.hpp>
#include <wring/view/pack.hpp>

namespace wring::inline v0::detail {

/// An execution with the views it works on: keeps them alive, packs what is not flat, unpacks the result.
template <class Codec, class Link, class Exec, class Items> class ViewExecution final
    : public Execution<Codec, Link, Exec> {
 public:
  using T = typename Codec::value_type;
  using Space = typename Exec::memory_space;

  /// Turns the views into the tensors of the operation. What is wrong with them is left in `job().failure`.
  void set_views(Items items, Collective collective, int root, int rank, int ranks) {
    views_.emplace(std::move(items));
    auto& tensors = this->shared().tensors;
    tensors.clear(), packed_.clear();
    this->job().counts.clear();
    occupied_.clear();
    for_each_item(*views_, [&](const auto& item) { add(item, collective, root, rank, ranks); });
    check_items_apart();
  }

 private:
  /// Flat memory that stands for a view that is not flat.
  struct Packed {
    Bytes<Space> in, out;
  };

  template <class In, class Out> static void check_types() {
    using Value = std::remove_const_t<typename In::value_type>;
    static_assert(
        std::is_same_v<Value, typename Out::value_type>,
        "wring: input and output must have the same element type, and the output must not be const");
    static_assert(std::is_same_v<Value, T>,
                  "wring: the views' element type is not the compressor's value_type");
    static_assert(In::rank() <= 8 && Out::rank() <= 8, "wring: views have at most eight dimensions");
    static_assert(Kokkos::SpaceAccessibility<Exec, typename In::memory_space>::accessible &&
                      Kokkos::SpaceAccessibility<Exec, typename Out::memory_space>::accessible,
                  "wring: the execution space cannot access the memory of the views");
  }

  template <class In, class Out> void add(const Item<In, Out>& item, Collective collective, int root,
                                          int rank, int ranks) {
    check_types<In, Out>();
    const Shape in = shape_of(item.in), out = shape_of(item.out);
    Tensor<Codec> tensor;
    tensor.bound = item.bound;
    describe(tensor, collective, rank, ranks, in.size(), out.size(), item.counts);
    check_overlap(item, in, out, tensor);
    occupy(item.in.data(), in, false), occupy(item.out.data(), out, true);
    packed_.emplace_back();
    auto& pool = this->shared().pool;
    const auto* source = item.in.data();
    const bool input = collective != Collective::broadcast || rank == root;
    if (in.flat()) {
      tensor.in = {source, input ? in.size() : 0};
    } else if (input && !this->job().failure) {
      packed_.back().in = pool.take(in.size() * sizeof(T));
      const std::span<T> flat(reinterpret_cast<T*>(packed_.back().in.span.data()), in.size());
      pack<T>(this->shared().exec, source, in, flat);
      tensor.in = flat;
    }
    if (out.flat()) {
      tensor.out = {item.out.data(), out.size()};
    } else {
      const bool in_place = packed_.back().in && in == out && source == item.out.data();
      packed_.back().out = in_place ? packed_.back().in : pool.take(out.size() * sizeof(T));
      tensor.out = {reinterpret_cast<T*>(packed_.back().out.span.data()), out.size()};
    }
    this->shared().tensors.push_back(std::move(tensor));
  }

  void complain(const std::string& what) {
    Failure& failure = this->job().failure;
    if (!failure) failure = {Cause::argument, this->shared().plan.rank, what};
  }

  /// Lengths, offsets and counts, checked against one another.
  void describe(Tensor<Codec>& t, Collective collective, int rank, int ranks, std::size_t in, std::size_t out,
                std::span<const std::size_t> counts) {
    const bool by_rank = collective == Collective::reduce_scatter || collective == Collective::allgather;
    if (!by_rank) {
      if (in != out)
        complain("the input has " + std::to_string(in) + " elements, the output " + std::to_string(out));
      t.total = out;
      return;
    }
    const std::size_t part = collective == Collective::allgather ? in : out,
                      whole = collective == Collective::allgather ? out : in;
    auto& all = this->job().counts;
    const std::size_t begin = all.size();
    if (counts.empty())
      all.insert(all.end(), static_cast<std::size_t>(ranks), part);
    else
      all.insert(all.end(), counts.begin(), counts.end());
    t.total = whole;
    if (all.size() - begin != static_cast<std::size_t>(ranks)) {
      complain("there are " + std::to_string(counts.size()) + " counts for " + std::to_string(ranks) +
               " ranks");
      all.resize(begin + static_cast<std::size_t>(ranks));
      return;
    }
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::size_t sum = std::accumulate(first, all.end(), std::size_t{0});
    const std::size_t offset = std::accumulate(first, first + rank, std::size_t{0});
    if (sum != whole)
      complain("the counts add up to " + std::to_string(sum) + ", but the whole view has " +
               std::to_string(whole) + " elements");
    else if (first[rank] != part)
      complain("this rank's view has " + std::to_string(part) + " elements, its count is " +
               std::to_string(first[rank]));
    (collective == Collective::allgather ? t.in_offset : t.out_offset) = offset;
  }

  /// Input and output are the same elements, or have none in common. Views that are packed are read before anything is written.
  template <class In, class Out>
  void check_overlap(const Item<In, Out>& item, const Shape& in, const Shape& out, const Tensor<Codec>& t) {
    if (!in.flat() || !out.flat() || in.size() == 0 || out.size() == 0) return;
    const T* a = item.in.data();
    const T* b = item.out.data();
    const bool apart =
        std::less_equal<const T*>()(a + in.size(), b) || std::less_equal<const T*>()(b + out.size(), a);
    if (apart || a + t.out_offset == b + t.in_offset) return;
    complain("input and output overlap in part: they must be the same elements (in place) or apart");
  }

  /// Memory of one tensor of a group, without gaps.
  struct Occupied {
    const T *begin, *end;
    std::size_t item;
    bool written;
  };

  void occupy(const T* begin, const Shape& shape, bool written) {
    if (shape.flat() && shape.size() > 0)
      occupied_.push_back({begin, begin + shape.size(), this->shared().tensors.size(), written});
  }

  /// What one tensor of a group writes, no other reads or writes.
  void check_items_apart() {
    if (this->shared().tensors.size() < 2) return;
    const std::less<const T*> before;
    std::sort(occupied_.begin(), occupied_.end(),
              [&](const Occupied& a, const Occupied& b) { return before(a.begin, b.begin); });
    for (auto a = occupied_.begin(); a != occupied_.end(); ++a)
      for (auto b = a + 1; b != occupied_.end() && before(b->begin, a->end); ++b)
        if (a->item != b->item && (a->written || b->written))
          return complain("tensors " + std::to_string(std::min(a->item, b->item)) + " and " +
                          std::to_string(std::max(a->item, b->item)) +
                          " of the group overlap, and at least one of them is written");
  }

  void deliver() override {
    std::size_t i = 0;
    for_each_item(*views_, [&](const auto& item) {
      const Shape out = shape_of(item.out);
      if (!out.flat()) {
        const std::span<T> flat = this->shared().tensors[i].out;
        unpack<T>(this->shared().exec, std::span<const T>(flat), item.out.data(), out);
        this->shared().exec.fence("wring::deliver");
      }
      ++i;
    });
  }

  void release() override { views_.reset(), packed_.clear(); }

  std::optional<Items> views_;
  std::vector<Packed> packed_;
  std::vector<Occupied> occupied_;
};

}  // namespace wring::inline v0::detail
