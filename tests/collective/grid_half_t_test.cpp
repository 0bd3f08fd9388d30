// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/grid_cases.hpp"

TEST_CASE("grid<half_t>: every result is within its bound, all ranks hold the same bits", "[collective]") {
  within_the_bound<wring::half_t>();
}
TEST_CASE("grid<half_t>: bits depend on the values alone", "[collective]") {
  same_bits_every_way<wring::half_t>();
}

TEST_CASE("grid<half_t>: a bound below the spacing of the results is refused", "[collective]") {
  Call<Grid<wring::half_t>> call{.bound = wring::absolute(0.01)};
  const auto got = collect(wring::Ring{}, call,
                           PerRank<wring::half_t>(3, std::vector<wring::half_t>(50, wring::half_t(1000.0f))));
  REQUIRE(all_failed(got.outcomes, wring::Cause::unattainable));
  REQUIRE(got.intact);
}
