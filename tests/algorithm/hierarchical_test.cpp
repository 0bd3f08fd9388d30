// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What is particular to `Hierarchical`: node layouts, what crosses nodes, what it refuses.

#include <string>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <wring/algorithm.hpp>

using namespace wring;
using Catch::Matchers::Message;

namespace {

/// Number of blocks sent to other nodes by all ranks; nodes of `size` ranks.
template <Algorithm A>
long blocks_between(const A& algorithm, Task task, int ranks, int size) {
  long blocks = 0;
  for (const Plan& plan : plans_of(algorithm, task, ranks))
    for (const Step& s : plan.steps)
      if (s.kind == Kind::send && plan.rank / size != s.peer / size) blocks += s.last - s.first;
  return blocks;
}

/// Two blocks per rank: a right algorithm, but not one that can be a level of a hierarchy.
struct TwoBlocksEach {
  std::string name() const { return "two blocks each"; }
  Plan plan(Task task, int rank, int ranks) const {
    Plan plan = Ring{}.plan(task, rank, ranks);
    plan.blocks *= 2;
    plan.widest *= 2;
    std::vector<int> twice;
    for (int r : plan.owner) twice.insert(twice.end(), {r, r});
    plan.owner = twice;
    for (Step& s : plan.steps) s.first *= 2, s.last *= 2;
    return plan;
  }
};

}  // namespace

TEST_CASE("raw inside a node, coded between nodes") {
  const Hierarchical algorithm(4, Ring{}, Ring{});
  for (Collective c : {Collective::allreduce, Collective::reduce_scatter})
    for (const Plan& plan : plans_of(algorithm, {c}, 12))
      for (const Step& s : plan.steps)
        if (s.kind != Kind::finish) CHECK((s.wire == Wire::coded) == (plan.rank / 4 != s.peer / 4));
}

TEST_CASE("nodes exchange each vector once, however many ranks they have") {
  // 3 nodes of 4: each of 4 shards goes 2(N-1) times, in all 2(N-1) vectors of 12 blocks; in reduce_scatter half of that
  CHECK(blocks_between(Hierarchical(4, Ring{}, Ring{}), {Collective::allreduce}, 12, 4) == 2 * 2 * 12);
  CHECK(blocks_between(Hierarchical(4, Ring{}, Ring{}), {Collective::reduce_scatter}, 12, 4) == 2 * 12);
  CHECK(blocks_between(Hierarchical(4, Ring{}, Ring{}), {Collective::allgather}, 12, 4) == 2 * 12);
  const Hierarchical tree(4, RecursiveDoubling{}, RecursiveDoubling{});
  CHECK(blocks_between(tree, {Collective::broadcast, 5}, 12, 4) ==
        2 * tree.plan({Collective::broadcast, 5}, 0, 12).blocks);
  CHECK(blocks_between(Ring{}, {Collective::allreduce}, 12, 4) == 2 * 3 * 11);  // what it saves
}

TEST_CASE("every rank owns one block, ordered by shard") {
  const Plan plan = Hierarchical(std::vector<int>{3, 2}).plan({Collective::reduce_scatter}, 0, 5);
  CHECK(plan.owner ==
        std::vector<int>{0, 2, 3, 1, 4});  // shard 0: ranks 0 and 2 of node 0, rank 3; shard 1: 1 and 4
  CHECK(Hierarchical(2).plan({Collective::allreduce}, 0, 4).owner.empty());
}

TEST_CASE("a broadcast has enough blocks for both levels, in equal parts for the slower one") {
  CHECK(Hierarchical(8, Direct{}, Direct{}).plan({Collective::broadcast}, 0, 24).blocks == 9);
  CHECK(Hierarchical(8, Ring{}, Direct{}).plan({Collective::broadcast}, 0, 24).blocks == 3);
  CHECK(Hierarchical(8, Direct{}, Ring{}).plan({Collective::broadcast}, 0, 20).blocks == 8);
  CHECK(Hierarchical(8, Ring{}, Ring{}).plan({Collective::broadcast}, 0, 24).blocks == 1);
}

TEST_CASE("the layout is part of the identity") {
  CHECK(layout_of(Ring{}) == 0);
  CHECK(layout_of(Hierarchical(4)) == layout_of(Hierarchical(4)));
  CHECK(layout_of(Hierarchical(4)) != layout_of(Hierarchical(2)));
  CHECK(layout_of(Hierarchical(4)) != layout_of(Hierarchical(std::vector<int>{4})));
  CHECK(layout_of(Hierarchical(std::vector<int>{4, 2})) != layout_of(Hierarchical(std::vector<int>{2, 4})));
  CHECK(layout_of(Hierarchical(4, Hierarchical(2), Ring{})) !=
        layout_of(Hierarchical(4, Hierarchical(1), Ring{})));
  CHECK(layout_of(Hierarchical(4, Ring{}, Hierarchical(2))) !=
        layout_of(Hierarchical(4, Ring{}, Hierarchical(1))));
  CHECK(Hierarchical(4, Direct{}, Ring{}, Wire::coded).name() == "hierarchical(direct, ring, coded inside)");
}

TEST_CASE("Hierarchical refuses what it cannot serve") {
  CHECK_THROWS_MATCHES(Hierarchical(0), InvalidArgument,
                       Message("wring::Hierarchical: a node has at least 1 rank, not 0"));
  CHECK_THROWS_AS(Hierarchical(std::vector<int>{}), InvalidArgument);
  CHECK_THROWS_AS(Hierarchical(std::vector<int>{2, -1}), InvalidArgument);
  CHECK_THROWS_MATCHES(Hierarchical(std::vector<int>{2, 3}).plan({}, 0, 6), InvalidArgument,
                       Message("wring::Hierarchical: the node sizes add up to 5 ranks, but there are 6"));
  CHECK(verify(TwoBlocksEach{}, {Collective::reduce_scatter}, 4).ok());
  CHECK_THROWS_MATCHES(
      Hierarchical(2, TwoBlocksEach{}, Ring{}).plan({}, 0, 4), InvalidArgument,
      Message("wring::Hierarchical: two blocks each cannot be a level, because it does not give each "
              "rank exactly one block"));
}

TEST_CASE("where no node has two ranks, coded inside changes nothing") {
  for (int r = 0; r < 5; ++r)
    CHECK(Hierarchical(1, Ring{}, RecursiveDoubling{}, Wire::coded).plan({}, r, 5) ==
          Hierarchical(1, Ring{}, RecursiveDoubling{}, Wire::raw).plan({}, r, 5));
}
