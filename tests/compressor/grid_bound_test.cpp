// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// (G1) to (G4) of the arithmetic, by simulation: the ranks' pieces combined in several orders give equal
// bytes, and the result is within the bound of the exact one. Worst cases use up more than 99 % of it. (T-2,
// T-3, T-5)

#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <compressor/grid_support.hpp>

using namespace grid_test;
using wring::Collective;
using Kind = wring::Grid<float>::StepKind;

namespace {

template <class T> Exact exact_sum(const std::vector<std::vector<T>>& x, std::size_t i) {
  Exact sum = 0;
  for (const auto& values : x) sum += static_cast<Exact>(number(values[i]));
  return sum;
}

double largest(Exact x, double before) { return std::max(before, static_cast<double>(x < 0 ? -x : x)); }

template <class T> void check_sums(Collective collective, bool average, bool delta, int ranks,
                                   double relative, std::uint64_t seed) {
  const std::size_t n = 1100;
  Random random(seed);
  std::vector<std::vector<T>> x(static_cast<std::size_t>(ranks), std::vector<T>(n));
  double max_abs = 0;
  for (auto& values : x)
    for (T& v : values)
      v = element<T>(random.signed_unit()), max_abs = std::max(max_abs, std::fabs(number(v)));
  using StepKind = typename wring::Grid<T>::StepKind;
  for (const StepKind kind : {StepKind::short_step, StepKind::power_of_two}) {
    const wring::Operation operation = average ? wring::mean : wring::sum;
    CAPTURE(ranks, average, delta, relative);
    Reduction<T> reduction({kind, delta}, collective, operation, ranks, n, max_abs, relative);
    REQUIRE(reduction.codec().reproducible());
    CHECK(reduction.codec().finishes() == (collective == Collective::allreduce && ranks > 4));
    std::vector<Bytes> pieces;
    for (const auto& values : x) pieces.push_back(reduction.compress(values));
    const Bytes sum = reduction.combined(pieces, random);
    for (int order = 0; order < 3; ++order) REQUIRE(reduction.combined(pieces, random) == sum);
    const std::vector<T> y = reduction.decompress(reduction.finish(sum));
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const Exact s = exact_sum(x, i);
      worst = average ? largest(static_cast<Exact>(ranks) * static_cast<Exact>(number(y[i])) - s, worst)
                      : largest(static_cast<Exact>(number(y[i])) - s, worst);
    }
    CHECK(worst <= (average ? ranks * relative : relative));
  }
}

/// The greatest element below v.
double before(double v) { return std::nextafter(v, -infinity); }
float before(float v) { return std::nextafter(v, -std::numeric_limits<float>::infinity()); }

/// Every rank's value is just below a midpoint, and the sum of quanta ties in the shift: all errors have the
/// same sign.
template <class T> void check_tightness(Collective collective, bool average, int ranks, Kind kind) {
  const std::size_t n = 512;
  using Options = typename wring::Grid<T>::Options;
  const Options options{static_cast<typename wring::Grid<T>::StepKind>(kind), false};
  const double error = 0.01, max_abs = 1;
  Reduction<T> reduction(options, collective, average ? wring::mean : wring::sum, ranks, n, max_abs, error);
  const double step = *reduction.codec().step();
  int shift = 0;
  if (collective == Collective::allreduce && ranks > 4)
    while ((2 << shift) <= ranks) ++shift;
  const int unit = 1 << shift;
  std::vector<std::vector<T>> x(static_cast<std::size_t>(ranks), std::vector<T>(n));
  for (std::size_t i = 0; i < n; ++i) {
    // Sum of quanta = an even multiple of 2^s, plus half of 2^s: ties down, below the exact sum.
    int rest = 2 * unit * static_cast<int>(i % 4) + unit / 2;
    for (int r = 0; r < ranks; ++r) {
      const int q = r + 1 < ranks ? static_cast<int>((i + static_cast<std::size_t>(r)) % 5) : rest;
      rest -= q;
      x[static_cast<std::size_t>(r)][i] = before(static_cast<T>((q + 0.5) * step));
    }
  }
  std::vector<Bytes> pieces;
  for (const auto& values : x) pieces.push_back(reduction.compress(values));
  Random random(1);
  const std::vector<T> y = reduction.decompress(reduction.finish(reduction.combined(pieces, random)));
  const double phases = ranks + (shift ? unit : 0), promise = phases * step / 2;  // of the sum
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const Exact scale = average ? ranks : 1;
    worst = largest(scale * static_cast<Exact>(number(y[i])) - exact_sum(x, i), worst);
  }
  CAPTURE(ranks, average, shift, step);
  CHECK(worst > 0.99 * promise);
  CHECK(worst <= (average ? ranks * error : error));
}

}  // namespace

TEMPLATE_TEST_CASE("sums and means of up to 9 ranks keep the bound", "[grid]", float, double, wring::half_t,
                   wring::bhalf_t) {
  using T = TestType;
  // From loose to as tight as the type allows: (p + 1) u' is where rounding the result uses up the bound.
  const double u = wring::FloatTraits<T>::unit_roundoff;
  std::uint64_t seed = 1;
  for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter})
    for (const bool average : {false, true})
      for (int ranks = 1; ranks <= 9; ++ranks) {
        const double reach = average ? 1.5 : ranks + 1;
        for (const double error :
             {0.3 * reach, 0.02 * reach, 20 * u * reach, 1.3 * u * reach, 1.01 * u * reach}) {
          if (std::is_same_v<T, double> && error < 4 * u * reach * ranks) continue;
          if (error < (sizeof(T) == 2 ? 2 : 1.2) * u * reach) continue;
          ++seed;
          check_sums<T>(collective, average, seed % 2 == 0, ranks, error, seed);
        }
      }
}

TEMPLATE_TEST_CASE("adversarial inputs use up the bound and never exceed it", "[grid]", float, double) {
  for (const Kind kind : {Kind::short_step, Kind::power_of_two})
    for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter})
      for (const bool average : {false, true})
        for (int ranks = 1; ranks <= 9; ++ranks) check_tightness<TestType>(collective, average, ranks, kind);
}

TEMPLATE_TEST_CASE("broadcast and allgather keep the bound", "[grid]", float, double, wring::half_t,
                   wring::bhalf_t) {
  using T = TestType;
  const std::size_t n = 2000;
  Random random(9);
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double outlier = i == 700 ? wring::FloatTraits<T>::greatest : random.signed_unit();
    x[i] = element<T>(i == 900 ? infinity : outlier);
  }
  for (const Collective collective : {Collective::broadcast, Collective::allgather})
    for (const bool delta : {false, true})
      for (const double error : {0.1, 1e-3, 1e-9, 0.0}) {
        Reduction<T> call({.delta = delta}, collective, wring::sum, 4, n, wring::FloatTraits<T>::greatest,
                          error);
        REQUIRE(call.codec().reproducible());
        const std::vector<T> y = call.decompress(call.compress(x));
        for (std::size_t i = 0; i < n; ++i) {
          if (i == 900)
            REQUIRE(number(y[i]) == infinity);
          else
            REQUIRE(std::fabs(number(y[i]) - number(x[i])) <= error);
        }
        if (error == 0) CHECK(same_bits(x, y));
      }
}

TEMPLATE_TEST_CASE("a piece of outliers alone fits into the room announced for it", "[grid]", float, double,
                   wring::half_t, wring::bhalf_t) {
  using T = TestType;
  const double greatest = wring::FloatTraits<T>::greatest;
  Random random(3);
  for (const Collective collective : {Collective::broadcast, Collective::allgather})
    for (const bool delta : {false, true})
      for (const double error : {1e-3, greatest * 0x1p-25, greatest * 0x1p-40, greatest * 0x1.8p-52})
        for (const std::size_t n : {1, 3, 17, 511, 512, 513, 2000}) {
          std::vector<T> x(n);  // too many bits for the grid, whichever it is
          for (T& v : x) v = element<T>(greatest * random.signed_unit());
          Reduction<T> call({.delta = delta}, collective, wring::sum, 4, n, greatest, error);
          std::size_t size = 0;
          REQUIRE_NOTHROW(size = call.compress(x).size());
          REQUIRE(size <= call.codec().max_compressed_bytes(n));
          REQUIRE(size >= n * sizeof(T) / 4);
        }
}

TEST_CASE("raw elements keep the bound where no grid is wide enough", "[grid]") {
  // Three ranks of binary64 at 2^-52 of the magnitude: quotients beyond 2^51, and (p - 1) u (A + E) below E.
  const std::size_t n = 1000;
  Random random(4);
  const double error = 0x1.9p-51;
  std::vector<std::vector<double>> x(3, std::vector<double>(n));
  for (auto& values : x)
    for (double& v : values) v = static_cast<double>(static_cast<std::int64_t>(random.word()) >> 1) * 0x1p-62;
  Reduction<double> reduction({}, Collective::allreduce, wring::sum, 3, n, 1, error);
  CHECK_FALSE(reduction.codec().step().has_value());
  CHECK_FALSE(reduction.codec().reproducible());
  std::vector<Bytes> pieces;
  for (const auto& values : x) pieces.push_back(reduction.compress(values));
  const std::vector<double> y = reduction.decompress(reduction.finish(reduction.combined(pieces, random)));
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) worst = largest(static_cast<Exact>(y[i]) - exact_sum(x, i), worst);
  CHECK(worst <= error);
  CHECK(worst > 0);
}
