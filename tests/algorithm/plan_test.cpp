// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Plans as values: builder, hash, what the concept asks, and that the numbers they state are the true ones.

#include <algorithm>
#include <set>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <wring/algorithm.hpp>

using namespace wring;

namespace {

// ---- one archetype per requirement: each breaks exactly that one

struct Complete {
  Plan plan(Task, int rank, int ranks) const { return {rank, ranks}; }
  const char* name() const { return "complete"; }
};
struct NotCopyable : Complete {
  NotCopyable() = default;
  NotCopyable(const NotCopyable&) = delete;
};
struct NotAssignable : Complete {
  const int fixed = 0;
};
struct NoPlan {
  std::string name() const { return "no plan"; }
};
struct PlanNotConst {
  Plan plan(Task, int rank, int ranks) { return {rank, ranks}; }
  std::string name() const { return "plan not const"; }
};
struct PlanReturnsSteps {
  std::vector<Step> plan(Task, int, int) const { return {}; }
  std::string name() const { return "steps"; }
};
struct PlanWithoutTask {
  Plan plan(int rank, int ranks) const { return {rank, ranks}; }
  std::string name() const { return "no task"; }
};
struct NoName {
  Plan plan(Task, int rank, int ranks) const { return {rank, ranks}; }
};
struct NameIsNumber {
  Plan plan(Task, int rank, int ranks) const { return {rank, ranks}; }
  int* name() const { return nullptr; }
};
struct WithLayout : Complete {
  std::uint64_t layout() const { return 7; }
};
struct WithEdges : Complete {
  EdgeCount edges(Task, int) const { return {{3}, {1.0}}; }
};

static_assert(Algorithm<Complete> && Algorithm<WithLayout> && Algorithm<WithEdges>);
static_assert(!Algorithm<NotCopyable> && !Algorithm<NotAssignable> && !Algorithm<NoPlan> &&
              !Algorithm<PlanNotConst>);
static_assert(!Algorithm<PlanReturnsSteps> && !Algorithm<PlanWithoutTask> && !Algorithm<NoName> &&
              !Algorithm<NameIsNumber> && !Algorithm<int>);
static_assert(LaidOutAlgorithm<WithLayout> && !LaidOutAlgorithm<Complete> && !LaidOutAlgorithm<Ring>);
static_assert(EdgeCountedAlgorithm<WithEdges> && !EdgeCountedAlgorithm<Complete>);
static_assert(sizeof(Step) == 16);

/// Largest range and number of used classes, over all ranks.
struct Used {
  int widest = 0;
  std::set<int> classes;
};
Used used(const std::vector<Plan>& plans) {
  Used u;
  for (const Plan& plan : plans)
    for (const Step& s : plan.steps) {
      u.widest = std::max(u.widest, s.last - s.first);
      if (s.wire == Wire::coded) u.classes.insert(s.budget);
    }
  return u;
}

}  // namespace

TEST_CASE("the builder leaves out steps without blocks") {
  Plan plan{.rank = 1, .ranks = 4, .blocks = 4};
  plan.send(2, 1, 1);
  plan.combine(2, 3, 2);
  plan.finish(0, 0);
  CHECK(plan.steps.empty());
  plan.store(2, 1, 3, 5, Wire::raw);
  CHECK(plan.steps == std::vector<Step>{{Kind::store, Wire::raw, 5, 2, 1, 3}});
  CHECK(describe(plan.steps[0]) == "store raw blocks [1, 3) from rank 2");
}

TEST_CASE("owners are named where the task has them") {
  for (Collective c : {Collective::reduce_scatter, Collective::allgather})
    CHECK(Ring{}.plan({c}, 0, 3).owner == std::vector<int>{0, 1, 2});
  for (Collective c : {Collective::allreduce, Collective::broadcast})
    CHECK(Direct{}.plan({c}, 0, 3).owner.empty());
}

TEST_CASE("the hash sees every field") {
  const Plan plan = Ring{}.plan({Collective::reduce_scatter}, 1, 3);
  std::set<std::uint64_t> hashes{hash(plan)};
  int changes = 1;
  const auto add = [&](auto change) {
    Plan other = plan;
    change(other);
    hashes.insert(hash(other));
    ++changes;
  };
  add([](Plan& p) { ++p.rank; });
  add([](Plan& p) { ++p.ranks; });
  add([](Plan& p) { ++p.blocks; });
  add([](Plan& p) { ++p.budgets; });
  add([](Plan& p) { ++p.widest; });
  add([](Plan& p) { p.owner = {0, 2, 1}; });
  add([](Plan& p) { p.owner.pop_back(); });
  add([](Plan& p) { p.steps.pop_back(); });
  add([](Plan& p) { std::swap(p.steps[0], p.steps[1]); });
  add([](Plan& p) { p.steps[0].kind = Kind::store; });
  add([](Plan& p) { p.steps[0].wire = Wire::raw; });
  add([](Plan& p) { ++p.steps[0].budget; });
  add([](Plan& p) { ++p.steps[0].peer; });
  add([](Plan& p) { ++p.steps[0].first; });
  add([](Plan& p) { ++p.steps[0].last; });
  CHECK(hashes.size() == static_cast<std::size_t>(changes));
  CHECK(hash(plan) == hash(Ring{}.plan({Collective::reduce_scatter}, 1, 3)));
}

TEST_CASE("the hash is the same on every machine") {  // values from a few lines of Python
  CHECK(hash(Plan{}) == 0xc3cae5ea0c05e477u);
  CHECK(hash(Ring{}.plan({Collective::allreduce}, 0, 2)) == 0x5aad07052ae484b2u);
}

TEST_CASE("optional abilities are used where they are") {
  CHECK(layout_of(Complete{}) == 0);
  CHECK(layout_of(WithLayout{}) == 7);
  CHECK(edges_of(WithEdges{}, {}, 4).per_budget == std::vector<int>{3});
}

TEST_CASE("budgets and widest are exact") {
  const auto check = [](const auto& algorithm) {
    for (int p = 1; p <= 40; ++p)
      for (Collective c : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather,
                           Collective::broadcast}) {
        const std::vector<Plan> plans = plans_of(algorithm, {c}, p);
        INFO(algorithm.name() << ", " << name_of(c) << ", " << p << " ranks");
        CHECK(used(plans).widest == plans[0].widest);
        CHECK(static_cast<int>(used(plans).classes.size()) == plans[0].budgets);
      }
  };
  check(Ring{});
  check(Direct{});
  check(RecursiveDoubling{});
  check(HalvingDoubling{});
}

TEST_CASE("every class of Hierarchical is used by a step, and none is missing") {
  for (int p = 1; p <= 30; ++p)
    for (Collective c :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast})
      for (Wire inside : {Wire::raw, Wire::coded}) {
        const std::vector<Plan> plans =
            plans_of(Hierarchical(4, HalvingDoubling{}, RecursiveDoubling{}, inside), {c}, p);
        CHECK(static_cast<int>(used(plans).classes.size()) == plans[0].budgets);
      }
}
