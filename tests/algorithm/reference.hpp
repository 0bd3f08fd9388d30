// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// An executor for plans that shares nothing with the verifier: whole numbers for values, real queues for messages, a list
/// of contributions for each block. Slow and plain.

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <wring/algorithm.hpp>

namespace reference {

using wring::Collective;
using wring::Kind;
using wring::Plan;
using wring::Step;
using wring::Task;
using wring::Wire;

inline std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// The encoding of class j changes a value by at most error(j), in a way that depends on the value alone.
inline std::int64_t error(int budget) { return std::int64_t{1} << (20 + budget % 8); }
inline std::int64_t lossy(std::int64_t value, int budget) {
  const std::uint64_t random =
      scramble(static_cast<std::uint64_t>(value) * 131 + static_cast<std::uint64_t>(budget));
  return value + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(2 * error(budget) + 1)) -
         error(budget);
}

struct Block {
  std::vector<int> from;  ///< how often each rank's contribution is in it; empty: holds nothing
  std::int64_t value = 0;
  bool bytes = false, finished = false;
};

struct Outcome {
  std::string error;
  std::vector<std::vector<Block>> blocks;  ///< [rank][block]
};

inline std::int64_t input(int rank, int block) {
  return static_cast<std::int64_t>(scramble(static_cast<std::uint64_t>(rank * 1000 + block)) >> 20);
}

class Machine {
 public:
  Machine(const std::vector<Plan>& plans, Task task)
      : plans_(plans), task_(task), p_(static_cast<int>(plans.size())) {}

  /// Every rank may have one message that has not been received.
  Outcome run() {
    give_inputs();
    std::vector<std::size_t> next(plans_.size(), 0);
    std::vector<int> outstanding(plans_.size(), 0);
    for (bool moved = true; moved && out_.error.empty();) {
      moved = false;
      for (int r = 0; r < p_; ++r)
        while (next[r] < plans_[r].steps.size() && out_.error.empty() &&
               step(r, plans_[r].steps[next[r]], outstanding)) {
          ++next[r];
          moved = true;
        }
    }
    for (int r = 0; r < p_; ++r)
      if (next[r] < plans_[r].steps.size()) complain("rank " + std::to_string(r) + " is stuck");
    for (auto& [pair, queue] : wire_)
      if (!queue.empty()) complain("a message is left over");
    check_results();
    return std::move(out_);
  }

 private:
  struct Message {
    Step step;
    std::vector<Block> blocks;
  };
  struct Sum {
    Step step;
    std::set<int> left{};  ///< ranks that have been there
    std::vector<Block> total{};
  };

  void complain(const std::string& what) {
    if (out_.error.empty()) out_.error = what;
  }
  bool adds() const { return wring::reduces(task_.collective); }
  int source(int b) const {
    return task_.collective == Collective::broadcast ? task_.root : plans_[0].owner[b];
  }

  void give_inputs() {
    for (int r = 0; r < p_; ++r) {
      out_.blocks.emplace_back(plans_[0].blocks);
      for (int b = 0; b < plans_[0].blocks; ++b)
        if (adds() || source(b) == r) {
          out_.blocks[r][b] = {std::vector<int>(p_, 0), input(r, b)};
          out_.blocks[r][b].from[r] = 1;
        }
    }
  }

  void encode(Block& block, int budget) {
    if (!block.bytes) block.value = lossy(block.value, budget);
    block.bytes = true;
  }

  bool whole(const Block& block) const { return block.from == std::vector<int>(p_, 1); }

  bool step(int r, const Step& s, std::vector<int>& outstanding) {
    std::vector<Block>& mine = out_.blocks[r];
    if (s.kind == Kind::finish) {
      for (int b = s.first; b < s.last; ++b) {
        if (!whole(mine[b]) || mine[b].finished) complain("finish of what is not a new whole sum");
        mine[b].finished = true;
        mine[b].bytes = false;
        if (s.wire == Wire::coded) encode(mine[b], s.budget);
      }
      return true;
    }
    if (s.kind == Kind::sum) return sum(r, s);
    if (s.kind == Kind::send) {
      if (outstanding[r] == 1) return false;
      Message message{s, {}};
      for (int b = s.first; b < s.last; ++b) {
        if (mine[b].from.empty()) complain("sends nothing");
        if (s.wire == Wire::coded) encode(mine[b], s.budget);
        message.blocks.push_back(mine[b]);
        message.blocks.back().bytes = s.wire == Wire::coded;
      }
      wire_[{r, s.peer}].push_back(std::move(message));
      ++outstanding[r];
      return true;
    }
    auto& queue = wire_[{s.peer, r}];
    if (queue.empty()) return false;
    const Message message = std::move(queue.front());
    queue.pop_front();
    --outstanding[s.peer];
    if (message.step.first != s.first || message.step.last != s.last || message.step.wire != s.wire ||
        (s.wire == Wire::coded && message.step.budget != s.budget)) {
      complain("the message is not what was expected");
      return true;
    }
    for (int b = s.first; b < s.last; ++b) take(mine[b], message.blocks[b - s.first], s.kind);
    return true;
  }

  /// A rank leaves its blocks at its next sum, and takes the sum away when all ranks have been there.
  bool sum(int r, const Step& s) {
    const std::size_t number = sums_taken_[r];
    if (sums_.size() <= number) sums_.resize(number + 1);
    Sum& sum = sums_[number];
    if (sum.left.insert(r).second) {
      if (sum.left.size() == 1) sum.step = s, sum.total.assign(plans_[0].blocks, {std::vector<int>(p_, 0)});
      if (!(sum.step == s) || s.wire == Wire::raw || s.peer != -1 || !adds())
        complain("sums different things");
      for (int b = s.first; b < s.last && out_.error.empty(); ++b) {
        Block& mine = out_.blocks[r][b];
        if (mine.from.empty() || mine.finished) return complain("sums what cannot be added"), true;
        encode(mine, s.budget);
        for (int q = 0; q < p_; ++q) sum.total[b].from[q] += mine.from[q];
        sum.total[b].value += mine.value;
      }
    }
    if (static_cast<int>(sum.left.size()) < p_) return false;
    for (int b = s.first; b < s.last; ++b) out_.blocks[r][b] = sum.total[b];
    ++sums_taken_[r];
    return true;
  }

  void take(Block& mine, const Block& theirs, Kind kind) {
    if (kind == Kind::store) {
      mine = theirs;
      return;
    }
    if (!adds() || mine.from.empty() || theirs.from.empty() || mine.finished || theirs.finished)
      return complain("adds what cannot be added");
    for (int q = 0; q < p_; ++q) mine.from[q] += theirs.from[q];
    mine.value += theirs.value;
    mine.bytes = false;
  }

  void check_results() {
    for (int b = 0; b < plans_[0].blocks && out_.error.empty(); ++b) {
      const Block* first = nullptr;
      for (int r = 0; r < p_; ++r) {
        if (task_.collective == Collective::reduce_scatter && plans_[0].owner[b] != r) continue;
        const Block& block = out_.blocks[r][b];
        std::vector<int> want(p_, adds() ? 1 : 0);
        if (!adds()) want[source(b)] = 1;
        if (block.from != want || block.finished != adds()) complain("wrong result");
        if (first && first->value != block.value) complain("different values");
        first = &block;
      }
    }
  }

  const std::vector<Plan>& plans_;
  Task task_;
  int p_;
  std::map<std::pair<int, int>, std::deque<Message>> wire_;
  std::vector<Sum> sums_;
  std::map<int, std::size_t> sums_taken_;
  Outcome out_;
};

inline Outcome execute(const std::vector<Plan>& plans, Task task) { return Machine(plans, task).run(); }

/// Calls f(algorithm) for every algorithm of the library that serves `ranks` ranks, several forms of Hierarchical among them.
template <class F>
void for_each_algorithm(int ranks, F f) {
  using namespace wring;
  f(Ring{});
  f(Direct{});
  f(RecursiveDoubling{});
  f(HalvingDoubling{});
  f(Native{});
  for (Wire inside : {Wire::raw, Wire::coded}) {
    f(Hierarchical(2, Ring{}, Direct{}, inside));
    f(Hierarchical(3, HalvingDoubling{}, RecursiveDoubling{}, inside));
    f(Hierarchical(4, Hierarchical(2, Direct{}, HalvingDoubling{}, Wire::coded), Ring{}, inside));
    f(Hierarchical(2, RecursiveDoubling{}, Hierarchical(2, Ring{}, RecursiveDoubling{}), inside));
    if (ranks > 2) f(Hierarchical(std::vector<int>{1, ranks - 1}, Ring{}, Ring{}, inside));
    if (ranks > 4) f(Hierarchical(std::vector<int>{2, ranks - 2}, Direct{}, RecursiveDoubling{}, inside));
  }
}

inline std::vector<Task> tasks(int ranks) {
  std::vector<Task> all{{Collective::allreduce}, {Collective::reduce_scatter}, {Collective::allgather}};
  for (int root = 0; root < ranks; ++root) all.push_back({Collective::broadcast, root});
  return all;
}

}  // namespace reference
