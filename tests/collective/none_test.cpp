// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives without compression: exact where the sums are exact, with every algorithm and number of ranks.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/none.hpp>

#include "support/executors.hpp"
#include "support/matrix.hpp"

using namespace wring_test;
using wring::None;

namespace {

template <class T> void exact_with_whole_numbers(unsigned every, bool orders) {
  const auto check = [](Call<None<T>>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                        bool uneven) {
    if (std::is_integral_v<T> && call.options.operation == wring::mean) call.options.operation = wring::sum;
    const auto inputs = make_inputs<T>(call, ranks, n, uneven, whole_numbers<T>);
    // A mean is no whole number: it is rounded once, to |mean| <= 8.
    const bool divided = wring::reduces(call.collective) && call.options.operation == wring::mean;
    double rounding = 0;
    if constexpr (wring::FloatElement<T>) rounding = divided ? 8 * wring::FloatTraits<T>::unit_roundoff : 0;
    const auto got = collect(algorithm, call, inputs);
    INFO(describe(call, ranks, algorithm, n));
    REQUIRE(judge(call, inputs, got, rounding) == "");
  };
  for_each_case(None<T>{}, 9, small_lengths, every, orders, check);
  const auto long_ones = [](int ranks) {
    return ranks % 4 == 1 || ranks == 4 ? Lengths{5000, 16385} : Lengths{5000};
  };
  for_each_case(None<T>{}, 9, long_ones, 3 * every, orders, check);
}

}  // namespace

TEST_CASE("none: sums, means, minima and maxima of whole doubles are exact", "[collective]") {
  exact_with_whole_numbers<double>(1, true);
}

TEST_CASE("none: the same for integers", "[collective]") { exact_with_whole_numbers<int>(4, true); }
