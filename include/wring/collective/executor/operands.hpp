// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <wring/bound.hpp>
#include <wring/collective/executor/job.hpp>
#include <wring/collective/executor/memory/buffers.hpp>
#include <wring/collective/executor/shared.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>
#include <wring/view/pack.hpp>

namespace wring::inline v0::detail {

/// One tensor as the user gives it, in memory that the execution space can access. The types of the views are forgotten here.
template <class T> struct Operand {
  const T* in;
  T* out;
  Shape in_shape, out_shape;
  std::optional<Bound> bound;
  std::span<const std::size_t> counts;  ///< of the call: not to be read after it
};

/// The operands of one operation: checked against one another, packed where they are not flat, and the results unpacked.
template <class Codec, class Link, class Exec> class Operands {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;

  Operands(S& shared, Job& job) : s_(shared), job_(job) {}

  /// Turns operands into the tensors of the operation. What is wrong with them is left in the job's failure.
  void take(std::span<const Operand<T>> operands, int rank, int ranks) {
    s_.tensors.clear(), results_.clear(), job_.counts.clear(), occupied_.clear();
    for (const auto& operand : operands) add(operand, rank, ranks);
    check_apart();
  }

  /// The results go from flat runs to the user's memory.
  void deliver() {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      if (result.shape.flat()) continue;
      unpack<T>(s_.exec, std::span<const T>(s_.tensors[i].out), result.to, result.shape);
      s_.exec.fence("wring::deliver");
    }
  }

  /// The user's memory is the user's again.
  void release() { results_.clear(); }

 private:
  /// Where a result goes, and the flat memory that stands for operands that are not flat.
  struct Result {
    T* to;
    Shape shape;
    Bytes<typename S::Space> packed_in, packed_out;
  };

  /// Memory of one tensor of a group, without gaps.
  struct Occupied {
    const T *begin, *end;
    std::size_t item;
    bool written;
  };

  void add(const Operand<T>& o, int rank, int ranks) {
    Tensor<Codec> tensor;
    tensor.bound = o.bound;
    describe(tensor, o, rank, ranks);
    check_overlap(o, tensor);
    occupy(o.in, o.in_shape, false), occupy(o.out, o.out_shape, true);
    Result& result = results_.emplace_back(Result{o.out, o.out_shape, {}, {}});
    const bool input = job_.task.collective != Collective::broadcast || rank == job_.task.root;
    const std::size_t in = o.in_shape.size(), out = o.out_shape.size();
    if (o.in_shape.flat()) {
      tensor.in = {o.in, input ? in : 0};
    } else if (input && !job_.failure) {
      result.packed_in = s_.pool.take(in * sizeof(T));
      const std::span<T> flat(reinterpret_cast<T*>(result.packed_in.span.data()), in);
      pack<T>(s_.exec, o.in, o.in_shape, flat);
      tensor.in = flat;
    }
    if (o.out_shape.flat()) {
      tensor.out = {o.out, out};
    } else {
      const bool in_place = result.packed_in && o.in_shape == o.out_shape && o.in == o.out;
      result.packed_out = in_place ? result.packed_in : s_.pool.take(out * sizeof(T));
      tensor.out = {reinterpret_cast<T*>(result.packed_out.span.data()), out};
    }
    s_.tensors.push_back(std::move(tensor));
  }

  void complain(const std::string& what) {
    if (!job_.failure) job_.failure = {Cause::argument, s_.plan.rank, what};
  }

  /// Lengths, offsets and counts, checked against one another.
  void describe(Tensor<Codec>& t, const Operand<T>& o, int rank, int ranks) {
    const Collective collective = job_.task.collective;
    const std::size_t in = o.in_shape.size(), out = o.out_shape.size();
    const bool by_rank = collective == Collective::reduce_scatter || collective == Collective::allgather;
    if (!by_rank) {
      if (in != out) complain(sentence("the input has ", in, " elements, the output ", out));
      t.total = out;
      return;
    }
    const std::size_t part = collective == Collective::allgather ? in : out,
                      whole = collective == Collective::allgather ? out : in;
    auto& all = job_.counts;
    const std::size_t begin = all.size();
    if (o.counts.empty())
      all.insert(all.end(), static_cast<std::size_t>(ranks), part);
    else
      all.insert(all.end(), o.counts.begin(), o.counts.end());
    t.total = whole;
    if (all.size() - begin != static_cast<std::size_t>(ranks)) {
      complain(sentence("there are ", o.counts.size(), " counts for ", ranks, " ranks"));
      all.resize(begin + static_cast<std::size_t>(ranks));
      return;
    }
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::size_t sum = std::accumulate(first, all.end(), std::size_t{0});
    const std::size_t offset = std::accumulate(first, first + rank, std::size_t{0});
    if (sum != whole)
      complain(sentence("the counts add up to ", sum, ", but the whole view has ", whole, " elements"));
    else if (first[rank] != part)
      complain(sentence("this rank's view has ", part, " elements, its count is ", first[rank]));
    (collective == Collective::allgather ? t.in_offset : t.out_offset) = offset;
  }

  /// Input and output are the same elements, or have none in common. Views that are packed are read before anything is written.
  void check_overlap(const Operand<T>& o, const Tensor<Codec>& t) {
    const std::size_t in = o.in_shape.size(), out = o.out_shape.size();
    if (!o.in_shape.flat() || !o.out_shape.flat() || in == 0 || out == 0) return;
    const std::less_equal<const T*> not_after;
    const bool apart = not_after(o.in + in, o.out) || not_after(o.out + out, o.in);
    if (apart || o.in + t.out_offset == o.out + t.in_offset) return;
    complain("input and output overlap in part: they must be the same elements (in place) or apart");
  }

  void occupy(const T* begin, const Shape& shape, bool written) {
    if (shape.flat() && shape.size() > 0)
      occupied_.push_back({begin, begin + shape.size(), s_.tensors.size(), written});
  }

  /// What one tensor of a group writes, no other reads or writes.
  void check_apart() {
    if (s_.tensors.size() < 2) return;
    const std::less<const T*> before;
    std::sort(occupied_.begin(), occupied_.end(),
              [&](const Occupied& a, const Occupied& b) { return before(a.begin, b.begin); });
    for (auto a = occupied_.begin(); a != occupied_.end(); ++a)
      for (auto b = a + 1; b != occupied_.end() && before(b->begin, a->end); ++b)
        if (a->item != b->item && (a->written || b->written))
          return complain(sentence("tensors ", std::min(a->item, b->item), " and ",
                                   std::max(a->item, b->item),
                                   " of the group overlap, and at least one of them is written"));
  }

  S& s_;
  Job& job_;
  std::vector<Result> results_;
  std::vector<Occupied> occupied_;
};

}  // namespace wring::inline v0::detail
