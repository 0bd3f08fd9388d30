// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <wring/algorithm/concept.hpp>

namespace wring::inline v0 {

/// Every rank talks to every other rank: it sends each owner its block, adds up its own, and sends the result to all.
/// Broadcast: the root deals out the blocks, then everybody tells everybody.
///
/// Cost, allreduce: 2(p-1) messages of 1/p vector as in `Ring`, but every contribution is encoded by its own rank and no delay
/// adds up along a chain. For few ranks, or fast switches.
class Direct {
 public:
  std::string name() const { return "direct"; }

  Plan plan(Task task, int rank, int ranks) const {
    Plan plan{rank, ranks};
    plan.one_block_per_rank(task);
    plan.widest = ranks > 1 || reduces(task.collective) ? 1 : 0;
    if (task.collective == Collective::broadcast) {
      plan.budgets = ranks > 1 ? 1 : 0;
      if (rank == task.root)
        deal(plan);
      else
        spread(plan, task.root);
      return plan;
    }
    if (reduces(task.collective)) reduce(plan);
    if (task.collective != Collective::reduce_scatter) distribute(plan);
    return plan;
  }

  EdgeCount edges(Task task, int ranks) const {
    if (ranks == 1) return {};
    const double once = (ranks - 1.0) / ranks;  // vectors that a rank sends in one phase
    switch (task.collective) {
    case Collective::allreduce: return {{ranks - 1, 1}, {once, once}};
    case Collective::reduce_scatter: return {{ranks - 1}, {once}};
    default: return {{1}, {once}};
    }
  }

  bool symmetric(Task task, int /*ranks*/) const { return task.collective != Collective::broadcast; }

 private:
  static int after(const Plan& plan, int distance) {
    return detail::modulo(plan.rank + distance, plan.ranks);
  }

  static void reduce(Plan& plan) {
    const int budget = plan.ranks > 1 ? plan.budgets++ : 0;
    for (int d = 1; d < plan.ranks; ++d) {
      const int to = after(plan, d);
      plan.send(to, to, to + 1, budget);
      plan.combine(after(plan, -d), plan.rank, plan.rank + 1, budget);
    }
    plan.finish(plan.rank, plan.rank + 1);
  }

  static void distribute(Plan& plan) {
    const int budget = plan.ranks > 1 ? plan.budgets++ : 0;
    for (int d = 1; d < plan.ranks; ++d) {
      const int from = after(plan, -d);
      plan.send(after(plan, d), plan.rank, plan.rank + 1, budget);
      plan.store(from, from, from + 1, budget);
    }
  }

  /// The root's part of a broadcast: each rank its block; then, like all others, its own block to everybody.
  static void deal(Plan& plan) {
    for (int d = 1; d < plan.ranks; ++d) {
      const int to = after(plan, d);
      plan.send(to, to, to + 1);
    }
    for (int d = 1; d < plan.ranks; ++d) plan.send(after(plan, d), plan.rank, plan.rank + 1);
  }

  /// Another rank's part of a broadcast. The root has every block already: nobody sends it one.
  static void spread(Plan& plan, int root) {
    plan.store(root, plan.rank, plan.rank + 1);
    for (int d = 1; d < plan.ranks; ++d) {
      const int to = after(plan, d), from = after(plan, -d);
      if (to != root) plan.send(to, plan.rank, plan.rank + 1);
      plan.store(from, from, from + 1);
    }
  }
};

static_assert(EdgeCountedAlgorithm<Direct> && SymmetricAlgorithm<Direct>);

}  // namespace wring::inline v0
