// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/algorithms.hpp"

std::vector<wring_test::AnyAlgorithm> wring_test::all_algorithms(int ranks) {
  using namespace wring;
  std::vector<AnyAlgorithm> all{Ring{}, Direct{}, RecursiveDoubling{}, HalvingDoubling{}};
  if (ranks < 2) return all;
  all.emplace_back(Hierarchical<>(2));  // even where ranks are even, else the last node is smaller
  all.emplace_back(Hierarchical<HalvingDoubling, Ring>(2, {}, {}, Wire::coded));
  if (ranks >= 3) {
    all.emplace_back(Hierarchical<Direct, RecursiveDoubling>(std::vector<int>{1, ranks - 1}));
    all.emplace_back(Hierarchical<Ring, Direct>(std::vector<int>{ranks - 1, 1}, {}, {}, Wire::coded));
  }
  if (ranks >= 4) {
    all.emplace_back(
        Hierarchical<Hierarchical<Direct, Ring>, HalvingDoubling>(4, Hierarchical<Direct, Ring>(2)));
    all.emplace_back(Hierarchical<Ring, Hierarchical<Ring, Direct>>(1, {}, Hierarchical<Ring, Direct>(2)));
  }
  return all;
}
