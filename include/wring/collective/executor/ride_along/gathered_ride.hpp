// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <wring/collective/executor/agreement/exchange_data.hpp>
#include <wring/collective/executor/ride_along/ride_data.hpp>
#include <wring/detail/pipeline.hpp>

namespace wring::inline v0::detail {

/// Everybody's small input reaches every rank, which computes the result from all of it, in the order of ranks. Compressors whose
/// parameters come out of the agreement get the values as they are and encode everybody's alike; all others send what they have
/// encoded.
template <class Codec, class Link, class Exec> class GatheredRide {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;

  explicit GatheredRide(S& shared) : s_(shared), combining_(shared), adding_(shared) {}

  Contributions& data() { return contributions_; }

  /// Whether the data may ride in this form.
  bool choose(std::span<const std::size_t> counts) {
    // A bound that is divided among the plan's encodings says nothing about these.
    constexpr bool divided = !CombiningCompressor<Codec, Exec> && !LosslessCompressor<Codec, Exec>;
    if (s_.plan.ranks > most_ranks || (divided && s_.tensors[0].bound)) return false;
    const std::size_t total = s_.tensors[0].total, terms = reduces(s_.task.collective) ? ranks() : 1;
    const std::size_t most = std::min(s_.options.ride_along_bytes, gathered_room) / sizeof(T);
    if (total > most || total * terms > most) return false;
    offsets_.assign(1, 0);
    for (const std::size_t n : counts) offsets_.push_back(offsets_.back() + n);
    std::size_t bytes = 0;
    for (int r = 0; r < s_.plan.ranks; ++r) {
      const std::size_t n = contribution(r).count;
      bytes += encode_first && n ? s_.tensors[0].codec->max_compressed_bytes(n) : n * sizeof(T);
    }
    contributions_.start(s_.plan.ranks, bytes);
    return contributions_.max_bytes() <= ride_along_room;
  }

  /// Puts this rank's input in.
  void give() {
    const PieceRange mine = contribution(s_.plan.rank);
    if (mine.count == 0) return void(contributions_.give(s_.plan.rank, 0));
    if constexpr (encode_first) {
      inspect(s_, s_.input(mine), own_context(mine, s_.plan.rank));
      const auto piece = encode(s_, s_.input(mine), own_context(mine, s_.plan.rank));
      to_host(s_, piece.span, contributions_.give(s_.plan.rank, piece.span.size()).data());
    } else {
      const auto values = std::as_bytes(s_.input(mine));
      to_host(s_, values, contributions_.give(s_.plan.rank, values.size()).data());
    }
  }

  void finish() {
    if (!contributions_.complete()) throw TransportError("data of some rank did not ride along");
    if (reduces(s_.task.collective))
      reduce();
    else
      distribute();
  }

 private:
  static constexpr bool encode_first = !PreparedCompressor<Codec, Exec>;
  static constexpr int most_ranks = 1024;

  std::size_t ranks() const { return static_cast<std::size_t>(s_.plan.ranks); }
  Context own_context(const PieceRange& range, int rank) {
    return ride_context(s_, range, rank, Phase::own, 1);
  }

  /// What a rank contributes.
  PieceRange contribution(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    const std::size_t total = s_.tensors[0].total;
    if (s_.task.collective == Collective::broadcast) return {0, 0, rank == s_.task.root ? total : 0};
    if (s_.task.collective != Collective::allgather) return {0, 0, total};
    return {0, offsets_[r], offsets_[r + 1] - offsets_[r]};
  }

  void distribute() {
    for (int r = 0; r < s_.plan.ranks; ++r)
      if (contribution(r).count) publish(s_, contribution(r), encoded(contribution(r), r), 1);
  }

  void reduce() {
    const PieceRange all = contribution(0);
    if (all.count == 0) return;
    if constexpr (CombiningCompressor<Codec, Exec>) {
      Bytes<typename S::Space> sum = encoded(all, 0);
      for (int r = 1; r < s_.plan.ranks; ++r)
        sum = combining_.combine(all, sum.span, encoded(all, r).span, r + 1, false);
      publish(s_, all, combining_.finish(all, std::move(sum), 1), s_.plan.ranks);
    } else {
      const Bytes<typename S::Space> memory = s_.pool.take(all.count * sizeof(T));
      const std::span<T> sum(reinterpret_cast<T*>(memory.span.data()), all.count);
      for (int r = 0; r < s_.plan.ranks; ++r) {
        const Bytes<typename S::Space> piece =
            encoded(all, r);  // before the context, whose scratch memory is one for all
        if (r == 0)
          decode(s_, piece.span, sum, own_context(all, r));
        else
          adding_.add(sum, piece.span, Wire::coded, own_context(all, r));
      }
      adding_.finish(sum);
      write_result(s_, all, std::span<const T>(sum));
      if constexpr (!host_accessible_v<Exec>) s_.exec.fence("wring::ride");  // `memory` goes back to the pool
    }
  }

  /// The encoded contribution of a rank, in the memory of the execution space.
  Bytes<typename S::Space> encoded(const PieceRange& range, int rank) {
    Bytes<typename S::Space> bytes = to_device(s_, contributions_.of(rank));
    if constexpr (encode_first) {
      return bytes;
    } else {
      if (bytes.span.size() != range.count * sizeof(T))
        throw TransportError("data that ride along have the wrong size");
      const std::span<const T> values(reinterpret_cast<const T*>(bytes.span.data()), range.count);
      inspect(s_, values, own_context(range, rank));
      auto result = encode(s_, values, own_context(range, rank));
      if constexpr (!host_accessible_v<Exec>) s_.exec.fence("wring::ride");  // `bytes` goes back to the pool
      return result;
    }
  }

  S& s_;
  CombiningPieces<Codec, Link, Exec> combining_;
  ValuePieces<Codec, Link, Exec> adding_;
  Contributions contributions_;
  std::vector<std::size_t> offsets_;  ///< where each rank's part of a gathered tensor begins
};

}  // namespace wring::inline v0::detail
