// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include <wring/detail/hash.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>
#include <wring/view/adaptor.hpp>
#include <wring/view/pack.hpp>
#include <wring/view/scaled.hpp>
#include <wring/view/symmetric.hpp>

namespace wring::inline v0::detail {

/// One tensor as the user gives it, in memory that the execution space can access. The types of the views are forgotten here.
template <class Codec> struct Operand {
  using T = typename Codec::value_type;
  const T* in;
  T* out;
  Shape in_shape, out_shape;
  std::optional<Bound> bound;
  std::span<const std::size_t> counts;  ///< of the call: not to be read after it
  Adaptor<T> in_adaptor, out_adaptor;
  const Codec* codec = nullptr;  ///< of the tensor's own, if it has one
  std::uint64_t codec_hash = 0;  ///< of its identity

  /// Elements that travel.
  std::size_t in_size() const { return packed_size(in_shape, in_adaptor.symmetric); }
  std::size_t out_size() const { return packed_size(out_shape, out_adaptor.symmetric); }
  /// Whether the user's memory stands for the flat run itself.
  bool in_flat() const { return in_adaptor.none() && in_shape.flat(); }
  bool out_flat() const { return out_adaptor.none() && out_shape.flat(); }
};

/// The operands of one operation: checked against one another, packed where they are not flat, and the results unpacked.
template <class Codec, class Link, class Exec> class Operands {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;
  using Scale = typename Adaptor<T>::Scale;

  Operands(S& shared, Job& job) : s_(shared), job_(job) {}

  /// Turns operands into the tensors of the operation. What is wrong with them is left in the job's failure.
  void take(std::span<const Operand<Codec>> operands, int rank, int ranks) {
    for (auto& t : s_.tensors) allowed_.push_back(std::move(t.allowed));
    s_.tensors.clear(), results_.clear(), job_.counts.clear(), occupied_.clear();
    for (const auto& operand : operands) add(operand, rank, ranks);
    check_apart();
  }

  /// The results go from flat runs to the user's memory.
  void deliver() {
    for (std::size_t i = 0; i < results_.size(); ++i) {
      const Result& result = results_[i];
      if (result.flat) continue;
      const std::span<T> out = s_.tensors[i].out;
      if constexpr (FloatElement<T>)
        if (result.scale)
          multiply_by_scale<T>(s_.exec, out, {result.scale, result.scale_group},
                               s_.tensors[i].bound ? s_.tensors[i].error : 0);
      if (result.symmetric)
        unpack_triangle<T>(s_.exec, std::span<const T>(out), result.to, result.shape);
      else
        unpack<T>(s_.exec, std::span<const T>(out), result.to, result.shape);
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
    bool flat, symmetric;
    const Scale* scale = nullptr;  ///< of the elements that travel
    std::size_t scale_group = 1;   ///< of so many at a time
    Bytes<typename S::Space> packed_in{}, packed_out{}, packed_scale{};
  };

  /// Memory of one tensor of a group, without gaps.
  struct Occupied {
    const T *begin, *end;
    std::size_t item;
    bool written;
  };

  void add(const Operand<Codec>& o, int rank, int ranks) {
    Tensor<Codec> tensor;
    if (!allowed_.empty()) tensor.allowed = std::move(allowed_.back()), allowed_.pop_back();
    tensor.bound = o.bound;
    if (o.codec) tensor.codec.emplace(*o.codec), tensor.codec_hash = o.codec_hash;
    check_adaptors(o);
    describe(tensor, o, rank, ranks);
    check_overlap(o, tensor);
    occupy(o.in, o.in_shape, false), occupy(o.out, o.out_shape, true);
    Result& result = results_.emplace_back(Result{o.out, o.out_shape, o.out_flat(), o.out_adaptor.symmetric});
    const bool input = job_.task.collective != Collective::broadcast || rank == job_.task.root;
    const std::size_t in = o.in_size(), out = o.out_size();
    tensor.symmetric = o.out_adaptor.symmetric;
    tensor.shape = number_for(job_.task.collective == Collective::reduce_scatter ? o.in_shape : o.out_shape);
    if (o.out_adaptor.scaled && !job_.failure) take_scale(o, tensor, result);
    if (o.in_flat()) {
      tensor.in = {o.in, input ? in : 0};
    } else if (input && !job_.failure) {
      result.packed_in = s_.pool.take(in * sizeof(T));
      const std::span<T> flat(reinterpret_cast<T*>(result.packed_in.span.data()), in);
      gather(o, result, flat);
      tensor.in = flat;
    }
    if (o.out_flat()) {
      tensor.out = {o.out, out};
    } else {
      const bool in_place = result.packed_in && o.in_shape == o.out_shape && o.in == o.out;
      result.packed_out = in_place ? result.packed_in : s_.pool.take(out * sizeof(T));
      tensor.out = {reinterpret_cast<T*>(result.packed_out.span.data()), out};
    }
    s_.tensors.push_back(std::move(tensor));
  }

  /// Of the extents, without those of 1: they leave the order of the elements as it is.
  static std::uint64_t number_for(const Shape& shape) {
    Hasher hasher;
    for (int d = 0; d < shape.rank; ++d)
      if (const std::size_t n = shape.extent[static_cast<std::size_t>(d)]; n != 1) hasher.add(n);
    return hasher.value();
  }

  /// The input as a flat run: the elements that travel, divided by their scales.
  void gather(const Operand<Codec>& o, const Result& result, std::span<T> flat) {
    const bool as_it_lies = !o.in_adaptor.symmetric && o.in_shape.flat();
    if (o.in_adaptor.symmetric)
      pack_triangle<T>(s_.exec, o.in, o.in_shape, flat);
    else if (!as_it_lies)
      pack<T>(s_.exec, o.in, o.in_shape, flat);
    if constexpr (FloatElement<T>) {
      if (!o.in_adaptor.scaled) return;
      const std::size_t overflows = divide_by_scale<T>(s_.exec, as_it_lies ? o.in : flat.data(),
                                                       {result.scale, result.scale_group}, flat);
      if (overflows != 0)
        complain(sentence(overflows, " elements divided by their scales exceed the range of their type"));
    }
  }

  /// The scales of the elements that travel, in their order, checked; their hash goes into the agreement.
  void take_scale(const Operand<Codec>& o, Tensor<Codec>& tensor, Result& result) {
    if constexpr (FloatElement<T>) {
      const Adaptor<T>& adaptor = o.out_adaptor;
      const bool grouped = adaptor.scale_group != 1;
      const std::size_t n = grouped ? adaptor.scale_shape.size() : o.out_size();
      result.scale = adaptor.scale, result.scale_group = adaptor.scale_group;
      if ((adaptor.symmetric && !grouped) || !adaptor.scale_shape.flat()) {
        result.packed_scale = s_.pool.take(n * sizeof(Scale));
        const std::span<Scale> flat(reinterpret_cast<Scale*>(result.packed_scale.span.data()), n);
        if (adaptor.symmetric && !grouped)
          pack_triangle<Scale>(s_.exec, adaptor.scale, adaptor.scale_shape, flat);
        else
          pack<Scale>(s_.exec, adaptor.scale, adaptor.scale_shape, flat);
        result.scale = flat.data();
      }
      const ScaleSummary summary = inspect_scales<T>(s_.exec, std::span<const Scale>(result.scale, n));
      tensor.scaled = true, tensor.scale_hash = summary.hash + (adaptor.scale_group - 1);
      if (summary.refused != 0) complain(sentence(summary.refused, " scales are negative, infinite or NaN"));
    }
  }

  /// Adaptors of input and output, against one another and their views.
  void check_adaptors(const Operand<Codec>& o) {
    const Adaptor<T>& adaptor = o.out_adaptor;
    if (o.in_adaptor.none() && adaptor.none()) return;
    const Collective collective = job_.task.collective;
    if (collective != Collective::allreduce && collective != Collective::broadcast)
      complain("symmetric and scaled views are for allreduce and broadcast");
    if (!(o.in_adaptor == adaptor))
      complain("input and output must both be symmetric, and have the same scale, or neither of them");
    for (const Shape* shape : {&o.in_shape, &o.out_shape}) {
      if (adaptor.symmetric && shape->extent[0] != shape->extent[1])
        complain(
            sentence("a symmetric view has ", shape->extent[0], " rows and ", shape->extent[1], " columns"));
      if (adaptor.scaled && adaptor.scale_group == 1 && shape->extent != adaptor.scale_shape.extent)
        complain("a scaled view and its scale have different extents");
      if (adaptor.scaled && adaptor.scale_group != 1)
        check_groups(adaptor, packed_size(*shape, adaptor.symmetric));
    }
  }

  void check_groups(const Adaptor<T>& adaptor, std::size_t elements) {
    const std::size_t group = adaptor.scale_group;
    if (group == 0) return complain("the groups of a scaled view have no elements");
    const std::size_t groups = elements / group + (elements % group != 0 ? 1 : 0);
    if (adaptor.scale_shape.size() != groups)
      complain(sentence("a scaled view of ", elements, " elements in groups of ", group, " has ",
                        adaptor.scale_shape.size(), " scales, not ", groups));
  }

  void complain(const std::string& what) {
    if (!job_.failure) job_.failure = {Cause::argument, s_.plan.rank, what};
  }

  /// Lengths, offsets and counts, checked against one another.
  void describe(Tensor<Codec>& t, const Operand<Codec>& o, int rank, int ranks) {
    const Collective collective = job_.task.collective;
    const std::size_t in = o.in_size(), out = o.out_size();
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
  void check_overlap(const Operand<Codec>& o, const Tensor<Codec>& t) {
    const std::size_t in = o.in_shape.size(), out = o.out_shape.size();
    if (!o.in_flat() || !o.out_flat() || in == 0 || out == 0) return;
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
  std::vector<std::vector<double>> allowed_;  ///< of earlier tensors: memory for the next
};

}  // namespace wring::inline v0::detail
