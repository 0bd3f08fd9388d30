// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <wring/algorithm/concept.hpp>

namespace wring::inline v0 {

/// Every rank talks to its two neighbours alone. Block b travels once round the ring collecting contributions and ends
/// complete on rank b; then it travels round again, unchanged. Broadcast is a chain, fast only with many segments.
///
/// Cost, allreduce: 2(p-1) messages of 1/p vector, p-1 edges and then 1. Fewest bytes, smallest buffers, longest chain:
/// for large messages.
class Ring {
 public:
  std::string name() const { return "ring"; }

  Plan plan(Task task, int rank, int ranks) const {
    Plan plan{rank, ranks};
    if (task.collective == Collective::broadcast) {
      chain(plan, task.root);
      return plan;
    }
    plan.one_block_per_rank(task);
    plan.widest = ranks > 1 || reduces(task.collective) ? 1 : 0;
    if (reduces(task.collective)) reduce(plan);
    if (task.collective != Collective::reduce_scatter) distribute(plan);
    return plan;
  }

  EdgeCount edges(Task task, int ranks) const {
    if (ranks == 1) return {};
    const double once = (ranks - 1.0) / ranks;  // vectors that a rank sends in one turn of the ring
    switch (task.collective) {
    case Collective::allreduce: return {{ranks - 1, 1}, {once, once}};
    case Collective::reduce_scatter: return {{ranks - 1}, {once}};
    default: return {{1}, {once}};
    }
  }

  bool symmetric(Task task, int /*ranks*/) const { return task.collective != Collective::broadcast; }

 private:
  static void chain(Plan& plan, int root) {
    const int p = plan.ranks, place = detail::modulo(plan.rank - root, p);
    plan.blocks = 1;
    plan.budgets = plan.widest = p > 1 ? 1 : 0;
    if (place > 0) plan.store(detail::modulo(plan.rank - 1, p), 0, 1);
    if (place < p - 1) plan.send(detail::modulo(plan.rank + 1, p), 0, 1);
  }

  /// Block b starts on rank b + 1 and ends on rank b.
  static void reduce(Plan& plan) {
    turn(plan, Kind::combine, plan.rank - 1);
    plan.finish(plan.rank, plan.rank + 1);
  }

  /// Block b starts on rank b.
  static void distribute(Plan& plan) { turn(plan, Kind::store, plan.rank); }

  /// One turn of the ring: first sends block `start`, then always what has just arrived. The turn is an error class.
  static void turn(Plan& plan, Kind kind, int start) {
    const int p = plan.ranks;
    if (p == 1) return;
    const int right = detail::modulo(plan.rank + 1, p), left = detail::modulo(plan.rank - 1, p);
    const int budget = plan.budgets++;
    for (int s = 0; s < p - 1; ++s) {
      const int out = detail::modulo(start - s, p), in = detail::modulo(start - s - 1, p);
      plan.send(right, out, out + 1, budget);
      if (kind == Kind::combine)
        plan.combine(left, in, in + 1, budget);
      else
        plan.store(left, in, in + 1, budget);
    }
  }
};

static_assert(EdgeCountedAlgorithm<Ring> && SymmetricAlgorithm<Ring>);

}  // namespace wring::inline v0
