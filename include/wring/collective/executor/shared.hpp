// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <wring/algorithm/plan.hpp>
#include <wring/bound.hpp>
#include <wring/collective/executor/agreement/magnitudes.hpp>
#include <wring/collective/executor/memory/buffers.hpp>
#include <wring/collective/executor/memory/room.hpp>
#include <wring/collective/executor/segments/message.hpp>
#include <wring/collective/executor/segments/partition.hpp>
#include <wring/collective/options.hpp>
#include <wring/collective/report.hpp>
#include <wring/collective/timeline.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/detail/alone.hpp>
#include <wring/transport/concept.hpp>

namespace wring::inline v0::detail {

/// One tensor of an operation: flat runs of elements in the memory of the execution space.
template <class Codec> struct Tensor {
  using T = typename Codec::value_type;
  std::span<const T> in;       ///< this rank's input; empty where it has none
  std::span<T> out;            ///< where this rank's part of the result goes
  std::size_t in_offset = 0;   ///< index in the whole tensor of in[0]
  std::size_t out_offset = 0;  ///< and of out[0]
  std::size_t total = 0;       ///< elements of the whole tensor
  std::optional<Bound> bound;
  std::optional<Codec> codec;               ///< this operation's copy, with the agreed parameters
  std::optional<std::uint64_t> codec_hash;  ///< of its identity, where it is not the operation's compressor
  bool open = false;                        ///< the codec's memory is in use
  Magnitudes magnitudes;                    ///< of this rank's input, then of all ranks'
  double error = std::numeric_limits<double>::infinity();  ///< the bound in units of the data
  std::vector<double> allowed;                             ///< error allowed to an encoding, by budget class
  bool symmetric = false;                                  ///< of a packed triangle
  std::uint64_t shape = 0;                                 ///< a number for the extents of the whole
  bool scaled = false;                                     ///< the elements are quotients
  std::uint64_t scale_hash = 0;                            ///< of their divisors
};

/// What all parts of one operation work on.
template <class Codec, class Link, class Exec> struct Shared {
  using T = typename Codec::value_type;
  using Transport = Link;
  using Space = typename Exec::memory_space;
  using HostSpace = typename MessageSpace<Exec>::type;
  static constexpr bool staged = !std::is_same_v<Space, HostSpace>;
  /// Whether the transport can sum what the compressor writes.
  static constexpr bool sums = WordSummingCompressor<Codec, Exec> && WordSummingTransport<Link>;

  Link* link = nullptr;
  Exec exec{};
  Task task;
  Options options;
  Plan plan;
  bool wide = false;      ///< whether the plan sends anything in the compressor's wide form
  double wire_speed = 0;  ///< bytes per second of a rank's link, the same on all ranks; 0 where nobody knows
  Partition partition;
  std::vector<Tensor<Codec>> tensors;
  Pool<Space> pool;
  Room<Space> room{pool};
  std::conditional_t<staged, Pool<HostSpace>, Pool<Space>&> messages = message_pool();
  std::uint64_t agreed = 0;
  Failure failure;
  Report report;
  Timeline* timeline = nullptr;  ///< if events are to be recorded
  std::uint64_t sequence = 0;    ///< number of the operation on its link
  std::int64_t segment = -1;     ///< the one that is moving
  std::size_t sums_of_plan = 0;  ///< that the transport makes in every segment
  std::size_t alone = 0;         ///< Opening::alone, where the compressor remembers
  std::size_t sums_in_all = 0, sums_started = 0;
  bool sums_agreed = false;  ///< all ranks take part in the sums, or may do so

  void follow(const Plan& next) {
    plan = next;
    sums_of_plan = count_sums(plan);
    if constexpr (RememberingCompressor<Codec, Exec>) alone = encodings_alone(plan);
    wide = std::any_of(plan.steps.begin(), plan.steps.end(),
                       [](const Step& step) { return step.wire == Wire::raw && step.kind != Kind::finish; });
  }

  /// Cuts the tensors as plan and options say; `counts`: per tensor and rank, where ranks have parts of their own.
  void cut(std::span<const std::size_t> counts) {
    const std::size_t segment_values = std::max<std::size_t>(1, options.segment_bytes / sizeof(T));
    if (!counts.empty()) return partition.cut_by_owner(plan, counts, segment_values);
    lengths.clear();
    for (const auto& t : tensors) lengths.push_back(t.total);
    partition.cut_evenly(plan, lengths, segment_values);
  }

  /// Whether this is the sum to be started next, of all that are in flight on the link: the order is the same on all ranks.
  bool may_sum(std::size_t number) const {
    return sums_agreed && number == sums_started && link->session().has_turn(sequence);
  }
  void note_sum() {
    if (++sums_started == sums_in_all) link->session().end_turn(sequence);
  }

  /// Seconds on this rank's clock, of which the link may have a virtual one.
  double now() const {
    if constexpr (VirtualTimeTransport<Link>)
      return link->now();
    else
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  Timeline::Event event(Timeline::Kind kind, double begin, double end) const {
    return {.begin = begin,
            .end = end,
            .operation = sequence,
            .segment = segment,
            .rank = link->rank(),
            .kind = kind};
  }

  void fail(const Failure& cause) {
    if (!failure) failure = cause;
  }

  /// Whether the ranks agree on what all inputs of a tensor are like.
  static bool measures(const Tensor<Codec>& t) { return SurveyingCompressor<Codec, Exec> || t.bound; }
  bool measures(std::size_t item) const { return measures(tensors[item]); }
  /// Whether the agreement brings together anything of the inputs of a tensor.
  bool compares(std::size_t item) const { return RememberingCompressor<Codec, Exec> || measures(item); }

  bool is_output(int block) const {
    return task.collective != Collective::reduce_scatter ||
           plan.owner[static_cast<std::size_t>(block)] == plan.rank;
  }
  bool has_input(int block) const {
    if (task.collective == Collective::broadcast) return plan.rank == task.root;
    return task.collective != Collective::allgather ||
           plan.owner[static_cast<std::size_t>(block)] == plan.rank;
  }
  std::span<const T> input(const PieceRange& r) const {
    const Tensor<Codec>& t = tensors[r.item];
    return t.in.subspan(r.first - t.in_offset, r.count);
  }
  std::span<T> output(const PieceRange& r) const {
    const Tensor<Codec>& t = tensors[r.item];
    return t.out.subspan(r.first - t.out_offset, r.count);
  }

  /// `encoding`: how often this rank has encoded the piece before.
  Context context(const PieceRange& r, Phase phase, int terms, double allowed_error, bool wide,
                  int encoding = 0) {
    Context c{.collective = task.collective,
              .operation = options.operation,
              .phase = phase,
              .rank = plan.rank,
              .ranks = plan.ranks,
              .terms = terms,
              .step = options.step,
              .item = r.item,
              .first = r.first,
              .count = r.count,
              .total = tensors[r.item].total,
              .allowed_error = allowed_error,
              .wide = wide,
              .encoding = encoding};
    if constexpr (ScratchCompressor<Codec, Exec>) {
      scratch = pool.take(tensors[r.item].codec->scratch_bytes(r.count));
      c.scratch = scratch.span;
    }
    return c;
  }

  /// The most bytes in which a piece of n values can arrive.
  std::size_t worst_bytes(const PieceRange& r) const {
    const Codec& codec = *tensors[r.item].codec;
    const std::size_t own = codec.max_compressed_bytes(r.count);
    if constexpr (CombiningCompressor<Codec, Exec>)
      return std::max<std::size_t>(own, codec.max_combined_bytes(r.count, plan.ranks));
    else  // raw steps send values
      return std::max<std::size_t>(own, r.count * sizeof(T));
  }

  Bytes<Space> scratch;
  std::vector<std::size_t> lengths;

 private:
  auto message_pool() -> std::conditional_t<staged, Pool<HostSpace>, Pool<Space>&> {
    if constexpr (staged)
      return {};
    else
      return pool;
  }
};

}  // namespace wring::inline v0::detail
