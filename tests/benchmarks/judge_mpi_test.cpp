// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the sweep takes for right and for wrong.
#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <limits>
#include <vector>

#include <wring/operation.hpp>

#include "collective/problem.hpp"
#include "collective/reference.hpp"
#include "support/mpi_world.hpp"

using namespace wring_benchmark;
using wring_test::world_rank, wring_test::world_size;

namespace {

/// Rank r holds r + 1, r + 2, ...
Problem made_problem(wring::Collective collective) {
  std::vector<float> values;
  for (int i = 1; i <= 20; ++i) values.push_back(static_cast<float>(world_rank() + i));
  return Problem(collective, 80, values);
}

/// What the ranks' values give: element i of this rank's result.
float expected(const Problem& problem, std::size_t i) {
  using enum wring::Collective;
  const auto p = static_cast<std::size_t>(world_size()), own = static_cast<std::size_t>(world_rank());
  const std::size_t at = problem.collective == reduce_scatter ? own * problem.part + i : i;
  if (problem.collective == broadcast) return static_cast<float>(i + 1);
  if (problem.collective == allgather) return static_cast<float>(i / problem.part + i % problem.part + 1);
  return static_cast<float>(p * (at % 20 + 1) + p * (p - 1) / 2);
}

}  // namespace

TEST_CASE("the reference knows the result of each collective") {
  using enum wring::Collective;
  for (const auto collective : {allreduce, reduce_scatter, allgather, broadcast}) {
    const Problem problem = made_problem(collective);
    const Reference reference(problem);
    for (std::size_t i = 0; i < problem.out.size(); ++i) problem.out(i) = expected(problem, i);
    const Verdict exact = reference.judge({.bound = 0, .relative = 0, .same_bits = true});
    CHECK(exact.right);
    CHECK(exact.error == 0);
    if (world_rank() == 0) problem.out(0) += 0.5f;
    CHECK(reference.judge({.bound = 0.5}).right);
    CHECK(reference.judge({.bound = 0.5}).error == 0.5);
    CHECK_FALSE(reference.judge({.bound = 0.49}).right);
    if (world_rank() == 0) problem.out(0) = std::numeric_limits<float>::quiet_NaN();
    CHECK_FALSE(reference.judge({.bound = 1e30}).right);
  }
}

TEST_CASE("ranks whose results differ within the bound are wrong where the same bits are promised") {
  const Problem problem = made_problem(wring::Collective::allreduce);
  const Reference reference(problem);
  for (std::size_t i = 0; i < problem.out.size(); ++i) problem.out(i) = expected(problem, i);
  if (world_rank() == 0) problem.out(7) += 0.25f;
  CHECK(reference.judge({.bound = 0.5, .same_bits = false}).right);
  CHECK(reference.judge({.bound = 0.5, .same_bits = true}).right == (world_size() == 1));
}

TEST_CASE("rounding is allowed as a part of the sum of magnitudes") {
  const Problem problem = made_problem(wring::Collective::allreduce);
  const Reference reference(problem);
  for (std::size_t i = 0; i < problem.out.size(); ++i) problem.out(i) = expected(problem, i) * 1.25f;
  CHECK(reference.judge({.relative = 0.25}).right);
  CHECK_FALSE(reference.judge({.relative = 0.24}).right);
}

TEST_CASE("bounds in the units of the data") {
  const Problem problem = made_problem(wring::Collective::allreduce);
  const int p = world_size();
  double squares = 0;
  for (int r = 0; r < p; ++r)
    for (int i = 1; i <= 20; ++i) squares += (r + i) * (r + i);
  CHECK(problem.allowed_error(wring::absolute(0.25)) == 0.25);
  CHECK(problem.allowed_error(wring::relative_to_range(0.5)) == 0.5 * (p + 18));
  const double rms = std::sqrt(squares / (20 * p));
  CHECK(std::fabs(problem.allowed_error(wring::relative_to_rms(0.1)) - 0.1 * rms * p) < 1e-12 * p * rms);
}
