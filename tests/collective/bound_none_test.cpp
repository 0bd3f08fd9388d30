// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bounds that cannot be promised without compression.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/none.hpp>

#include "support/collect.hpp"
#include "support/executors.hpp"

using namespace wring_test;
using wring::absolute;
using wring::Cause;

TEST_CASE("bound: less than the rounding of the sum is refused alike on every rank", "[collective][bound]") {
  wring::Operation operation = wring::sum;
  for (int i = 0; i < 2; ++i, operation = wring::mean) {
    Call<wring::None<float>> call{.options = {.operation = operation}, .bound = absolute(1e-9)};
    const auto got = collect(wring::Ring{}, call, PerRank<float>(3, std::vector<float>(50, 1)));
    INFO(describe(got.outcomes));
    REQUIRE(all_failed(got.outcomes, Cause::unattainable));
    REQUIRE(got.outcomes[0].text == got.outcomes[2].text);
  }
}

TEST_CASE("bound: complex numbers have none", "[collective][bound]") {
  using C = Kokkos::complex<double>;
  Call<wring::None<C>> call{.bound = absolute(1e-3)};
  const auto got = collect(wring::Ring{}, call, PerRank<C>(2, std::vector<C>(3, C(1, 2))));
  REQUIRE(all_failed(got.outcomes, Cause::argument));
}
