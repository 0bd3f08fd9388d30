// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums without rounding, and the verdict on a result: at the very bound, beyond the range, with special values, many at once.
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <wring/detail/exact_reduction.hpp>

#include "support/values.hpp"

using namespace wring_test;
using wring::Operation;
using wring::detail::ExactCheck;
using wring::detail::ExactRule;
using wring::detail::ExactSum;
using wring::detail::right_result;
using wring::detail::sum_within;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN(),
                 greatest = std::numeric_limits<double>::max(),
                 least = std::numeric_limits<double>::denorm_min();

ExactSum sum_of(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double x : terms) sum.add(x);
  return sum;
}

__extension__ typedef __int128 Wide;

bool within(double y, const std::vector<double>& terms, double bound, int divisor = 1) {
  return sum_within(y, terms, bound, divisor);
}

}  // namespace

TEST_CASE("exact sum: the least and the greatest doubles stand side by side", "[exact]") {
  REQUIRE(sum_of({greatest, least, -greatest}).sign() == 1);
  REQUIRE(sum_of({greatest, least, -greatest}).quotient() == least);
  REQUIRE(sum_of({greatest, -least, -greatest}).sign() == -1);
  REQUIRE(sum_of({greatest, least, -greatest, -least}).sign() == 0);
  REQUIRE(sum_of({greatest, greatest, -greatest, -greatest}).sign() == 0);
  REQUIRE(sum_of({1, 0x1p-53, 0x1p-106, -1, -0x1p-53}).quotient() == 0x1p-106);
  REQUIRE(sum_of({}).sign() == 0);
  REQUIRE(sum_of({-0.0}).sign() == 0);
}

TEST_CASE("exact sum: whole numbers, against integers of 128 bits", "[exact]") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    ExactSum sum;
    Wide expected = 0;
    for (std::uint64_t i = 0; i < 1 + seed % 9; ++i) {
      const std::uint64_t bits = random_bits(seed, i);
      const int shift = static_cast<int>(bits % 60);
      const auto whole = static_cast<std::int64_t>(bits) >> 12;  // 52 bits and a sign
      sum.add(std::ldexp(static_cast<double>(whole), shift));
      expected += static_cast<Wide>(whole) * (Wide{1} << shift);
    }
    const int factor = 1 + static_cast<int>(seed % 5);
    sum.multiply(factor), expected *= factor;
    REQUIRE(sum.sign() == (expected > 0) - (expected < 0));
    const double high = static_cast<double>(static_cast<std::int64_t>(expected >> 60)) * 0x1p60;
    REQUIRE(std::fabs(sum.quotient() - high) <= 0x1p60 + std::fabs(high) * 0x1p-51);
  }
}

TEST_CASE("exact sum: 10^5 equal terms, and a quotient", "[exact]") {
  ExactSum sum;
  for (int i = 0; i < 100000; ++i) sum.add(0.1);
  REQUIRE(sum.subtract(10000).sign() == 1);  // 0.1 as a double is larger than a tenth
  REQUIRE(sum_of({greatest, greatest, greatest}).quotient(3) == greatest);
  REQUIRE(sum_of({-3, -4}).quotient(2) == -3.5);
}

TEST_CASE("exact verdict: at the bound, and one unit beyond", "[exact]") {
  REQUIRE(within(1.5, {1}, 0.5));
  REQUIRE_FALSE(within(1.5, {1}, std::nextafter(0.5, 0.0)));
  REQUIRE_FALSE(within(std::nextafter(1.5, 2.0), {1}, 0.5));
  REQUIRE(within(1, {1, 0x1p-80}, 0x1p-80));
  REQUIRE_FALSE(within(1, {1, 0x1p-80, least}, 0x1p-80));
  REQUIRE(within(-1, {-1, -0x1p-80}, 0x1p-80));
  REQUIRE_FALSE(within(-1, {-1, -0x1p-80, -least}, 0x1p-80));
  REQUIRE(within(1.0 / 3, {0.25, 0.25, 0.5}, 0x1p-55, 3));  // a third is 2^-54 / 3 below
  REQUIRE_FALSE(within(1.0 / 3, {0.25, 0.25, 0.5}, 0x1p-56, 3));
  REQUIRE(within(least, {least, least, least}, 0, 3));
  REQUIRE_FALSE(within(0, {least, 0, 0}, 0, 3));
  REQUIRE(within(greatest, {greatest, greatest}, greatest));
  REQUIRE_FALSE(within(greatest, {greatest, greatest, least}, greatest));
}

TEST_CASE("exact verdict: special values and sums beyond the range", "[exact]") {
  const std::vector<double> both{infinity, 1, -infinity}, one{1, -infinity}, wrong{not_a_number, infinity},
      large{3e38, 3e38};
  const double bound = 1e36, most = wring::FloatTraits<float>::greatest;
  for (const Operation operation : {wring::sum, wring::mean}) {
    const ExactRule rule{operation, bound, most};
    REQUIRE((right_result(not_a_number, both, rule) && right_result(not_a_number, wrong, rule) &&
             right_result(-infinity, one, rule)));
    REQUIRE_FALSE(right_result(infinity, both, rule));
    REQUIRE_FALSE(right_result(infinity, one, rule));
    REQUIRE_FALSE(right_result(not_a_number, one, rule));
    REQUIRE_FALSE(right_result(1, one, rule));
  }
  const ExactRule sums{wring::sum, bound, most}, means{wring::mean, bound, most};
  REQUIRE(right_result(infinity, large, sums));
  REQUIRE_FALSE(right_result(-infinity, large, sums));
  REQUIRE_FALSE(right_result(most, large, sums));
  REQUIRE_FALSE(right_result(infinity, large, means));
  REQUIRE(right_result(3e38, large, means));
  REQUIRE_FALSE(right_result(infinity, std::vector<double>{most}, sums));
  REQUIRE(right_result(most, std::vector<double>{most, 1.5e36}, sums));  // saturates
  REQUIRE_FALSE(right_result(most, std::vector<double>{most, 2.5e36}, sums));
}

TEST_CASE("exact verdict: without a bound, special values alone", "[exact]") {
  const ExactRule rule{wring::sum, {}, 65504};
  REQUIRE((right_result(7, std::vector<double>{1, 2}, rule) &&
           right_result(infinity, std::vector<double>{1, 2}, rule)));
  REQUIRE_FALSE(right_result(7, std::vector<double>{1, infinity}, rule));
  REQUIRE_FALSE(right_result(not_a_number, std::vector<double>{-5, infinity}, rule));
  REQUIRE(
      right_result(not_a_number, std::vector<double>{-40000, -40000, infinity}, rule));  // -inf on the way
  REQUIRE_FALSE(right_result(not_a_number, std::vector<double>{40000, 40000, infinity}, rule));
  for (const Operation operation : {wring::min, wring::max}) {
    const ExactRule selects{operation, {}, 65504};
    REQUIRE(right_result(-3, std::vector<double>{1, 2}, selects));
    REQUIRE_FALSE(right_result(1, std::vector<double>{1, not_a_number}, selects));
    REQUIRE(right_result(infinity, std::vector<double>{infinity, infinity}, selects));
    REQUIRE_FALSE(right_result(1, std::vector<double>{infinity, infinity}, selects));
  }
}

TEMPLATE_TEST_CASE("exact verdict: many at once are what they are one by one", "[exact]", float, double,
                   wring::half_t, wring::bhalf_t) {
  using T = TestType;
  constexpr std::size_t n = 3000;
  for (const std::size_t ranks : {1, 2, 5})
    for (const Operation operation : {wring::sum, wring::mean, wring::min, wring::max})
      for (const int exponent : {0, -40, -200}) {
        std::vector<std::vector<T>> inputs;
        for (std::size_t r = 0; r < ranks; ++r)
          inputs.push_back(real_numbers<T>(n, r, std::ldexp(4.0, exponent)));
        const double bound = std::ldexp(0x1p-6, exponent);
        const ExactRule rule{operation, bound, wring::FloatTraits<T>::greatest};
        std::vector<const T*> terms;
        for (const auto& x : inputs) terms.push_back(x.data());
        std::vector<T> results(n);
        std::vector<std::size_t> expected;
        ExactCheck<T> check(rule);
        for (std::size_t i = 0; i < n; ++i) {
          const auto numbers = check.terms_of(terms, i);
          const double exact = wring::detail::exact_result(numbers, rule),
                       unit = static_cast<double>(i % 7) - 3;
          results[i] =
              wring::detail::narrow<T>(exact + (i % 5 == 0 ? unit * 0x1p-52 : 1) * (i % 2 ? bound : -bound));
          if (i % 97 == 5) results[i] = T(std::numeric_limits<float>::quiet_NaN());
          if (i % 501 == 7) results[i] = inputs[ranks - 1][i] = T(std::numeric_limits<float>::infinity());
          if (!right_result(static_cast<double>(wring::detail::widen(results[i])), check.terms_of(terms, i),
                            rule))
            expected.push_back(i);
        }
        std::vector<std::size_t> found;
        for (std::size_t first = 0; first < n; ++first) {
          std::vector<const T*> rest;
          for (const T* x : terms) rest.push_back(x + first);
          first += check.first_wrong(rest, std::span<const T>(results).subspan(first));
          if (first < n) found.push_back(first);
        }
        INFO(ranks << " ranks, " << wring::name_of(operation) << ", 2^" << exponent);
        REQUIRE(found == expected);
      }
}

TEST_CASE("exact verdict: the tightness is that of the farthest result", "[exact]") {
  const std::vector<double> x{1, 2, 3}, y{1.25, 2.375, 2.5};
  const std::vector<const double*> terms{x.data()};
  for (const Operation operation : {wring::sum, wring::mean, wring::min}) {
    ExactCheck<double> check({operation, 0.5, greatest});
    REQUIRE(check.first_wrong(terms, y) == 3);
    REQUIRE((check.tightness() <= 1 && check.tightness() > 1 - 0x1p-40));
  }
}
