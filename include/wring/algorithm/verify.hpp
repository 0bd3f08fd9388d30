// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <wring/algorithm/concept.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

/// What the verifier found: the first fault in words (empty: none), and what the plans cost.
struct Verdict {
  std::string error = {};
  EdgeCount edges = {};
  std::uint64_t steps = 0, messages = 0;  ///< of all ranks together
  int max_outstanding = 0;  ///< most messages of one rank not yet received, if it never waits before sending
  bool ok() const { return error.empty(); }
};

namespace detail {

/// Carries the plans of all ranks out with symbols in place of values.
///
/// The symbol of a block is the sum of one random weight per contribution, which tells whether each is in it exactly
/// once, and a hash of the expression that made it, which tells whether two ranks hold the same bits. Additions are
/// commutative and not associative, and an encoding is an arbitrary function of value and error class.
class Verifier {
 public:
  Verifier(std::span<const Plan> plans, Task task)
      : plans_(plans), task_(task), ranks_(static_cast<int>(plans.size())) {}

  Verdict run() {
    const bool ok = check_layout() && check_owners() && check_steps() && match_messages() && match_sums() &&
                    run_in_turn(1, &order_) && run_in_turn(std::numeric_limits<int>::max(), nullptr) &&
                    carry_out() && check_outcome();
    if (ok) finish_counts();
    return std::move(verdict_);
  }

 private:
  struct Symbol {
    std::uint64_t weight = 0, expression = 0;
    std::uint32_t terms = 0;       ///< contributions in it; 0: the rank holds nothing
    std::uint16_t encoded_in = 0;  ///< class of the encoding whose bytes the rank holds
    bool encoded = false, finished = false;
  };
  struct End {  ///< one end of a message
    int rank, step;
  };
  /// Symbols of a run of blocks, with the number of edges of each class for each block.
  struct Symbols {
    std::vector<Symbol> blocks;
    std::vector<std::uint32_t> edges;
  };

  struct Sum {
    Step step{};
    Symbols result{};  ///< once all ranks have come to it
  };

  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  static std::uint64_t leaf(int rank, int block) {
    return mix((static_cast<std::uint64_t>(block) << 32) + static_cast<std::uint64_t>(rank) + 1);
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  bool fail(const std::string& what) {
    verdict_.error = what;
    return false;
  }
  bool fail(End at, const std::string& what) {
    return fail(
        detail::sentence("rank ", at.rank, ", step ", at.step, " (", describe(step(at)), "): ", what));
  }
  const Step& step(End at) const { return plans_[index(at.rank)].steps[index(at.step)]; }

  // ---- what must be the same on all ranks

  bool check_layout() {
    if (ranks_ == 0) return fail("there are no plans");
    if (task_.collective == Collective::broadcast && (task_.root < 0 || task_.root >= ranks_))
      return fail(detail::sentence("the root ", task_.root, " is not a rank"));
    const Plan& first = plans_[0];
    blocks_ = first.blocks;
    budgets_ = first.budgets;
    for (int r = 0; r < ranks_; ++r) {
      const Plan& plan = plans_[index(r)];
      const std::string who = detail::sentence("rank ", r, ": ");
      if (plan.rank != r || plan.ranks != ranks_)
        return fail(
            detail::sentence(who, "its plan says rank ", plan.rank, " of ", plan.ranks, ", not of ", ranks_));
      if (plan.blocks != blocks_) return fail(who + "blocks differ from rank 0");
      if (plan.budgets != budgets_) return fail(who + "budgets differ from rank 0");
      if (plan.widest != first.widest) return fail(who + "widest differs from rank 0");
      if (plan.owner != first.owner) return fail(who + "owner differs from rank 0");
      verdict_.steps += plan.steps.size();
    }
    if (blocks_ < 1) return fail(detail::sentence("a plan has at least one block, not ", blocks_));
    if (budgets_ < 0 || budgets_ > 65536) return fail(detail::sentence("budgets is ", budgets_));
    if (first.widest < 0 || first.widest > blocks_) return fail(detail::sentence("widest is ", first.widest));
    const double symbols = static_cast<double>(ranks_) * blocks_ * (1 + budgets_);
    if (symbols > 1e9 || verdict_.steps > 1'000'000'000)
      return fail("the plans are too large to be verified");
    return true;
  }

  bool check_owners() {
    const std::vector<int>& owner = plans_[0].owner;
    const bool needed =
        task_.collective == Collective::reduce_scatter || task_.collective == Collective::allgather;
    if (owner.empty() && !needed) return true;
    if (owner.size() != index(blocks_)) return fail("owner must have one entry for each block");
    std::vector<char> seen(index(ranks_), 0);
    for (int b = 0; b < blocks_; ++b) {
      const int r = owner[index(b)];
      if (r < 0 || r >= ranks_)
        return fail(detail::sentence("block ", b, ": its owner ", r, " is not a rank"));
      seen[index(r)] = 1;
    }
    for (int r = 0; needed && r < ranks_; ++r)
      if (!seen[index(r)]) return fail(detail::sentence("rank ", r, " owns no block"));
    return true;
  }

  bool check_steps() {
    for (int r = 0; r < ranks_; ++r)
      for (int i = 0; i < static_cast<int>(plans_[index(r)].steps.size()); ++i)
        if (!check_step({r, i})) return false;
    return true;
  }

  bool check_step(End at) {
    const Step& s = step(at);
    if (s.kind > Kind::sum || s.wire > Wire::coded) return fail(at, "unknown kind or wire");
    if (s.first < 0 || s.first >= s.last || s.last > blocks_)
      return fail(at, detail::sentence("its blocks are not a range within [0, ", blocks_, ")"));
    if (s.last - s.first > plans_[0].widest) return fail(at, "it has more blocks than widest says");
    if (s.wire == Wire::coded && s.budget >= budgets_)
      return fail(at, detail::sentence("its budget ", s.budget, " is not below budgets"));
    if (!reduces(task_.collective) && s.kind != Kind::send && s.kind != Kind::store)
      return fail(at, std::string("there is nothing to add in ") + name_of(task_.collective));
    if (s.kind == Kind::sum && s.wire == Wire::raw) return fail(at, "what the transport sums is coded");
    if (!has_peer(s.kind))
      return s.peer == -1 ||
             fail(at, std::string("the peer of ") + (s.kind == Kind::sum ? "sum" : "finish") + " must be -1");
    if (s.peer < 0 || s.peer >= ranks_ || s.peer == at.rank) return fail(at, "its peer is not another rank");
    return true;
  }

  // ---- the k-th send of an ordered pair of ranks is the k-th receive

  /// Sorts by a key in [0, ranks), keeping the order of equal keys.
  template <class Key>
  std::vector<End> sorted(const std::vector<End>& ends, Key key) const {
    std::vector<std::size_t> at(index(ranks_) + 1, 0);
    for (End e : ends) ++at[index(key(e)) + 1];
    for (std::size_t k = 1; k < at.size(); ++k) at[k] += at[k - 1];
    std::vector<End> out(ends.size());
    for (End e : ends) out[at[index(key(e))]++] = e;
    return out;
  }

  bool match_messages() {
    std::vector<End> sends, receives;
    for (int r = 0; r < ranks_; ++r) {
      const std::vector<Step>& steps = plans_[index(r)].steps;
      message_of_.emplace_back(steps.size(), 0);
      for (int i = 0; i < static_cast<int>(steps.size()); ++i)
        if (has_peer(steps[index(i)].kind))
          (steps[index(i)].kind == Kind::send ? sends : receives).push_back({r, i});
    }
    const auto peer = [&](End e) { return step(e).peer; };
    sends_ = sorted(sends, peer);  // by receiver, then sender, then order
    receives_ = sorted(sorted(receives, peer), [](End e) { return e.rank; });
    verdict_.messages = sends_.size();
    for (std::size_t m = 0; m < std::max(sends_.size(), receives_.size()); ++m)
      if (!match(m)) return false;
    return true;
  }

  bool match(std::size_t m) {
    using Pair = std::pair<int, int>;  // receiver, sender
    const Pair none{ranks_, ranks_};
    const Pair out = m < sends_.size() ? Pair{step(sends_[m]).peer, sends_[m].rank} : none;
    const Pair in = m < receives_.size() ? Pair{receives_[m].rank, step(receives_[m]).peer} : none;
    if (out < in) return fail(sends_[m], "no step receives this message");
    if (in < out) return fail(receives_[m], "no step sends this message");
    const Step &s = step(sends_[m]), &r = step(receives_[m]);
    const bool equal = s.first == r.first && s.last == r.last && s.wire == r.wire &&
                       (s.wire == Wire::raw || s.budget == r.budget);
    if (!equal)
      return fail(sends_[m],
                  detail::sentence("it meets rank ", receives_[m].rank, ", step ", receives_[m].step, " (",
                                   describe(r), "), which differs in blocks, wire or budget"));
    message_of_[index(sends_[m].rank)][index(sends_[m].step)] = m;
    message_of_[index(receives_[m].rank)][index(receives_[m].step)] = m;
    return true;
  }

  // ---- the k-th sum of a rank is the k-th of all

  bool match_sums() {
    for (int r = 0; r < ranks_; ++r) {
      const std::vector<Step>& steps = plans_[index(r)].steps;
      sum_of_.emplace_back(steps.size(), 0);
      std::size_t count = 0;
      for (int i = 0; i < static_cast<int>(steps.size()); ++i) {
        if (steps[index(i)].kind != Kind::sum) continue;
        sum_of_.back()[index(i)] = count;
        if (r == 0) sums_.push_back({.step = steps[index(i)]});
        if (count >= sums_.size() || !(sums_[count].step == steps[index(i)]))
          return fail({r, i}, "rank 0 takes no part in this sum");
        ++count;
      }
      if (count < sums_.size())
        return fail(
            detail::sentence("rank ", r, " takes no part in a sum of rank 0: ", describe(sums_[count].step)));
    }
    return true;
  }

  // ---- the plans come to their end

  /// Runs all ranks without values. A rank may have `window` messages that have not been received; before one more it
  /// waits. More steps being possible never makes one impossible, so plans that end with a window of 1 end with any.
  bool run_in_turn(int window, std::vector<int>* order) {
    std::vector<int> next(index(ranks_), 0), outstanding(index(ranks_), 0);
    std::vector<char> sent(sends_.size(), 0), queued(index(ranks_), 1), arrived(index(ranks_), 0);
    std::vector<int> present(sums_.size(), 0);  // ranks that have come to a sum
    std::deque<int> ready;
    for (int r = 0; r < ranks_; ++r) ready.push_back(r);
    const auto wake = [&](int r) {
      if (!std::exchange(queued[index(r)], 1)) ready.push_back(r);
    };
    const auto advance = [&](int r) {  // one step, if it is possible now
      const int i = next[index(r)];
      if (i == static_cast<int>(plans_[index(r)].steps.size())) return false;
      const Step& s = step({r, i});
      const std::size_t m = message_of_[index(r)][index(i)];
      if (s.kind == Kind::send) {
        if (outstanding[index(r)] >= window) return false;
        verdict_.max_outstanding = std::max(verdict_.max_outstanding, ++outstanding[index(r)]);
        sent[m] = 1;
        wake(s.peer);
      } else if (s.kind == Kind::sum) {
        int& there = present[sum_of_[index(r)][index(i)]];
        if (!std::exchange(arrived[index(r)], 1) && ++there == ranks_)
          for (int other = 0; other < ranks_; ++other) wake(other);
        if (there < ranks_) return false;
        arrived[index(r)] = 0;
      } else if (takes_message(s.kind)) {
        if (!sent[m]) return false;
        --outstanding[index(s.peer)];
        wake(s.peer);
      }
      ++next[index(r)];
      if (order) order->push_back(r);
      return true;
    };
    while (!ready.empty()) {
      const int r = ready.front();
      ready.pop_front();
      queued[index(r)] = 0;
      while (advance(r)) {
      }
    }
    for (int r = 0; r < ranks_; ++r)
      if (next[index(r)] < static_cast<int>(plans_[index(r)].steps.size()))
        return fail({r, next[index(r)]},
                    "deadlock: this step is never possible with one outstanding message per rank");
    return true;
  }

  // ---- what the blocks become

  Symbol& at(int rank, int block) { return held_.blocks[index(rank) * index(blocks_) + index(block)]; }
  std::uint32_t* edges_at(int rank, int block) {
    return held_.edges.data() + (index(rank) * index(blocks_) + index(block)) * index(budgets_);
  }

  bool carry_out() {
    give_inputs();
    std::vector<int> next(index(ranks_), 0);
    in_flight_.resize(sends_.size());
    moved_.assign(index(budgets_), 0);
    for (int r : order_) {
      const End here{r, next[index(r)]++};
      if (!carry_out(here)) return false;
    }
    return true;
  }

  bool carry_out(End here) {
    switch (step(here).kind) {
    case Kind::send: return send(here);
    case Kind::finish: return finish(here);
    case Kind::sum: return sum(here);
    default: return receive(here);
    }
  }

  void give_inputs() {
    held_.blocks.resize(index(ranks_) * index(blocks_));
    held_.edges.assign(held_.blocks.size() * index(budgets_), 0);
    whole_.assign(index(blocks_), 0);
    for (int b = 0; b < blocks_; ++b)
      for (int r = 0; r < ranks_; ++r) {
        const std::uint64_t weight = leaf(r, b);
        if (reduces(task_.collective) || source(b) == r) {
          at(r, b) = {.weight = weight, .expression = mix(weight), .terms = 1};
          whole_[index(b)] += weight;
        }
      }
  }

  /// Whose data block b is, when nothing is added.
  int source(int b) const {
    return task_.collective == Collective::broadcast ? task_.root : plans_[0].owner[index(b)];
  }
  std::uint32_t terms_wanted() const {
    return reduces(task_.collective) ? static_cast<std::uint32_t>(ranks_) : 1;
  }
  bool complete(int rank, int block) {
    return at(rank, block).terms == terms_wanted() && at(rank, block).weight == whole_[index(block)];
  }
  std::string contents(int rank, int block) {
    const std::uint32_t terms = at(rank, block).terms;
    return detail::sentence("block ", block, " holds ", terms,
                            (terms == 1 ? " contribution" : " contributions"), ", where each of ",
                            terms_wanted(), " is wanted once");
  }

  /// Encoding a block replaces it by its decoded value.
  void encode(int rank, int block, int budget) {
    Symbol& s = at(rank, block);
    s.expression = mix(s.expression ^ mix(0xc0de00000000u + static_cast<std::uint64_t>(budget)));
    s.encoded = true;
    s.encoded_in = static_cast<std::uint16_t>(budget);
    ++edges_at(rank, block)[budget];
  }

  bool send(End here) {
    const Step& s = step(here);
    Symbols& message = in_flight_[message_of_[index(here.rank)][index(here.step)]];
    for (int b = s.first; b < s.last; ++b) {
      if (at(here.rank, b).terms == 0) return fail(here, detail::sentence("block ", b, " holds nothing yet"));
      if (s.wire == Wire::coded) {
        if (!at(here.rank, b).encoded) encode(here.rank, b, s.budget);
        ++moved_[at(here.rank, b).encoded_in];
      }
      message.blocks.push_back(at(here.rank, b));
      message.blocks.back().encoded = s.wire == Wire::coded;
    }
    message.edges.assign(edges_at(here.rank, s.first),
                         edges_at(here.rank, s.first) + (s.last - s.first) * budgets_);
    return true;
  }

  bool receive(End here) {
    const Step& s = step(here);
    const Symbols message = std::exchange(in_flight_[message_of_[index(here.rank)][index(here.step)]], {});
    for (int b = s.first; b < s.last; ++b) {
      const Symbol& theirs = message.blocks[index(b - s.first)];
      const std::uint32_t* their_edges = message.edges.data() + (b - s.first) * budgets_;
      Symbol& mine = at(here.rank, b);
      if (s.kind == Kind::store) {
        mine = theirs;
        std::copy_n(their_edges, budgets_, edges_at(here.rank, b));
        continue;
      }
      if (mine.finished || theirs.finished)
        return fail(here, detail::sentence("block ", b, " is already finished"));
      if (mine.terms == 0) return fail(here, detail::sentence("block ", b, " holds nothing to add to"));
      mine.weight += theirs.weight;
      mine.terms += theirs.terms;
      const auto [low, high] = std::minmax(mine.expression, theirs.expression);
      mine.expression = mix(low * 3 + mix(high));
      mine.encoded = false;
      for (int j = 0; j < budgets_; ++j) edges_at(here.rank, b)[j] += their_edges[j];
    }
    return true;
  }

  bool finish(End here) {
    const Step& s = step(here);
    for (int b = s.first; b < s.last; ++b) {
      Symbol& block = at(here.rank, b);
      if (block.finished) return fail(here, detail::sentence("block ", b, " is already finished"));
      if (!complete(here.rank, b)) return fail(here, contents(here.rank, b));
      block.finished = true;
      block.encoded = false;
      block.expression = mix(block.expression + 0xf1a15u);
      if (s.wire == Wire::coded) encode(here.rank, b, s.budget);
    }
    return true;
  }

  /// The first rank that goes on finds all others waiting at the same step: it adds up what they hold.
  bool sum(End here) {
    const Step& s = step(here);
    Sum& sum = sums_[sum_of_[index(here.rank)][index(here.step)]];
    if (sum.result.blocks.empty()) {
      sum.result.edges.assign(index(s.last - s.first) * index(budgets_), 0);
      for (int b = s.first; b < s.last; ++b)
        if (!add_up(here, b, sum.result)) return false;
    }
    for (int b = s.first; b < s.last; ++b) {
      at(here.rank, b) = sum.result.blocks[index(b - s.first)];
      std::copy_n(sum.result.edges.data() + (b - s.first) * budgets_, budgets_, edges_at(here.rank, b));
    }
    return true;
  }

  bool add_up(End here, int b, Symbols& result) {
    Symbol total;
    std::uint32_t* const edges = result.edges.data() + result.blocks.size() * index(budgets_);
    for (int r = 0; r < ranks_; ++r) {
      if (at(r, b).finished) return fail(here, detail::sentence("block ", b, " is already finished"));
      if (at(r, b).terms == 0) return fail(here, detail::sentence("block ", b, " holds nothing on rank ", r));
      if (!at(r, b).encoded) encode(r, b, step(here).budget);
      ++moved_[at(r, b).encoded_in];
      total.weight += at(r, b).weight, total.terms += at(r, b).terms;
      total.expression += mix(at(r, b).expression);  // in no order
      for (int j = 0; j < budgets_; ++j) edges[j] += edges_at(r, b)[j];
    }
    total.expression = mix(total.expression + 0x50f5u);
    result.blocks.push_back(total);
    return true;
  }

  // ---- the result

  bool check_outcome() {
    verdict_.edges.per_budget.assign(index(budgets_), 0);
    for (int b = 0; b < blocks_; ++b) {
      int other = -1;  // another rank that has this result
      for (int r = 0; r < ranks_; ++r) {
        if (task_.collective == Collective::reduce_scatter && plans_[0].owner[index(b)] != r) continue;
        const std::string where = detail::sentence("at the end, rank ", r, ": ");
        if (!complete(r, b)) return fail(where + contents(r, b));
        if (reduces(task_.collective) && !at(r, b).finished)
          return fail(detail::sentence(where, "block ", b, " is complete but not finished"));
        if (other >= 0 && at(other, b).expression != at(r, b).expression)
          return fail(detail::sentence(where, "block ", b, " has other bits than on rank ", other));
        other = r;
        for (int j = 0; j < budgets_; ++j) {
          int& most = verdict_.edges.per_budget[index(j)];
          most = std::max(most, static_cast<int>(edges_at(r, b)[j]));
        }
      }
    }
    return true;
  }

  void finish_counts() {
    for (std::uint64_t blocks : moved_)
      verdict_.edges.moved.push_back(static_cast<double>(blocks) / blocks_ / ranks_);
  }

  std::span<const Plan> plans_;
  Task task_;
  int ranks_, blocks_ = 0, budgets_ = 0;
  Verdict verdict_;
  std::vector<End> sends_, receives_;                 ///< message m goes from sends_[m] to receives_[m]
  std::vector<std::vector<std::size_t>> message_of_;  ///< message_of_[rank][step]
  std::vector<Sum> sums_;
  std::vector<std::vector<std::size_t>> sum_of_;  ///< sum_of_[rank][step]
  std::vector<int> order_;                        ///< whose turn it is, for a run with a window of 1
  Symbols held_;
  std::vector<Symbols> in_flight_;
  std::vector<std::uint64_t> whole_;  ///< the weight of each block's right result
  std::vector<std::uint64_t> moved_;  ///< blocks sent in pieces of each class
};

}  // namespace detail

/// The plans of all ranks.
template <Algorithm A>
std::vector<Plan> plans_of(const A& algorithm, Task task, int ranks) {
  std::vector<Plan> plans;
  plans.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) plans.push_back(algorithm.plan(task, r, ranks));
  return plans;
}

/// Checks that the plans of all ranks (plans[r] is that of rank r) carry `task` out: every result is made of each
/// contribution exactly once, finished once, with the same bits on all ranks; sends and receives fit; the plans come to
/// their end when every rank may have but one message that has not been received, so no transport can deadlock; and what
/// must be equal on all ranks is. A broken plan gives the first fault in words; it never throws.
inline Verdict verify(std::span<const Plan> plans, Task task) { return detail::Verifier(plans, task).run(); }

/// The same for an algorithm. An exception from `plan` is a fault too.
template <Algorithm A>
Verdict verify(const A& algorithm, Task task, int ranks) {
  try {
    return verify(plans_of(algorithm, task, ranks), task);
  } catch (const std::exception& e) {
    return {.error = std::string("plan() threw: ") + e.what()};
  }
}

/// Counts the compressed edges in the plans of all ranks. Throws InvalidArgument if the plans are broken.
inline EdgeCount count_edges(std::span<const Plan> plans, Task task) {
  Verdict verdict = verify(plans, task);
  if (!verdict.ok()) throw InvalidArgument("wring: these plans are broken: " + verdict.error);
  return std::move(verdict.edges);
}

/// The compressed edges of an algorithm: by its own formula where it has one, else counted.
template <Algorithm A>
EdgeCount edges_of(const A& algorithm, Task task, int ranks) {
  if constexpr (EdgeCountedAlgorithm<A>)
    return algorithm.edges(task, ranks);
  else
    return count_edges(plans_of(algorithm, task, ranks), task);
}

}  // namespace wring::inline v0
