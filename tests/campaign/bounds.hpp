// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The campaign as a test. WRING_CAMPAIGN_ELEMENTS and WRING_CAMPAIGN_SEED change its size and its numbers; with the former, the
// figures are printed.
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "campaign/campaign.hpp"

namespace wring_test {

inline std::size_t number_from(const char* variable, std::size_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::size_t>(std::strtod(text, nullptr));
}

/// `elements` results are checked: no violation; midpoints use up more than `tight` of the bound on the grid, never more than all.
template <class T> void bounds_hold(std::size_t elements, double tight) {
  const std::size_t seed = number_from("WRING_CAMPAIGN_SEED", 1),
                    asked = number_from("WRING_CAMPAIGN_ELEMENTS", 0);
  std::vector<std::string> failures;
  Tally all;
  run_campaign<
      T>(seed, asked ? asked : elements, failures, [&](const char* codec, Data data, const Tally& t) {
    all.add(t);
    if (asked)
      std::printf(
          "%-9s %-20s %-26s %12zu elements %9zu operations %9zu refused %3zu violations  tightness %.9f\n",
          wring::FloatTraits<T>::name, codec, data_names[static_cast<int>(data)], t.elements, t.operations,
          t.refused, t.violations, t.tightness);
    INFO(codec << ", " << data_names[static_cast<int>(data)]);
    const bool always_refused =
        std::string(codec) == "grid, words" && data == Data::subnormal;  // no such step
    CHECK((t.operations > t.refused || always_refused));
    CHECK(t.tightness <= 1);
    if (data == Data::midpoints && std::string(codec).starts_with("grid")) CHECK(t.tightness > tight);
  });
  if (asked)
    std::printf(
        "%-9s in all: %zu elements, %zu operations (%zu refused), %zu violations, tightness %.9f, seed %zu\n",
        wring::FloatTraits<T>::name, all.elements, all.operations, all.refused, all.violations, all.tightness,
        seed);
  for (const std::string& failure : failures) UNSCOPED_INFO(failure);
  REQUIRE(failures.empty());
}

}  // namespace wring_test
