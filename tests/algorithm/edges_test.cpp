// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The table of compressed edges (bounds of compressors that decode, add and encode again), counted from the plans.

#include <cmath>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/algorithm.hpp>

using namespace wring;

namespace {

constexpr Task allreduce{Collective::allreduce}, reduce_scatter{Collective::reduce_scatter};

template <Algorithm A>
EdgeCount counted(const A& algorithm, Task task, int ranks) {
  return count_edges(plans_of(algorithm, task, ranks), task);
}

/// The edges of the classes that are used.
template <Algorithm A>
std::vector<int> edges(const A& algorithm, Task task, int ranks) {
  std::vector<int> used;
  for (int e : counted(algorithm, task, ranks).per_budget)
    if (e > 0) used.push_back(e);
  return used;
}

bool is_power_of_two(int p) { return (p & (p - 1)) == 0; }
int greatest_power_of_two(int p) {
  int q = 1;
  while (2 * q <= p) q *= 2;
  return q;
}

}  // namespace

TEST_CASE("ring, direct, halving-doubling: p-1, then 1") {
  for (int p = 2; p <= 40; ++p) {
    const std::vector<int> want{p - 1, 1};
    CHECK(edges(Ring{}, allreduce, p) == want);
    CHECK(edges(Direct{}, allreduce, p) == want);
    CHECK(edges(HalvingDoubling{}, allreduce, p) == want);  // folded or not
  }
}

TEST_CASE("recursive doubling: 2(p-1); folded: one more per folded rank, and a coded finish") {
  for (int p = 2; p <= 40; ++p) {
    const int active = greatest_power_of_two(p), folded = p - active;
    const int want = 2 * (active - 1) + (folded > 0 ? folded + 1 : 0);
    CHECK(counted(RecursiveDoubling{}, allreduce, p).total() == want);
  }
}

TEST_CASE("reduce_scatter: p-1; folded halving: one more") {
  for (int p = 2; p <= 40; ++p) {
    CHECK(edges(Ring{}, reduce_scatter, p) == std::vector<int>{p - 1});
    CHECK(edges(Direct{}, reduce_scatter, p) == std::vector<int>{p - 1});
    const std::vector<int> halving =
        is_power_of_two(p) ? std::vector<int>{p - 1} : std::vector<int>{p - 1, 1};
    CHECK(edges(HalvingDoubling{}, reduce_scatter, p) == halving);
    CHECK(edges(RecursiveDoubling{}, reduce_scatter, p) == halving);
  }
}

TEST_CASE("hierarchical, raw inside: N-1, then 1; coded inside: p-N, N-1, 1") {
  for (int size : {2, 3, 4, 8})
    for (int nodes : {2, 3, 4, 7}) {
      const int p = size * nodes;
      CHECK(edges(Hierarchical(size, Ring{}, Ring{}), allreduce, p) == std::vector<int>{nodes - 1, 1});
      CHECK(edges(Hierarchical(size, Ring{}, Direct{}, Wire::coded), allreduce, p) ==
            std::vector<int>{p - nodes, nodes - 1, 1});
    }
}

TEST_CASE("one encoding reaches everybody in allgather and broadcast") {
  for (int p = 2; p <= 20; ++p)
    for (Task task : {Task{Collective::allgather}, Task{Collective::broadcast, p / 2}}) {
      CHECK(edges(Ring{}, task, p) == std::vector<int>{1});
      CHECK(edges(Direct{}, task, p) == std::vector<int>{1});
      CHECK(edges(RecursiveDoubling{}, task, p) == std::vector<int>{1});
      CHECK(edges(HalvingDoubling{}, task, p) == std::vector<int>{1});
      for (Wire inside : {Wire::raw, Wire::coded})
        CHECK(edges(Hierarchical(3, Ring{}, HalvingDoubling{}, inside), task, p) == std::vector<int>{1});
    }
}

TEST_CASE("no edges where nothing is sent") {
  for (Collective c :
       {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast}) {
    CHECK(edges_of(Ring{}, {c}, 1).total() == 0);
    CHECK(edges_of(RecursiveDoubling{}, {c}, 1).total() == 0);
    CHECK(counted(Hierarchical(4, Ring{}, Ring{}, Wire::coded), {c}, 1).total() == 0);
  }
  CHECK(edges_of(Hierarchical(4), allreduce, 4).total() == 0);  // one node, raw inside
}

TEST_CASE("shares: ring gives half of the bound to each phase") {
  for (int p : {2, 3, 8, 100}) {
    const std::vector<double> share = edges_of(Ring{}, allreduce, p).shares();
    CHECK(share[0] == Catch::Approx(0.5 / (p - 1)).epsilon(1e-14));  // E'/(2(p-1))
    CHECK(share[1] == Catch::Approx(0.5).epsilon(1e-14));            // E'/2
  }
}

TEST_CASE("shares: recursive doubling gives step s of L = log2 p the share 2^(s-1)/(p L)") {
  for (int steps = 1; steps <= 10; ++steps) {
    const int p = 1 << steps;
    const std::vector<double> share = edges_of(RecursiveDoubling{}, allreduce, p).shares();
    REQUIRE(share.size() == static_cast<std::size_t>(steps));
    for (int s = 1; s <= steps; ++s)
      CHECK(share[static_cast<std::size_t>(s - 1)] ==
            Catch::Approx(std::ldexp(1.0, s - 1) / p / steps).epsilon(1e-14));
  }
}

TEST_CASE("shares add up to the whole bound, and classes without edges have none") {
  for (int p = 2; p <= 30; ++p)
    for (Wire inside : {Wire::raw, Wire::coded}) {
      const EdgeCount count =
          edges_of(Hierarchical(4, HalvingDoubling{}, RecursiveDoubling{}, inside), allreduce, p);
      const std::vector<double> share = count.shares();
      double sum = 0;
      for (std::size_t j = 0; j < share.size(); ++j) {
        sum += share[j] * count.per_budget[j];
        CHECK((share[j] > 0) == (count.per_budget[j] > 0));
      }
      CHECK(sum == Catch::Approx(count.total() > 0 ? 1.0 : 0.0).epsilon(1e-13));
    }
}
