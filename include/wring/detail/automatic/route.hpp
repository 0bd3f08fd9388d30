// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/direct.hpp>
#include <wring/algorithm/halving_doubling.hpp>
#include <wring/algorithm/recursive_doubling.hpp>
#include <wring/algorithm/ring.hpp>

namespace wring::inline v0::detail {

/// One of the ways that `Automatic` may go: an algorithm, as it is or with every step raw. An algorithm itself.
class Route {
  template <class Visit> auto visit(Visit visit) const {
    switch (number_ % algorithms) {
    case 0: return visit(Ring{});
    case 1: return visit(Direct{});
    case 2: return visit(HalvingDoubling{});
    default: return visit(RecursiveDoubling{});
    }
  }

 public:
  static constexpr int algorithms = 4, count = 2 * algorithms;

  /// 0 to `count` - 1: first those that compress. Where times are equal, the first one is taken.
  explicit Route(int number = 0) : number_(number) {}

  int number() const { return number_; }
  bool compressed() const { return number_ < algorithms; }

  std::string name() const {
    return visit([](const auto& algorithm) { return algorithm.name(); });
  }

  Plan plan(Task task, int rank, int ranks) const {
    Plan plan = visit([&](const auto& algorithm) { return algorithm.plan(task, rank, ranks); });
    if (compressed()) return plan;
    plan.budgets = 0;
    for (Step& step : plan.steps) step.wire = Wire::raw, step.budget = 0;
    return plan;
  }

  EdgeCount edges(Task task, int ranks) const {
    if (!compressed()) return {};
    return visit([&](const auto& algorithm) { return algorithm.edges(task, ranks); });
  }

  bool symmetric(Task task, int ranks) const {
    return visit([&](const auto& algorithm) { return algorithm.symmetric(task, ranks); });
  }

 private:
  int number_;
};

static_assert(EdgeCountedAlgorithm<Route> && SymmetricAlgorithm<Route>);

}  // namespace wring::inline v0::detail
