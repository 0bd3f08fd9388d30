// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "campaign/bounds.hpp"

TEST_CASE("campaign: bounds on results of float", "[campaign]") {
  wring_test::bounds_hold<float>(6'000'000, 0.9999);
}
