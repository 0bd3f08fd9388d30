// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Special values mean what IEEE says, under every operation, and never touch a neighbour. (T-7, T-9)

#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <compressor/grid_support.hpp>

using namespace grid_test;

namespace {

/// What an uncompressed operation gives, NaN winning in MIN and MAX.
double ieee(wring::Operation operation, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return not_a_number;
  switch (operation) {
  case wring::Operation::min: return std::min(a, b);
  case wring::Operation::max: return std::max(a, b);
  case wring::Operation::mean: return (a + b) / 2;
  default: return a + b;
  }
}

template <class T> bool canonical_nan(T x) {
  const T expected = wring::detail::grid::quiet_nan<T>();
  return std::memcmp(&x, &expected, sizeof(T)) == 0;
}

}  // namespace

TEMPLATE_TEST_CASE("all ordered pairs of kinds of values", "[grid]", float, double, wring::half_t,
                   wring::bhalf_t) {
  using T = TestType;
  const double kinds[] = {2, -3, 0, infinity, -infinity, not_a_number};
  for (const wring::Operation operation : {wring::sum, wring::mean, wring::min, wring::max})
    for (const bool delta : {false, true})
      for (const std::size_t n : {std::size_t{36}, std::size_t{1036}})
        for (const double error : {0.25, 0.0}) {
          // Pair number i % 36 at element i, so that specials have finite neighbours; error 0 takes elements
          // as they are.
          const bool adds = wring::adds(operation);
          if (adds && error == 0) continue;
          std::vector<T> x(n), y(n);
          for (std::size_t i = 0; i < n; ++i)
            x[i] = element<T>(kinds[i % 36 / 6]), y[i] = element<T>(kinds[i % 6]);
          Reduction<T> reduction({.delta = delta}, wring::Collective::allreduce, operation, 2, n, 3, error);
          CHECK(reduction.codec().step().has_value() == (error > 0));
          const Bytes a = reduction.compress(x), b = reduction.compress(y);
          const std::vector<T> z = reduction.decompress(reduction.combine(a, b));
          REQUIRE(same_bits(z, reduction.decompress(reduction.combine(b, a))));
          for (std::size_t i = 0; i < n; ++i) {
            const double expected = ieee(operation, number(x[i]), number(y[i]));
            CAPTURE(i, number(x[i]), number(y[i]), number(z[i]));
            if (std::isnan(expected))
              REQUIRE(canonical_nan(z[i]));
            else if (std::isinf(expected))
              REQUIRE(number(z[i]) == expected);
            else
              REQUIRE(std::fabs(number(z[i]) - expected) <= error);
          }
        }
}

TEMPLATE_TEST_CASE("NaN payloads and signs are not kept, -0 becomes +0", "[grid]", float, double,
                   wring::half_t, wring::bhalf_t) {
  using T = TestType;
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  const Bits quiet = std::bit_cast<Bits>(wring::detail::grid::quiet_nan<T>());
  const std::vector<T> x{element<T>(-0.0), std::bit_cast<T>(static_cast<Bits>(~Bits{0})),
                         std::bit_cast<T>(static_cast<Bits>(quiet + 1)),
                         std::bit_cast<T>(static_cast<Bits>(quiet ^ (quiet & -quiet) ^ 1))};
  Reduction<T> reduction({}, wring::Collective::allreduce, wring::sum, 1, x.size(), 0, 0.5);
  const std::vector<T> y = reduction.decompress(reduction.compress(x));
  CHECK(std::bit_cast<Bits>(y[0]) == 0);
  CHECK(canonical_nan(y[1]));
  CHECK(canonical_nan(y[2]));
  CHECK(canonical_nan(y[3]));
}

TEMPLATE_TEST_CASE("-0 arrives as +0 where elements are sent as they are, too", "[grid]", float, double,
                   wring::half_t, wring::bhalf_t) {
  using T = TestType;
  Random random(8);
  std::vector<T> x(70);
  for (T& v : x) v = element<T>(random.signed_unit());
  x[3] = x[69] = element<T>(-0.0);
  using wring::Collective;
  for (const double error : {0.0, 1e-3, 1e-6})  // the form without a grid, and blocks too short to gain by it
    for (const Collective collective : {Collective::allgather, Collective::allreduce}) {
      if (error != 0 && collective == Collective::allreduce) continue;
      Reduction<T> reduction({}, collective, wring::min, 2, x.size(), 1,
                             error == 1e-6 && sizeof(T) < 4 ? 0.0 : error);
      const Bytes piece = reduction.compress(x);
      const std::vector<T> y = reduction.decompress(piece),
                           z = collective == Collective::allreduce
                                   ? reduction.decompress(reduction.combine(piece, piece))
                                   : y;
      for (const std::size_t i : {3, 69})
        REQUIRE((!std::signbit(number(y[i])) && !std::signbit(number(z[i]))));
    }
}

TEMPLATE_TEST_CASE("MIN and MAX are within D/2, in any order the same bits", "[grid]", float, double,
                   wring::half_t, wring::bhalf_t) {
  using T = TestType;
  const std::size_t n = 1500;
  Random random(2);
  for (const wring::Operation operation : {wring::min, wring::max})
    for (int ranks = 1; ranks <= 6; ++ranks) {
      std::vector<std::vector<T>> x(static_cast<std::size_t>(ranks), std::vector<T>(n));
      double max_abs = 0;
      for (auto& values : x)
        for (T& v : values)
          v = element<T>(4 * random.signed_unit()), max_abs = std::max(max_abs, std::fabs(number(v)));
      const double error = 0.05;
      Reduction<T> reduction({.delta = true}, wring::Collective::allreduce, operation, ranks, n, max_abs,
                             error);
      std::vector<Bytes> pieces;
      for (const auto& values : x) pieces.push_back(reduction.compress(values));
      const Bytes one = reduction.combined(pieces, random);
      for (int order = 0; order < 3; ++order) REQUIRE(reduction.combined(pieces, random) == one);
      REQUIRE_FALSE(reduction.codec().finishes());
      REQUIRE(reduction.codec().reproducible());
      const std::vector<T> y = reduction.decompress(one);
      for (std::size_t i = 0; i < n; ++i) {
        double exact = number(x[0][i]);
        for (const auto& values : x) exact = ieee(operation, exact, number(values[i]));
        REQUIRE(std::fabs(number(y[i]) - exact) <= error);
      }
    }
}

TEMPLATE_TEST_CASE("near the greatest element sums saturate, beyond it they are infinite", "[grid]", float,
                   double, wring::half_t, wring::bhalf_t) {
  using T = TestType;
  const double greatest = wring::FloatTraits<T>::greatest, error = greatest * 0x1p-5;
  const std::vector<T> top(700, element<T>(greatest)), tiny(700, element<T>(greatest * 0x1p-8)),
      bottom(700, element<T>(-greatest));
  Reduction<T> reduction({}, wring::Collective::allreduce, wring::sum, 2, 700, greatest, error);
  const auto sum = [&](const std::vector<T>& a, const std::vector<T>& b) {
    return number(reduction.decompress(reduction.combine(reduction.compress(a), reduction.compress(b)))[600]);
  };
  // greatest + 0 is finite whatever the step.
  const std::vector<T> zero(700);
  CHECK(std::fabs(sum(top, zero) / 2 - greatest / 2) <= error / 2);
  CHECK(std::fabs(sum(bottom, zero) / 2 + greatest / 2) <= error / 2);
  CHECK(std::fabs(sum(top, bottom)) <= error);
  CHECK(sum(top, top) == infinity);
  CHECK(sum(bottom, bottom) == -infinity);
  Reduction<T> average({}, wring::Collective::allreduce, wring::mean, 2, 700, greatest, error);
  const double mean =
      number(average.decompress(average.combine(average.compress(top), average.compress(top)))[600]);
  CHECK(std::fabs(mean / 2 - greatest / 2) <= error / 2);
}

TEMPLATE_TEST_CASE("sums around the greatest element are within the bound or infinite", "[grid]", float,
                   double, wring::half_t, wring::bhalf_t) {
  using T = TestType;
  const double greatest = wring::FloatTraits<T>::greatest;
  Random random(5);
  for (const int ranks : {2, 3, 5, 9})
    for (const double error : {greatest * 0x1p-3, greatest * 0x1p-5, greatest * 0x1p-6}) {
      const std::size_t n = 1500;
      std::vector<std::vector<T>> x(static_cast<std::size_t>(ranks), std::vector<T>(n));
      for (std::size_t i = 0; i < n; ++i) {  // sums up to two bounds above or below the greatest element
        const double excess = 2 * error * random.signed_unit(), sign = i % 2 ? 1 : -1;
        for (auto& values : x)
          values[i] =
              element<T>(sign * (greatest / ranks + excess / ranks + error * random.signed_unit() / 64));
      }
      Reduction<T> reduction({}, wring::Collective::allreduce, wring::sum, ranks, n, greatest, error);
      std::vector<Bytes> pieces;
      for (const auto& values : x) pieces.push_back(reduction.compress(values));
      const std::vector<T> y = reduction.decompress(reduction.finish(reduction.combined(pieces, random)));
      std::size_t infinite = 0;
      for (std::size_t i = 0; i < n; ++i) {
        Exact exact = 0;
        for (const auto& values : x) exact += static_cast<Exact>(number(values[i]));
        const double result = number(y[i]);
        if (std::isinf(result)) {
          ++infinite;
          REQUIRE((result > 0 ? exact : -exact) > static_cast<Exact>(greatest));
        } else {
          const Exact off = static_cast<Exact>(result) - exact;
          REQUIRE((off < 0 ? -off : off) <= static_cast<Exact>(error));
        }
      }
      REQUIRE(infinite > n / 10);
      REQUIRE(infinite < n / 2);
    }
}

TEMPLATE_TEST_CASE("subnormal and tiny values", "[grid]", float, double, wring::half_t, wring::bhalf_t) {
  using T = TestType;
  const double least = wring::FloatTraits<T>::least_subnormal;
  std::vector<T> x(600);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = element<T>(least * (static_cast<double>(i % 7) - 3));
  // No bound that the grid could keep at two ranks, but raw elements add exactly; at a generous bound
  // everything is zero.
  for (const double error : {1e-3, least * 64}) {
    Reduction<T> reduction({}, wring::Collective::allreduce, wring::sum, 2, x.size(), 3 * least, error);
    const Bytes piece = reduction.compress(x);
    const std::vector<T> y = reduction.decompress(reduction.combine(piece, piece));
    for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(std::fabs(number(y[i]) - 2 * number(x[i])) <= error);
  }
}
