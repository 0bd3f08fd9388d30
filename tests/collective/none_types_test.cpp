// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives without compression: bounds on the rounding of the sums, for every floating-point type; complex numbers.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/none.hpp>

#include "support/matrix.hpp"

using namespace wring_test;
using wring::None;

namespace {

/// (p - 1) u (A + E) and the rounding of a mean, A = p * 4: what is left to promise is a little more than that.
template <class T> double attainable(int ranks) {
  const double u = wring::FloatTraits<T>::unit_roundoff * (1 + 0x1p-10), a = 4 * ranks;
  return ranks * u * a / (1 - ranks * u) * 1.01 + 1e-30;
}

template <class T> void within_the_bound(unsigned every) {
  const auto check = [](Call<None<T>>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                        bool uneven) {
    const auto inputs = make_inputs<T>(
        call, ranks, n, uneven, [](std::size_t k, std::uint64_t seed) { return real_numbers<T>(k, seed); });
    const double bound = attainable<T>(ranks);
    call.bound = wring::absolute(bound);
    const auto got = collect(algorithm, call, inputs);
    INFO(describe(call, ranks, algorithm, n));
    REQUIRE(judge(call, inputs, got, bound) == "");
    REQUIRE(got.outcomes[0].report.bound.value() <= bound);
    if (!wring::reduces(call.collective) || !wring::adds(call.options.operation))
      REQUIRE(judge(call, inputs, got, 0) == "");
  };
  for_each_case(None<T>{}, 9, small_lengths, every, true, check);
}

}  // namespace

TEST_CASE("none: a bound covers the rounding of the sums (float)", "[collective]") {
  within_the_bound<float>(4);
}
TEST_CASE("none: a bound covers the rounding of the sums (double)", "[collective]") {
  within_the_bound<double>(4);
}
TEST_CASE("none: a bound covers the rounding of the sums (half_t)", "[collective]") {
  within_the_bound<wring::half_t>(4);
}
TEST_CASE("none: a bound covers the rounding of the sums (bhalf_t)", "[collective]") {
  within_the_bound<wring::bhalf_t>(4);
}

TEST_CASE("none: the sum of complex numbers is exact where its parts are, their minimum is refused",
          "[collective]") {
  using C = Kokkos::complex<float>;
  Call<None<C>> call;
  const PerRank<C> inputs{{C(1, 2), C(-3, 5)}, {C(3, -1), C(4, 4)}};
  for (const AnyAlgorithm& algorithm : all_algorithms(2)) {
    INFO(algorithm.name());
    call.options.operation = wring::sum;
    auto got = collect(algorithm, call, inputs);
    REQUIRE(all_ok(got.outcomes));
    for (const auto& result : got.results) REQUIRE(result == std::vector<C>{C(4, 1), C(1, 9)});
    call.options.operation = wring::mean;
    got = collect(algorithm, call, inputs);
    for (const auto& result : got.results) REQUIRE(result == std::vector<C>{C(2, 0.5f), C(0.5f, 4.5f)});
    call.options.operation = wring::max;
    got = collect(algorithm, call, inputs);
    INFO(describe(got.outcomes));
    REQUIRE(all_failed(got.outcomes, wring::Cause::argument, 0));
    REQUIRE(got.intact);
  }
}

TEST_CASE("none: MEAN of integers is refused, their sum wraps", "[collective]") {
  Call<None<int>> call;
  call.options.operation = wring::mean;
  auto got = collect(wring::Ring{}, call, PerRank<int>{{1}, {2}});
  REQUIRE(all_failed(got.outcomes, wring::Cause::argument));
  call.options.operation = wring::sum;
  got = collect(wring::Ring{}, call, PerRank<int>{{2147483647}, {1}});
  REQUIRE(got.results[1] == std::vector<int>{-2147483647 - 1});
}
