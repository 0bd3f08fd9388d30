// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "collective/grid_cases.hpp"

TEST_CASE("grid<float>: every result is within its bound, all ranks hold the same bits", "[collective]") {
  within_the_bound<float>();
}
TEST_CASE("grid<float>: bits depend on the values alone", "[collective]") { same_bits_every_way<float>(); }
