// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Plans carried out with whole numbers by a second, independent executor.

#include <algorithm>

#include <catch2/catch_test_macros.hpp>

#include "reference.hpp"

using namespace wring;

namespace {

/// |result - exact| <= sum over classes of edges * error, for every result of every rank, in exact arithmetic.
void check_error_bound(const std::vector<Plan>& plans, Task task, const EdgeCount& edges,
                       const reference::Outcome& done) {
  std::int64_t bound = 0, worst = 0;
  for (std::size_t j = 0; j < edges.per_budget.size(); ++j)
    bound += edges.per_budget[j] * reference::error(static_cast<int>(j));
  const int p = static_cast<int>(plans.size());
  for (int b = 0; b < plans[0].blocks; ++b) {
    std::int64_t exact = 0;
    for (int r = 0; r < p; ++r)
      if (reduces(task.collective)) exact += reference::input(r, b);
    if (task.collective == Collective::broadcast) exact = reference::input(task.root, b);
    if (task.collective == Collective::allgather) exact = reference::input(plans[0].owner[b], b);
    for (int r = 0; r < p; ++r)
      if (task.collective != Collective::reduce_scatter || plans[0].owner[b] == r)
        worst = std::max(worst, std::abs(done.blocks[r][b].value - exact));
  }
  REQUIRE(worst <= bound);
}

}  // namespace

TEST_CASE("plans give right results, equal values on all ranks, and errors within the counted edges") {
  for (int p = 1; p <= 13; ++p)
    reference::for_each_algorithm(p, [&](const auto& algorithm) {
      for (Task task : reference::tasks(p)) {
        INFO(algorithm.name() << ", " << name_of(task.collective) << ", root " << task.root << ", " << p
                              << " ranks");
        const std::vector<Plan> plans = plans_of(algorithm, task, p);
        const reference::Outcome done = reference::execute(plans, task);
        REQUIRE(done.error == "");
        check_error_bound(plans, task, edges_of(algorithm, task, p), done);
      }
    });
}
