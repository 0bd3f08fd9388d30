// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Special values in pairs, and in 16 bits.
#include "collective/special_cases.hpp"
#include "support/executors.hpp"

using namespace wring_test;
using wring::Collective;
using wring::None;

TEST_CASE("specials: all pairs of finite numbers, infinities and NaN (double)", "[collective][special]") {
  all_pairs_of_specials<double>();
}
TEST_CASE("specials: all pairs (half_t)", "[collective][special]") { all_pairs_of_specials<wring::half_t>(); }

TEST_CASE("specials: the maximum of minus infinities, and the extremes of half types, bit for bit",
          "[collective][special]") {
  const auto check = []<class T>(T) {
    Call<None<T>> call{.options = {.operation = wring::max}};
    const std::vector<T> lowest = elements<T>({-inf, -inf, -inf});
    everywhere<None<T>>(call, {lowest, lowest}, 0);
    call.collective = Collective::allgather, call.counts = {5, 5};
    std::vector<T> odd = elements<T>({inf, quiet, 65504, -65504, 0});
    odd[4].bits = 1;  // the smallest subnormal
    const auto got = collect(wring::Ring{}, call, PerRank<T>{odd, odd});
    REQUIRE(all_ok(got.outcomes));
    for (const auto& result : got.results)
      for (std::size_t i = 0; i < 10; ++i) REQUIRE(result[i].bits == odd[i % 5].bits);
    REQUIRE((std::isinf(as_double(got.results[0][0])) && std::isnan(as_double(got.results[0][1]))));
  };
  check(wring::half_t{});
  check(wring::bhalf_t{});
}
