// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <wring/detail/grid/arithmetic.hpp>
#include <wring/detail/grid/team/arithmetic.hpp>

using namespace wring;
using namespace wring::detail;

namespace {

__extension__ typedef __int128 Wide;

struct Step {
  int multiplier, exponent;
  GridParameters parameters() const {
    GridParameters p;
    p.multiplier = multiplier, p.exponent = exponent;
    p.step = std::ldexp(multiplier, exponent), p.inverse = 1 / p.step;
    return p;
  }
};

/// round(x / D) by integers alone: x / D = significand 2^shift / multiplier. |x / D| < 2^60.
std::int64_t nearest(double x, Step step) {
  int e = 0;
  const double f = std::frexp(x, &e);
  Wide numerator = static_cast<std::int64_t>(std::ldexp(f, 53)), denominator = step.multiplier;
  const int shift = e - 53 - step.exponent;
  if (shift < -68) return 0;  // |x / D| < 2^-15
  if (shift >= 0)
    numerator *= Wide(1) << shift;
  else
    denominator *= Wide(1) << -shift;
  Wide q = numerator / denominator;
  if (q * denominator > numerator) --q;  // floor
  const Wide twice = 2 * (numerator - q * denominator);
  if (twice > denominator || (twice == denominator && step.multiplier == 8 && (q & 1))) ++q;
  return static_cast<std::int64_t>(q);
}

template <class T> void check(T x, Step step) {
  const GridParameters p = step.parameters();
  const std::int64_t expected = nearest(static_cast<double>(x), step);
  INFO("x = " << std::hexfloat << x << ", step " << step.multiplier << " * 2^" << step.exponent);
  CHECK(grid_team::Quantiser<T>(p).quantum(x) == expected);
  CHECK(static_cast<std::int64_t>(grid::quantum(x, p.step, p.inverse, p.multiplier == 8)) == expected);
}

/// Values within two units in the last place of every kind of tie and grid point near q.
template <class T> void check_near(std::int64_t q, Step step) {
  const double d = step.parameters().step;
  for (const double at : {static_cast<double>(q), static_cast<double>(q) + 0.5}) {
    T x = static_cast<T>(at * d);
    T below = x, above = x;
    for (int i = 0; i < 3; ++i) {
      check(below, step), check(above, step);
      below = std::nextafter(below, -std::numeric_limits<T>::infinity());
      above = std::nextafter(above, std::numeric_limits<T>::infinity());
    }
  }
}

}  // namespace

TEST_CASE("quanta are the nearest integers, ties as documented", "[grid][team]") {
  std::uint64_t state = 1;
  for (int multiplier = 8; multiplier <= 15; ++multiplier)
    for (const int exponent : {-100, -23, 0, 77})
      for (int bits = 0; bits < 50; ++bits)
        for (int sign = -1; sign <= 1; sign += 2) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          const std::int64_t q =
              sign * static_cast<std::int64_t>((std::uint64_t(1) << bits) + (state >> (63 - bits)));
          check_near<double>(q, {multiplier, exponent});
          if (std::fabs(static_cast<double>(q)) * std::ldexp(16, exponent) < 0x1p127)
            check_near<float>(q, {multiplier, exponent});
        }
}

TEST_CASE("quanta of subnormal and extreme values", "[grid][team]") {
  for (int multiplier = 8; multiplier <= 15; ++multiplier) {
    for (const float x :
         {0.0f, -0.0f, 0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1p-123f, 0x1.8p-122f, 0x1.fffffep-121f})
      check(x, {multiplier, -128});  // the least step in binary32: 2^-125
    for (const double x : {0.0, 0x1p-1074, -0x1p-1074, 0x1p-1022, 0x1p-1019, 0x1.8p-1018})
      check(x, {multiplier, -1024});
    for (const float x : {0x1.fffffep127f, -0x1p127f, 0x1p126f, 0x1.8p124f}) check(x, {multiplier, 100});
    for (const double x : {0x1.fffffffffffffp1023, -0x1p1000}) check(x, {multiplier, 980});
  }
}

TEST_CASE("values without a quantum say so", "[grid][team]") {
  const grid_team::Quantiser<double> quantiser(Step{11, 0}.parameters());
  CHECK(quantiser.quantum(11 * 0x1p51) == grid_team::Quantiser<double>::too_large);
  CHECK(quantiser.quantum(-0x1p900) == grid_team::Quantiser<double>::too_large);
  CHECK(quantiser.quantum(11 * (0x1p51 - 1)) == (std::int64_t(1) << 51) - 1);
}
