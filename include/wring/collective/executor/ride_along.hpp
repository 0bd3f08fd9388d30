// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <wring/collective/executor/exchange_data.hpp>
#include <wring/collective/executor/pieces.hpp>

/// Small operations: everybody's input travels with the agreement, and every rank computes the result from all of it, in the order of
/// ranks, with the very calls that a plan would make. Compressors whose parameters come out of the agreement get the values
/// as they are and encode everybody's alike; all others send what they have encoded.
namespace wring::inline v0::detail {

template <class Codec, class Link, class Exec> class RideAlong {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;
  static constexpr bool encode_first = !PreparedCompressor<Codec, Exec>;

  explicit RideAlong(S& shared) : s_(shared), combining_(shared), adding_(shared) {}

  Contributions& contributions() { return contributions_; }

  /// The most bytes that all contributions together can take behind a head.
  template <class RangeOf> std::size_t worst_bytes(RangeOf range_of) {
    std::size_t total = 0;
    for (int r = 0; r < s_.plan.ranks; ++r) {
      const std::size_t n = range_of(r).count;
      total += encode_first && n ? s_.tensors[0].codec->max_compressed_bytes(n) : n * sizeof(T);
    }
    contributions_.start(s_.plan.ranks, total);
    return contributions_.max_bytes();
  }

  /// Puts this rank's input into the exchange, after `worst_bytes`. `range_of(rank)` is what a rank contributes.
  template <class RangeOf> void give(RangeOf range_of) {
    const PieceRange mine = range_of(s_.plan.rank);
    if (mine.count == 0) return void(contributions_.give(s_.plan.rank, 0));
    if constexpr (encode_first) {
      const auto encoded = encode(s_, s_.input(mine), context(mine, s_.plan.rank, Phase::own, 1));
      copy_out(encoded.span);
    } else {
      copy_out(std::as_bytes(s_.input(mine)));
    }
  }

  /// Computes the result from all contributions.
  template <class RangeOf> void finish(RangeOf range_of) {
    if (!contributions_.complete()) throw TransportError("data of some rank did not ride along");
    compute(range_of);
    s_.exec.fence("wring::finish");
  }

 private:
  template <class RangeOf> void compute(RangeOf range_of) {
    if (!reduces(s_.task.collective)) {
      for (int r = 0; r < s_.plan.ranks; ++r)
        if (range_of(r).count) publish(range_of(r), encoded(range_of(r), r), 1);
      return;
    }
    const PieceRange all = range_of(0);
    if (all.count == 0) return;
    if constexpr (CombiningCompressor<Codec, Exec>) {
      Bytes<typename S::Space> sum = encoded(all, 0);
      for (int r = 1; r < s_.plan.ranks; ++r)
        sum = combining_.combine(all, sum.span, encoded(all, r).span, r + 1, false);
      publish(all, combining_.finish(all, std::move(sum)), s_.plan.ranks);
    } else {
      const Bytes<typename S::Space> memory = s_.pool.take(all.count * sizeof(T));
      const std::span<T> sum(reinterpret_cast<T*>(memory.span.data()), all.count);
      decode(s_, encoded(all, 0).span, sum, context(all, 0, Phase::own, 1));
      for (int r = 1; r < s_.plan.ranks; ++r)
        adding_.add(sum, encoded(all, r).span, Wire::coded, context(all, r, Phase::own, 1));
      finish_values(s_.exec, sum, s_.options.operation == Operation::mean ? s_.plan.ranks : 1);
      write_result(all, sum);
    }
  }

  void copy_out(std::span<const std::byte> bytes) {
    const std::span<std::byte> to = contributions_.give(s_.plan.rank, bytes.size());
    copy_bytes<Kokkos::HostSpace, typename S::Space>(s_.exec, bytes, to.data());
    s_.exec.fence("wring::ride");
  }

  /// The encoded contribution of a rank, in the memory of the execution space.
  Bytes<typename S::Space> encoded(const PieceRange& range, int rank) {
    const std::span<const std::byte> given = contributions_.of(rank);
    Bytes<typename S::Space> bytes = s_.pool.take(given.size());
    copy_bytes<typename S::Space, Kokkos::HostSpace>(s_.exec, given, bytes.span.data());
    if constexpr (encode_first) {
      return bytes;
    } else {
      if (given.size() != range.count * sizeof(T))
        throw TransportError("data that ride along have the wrong size");
      const std::span<const T> values(reinterpret_cast<const T*>(bytes.span.data()), range.count);
      auto result = encode(s_, values, context(range, rank, Phase::own, 1));
      if constexpr (!host_accessible_v<Exec>) s_.exec.fence("wring::ride");  // `bytes` goes back to the pool
      return result;
    }
  }

  /// Decodes a complete result into the user's memory: the part of it that is this rank's.
  void publish(const PieceRange& range, const Bytes<typename S::Space>& result, int terms) {
    const Context c = context(range, s_.plan.rank, Phase::final, terms);
    if (s_.task.collective != Collective::reduce_scatter) return decode(s_, result.span, s_.output(range), c);
    const Bytes<typename S::Space> memory = s_.pool.take(range.count * sizeof(T));
    const std::span<T> values(reinterpret_cast<T*>(memory.span.data()), range.count);
    decode(s_, result.span, values, c);
    write_result(range, values);
    if constexpr (!host_accessible_v<Exec>) s_.exec.fence("wring::ride");
  }

  void write_result(const PieceRange& range, std::span<const T> values) {
    const auto& tensor = s_.tensors[0];
    if (s_.task.collective == Collective::reduce_scatter)
      values = values.subspan(tensor.out_offset, tensor.out.size());
    else
      values = values.first(range.count);
    copy_values<T>(s_.exec, values, tensor.out);
  }

  Context context(const PieceRange& range, int rank, Phase phase, int terms) {
    const auto& allowed = s_.tensors[0].allowed;
    Context c = s_.context(range, phase, terms,
                           allowed.empty() ? std::numeric_limits<double>::infinity() : allowed[0], false);
    c.rank = rank;
    return c;
  }

  S& s_;
  Contributions contributions_;
  CombiningPieces<Codec, Link, Exec> combining_;
  ValuePieces<Codec, Link, Exec> adding_;
};

}  // namespace wring::inline v0::detail
