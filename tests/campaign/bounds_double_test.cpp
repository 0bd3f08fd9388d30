// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "campaign/bounds.hpp"

TEST_CASE("campaign: bounds on results of double", "[campaign]") {
  wring_test::bounds_hold<double>(2'500'000, 0.9999);
}
