// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/grid_cases.hpp"
#include "support/executors.hpp"

TEST_CASE("grid<double>: every result is within its bound, all ranks hold the same bits", "[collective]") {
  within_the_bound<double>();
}
TEST_CASE("grid<double>: bits depend on the values alone", "[collective]") { same_bits_every_way<double>(); }
