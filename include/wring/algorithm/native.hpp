// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/ring.hpp>

namespace wring::inline v0 {

/// The transport's own sum: every rank hands its encoded words to it, `MPI_Iallreduce` under `MpiTransport`, and decodes what comes back. For
/// compressors whose pieces are words that add up (`PackedWords`); with any other, and on transports that cannot sum, it does not
/// compile.
///
/// An allreduce is one sum for each segment, of eight blocks, so that a sum has eight times `Options::segment_bytes` of values: libraries are
/// at their best with long vectors. A reduce-scatter sums everything and keeps its own part. Where nothing is added it is `Ring`.
///
/// Sums cannot be taken back, and all ranks must take part: so a second exchange of heads, after the agreement, makes sure that every rank will.
/// Cost: that exchange, and what the library makes of it: about 2(p-1)/p vectors of words per rank.
class Native {
 public:
  static constexpr bool sums_words = true;

  std::string name() const { return "native"; }

  Plan plan(Task task, int rank, int ranks) const {
    if (!reduces(task.collective)) return Ring{}.plan(task, rank, ranks);
    Plan plan{rank, ranks};
    plan.one_block_per_rank(task);
    const bool all = task.collective == Collective::allreduce;
    if (all) plan.blocks = blocks_of_a_sum;
    plan.widest = plan.blocks;
    if (ranks > 1) {
      plan.budgets = 1;
      plan.sum(0, plan.blocks);
    }
    plan.finish(all ? 0 : rank, all ? plan.blocks : rank + 1);
    return plan;
  }

  bool symmetric(Task task, int ranks) const {
    return reduces(task.collective) || Ring{}.symmetric(task, ranks);
  }

 private:
  static constexpr int blocks_of_a_sum = 8;
};

static_assert(SummingAlgorithm<Native> && SymmetricAlgorithm<Native>);

}  // namespace wring::inline v0
