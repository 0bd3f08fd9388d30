// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Plans broken on purpose. For each mutant the verifier and an independent executor must say the same. Mutants that
// both accept are right plans; each must belong to a class of which that can be proved:
//
// - two neighbouring steps swapped that touch different blocks, or only read the same ones, on different channels: each
//   channel carries the same messages with the same contents (a Kahn network), so the results are the same;
// - two neighbouring combines of one block swapped: another order of the same additions, on the rank that finishes the
//   block for everybody;
// - a finish made coded where one rank alone finishes the block, or raw where nothing coded is forwarded inside: the
//   others get what it holds; only the edges change;
// - a finish that takes in one more block, whose sum is complete on this rank but of no use to it afterwards;
// - a whole message made raw or coded (both ends): another number of edges, the same additions.

#include <functional>
#include <map>

#include <catch2/catch_test_macros.hpp>

#include "reference.hpp"

using namespace wring;

namespace {

using Plans = std::vector<Plan>;

struct Tally {
  long caught = 0, equivalent = 0;
};

/// Sorts a mutant into caught or equivalent; the two judges must agree.
void judge(const Plans& mutant, Task task, Tally& tally, bool may_be_equivalent, const std::string& what) {
  const Verdict verdict = verify(mutant, task);
  INFO(what << ": " << verdict.error);
  if (verdict.ok()) {
    REQUIRE(may_be_equivalent);
    REQUIRE(reference::execute(mutant, task).error == "");
    ++tally.equivalent;
  } else {
    ++tally.caught;
  }
}

/// For mutants that violate no rule but those of the results: what the verifier refuses must be wrong indeed.
void judge_both_ways(const Plans& mutant, Task task, Tally& tally, const std::string& what) {
  const Verdict verdict = verify(mutant, task);
  INFO(what << ": " << verdict.error);
  REQUIRE(verdict.ok() == reference::execute(mutant, task).error.empty());
  ++(verdict.ok() ? tally.equivalent : tally.caught);
}

bool overlap(const Step& a, const Step& b) { return a.first < b.last && b.first < a.last; }

/// Whether a swap of neighbours belongs to one of the classes that are proved right above.
bool may_commute(const Step& a, const Step& b) {
  if (a.kind == Kind::send && b.kind == Kind::send) return a.peer != b.peer;
  if (a.kind == Kind::combine && b.kind == Kind::combine) return a.peer != b.peer;
  const bool same_channel = a.peer == b.peer && (a.kind == Kind::send) == (b.kind == Kind::send);
  return !same_channel && !overlap(a, b);
}

/// Whether step i is a finish, and what the rank holds of block b is of no use afterwards: it is replaced by a store, or
/// it is another rank's block and not touched any more.
bool is_spare_finish(const Plan& plan, Task task, std::size_t i, int b) {
  if (plan.steps[i].kind != Kind::finish || b < 0 || b >= plan.blocks) return false;
  for (std::size_t k = i + 1; k < plan.steps.size(); ++k)
    if (plan.steps[k].first <= b && b < plan.steps[k].last) return plan.steps[k].kind == Kind::store;
  return task.collective == Collective::reduce_scatter &&
         plan.owner[static_cast<std::size_t>(b)] != plan.rank;
}

struct Mutator {
  const Plans& plans;
  Task task;
  std::string where;
  std::map<std::string, Tally>& tallies;

  void try_step(const std::string& kind, std::size_t r, std::size_t i, bool may_be_equivalent,
                const std::function<void(Plan&)>& change) {
    Plans mutant = plans;
    change(mutant[r]);
    if (mutant[r] == plans[r]) return;
    judge(mutant, task, tallies[kind], may_be_equivalent,
          where + kind + ", rank " + std::to_string(r) + ", step " + std::to_string(i));
  }

  void one_rank() {
    const int p = static_cast<int>(plans.size());
    for (std::size_t r = 0; r < plans.size(); ++r)
      for (std::size_t i = 0; i < plans[r].steps.size(); ++i) {
        const Step s = plans[r].steps[i];
        const auto at = [i](Plan& plan) -> Step& { return plan.steps[i]; };
        try_step("drop", r, i, false,
                 [&](Plan& q) { q.steps.erase(q.steps.begin() + static_cast<long>(i)); });
        try_step("repeat", r, i, false,
                 [&](Plan& q) { q.steps.insert(q.steps.begin() + static_cast<long>(i), s); });
        for (int other = -1; other <= p; ++other)
          if (other != s.peer) try_step("retarget", r, i, false, [&](Plan& q) { at(q).peer = other; });
        try_step("resize", r, i, false, [&](Plan& q) { ++at(q).first; });
        try_step("resize", r, i, is_spare_finish(plans[r], task, i, s.first - 1),
                 [&](Plan& q) { --at(q).first; });
        try_step("resize", r, i, is_spare_finish(plans[r], task, i, s.last), [&](Plan& q) { ++at(q).last; });
        try_step("resize", r, i, false, [&](Plan& q) { --at(q).last; });
        try_step("move", r, i, false, [&](Plan& q) { ++at(q).first, ++at(q).last; });
        try_step("wire", r, i, s.kind == Kind::finish,
                 [&](Plan& q) { at(q).wire = s.wire == Wire::raw ? Wire::coded : Wire::raw; });
        if (s.wire == Wire::coded && has_peer(s.kind))
          try_step("budget", r, i, false, [&](Plan& q) { ++at(q).budget; });
        for (Kind kind : {Kind::send, Kind::combine, Kind::store, Kind::finish, Kind::sum})
          try_step("kind", r, i, false, [&](Plan& q) { at(q).kind = kind; });
        if (i + 1 < plans[r].steps.size())
          try_step("swap", r, i, may_commute(s, plans[r].steps[i + 1]),
                   [&](Plan& q) { std::swap(q.steps[i], q.steps[i + 1]); });
      }
  }

  /// Changes the k-th message of each pair of ranks at both ends.
  void both_ends() {
    std::map<std::pair<int, int>, std::vector<std::size_t>> sends, receives;
    for (const Plan& plan : plans)
      for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& s = plan.steps[i];
        if (s.kind == Kind::send)
          sends[{plan.rank, s.peer}].push_back(i);
        else if (takes_message(s.kind))
          receives[{s.peer, plan.rank}].push_back(i);
      }
    for (const auto& [pair, from] : sends)
      for (std::size_t k = 0; k < from.size(); ++k) {
        const std::size_t i = from[k], j = receives[pair][k];
        const auto sender = static_cast<std::size_t>(pair.first),
                   receiver = static_cast<std::size_t>(pair.second);
        const std::string what =
            where + "message " + std::to_string(sender) + "->" + std::to_string(receiver);
        Plans mutant = plans;
        mutant[sender].steps.erase(mutant[sender].steps.begin() + static_cast<long>(i));
        mutant[receiver].steps.erase(mutant[receiver].steps.begin() + static_cast<long>(j));
        judge_both_ways(mutant, task, tallies["message dropped"], what);
        mutant = plans;
        Step &out = mutant[sender].steps[i], &in = mutant[receiver].steps[j];
        out.wire = in.wire = out.wire == Wire::raw ? Wire::coded : Wire::raw;
        if (mutant[0].budgets > 0) judge_both_ways(mutant, task, tallies["message wire"], what);
        if (in.kind == Kind::store || !reduces(task.collective)) continue;
        mutant = plans;
        mutant[receiver].steps[j].kind = Kind::store;
        judge_both_ways(mutant, task, tallies["message stored"], what);
      }
  }
};

}  // namespace

TEST_CASE("the verifier catches every plan that was broken on purpose") {
  std::map<std::string, Tally> tallies;
  for (int p = 1; p <= 7; ++p)
    reference::for_each_algorithm(p, [&](const auto& algorithm) {
      for (Task task : reference::tasks(p)) {
        if (task.root > 1) continue;
        const Plans plans = plans_of(algorithm, task, p);
        Mutator mutator{plans, task,
                        algorithm.name() + ", " + name_of(task.collective) + ", " + std::to_string(p) + ": ",
                        tallies};
        mutator.one_rank();
        mutator.both_ends();
      }
    });
  std::string summary;
  for (const auto& [kind, tally] : tallies) {
    summary += kind + ": " + std::to_string(tally.caught) + " caught, " + std::to_string(tally.equivalent) +
               " right\n";
    CHECK(tally.caught > 0);
    if (kind != "swap" && kind != "resize" && kind != "wire" && kind != "message wire")
      CHECK(tally.equivalent == 0);
  }
  SUCCEED(summary);
}
