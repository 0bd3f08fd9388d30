// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults at every message of every collective and algorithm: values on a grid that all ranks agree upon.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/grid.hpp>

#include "collective/fault_campaign.hpp"

using namespace wring_test;

TEST_CASE("faults: Grid", "[collective][faults]") {
  Verdicts verdicts;
  campaign<wring::Grid<float>>(verdicts, true, 200);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 2000);
  CHECK(verdicts.none());
}

TEST_CASE("faults: Grid, many", "[collective][faults][nightly]") {
  Verdicts verdicts;
  campaign<wring::Grid<float>>(verdicts, true, 20);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 10'000);
  CHECK(verdicts.none());
}
