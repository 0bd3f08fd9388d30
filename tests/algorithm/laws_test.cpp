// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The laws of `Algorithm`, on every model here and on algorithms that break them.

#include <string>

#include <catch2/catch_test_macros.hpp>

#include <wring/algorithm.hpp>
#include <wring/testing/algorithm_laws.hpp>

using namespace wring;

namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

template <Algorithm A>
void check_laws(const A& algorithm, int max_ranks, int min_ranks = 1) {
  CHECK(joined(testing::check_algorithm_laws(algorithm, max_ranks, min_ranks)) == "");
}

/// A user's algorithm: rank 0 collects, adds and distributes.
struct Star {
  std::string name() const { return "star"; }
  Plan plan(Task task, int rank, int ranks) const {
    Plan plan{.rank = rank, .ranks = ranks, .blocks = 1, .budgets = 2, .widest = 1};
    const bool owners =
        task.collective == Collective::reduce_scatter || task.collective == Collective::allgather;
    const int hub = owners ? 0 : task.root;
    if (owners) plan.one_block_per_rank(task);
    const int all = plan.blocks;
    plan.widest = all;
    const auto wanted_first = [&](int r) { return task.collective == Collective::reduce_scatter ? r : 0; };
    const auto wanted_last = [&](int r) {
      return task.collective == Collective::reduce_scatter ? r + 1 : all;
    };
    for (int r = 0; r < ranks; ++r) {
      if (r == hub || (rank != hub && r != rank)) continue;
      if (reduces(task.collective) && rank == hub) plan.combine(r, 0, all, 0);
      if (reduces(task.collective) && rank == r) plan.send(hub, 0, all, 0);
      if (task.collective == Collective::allgather && rank == hub) plan.store(r, r, r + 1, 0);
      if (task.collective == Collective::allgather && rank == r) plan.send(hub, r, r + 1, 0);
    }
    if (reduces(task.collective) && rank == hub) plan.finish(0, all);
    for (int r = 0; r < ranks; ++r) {
      if (r == hub || (rank != hub && r != rank)) continue;
      if (rank == hub) plan.send(r, wanted_first(r), wanted_last(r), 1);
      if (rank == r) plan.store(hub, wanted_first(r), wanted_last(r), 1);
    }
    return plan;
  }
};

/// Correct but for one thing each.
struct WrongEdges : Ring {
  EdgeCount edges(Task task, int ranks) const {
    EdgeCount count = Ring::edges(task, ranks);
    if (ranks == 5) ++count.per_budget[0];
    return count;
  }
};
struct WrongTraffic : Ring {
  EdgeCount edges(Task task, int ranks) const {
    EdgeCount count = Ring::edges(task, ranks);
    if (ranks == 3) count.moved[0] *= 2;
    return count;
  }
};
struct KeepsItsOwnValue : Ring {  // its own block stays exact, the others get it rounded
  EdgeCount edges(Task, int) const = delete;
  Plan plan(Task task, int rank, int ranks) const {
    Plan plan = Ring::plan(task, rank, ranks);
    for (Step& s : plan.steps) s.wire = rank == 0 && s.kind == Kind::send ? Wire::raw : s.wire;
    return plan;
  }
};
struct Throws : Ring {
  Plan plan(Task task, int rank, int ranks) const {
    if (ranks == 2) throw InvalidArgument("two is too few");
    return Ring::plan(task, rank, ranks);
  }
};
struct Changes : Ring {
  mutable int calls = 0;
  Plan plan(Task task, int rank, int ranks) const {
    Plan plan = Ring::plan(task, rank, ranks);
    plan.budgets += ++calls > 1 ? 1 : 0;
    return plan;
  }
};

template <Algorithm A>
std::string first_failure(const A& algorithm, int ranks) {
  const auto failures = testing::check_algorithm_laws(algorithm, Task{}, ranks);
  return failures.empty() ? "" : failures.front();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("Ring obeys the laws") { check_laws(Ring{}, 64); }
TEST_CASE("Direct obeys the laws") { check_laws(Direct{}, 64); }
TEST_CASE("RecursiveDoubling obeys the laws") { check_laws(RecursiveDoubling{}, 64); }
TEST_CASE("HalvingDoubling obeys the laws") { check_laws(HalvingDoubling{}, 64); }
TEST_CASE("Native obeys the laws") { check_laws(Native{}, 40); }
TEST_CASE("a user's algorithm obeys the laws") { check_laws(Star{}, 32); }

TEST_CASE("the laws name what an algorithm breaks") {
  CHECK(first_failure(WrongEdges{}, 4) == "");
  CHECK(first_failure(WrongEdges{}, 5) ==
        "ring, allreduce, 5 ranks: edges() says 5 edges of class 0, the plans have 4");
  CHECK(contains(first_failure(WrongTraffic{}, 3), "vectors are moved in pieces of class 0"));
  CHECK(contains(first_failure(KeepsItsOwnValue{}, 2), "differs in blocks, wire or budget"));
  CHECK(contains(first_failure(Throws{}, 2), "two is too few"));
  CHECK(contains(first_failure(Changes{}, 2), "plan() gives rank 0 two different plans"));
  CHECK(testing::check_algorithm_laws(Throws{}, 3).size() == 5);  // the four collectives, and two roots
}

TEST_CASE("the laws hold up to 1024 ranks", "[nightly]") {
  const auto check = [](const auto& algorithm, int ranks) {
    for (Collective c :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast})
      CHECK(joined(testing::check_algorithm_laws(algorithm, {c, c == Collective::broadcast ? ranks / 3 : 0},
                                                 ranks)) == "");
  };
  for (int p : {65, 96, 100, 127, 128, 129, 200, 255, 256, 257, 511, 512, 513, 768, 1000, 1023, 1024}) {
    check(Ring{}, p);
    check(Direct{}, p);
    check(RecursiveDoubling{}, p);
    check(HalvingDoubling{}, p);
  }
}
