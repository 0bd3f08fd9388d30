// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// q is a function of (x, D): the nearest multiple, ties to even on a power of two, else down, whichever
// kernel computes it. Reference: long division of integers.

#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <compressor/grid_support.hpp>

using namespace grid_test;
using wring::detail::grid::BlockEncoder;
using wring::detail::grid::Quanta;

namespace {

__extension__ typedef unsigned __int128 Wide128;

/// Nearest integer to x / (m 2^k), by long division. |quotient| < 2^62.
std::int64_t exact_quantum(double x, int m, int k) {
  if (x == 0) return 0;
  int e = 0;
  const double fraction = std::frexp(std::fabs(x), &e);
  Wide128 numerator = static_cast<std::uint64_t>(std::ldexp(fraction, 53)),
          denominator = static_cast<unsigned>(m);
  const int shift = e - 53 - k;  // x / D = numerator 2^shift / m
  if (shift < -100) return 0;    // far below half a step
  if (shift >= 0)
    numerator <<= shift;
  else
    denominator <<= -shift;
  Wide128 q = numerator / denominator;
  const Wide128 twice = 2 * (numerator % denominator);
  const bool negative = x < 0;
  const bool tie_away = m == 8 ? (q & 1) != 0 : negative;
  if (twice > denominator || (twice == denominator && tie_away)) ++q;
  return negative ? -static_cast<std::int64_t>(q) : static_cast<std::int64_t>(q);
}

template <class T> T nearby(T x, int steps) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  return std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(x) + static_cast<Bits>(steps)));
}

/// Elements of all kinds with |x / D| < limit: any bits, near ties, tiny.
template <class T> std::vector<T> inputs(double step, double limit, Random& random) {
  std::vector<T> x(512);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double v = 0;
    const double size = std::exp2(static_cast<double>(random.below(70)) - 8);
    const double quotient = std::min(size, limit) * random.signed_unit();
    switch (i % 4) {
    case 0: v = quotient * step; break;
    case 1: v = (std::floor(quotient) + 0.5) * step; break;
    case 2: v = std::floor(quotient) * step; break;
    default:
      v = number(std::bit_cast<T>(
          static_cast<std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>>(
              random.word())));
    }
    T t = element<T>(v);
    if (i % 4 == 1) t = nearby(t, static_cast<int>(random.below(5)) - 2);
    const double w = number(t);
    if (!std::isfinite(w) || !(std::fabs(w) < step * limit)) t = element<T>(0);
    x[i] = t;
  }
  return x;
}

template <class T, class Q> void check(int multiplier, int exponent, double limit, Random& random) {
  const GridParameters p = grid_of(
      multiplier, exponent, sizeof(Q) == 8 ? GridParameters::Form::int64 : GridParameters::Form::int32);
  const std::vector<T> x = inputs<T>(p.step, limit, random);
  for (const Level level : levels) {
    if (!wring::detail::can_run(level)) continue;
    const BlockEncoder<T, Q> encoder(wring::detail::grid::kernels_for(level), p);
    Quanta<Q> quanta;
    encoder.quantise(x.data(), x.size(), quanta);
    REQUIRE_FALSE(quanta.too_large);
    REQUIRE_FALSE(quanta.special);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t q = exact_quantum(number(x[i]), multiplier, exponent);
      if (q == quanta.q[i]) continue;
      CAPTURE(multiplier, exponent, number(x[i]) / p.step, static_cast<int>(level));
      REQUIRE(quanta.q[i] == q);
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("quanta are the nearest multiples for every step", "[grid]", float, double, wring::half_t,
                   wring::bhalf_t) {
  Random random(7);
  constexpr int top = std::is_same_v<TestType, double> ? 1021 : 125;
  for (int multiplier = 8; multiplier < 16; ++multiplier)
    for (int round = 0; round < 60; ++round) {
      // The whole allowed range, its ends, and the middle, where the 16-bit types live.
      int exponent = -top - 3 + static_cast<int>(random.below(static_cast<std::uint64_t>(2 * top + 1)));
      if (round % 3 == 0) exponent = static_cast<int>(random.below(40)) - 30;
      if (round % 10 == 1) exponent = -top - 3;
      if (round % 10 == 2) exponent = top - 4;
      check<TestType, std::int32_t>(multiplier, exponent, 0x1p20 - 1, random);  // within the fast path
      check<TestType, std::int32_t>(multiplier, exponent, 0x1p31 - 1, random);  // and beyond
      if constexpr (sizeof(TestType) >= 4)
        check<TestType, std::int64_t>(multiplier, exponent, 0x1p51 - 1, random);
    }
}

TEST_CASE("|x - qD| <= D/2 with exact ties", "[grid]") {
  // 9 * 2^-4 is the step, x = (q + 1/2) D exactly: short steps send ties down, powers of two to even.
  for (const int multiplier : {8, 9, 12, 15}) {
    const GridParameters p = grid_of(multiplier, -4);
    std::vector<float> x(512);
    for (int i = 0; i < 512; ++i)
      x[static_cast<std::size_t>(i)] = static_cast<float>((i - 256 + 0.5) * p.step);
    for (const Level level : levels) {
      if (!wring::detail::can_run(level)) continue;
      const BlockEncoder<float, std::int32_t> encoder(wring::detail::grid::kernels_for(level), p);
      Quanta<std::int32_t> quanta;
      encoder.quantise(x.data(), x.size(), quanta);
      bool right = true;
      for (int i = 0; i < 512; ++i) {
        const int below = i - 256;
        right = right && quanta.q[i] == (multiplier == 8 ? below + (below & 1) : below);
      }
      CHECK(right);
    }
  }
}

TEST_CASE("one value near a tie, or none, among values that are not", "[grid]") {
  Random random(31);
  bool right = true;
  for (int round = 0; round < 3000; ++round) {
    const int multiplier = 8 + round % 8, exponent = static_cast<int>(random.below(60)) - 40;
    const GridParameters p = grid_of(multiplier, exponent);
    const double spread = std::ldexp(1.0, static_cast<int>(random.below(20)));
    const auto near = [&](double quotient, int ulps) {
      return nearby(static_cast<float>(quotient * p.step), ulps);
    };
    std::vector<float> x(512);
    for (float& v : x) v = near(std::floor(spread * random.signed_unit()) + 0.3 * random.signed_unit(), 0);
    if (round % 5 != 0)
      x[random.below(512)] =
          near(std::floor(spread * random.signed_unit()) + 0.5, static_cast<int>(random.below(9)) - 4);
    for (const Level level : levels) {
      if (!wring::detail::can_run(level)) continue;
      const BlockEncoder<float, std::int32_t> encoder(wring::detail::grid::kernels_for(level), p);
      Quanta<std::int32_t> quanta;
      encoder.quantise(x.data(), x.size(), quanta);
      for (std::size_t i = 0; i < x.size(); ++i)
        right = right && quanta.q[i] == exact_quantum(x[i], multiplier, exponent);
    }
  }
  CHECK(right);
}

TEST_CASE("residues of quanta that climb as far as they can be trusted, and further", "[grid]") {
  for (const int multiplier : {8, 11})
    for (const int first : {0, (1 << 19) - 1, 1 << 19, -(1 << 19), -(1 << 19) - 1, (1 << 20) - 600})
      for (const int slope : {-1024, -1023, -3, 1, 1022, 1023, 1024, 1025}) {
        GridParameters p = grid_of(multiplier, -6);
        p.delta = true;
        std::vector<float> x(512);
        for (int i = 0; i < 512; ++i)
          x[static_cast<std::size_t>(i)] = static_cast<float>((first + i * slope) * p.step);
        for (const Level level : levels) {
          if (!wring::detail::can_run(level)) continue;
          const BlockEncoder<float, std::int32_t> encoder(wring::detail::grid::kernels_for(level), p);
          Quanta<std::int32_t> quanta;
          encoder.quantise(x.data(), x.size(), quanta);
          std::int64_t sum = quanta.base;
          bool right = true;
          for (std::size_t i = 0; i < x.size(); ++i) {
            sum += quanta.q[i];
            right = right && sum == exact_quantum(x[i], multiplier, -6);
          }
          CAPTURE(multiplier, first, slope, static_cast<int>(level));
          CHECK(right);
        }
      }
}

TEST_CASE("a shift rounds to nearest, ties to even, without overflow", "[grid]") {
  using wring::detail::grid::round_shift;
  for (int s = 1; s <= 10; ++s)
    for (std::int32_t q = -3000; q <= 3000; ++q) {
      const double exact = std::ldexp(static_cast<double>(q), -s);
      REQUIRE(round_shift(q, s) == static_cast<std::int32_t>(std::nearbyint(exact)));
      REQUIRE(round_shift(std::int64_t{q}, s) == static_cast<std::int64_t>(std::nearbyint(exact)));
    }
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  CHECK(round_shift(most, 1) == 1 << 30);
  CHECK(round_shift(-most - 1, 3) == -(1 << 28));
  for (const Level level : levels) {
    if (!wring::detail::can_run(level)) continue;
    std::int32_t q[512];
    for (int i = 0; i < 512; ++i) q[i] = i % 2 ? most - i : -most + 3 * i;
    std::int32_t expected[512];
    for (int i = 0; i < 512; ++i) expected[i] = round_shift(q[i], 3);
    wring::detail::grid::kernels_for(level).words.shift(q, 3);
    CHECK(std::ranges::equal(q, expected));
  }
}
