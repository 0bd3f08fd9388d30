// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <string>

#include <wring/algorithm.hpp>

/// Everything up a binomial tree to rank 0 (of a broadcast: the root), then down again. With 6 ranks:
///
///     0 --+-- 1            rank r is the root of the subtree [r, end(r)),
///         +-- 2 -- 3       and its parent is r without its lowest bit
///         +-- 4 -- 5
///
/// 2 log2 p messages for the busiest rank, each of a whole vector: for a handful of values, or to see how a plan is written.
/// A plan says who sends which blocks to whom, in the order in which one rank does it. `wring::verify` checks the plans of all.
struct Tree {
  std::string name() const { return "tree"; }

  wring::Plan plan(wring::Task task, int rank, int ranks) const {
    const int root = task.collective == wring::Collective::broadcast ? task.root : 0;
    const int place = (rank - root + ranks) % ranks;  // the root has place 0
    const int lowest_bit = place == 0 ? ranks : place & -place;
    const auto end = [&](int r) { return std::min(r + (r & -r), ranks); };
    const auto rank_at = [&](int r) { return (r + root) % ranks; };
    const int parent = rank_at(place & (place - 1)), up = 0, down = 1;  // error classes

    wring::Plan plan{rank, ranks};
    plan.one_block_per_rank(task);
    plan.budgets = 2, plan.widest = ranks;
    for (int bit = 1; bit < lowest_bit && place + bit < ranks; bit *= 2) {
      const int child = place + bit;
      if (reduces(task.collective)) plan.combine(rank_at(child), 0, ranks, up);
      if (task.collective == wring::Collective::allgather) plan.store(child, child, end(child), down);
    }
    if (place == 0 && reduces(task.collective)) plan.finish(0, ranks);
    if (place != 0) {
      if (reduces(task.collective)) plan.send(parent, 0, ranks, up);
      if (task.collective == wring::Collective::allgather) plan.send(parent, place, end(place), down);
      plan.store(parent, 0, ranks, down);
    }
    for (int bit = 1; bit < lowest_bit && place + bit < ranks; bit *= 2)
      plan.send(rank_at(place + bit), 0, ranks, down);
    return plan;
  }
};

static_assert(wring::Algorithm<Tree>);
