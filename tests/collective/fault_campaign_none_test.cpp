// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults at every message of every collective and algorithm: values as they are.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/none.hpp>

#include "collective/fault_campaign.hpp"

using namespace wring_test;

TEST_CASE("faults: None", "[collective][faults]") {
  Verdicts verdicts;
  campaign<wring::None<float>>(verdicts, false, 200);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 2000);
  CHECK(verdicts.none());
}

TEST_CASE("faults: None, many", "[collective][faults][nightly]") {
  Verdicts verdicts;
  campaign<wring::None<float>>(verdicts, false, 20);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 10'000);
  CHECK(verdicts.none());
}
