// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/fold.hpp>

namespace wring::inline v0 {

/// Partners at distance 1, 2, 4, ... exchange all they have and add. Other numbers of ranks than powers of two are
/// folded: an extra rank hands its data to a neighbour first and gets the result at the end.
///
/// Cost, allreduce: log2 p messages of the whole vector: the lowest latency, the most bytes. For short messages.
/// In error it is not logarithmic: both halves of every exchange are encoded, 2(p-1) edges. Broadcast goes down a
/// binomial tree. Where only a part of the data is wanted, reduce_scatter and allgather are those of `HalvingDoubling`.
class RecursiveDoubling {
 public:
  std::string name() const { return "recursive_doubling"; }

  Plan plan(Task task, int rank, int ranks) const {
    Plan plan{rank, ranks};
    if (task.collective != Collective::allreduce) plan.one_block_per_rank(task);
    switch (task.collective) {
    case Collective::allreduce: allreduce(plan); break;
    case Collective::reduce_scatter: detail::FoldedSchedule(plan).reduce_scatter(); break;
    case Collective::allgather: detail::FoldedSchedule(plan).allgather(); break;
    case Collective::broadcast: detail::FoldedSchedule(plan, task.root).broadcast_by_tree(); break;
    }
    return plan;
  }

  EdgeCount edges(Task task, int ranks) const {
    const detail::Fold fold(ranks);
    if (ranks == 1) return {};
    if (task.collective == Collective::reduce_scatter) return detail::edges_of_halving(ranks);
    if (task.collective != Collective::allreduce) return detail::one_edge(ranks);
    EdgeCount count;
    const double extra = static_cast<double>(fold.extra) / ranks,
                 active = static_cast<double>(fold.active) / ranks;
    const auto add = [&](int edges, double moved) {
      count.per_budget.push_back(edges);
      count.moved.push_back(moved);
    };
    if (!fold.even()) add(fold.extra, extra);
    for (int s = 0; s < fold.doublings; ++s) add(fold.active >> s, active);  // both halves of each merge
    if (!fold.even()) add(1, extra);
    return count;
  }

  bool symmetric(Task task, int ranks) const {
    return task.collective != Collective::broadcast && detail::Fold(ranks).even();
  }

 private:
  /// Classes: the fold (if there is one), each doubling, the result that folded ranks get.
  static void allreduce(Plan& plan) {
    detail::FoldedSchedule schedule(plan);
    const detail::Fold& fold = schedule.fold();
    const int first = fold.even() ? 0 : 1, result = first + fold.doublings;
    plan.blocks = plan.widest = 1;
    plan.budgets = fold.even() ? result : result + 1;
    if (schedule.folded()) return schedule.hand_over(1, 0, 1, result);
    if (schedule.has_twin()) plan.combine(schedule.twin(), 0, 1, 0);
    for (int s = 0; s < fold.doublings; ++s) {
      plan.send(schedule.partner(s), 0, 1, first + s);
      plan.combine(schedule.partner(s), 0, 1, first + s);
    }
    // What folded ranks will get is encoded; so that nobody holds other bits, all active ranks encode it alike.
    plan.finish(0, 1, fold.even() ? Wire::raw : Wire::coded, fold.even() ? 0 : result);
    if (schedule.has_twin()) plan.send(schedule.twin(), 0, 1, result);
  }
};

static_assert(EdgeCountedAlgorithm<RecursiveDoubling> && SymmetricAlgorithm<RecursiveDoubling>);

}  // namespace wring::inline v0
