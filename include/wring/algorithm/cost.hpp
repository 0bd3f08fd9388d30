// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/fold.hpp>
#include <wring/algorithm/load.hpp>
#include <wring/algorithm/plan.hpp>
#include <wring/detail/cost/course.hpp>
#include <wring/detail/cost/cut.hpp>
#include <wring/detail/cost/messages.hpp>
#include <wring/detail/cost/script.hpp>
#include <wring/machine.hpp>

namespace wring::inline v0 {

/// What an operation will take. Of the rank that has most to do, where ranks differ.
struct Prediction {
  double seconds = 0;       ///< from the start on all ranks to the end on the last one
  double wire_bytes = 0;    ///< that it sends, headers and agreement included
  double wire_seconds = 0;  ///< that its link takes for them
  double busy_seconds = 0;  ///< of work: codec, and handling of messages

  /// How much of the time the link is in use, in each direction: 1 is all that can be had.
  double wire_share() const { return seconds > 0 ? wire_seconds / seconds : 0; }
};

namespace detail {

inline constexpr double head_bytes = 256;  ///< of the message that opens an operation

/// One exchange among all ranks, by recursive doubling: what opens an operation. `bytes(k)` go out and `seconds(k)` of work follow when a
/// rank has heard of k ranks.
template <class Bytes, class Seconds>
Prediction predict_exchange(int ranks, const Machine& m, Bytes bytes, Seconds seconds) {
  const Fold fold(ranks);
  Prediction p;
  const auto round = [&](double heard, bool inside, int sharing) {
    const double wire = bytes(heard) / (inside ? m.inside_bandwidth : m.bandwidth);
    const double work = 2 * (m.overhead + bytes(heard) / m.copy) + seconds(heard);
    p.seconds += work + wire * (inside ? 1 : sharing) + (inside ? m.inside_latency : m.latency);
    p.wire_bytes += bytes(heard), p.wire_seconds += wire, p.busy_seconds += work;
  };
  const bool pairs_inside = m.ranks_per_node > 1;
  const int sharing = std::min(m.ranks_per_node, ranks);
  const double each = static_cast<double>(ranks) / fold.active;  // ranks that an active one speaks for
  if (!fold.even()) round(1, pairs_inside, 1);
  for (int s = 0; s < fold.doublings; ++s) {
    const int known = 1 << s;
    round(each * known, 2 * each * known <= m.ranks_per_node, sharing);
  }
  if (!fold.even()) round(ranks, pairs_inside, 1);
  return p;
}

inline Prediction predict_heads(int ranks, const Machine& m) {
  return predict_exchange(ranks, m, [](double) { return head_bytes; }, [](double) { return 0.0; });
}

inline void append(Prediction& p, const Prediction& more) {
  p.seconds += more.seconds, p.wire_bytes += more.wire_bytes, p.wire_seconds += more.wire_seconds,
      p.busy_seconds += more.busy_seconds;
}

/// Measuring or encoding the inputs, the agreement before anything moves, and the confirmation.
inline Prediction predict_agreement(int ranks, const Load& load, const Machine& m) {
  Prediction p;
  const auto bytes = static_cast<double>(load.bytes);
  if (load.measured) p.seconds += bytes / m.measure;
  if (load.ahead) p.seconds += bytes / m.encode;
  p.busy_seconds = p.seconds;
  append(p, predict_heads(ranks, m));
  if (load.confirm) append(p, predict_heads(ranks, m));
  return p;
}

inline void expect_ranks(int ranks) {
  if (ranks < 1) throw InvalidArgument("predict: " + std::to_string(ranks) + " ranks, at least 1 needed");
}

/// One rank is enough where all do the same at the same time, over links that are all alike.
template <Algorithm A> bool one_rank_is_enough(const A& algorithm, Task task, int ranks, const Machine& m) {
  return is_symmetric(algorithm, task, ranks) && (m.ranks_per_node == 1 || ranks <= m.ranks_per_node);
}

/// Follows the plans. `all_ranks`, `all_segments`: even where fewer would do.
template <Algorithm A> Prediction follow_plans(const A& algorithm, Task task, int ranks, const Load& load,
                                               const Machine& machine, bool all_ranks, bool all_segments) {
  const bool mirrored = !all_ranks && one_rank_is_enough(algorithm, task, ranks, machine);
  std::vector<Script> scripts(mirrored ? 1 : static_cast<std::size_t>(ranks));
  Scribe scribe(task, load, machine);
  int blocks = 0;
  for (std::size_t r = 0; r < scripts.size(); ++r) {
    const Plan plan = algorithm.plan(task, static_cast<int>(r), ranks);
    blocks = plan.blocks;
    scribe.write(plan, scripts[r]);
  }
  const std::size_t messages = mirrored ? number_messages(scripts[0]) : number_messages(scripts);
  const Cut cut(load, blocks, all_segments);
  Course course(scripts, messages, cut, machine, ranks, mirrored);
  Prediction p;
  p.seconds = course.run();
  p.busy_seconds = course.busy(), p.wire_bytes = course.sent();
  const bool inside = ranks <= machine.ranks_per_node;
  p.wire_seconds = p.wire_bytes / (inside ? machine.inside_bandwidth : machine.bandwidth);
  return p;
}

}  // namespace detail

/// Predicts how long an operation takes, by following its plan in virtual time as the executor would: segments in flight, each taking one
/// step in its turn; four sends on their way for each; a rank's work one piece after the other; a link that sends and takes at a time, one
/// message after the other. Vectors of up to 256 KiB are worked on at the machine's speeds in the caches, from 8 MiB on at those from memory,
/// in between at speeds in between. Blocks count as equal, links as lossless, and what a rank does besides its codec, its messages and their
/// checksums takes no time.
///
/// Deterministic: ranks that have the same arguments (and the same program) get the same doubles. Only + - * / and comparisons.
///
/// Cost: where the algorithm is symmetric (`SymmetricAlgorithm`), about 30 ns for each step of one rank and segment, else of all ranks. Of
/// very many segments `4 * depth` are followed. Throws InvalidArgument for what cannot be.
template <Algorithm A> Prediction predict(const A& algorithm, Task task, int ranks, const Load& load,
                                          const Machine& of_all_lengths) {
  detail::expect_ranks(ranks), expect_possible(load), expect_possible(of_all_lengths);
  const Machine machine = detail::machine_for(of_all_lengths, load.bytes);
  Prediction p = detail::predict_agreement(ranks, load, machine);
  if constexpr (SummingAlgorithm<A>)
    if (reduces(task.collective)) detail::append(p, detail::predict_heads(ranks, machine));  // the consent
  detail::append(p, detail::follow_plans(algorithm, task, ranks, load, machine, false, false));
  return p;
}

/// Predicts the time of an operation whose data travel with the agreement (`Options::ride_along_bytes`), whatever its algorithm.
inline Prediction predict_riding_along(RidesAlong how, Task task, int ranks, const Load& load,
                                       const Machine& machine) {
  detail::expect_ranks(ranks), expect_possible(load), expect_possible(machine);
  const Machine m = detail::machine_for(machine, load.bytes);
  const double bytes = static_cast<double>(load.bytes), encode = bytes / m.encode + m.launch,
               combine = bytes / m.combine + m.launch, decode = bytes / m.decode + m.launch;
  const bool summed = how == RidesAlong::summed;
  const double terms = reduces(task.collective) ? ranks : 1;
  Prediction p = detail::predict_agreement(1, load, m);
  p.seconds += summed ? encode + decode : terms * encode + (terms - 1) * combine + decode;
  p.busy_seconds = p.seconds;
  const auto heard = [&](double k) {
    if (summed) return detail::head_bytes + bytes / (load.sum_ratio > 0 ? load.sum_ratio : load.ratio);
    return detail::head_bytes + bytes * (reduces(task.collective) ? k : 1);
  };
  detail::append(p, detail::predict_exchange(ranks, m, heard, [&](double) { return summed ? combine : 0; }));
  if (load.confirm) detail::append(p, detail::predict_heads(ranks, m));
  return p;
}

}  // namespace wring::inline v0
