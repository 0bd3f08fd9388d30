// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "campaign/bounds.hpp"

TEST_CASE("campaign: bounds on results of half_t", "[campaign]") {
  wring_test::bounds_hold<wring::half_t>(2'500'000, 0.99);
}
