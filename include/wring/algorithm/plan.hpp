// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <wring/detail/hash.hpp>
#include <wring/operation.hpp>

namespace wring::inline v0 {

/// What a plan is to achieve. `root` matters to broadcast alone.
struct Task {
  Collective collective = Collective::allreduce;
  int root = 0;
  friend constexpr bool operator==(const Task&, const Task&) = default;
};

/// - `send`: blocks go to `peer`. The sender keeps them.
/// - `combine`: blocks arrive from `peer` and are added to what this rank holds.
/// - `store`: blocks arrive from `peer` and replace what this rank holds.
/// - `finish`: the blocks are complete sums (division of a mean, shift of a grid, canonical NaN). No message.
/// - `sum`: the transport adds up what all ranks hold of the blocks, and every rank holds the sum. No message; no rank goes on before all
///   have come to it, and the k-th sum of a rank meets the k-th of every other. For compressors and transports that sum words.
enum class Kind : std::uint8_t { send, combine, store, finish, sum };

/// How a message travels: values as they are, or encoded. `finish` with `coded` encodes its blocks at once.
enum class Wire : std::uint8_t { raw, coded };

/// One step of one rank: blocks [first, last), and the rank at the other end (-1 for `finish` and `sum`).
/// `budget` is the error class of what a coded step encodes (each class gets its share of the bound); raw steps have none.
struct Step {
  Kind kind = Kind::send;
  Wire wire = Wire::coded;
  std::uint16_t budget = 0;
  std::int32_t peer = -1, first = 0, last = 0;
  friend constexpr bool operator==(const Step&, const Step&) = default;
};

/// Whether a step of this kind takes a message that has come.
constexpr bool takes_message(Kind kind) { return kind == Kind::combine || kind == Kind::store; }

/// Whether a step of this kind is one end of a message.
constexpr bool has_peer(Kind kind) { return kind == Kind::send || takes_message(kind); }

/// Whether a step of this kind may have to wait for other ranks.
constexpr bool awaits_others(Kind kind) { return takes_message(kind) || kind == Kind::sum; }

/// All that one rank does in one collective operation, in this order. A plan knows blocks and ranks; it knows neither
/// values nor bytes.
///
/// **The rule that makes all ranks agree**: a coded send (or finish) encodes a block and replaces it by its decoded
/// value. Later coded sends of that block forward the very bytes; `combine` or `finish` makes it a value again. A raw
/// message carries values, so whoever receives it holds a value.
///
/// The numbers `blocks`, `budgets`, `widest` and `owner` must be the same in the plans of all ranks.
struct Plan {
  int rank = 0, ranks = 1;
  int blocks = 0;   ///< the data are cut into this many blocks
  int budgets = 0;  ///< number of error classes: every coded step of every rank has `budget < budgets`
  int widest = 0;   ///< no step of any rank has more blocks than this: sizes the buffers
  std::vector<int> owner =
      {};  ///< owner[b]: the rank whose data block b is (reduce_scatter, allgather; else empty)
  std::vector<Step> steps = {};

  friend bool operator==(const Plan&, const Plan&) = default;

  /// Appends a step. A range without blocks is no step: both ends leave it out alike.
  void send(int peer, int first, int last, int budget = 0, Wire wire = Wire::coded) {
    add(Kind::send, wire, budget, peer, first, last);
  }
  void combine(int peer, int first, int last, int budget = 0, Wire wire = Wire::coded) {
    add(Kind::combine, wire, budget, peer, first, last);
  }
  void store(int peer, int first, int last, int budget = 0, Wire wire = Wire::coded) {
    add(Kind::store, wire, budget, peer, first, last);
  }
  void finish(int first, int last, Wire wire = Wire::raw, int budget = 0) {
    add(Kind::finish, wire, budget, -1, first, last);
  }
  void sum(int first, int last, int budget = 0) { add(Kind::sum, Wire::coded, budget, -1, first, last); }

  /// One block per rank, block b belonging to rank b, where the task has owners.
  void one_block_per_rank(Task task) {
    blocks = ranks;
    if (task.collective != Collective::reduce_scatter && task.collective != Collective::allgather) return;
    owner.resize(static_cast<std::size_t>(ranks));
    for (int b = 0; b < ranks; ++b) owner[static_cast<std::size_t>(b)] = b;
  }

 private:
  void add(Kind kind, Wire wire, int budget, int peer, int first, int last) {
    if (first < last) steps.push_back({kind, wire, static_cast<std::uint16_t>(budget), peer, first, last});
  }
};

/// How many steps of a plan are sums by the transport.
inline std::size_t count_sums(const Plan& plan) {
  std::size_t sums = 0;
  for (const Step& step : plan.steps) sums += step.kind == Kind::sum ? 1 : 0;
  return sums;
}

namespace detail {

/// The remainder in [0, n), also for negative a.
constexpr int modulo(int a, int n) { return (a % n + n) % n; }

}  // namespace detail

/// A number for a whole plan. Ranks that run one operation compare name and hash of `plan(task, 0, ranks)` beforehand.
inline std::uint64_t hash(const Plan& plan) {
  detail::Hasher h;
  h.add(plan.rank).add(plan.ranks).add(plan.blocks).add(plan.budgets).add(plan.widest).add(plan.owner.size());
  for (const int rank : plan.owner) h.add(rank);
  h.add(plan.steps.size());
  for (const Step& s : plan.steps)
    h.add(s.kind).add(s.wire).add(s.budget).add(s.peer).add(s.first).add(s.last);
  return h.value();
}

/// A step in words, for messages: "combine blocks [2, 3) from rank 1".
inline std::string describe(const Step& s) {
  constexpr const char* kinds[] = {"send", "combine", "store", "finish", "sum"};
  const bool known = static_cast<unsigned>(s.kind) < 5;
  std::string text = known ? kinds[static_cast<unsigned>(s.kind)] : "unknown step";
  text += s.wire == Wire::raw ? " raw blocks [" : " coded blocks [";
  text += std::to_string(s.first) + ", " + std::to_string(s.last) + ")";
  if (s.kind == Kind::send) text += " to rank " + std::to_string(s.peer);
  if (takes_message(s.kind)) text += " from rank " + std::to_string(s.peer);
  return text;
}

/// How often the result was encoded on its way, and what was moved so encoded: what divides a bound among the classes.
///
/// `per_budget[j]` is the greatest number of compressed edges of class j that any element of the result passes: on the
/// tree of its contributions, every encoding counts once, a message forwarded unchanged not again. The maximum is taken
/// over blocks and ranks for each class by itself. With an error e_j at most in each encoding of class j, the result of
/// one element is wrong by at most sum_j per_budget[j] * e_j, plus the rounding of the additions.
///
/// `moved[j]` counts what travels in pieces that were encoded in class j, in vectors per rank (sent by all ranks
/// together, divided by their number; blocks taken as equal). Classes that nothing uses have 0 in both.
struct EdgeCount {
  std::vector<int> per_budget = {};
  std::vector<double> moved = {};

  int total() const {
    int edges = 0;
    for (int of_class : per_budget) edges += of_class;
    return edges;
  }

  /// The division that costs the fewest bytes: class j gives each of its edges this share of the bound,
  /// moved[j] / (per_budget[j] * sum of moved); sum_j per_budget[j] * shares()[j] is 1. Unused classes get 0.
  double share(std::size_t j) const {
    double all = 0;
    for (std::size_t i = 0; i < per_budget.size(); ++i) all += per_budget[i] > 0 ? moved[i] : 0;
    return per_budget[j] > 0 ? moved[j] / (per_budget[j] * all) : 0;
  }
  std::vector<double> shares() const {
    std::vector<double> all;
    for (std::size_t j = 0; j < per_budget.size(); ++j) all.push_back(share(j));
    return all;
  }
};

}  // namespace wring::inline v0
