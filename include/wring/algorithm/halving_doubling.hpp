// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <string>

#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/fold.hpp>

namespace wring::inline v0 {

/// Partners far apart exchange halves, then quarters, ... until each rank holds the sum of its own block; then the blocks
/// are gathered the other way round. Other numbers of ranks than powers of two are folded.
///
/// Cost, allreduce: 2 log2 p messages, as few bytes as `Ring`, p-1 edges and then 1: for lengths in between, and for
/// many ranks. When folded, the extra ranks send and get the whole vector.
class HalvingDoubling {
 public:
  std::string name() const { return "halving_doubling"; }

  Plan plan(Task task, int rank, int ranks) const {
    Plan plan{rank, ranks};
    plan.one_block_per_rank(task);
    switch (task.collective) {
    case Collective::allreduce: allreduce(plan); break;
    case Collective::reduce_scatter: detail::FoldedSchedule(plan).reduce_scatter(); break;
    case Collective::allgather: detail::FoldedSchedule(plan).allgather(); break;
    case Collective::broadcast: detail::FoldedSchedule(plan, task.root).broadcast_by_scatter(); break;
    }
    return plan;
  }

  EdgeCount edges(Task task, int ranks) const {
    if (ranks == 1) return {};
    const double once = (ranks - 1.0) / ranks;  // vectors that a rank sends in one phase, on average
    switch (task.collective) {
    case Collective::allreduce: return {{ranks - 1, 1}, {once, once}};
    case Collective::reduce_scatter: return detail::edges_of_halving(ranks);
    default: return detail::one_edge(ranks);
    }
  }

  bool symmetric(Task task, int ranks) const {
    return task.collective != Collective::broadcast && detail::Fold(ranks).even();
  }

 private:
  static void allreduce(Plan& plan) {
    detail::FoldedSchedule schedule(plan);
    const int p = plan.ranks, result = 1;
    plan.budgets = p > 1 ? 2 : 0;
    plan.widest = schedule.fold().even() ? std::max(1, p / 2) : p;
    if (schedule.folded()) return schedule.hand_over(p, 0, p, result);
    if (schedule.has_twin()) plan.combine(schedule.twin(), 0, p, 0);
    schedule.reduce_by_halving(0);
    plan.finish(schedule.mine().first, schedule.mine().last);
    schedule.gather_by_doubling(result);
    if (schedule.has_twin()) plan.send(schedule.twin(), 0, p, result);
  }
};

static_assert(EdgeCountedAlgorithm<HalvingDoubling> && SymmetricAlgorithm<HalvingDoubling>);

}  // namespace wring::inline v0
