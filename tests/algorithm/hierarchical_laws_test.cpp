// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The laws of `Algorithm`, on `Hierarchical` with nodes of many sizes.

#include <string>
#include <vector>

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

}  // namespace

TEST_CASE("Hierarchical obeys the laws for nodes of any size") {
  for (Wire inside : {Wire::raw, Wire::coded}) {
    for (int size : {1, 2, 3, 4, 5, 7, 8, 16, 64}) check_laws(Hierarchical(size, Ring{}, Ring{}, inside), 64);
    check_laws(Hierarchical(4, Direct{}, RecursiveDoubling{}, inside), 64);
    check_laws(Hierarchical(6, RecursiveDoubling{}, HalvingDoubling{}, inside), 64);
    check_laws(Hierarchical(8, HalvingDoubling{}, Direct{}, inside), 64);
  }
}

TEST_CASE("Hierarchical obeys the laws for a list of node sizes") {
  const std::vector<std::vector<int>> lists{{1},       {5},          {1, 1, 1},       {3, 1},
                                            {1, 7},    {4, 2, 3},    {2, 9},          {5, 5, 5},
                                            {8, 3, 8}, {2, 3, 5, 7}, {7, 6, 5, 4, 3}, {16, 1, 16, 31}};
  for (const auto& sizes : lists) {
    int ranks = 0;
    for (int size : sizes) ranks += size;
    for (Wire inside : {Wire::raw, Wire::coded}) {
      check_laws(Hierarchical(sizes, Ring{}, Ring{}, inside), ranks, ranks);
      check_laws(Hierarchical(sizes, HalvingDoubling{}, RecursiveDoubling{}, inside), ranks, ranks);
      check_laws(Hierarchical(sizes, RecursiveDoubling{}, Direct{}, inside), ranks, ranks);
    }
  }
}

TEST_CASE("Hierarchical obeys the laws when nested") {
  for (Wire outer : {Wire::raw, Wire::coded})
    for (Wire inner : {Wire::raw, Wire::coded}) {
      check_laws(Hierarchical(6, Hierarchical(3, Ring{}, Direct{}, inner), RecursiveDoubling{}, outer), 40);
      check_laws(
          Hierarchical(3, HalvingDoubling{}, Hierarchical(4, Direct{}, RecursiveDoubling{}, inner), outer),
          40);
      check_laws(Hierarchical(8, Hierarchical(3, Ring{}, Ring{}, inner),
                              Hierarchical(2, Ring{}, HalvingDoubling{}, inner), outer),
                 40);
      check_laws(
          Hierarchical(2, Ring{}, Hierarchical(2, Ring{}, Hierarchical(3, Ring{}, Ring{}, inner)), outer),
          40);
    }
}

TEST_CASE("Hierarchical obeys the laws up to 1024 ranks", "[nightly]") {
  const auto check = [](const auto& algorithm, int ranks) {
    for (Collective c :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast})
      CHECK(joined(testing::check_algorithm_laws(algorithm, {c, c == Collective::broadcast ? ranks / 3 : 0},
                                                 ranks)) == "");
  };
  for (int p : {65, 96, 100, 127, 128, 129, 200, 255, 256, 257, 511, 512, 513, 768, 1000, 1023, 1024}) {
    for (Wire inside : {Wire::raw, Wire::coded}) {
      check(Hierarchical(8, Ring{}, Ring{}, inside), p);
      check(Hierarchical(7, HalvingDoubling{}, RecursiveDoubling{}, inside), p);
    }
  }
}
