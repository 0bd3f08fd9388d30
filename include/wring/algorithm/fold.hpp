// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>

#include <wring/algorithm/plan.hpp>

namespace wring::inline v0::detail {

/// Any number of ranks folded onto a power of two: the first 2 * extra ranks form pairs (0, 1), (2, 3), ... of which the
/// even one is active and works for both; the remaining ranks are active alone.
///
///     ranks   0 1  2 3  4  5        6 ranks: active 4, extra 2
///     active  0    1    2  3
struct Fold {
  int ranks, doublings = 0, active = 1, extra = 0;

  explicit Fold(int count) : ranks(count) {
    for (; 2 * active <= ranks; active *= 2) ++doublings;
    extra = ranks - active;
  }
  bool even() const { return extra == 0; }
  bool folded(int rank) const { return rank < 2 * extra && rank % 2 == 1; }
  bool has_twin(int rank) const { return rank < 2 * extra; }
  int number(int rank) const { return rank < 2 * extra ? rank / 2 : rank - extra; }  ///< of an active rank
  int rank(int number) const { return number < extra ? 2 * number : number + extra; }
  /// With one block per rank, active rank a answers for blocks [first_block(a), first_block(a + 1)).
  int first_block(int number) const { return rank(std::min(number, active)); }
};

/// Writes the parts of a plan that work on a folded power of two. Ranks are counted from `root` on, so that the root of a
/// broadcast is active and has number 0.
class FoldedSchedule {
 public:
  explicit FoldedSchedule(Plan& plan, int root = 0)
      : plan_(plan), fold_(plan.ranks), root_(root), place_(modulo(plan.rank - root, plan.ranks)) {}

  const Fold& fold() const { return fold_; }
  bool folded() const { return fold_.folded(place_); }
  bool has_twin() const { return fold_.has_twin(place_); }
  /// The other rank of my pair: the active one for a folded rank, the folded one for an active rank.
  int twin() const { return at(folded() ? place_ - 1 : place_ + 1); }

  /// Blocks [from, from + count) of the numbers that agree with mine above bit s: what I hold at step s of a doubling.
  struct Range {
    int first, last;
  };
  Range half(int s) const { return range((number() >> s) << s, s); }
  Range other_half(int s) const { return range(((number() >> s) ^ 1) << s, s); }
  Range mine() const { return range(number(), 0); }
  int partner(int s) const { return at(fold_.rank(number() ^ (1 << s))); }

  /// A folded rank hands everything to its twin and waits for the outcome, blocks [first, last), in class `result`.
  void hand_over(int blocks, int first, int last, int result) {
    plan_.send(twin(), 0, blocks, 0);
    plan_.store(twin(), first, last, result);
  }

  /// Halve, from wide to narrow: after it, an active rank holds the sum of its own blocks.
  void reduce_by_halving(int budget) {
    for (int s = fold_.doublings - 1; s >= 0; --s) {
      const Range keep = half(s), give = other_half(s);
      plan_.send(partner(s), give.first, give.last, budget);
      plan_.combine(partner(s), keep.first, keep.last, budget);
    }
  }

  /// Double, from narrow to wide: active ranks that hold their own blocks end with all blocks. After a broadcast's
  /// scatter, ranks that dealt blocks out in a step have kept them: they are not sent these again.
  void gather_by_doubling(int budget, bool after_scatter = false) {
    for (int s = 0; s < fold_.doublings; ++s) {
      const Range have = half(s), want = other_half(s);
      if (!(after_scatter && hears_from_above(s))) plan_.send(partner(s), have.first, have.last, budget);
      if (!(after_scatter && sends_down(s))) plan_.store(partner(s), want.first, want.last, budget);
    }
  }

  /// A whole reduce_scatter by halving; one block per rank.
  void reduce_scatter() {
    const int result = 1;
    plan_.budgets = fold_.ranks == 1 ? 0 : fold_.even() ? 1 : 2;
    plan_.widest = fold_.even() ? std::max(1, fold_.ranks / 2) : fold_.ranks;
    if (folded()) return hand_over(fold_.ranks, place_, place_ + 1, result);
    if (has_twin()) plan_.combine(twin(), 0, fold_.ranks, 0);
    reduce_by_halving(0);
    plan_.finish(mine().first, mine().last);
    if (has_twin()) plan_.send(twin(), place_ + 1, place_ + 2, result);
  }

  /// A whole allgather by doubling; one block per rank. A folded rank is not sent its own block.
  void allgather() {
    const int p = fold_.ranks;
    plan_.budgets = p > 1 ? 1 : 0;
    plan_.widest = p == 1 ? 0 : std::max(fold_.first_block(fold_.active / 2), fold_.even() ? 0 : p - 2);
    if (folded()) {
      plan_.send(twin(), place_, place_ + 1);
      plan_.store(twin(), 0, place_);
      plan_.store(twin(), place_ + 1, p);
      return;
    }
    if (has_twin()) plan_.store(twin(), place_ + 1, place_ + 2);
    gather_by_doubling(0);
    if (!has_twin()) return;
    plan_.send(twin(), 0, place_ + 1);
    plan_.send(twin(), place_ + 2, p);
  }

  /// A broadcast down a binomial tree: everything to everybody. One block.
  void broadcast_by_tree() {
    plan_.blocks = 1;
    plan_.budgets = plan_.widest = fold_.ranks > 1 ? 1 : 0;
    if (folded()) return plan_.store(twin(), 0, 1);
    for (int s = fold_.doublings - 1; s >= 0; --s) {
      if (sends_down(s)) plan_.send(partner(s), 0, 1);
      if (hears_from_above(s)) plan_.store(partner(s), 0, 1);
    }
    if (has_twin()) plan_.send(twin(), 0, 1);
  }

  /// A broadcast that deals out the blocks down the tree and gathers them by doubling. One block per rank.
  void broadcast_by_scatter() {
    const int p = fold_.ranks;
    plan_.budgets = p > 1 ? 1 : 0;
    plan_.widest = fold_.even() ? p / 2 : p;
    if (folded()) return plan_.store(twin(), 0, p);
    for (int s = fold_.doublings - 1; s >= 0; --s) {
      if (sends_down(s)) plan_.send(partner(s), other_half(s).first, other_half(s).last);
      if (hears_from_above(s)) plan_.store(partner(s), half(s).first, half(s).last);
    }
    gather_by_doubling(0, true);
    if (has_twin()) plan_.send(twin(), 0, p);
  }

 private:
  int at(int place) const { return modulo(place + root_, fold_.ranks); }
  int number() const { return fold_.number(place_); }
  Range range(int number, int s) const {
    return {fold_.first_block(number), fold_.first_block(number + (1 << s))};
  }
  /// In step s of the tree, numbers divisible by 2^(s+1) send to the number 2^s above them.
  bool sends_down(int s) const { return number() % (2 << s) == 0; }
  bool hears_from_above(int s) const { return number() % (2 << s) == (1 << s); }

  Plan& plan_;
  Fold fold_;
  int root_, place_;
};

/// Edges of a reduce_scatter by halving. Every contribution but one is encoded before it is added, the fold included.
inline EdgeCount edges_of_halving(int ranks) {
  const Fold fold(ranks);
  if (ranks == 1) return {};
  // Each active rank gives away all but its own blocks, each extra rank everything.
  const double moved = (ranks - 1.0) / ranks;
  if (fold.even()) return {{ranks - 1}, {moved}};
  return {{ranks - 1, 1}, {moved, static_cast<double>(fold.extra) / ranks / ranks}};
}

/// Edges of the collectives that encode a value once and forward it to all others: allgather, broadcast.
inline EdgeCount one_edge(int ranks) {
  if (ranks == 1) return {};
  return {{1}, {(ranks - 1.0) / ranks}};
}

}  // namespace wring::inline v0::detail
