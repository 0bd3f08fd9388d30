// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults at every message of every collective and algorithm: values in two bytes.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/cast.hpp>

#include "collective/fault_campaign.hpp"

using namespace wring_test;

TEST_CASE("faults: Cast", "[collective][faults]") {
  Verdicts verdicts;
  campaign<wring::Cast<wring::half_t, float>>(verdicts, false, 200);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 2000);
  CHECK(verdicts.none());
}

TEST_CASE("faults: Cast, many", "[collective][faults][nightly]") {
  Verdicts verdicts;
  campaign<wring::Cast<wring::half_t, float>>(verdicts, false, 20);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 10'000);
  CHECK(verdicts.none());
}
