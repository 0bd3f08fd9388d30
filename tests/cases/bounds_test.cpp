// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What error bounds were found to mean elsewhere, and mean here: every compressor, every algorithm.
#include "cases/compressors.hpp"

using namespace wring_test;
using wring::absolute;
using wring::Bound;
using wring::Cause;
using wring::Collective;
using wring::relative_to_range;
using wring::relative_to_rms;

namespace {

const std::vector<Collective> copies{Collective::broadcast, Collective::allgather};
const std::vector<Collective> all_collectives(std::begin(collectives), std::end(collectives));
const std::vector<wring::Operation> all_operations(std::begin(operations), std::end(operations));

template <class T> std::vector<T> ramp(std::size_t n, double slope, double first = 0) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = to_element<T>(first + slope * static_cast<double>(i));
  return x;
}

/// Numbers of all magnitudes and both signs: random bit patterns.
std::vector<float> noise(std::size_t n, std::uint64_t seed) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = static_cast<std::uint32_t>(random_bits(seed, i));
    x[i] = std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits)), static_cast<int>(bits % 150) - 90);
  }
  return x;
}

/// At most what the same messages would hold uncompressed, headers, tables and descriptors (docs/stream_format.md) added.
void no_longer_than_raw(const Collected<float>& got, std::size_t n) {
  for (const Outcome& o : got.outcomes) {
    if (o.report.rode_along) continue;  // behind the heads of the agreement, not in messages of the plan
    const std::uint64_t headers = (o.report.messages + 4) * 256 + n / 512 * 2 * (o.report.messages + 1);
    INFO(o.report.bytes_sent << " bytes sent, raw " << o.report.bytes_raw << ", headers " << headers);
    REQUIRE(o.report.bytes_sent <= o.report.bytes_raw + headers);
  }
}

/// Refused on every rank for the same cause, and nothing was written.
template <class T> void refused(const Case<T>& all, Cause cause) {
  everywhere(all, [&](const AnyCompressor<T>& compressor, const AnyCall<T>& call, const Collected<T>& got) {
    if (!compressor.bounded) return;
    REQUIRE(all_failed(got.outcomes, cause));
    REQUIRE(got.intact);
    if (call.in_place || call.collective == Collective::broadcast) return;
    for (const auto& result : got.results)
      REQUIRE(same_bits(result, Fenced<T>(result.size()).copy(0, result.size())));
  });
}

double range_of(const PerRank<double>& inputs) {
  double least = infinite, greatest = -infinite;
  for (const auto& input : inputs)
    for (const double x : input) least = std::min(least, x), greatest = std::max(greatest, x);
  return greatest - least;
}

double rms_of(const PerRank<double>& inputs) {
  double squares = 0, count = 0;
  for (const auto& input : inputs)
    for (const double x : input) squares += x * x, ++count;
  return std::sqrt(squares / count);
}

/// A bound of `fraction` in each relative sense holds in just that sense.
void relative_bounds_hold(const PerRank<double>& inputs, double fraction) {
  const double ranks = static_cast<double>(inputs.size()), range = range_of(inputs), rms = rms_of(inputs);
  for (const Collective collective : all_collectives)
    for (const wring::Operation operation : all_operations) {
      if (collective == Collective::broadcast && inputs.front() != inputs.back())
        continue;  // the root's count: see below
      const bool sums = wring::reduces(collective) && operation == wring::sum;
      for (const auto& [bound, error] :
           {std::pair(relative_to_range(fraction), fraction * range),
            std::pair(relative_to_rms(fraction), fraction * rms * (sums ? ranks : 1))}) {
        const double allowed = error * (1 + 1e-12);
        const Case<double> all{.inputs = inputs,
                               .bound = bound,
                               .error = allowed,
                               .collectives = {collective},
                               .operations = {operation}};
        hold(all);
        everywhere(all, [&](const AnyCompressor<double>& compressor, const AnyCall<double>&,
                            const Collected<double>& got) {
          for (const Outcome& o : got.outcomes) {
            REQUIRE(o.report.bound.has_value() == compressor.bounded);
            if (compressor.bounded) REQUIRE(*o.report.bound <= allowed);
            if (compressor.name.starts_with("grid")) REQUIRE(*o.report.bound >= error * (1 - 1e-9));
          }
        });
      }
    }
}

}  // namespace

TEST_CASE("linear data: equal differences keep the bound; a sum keeps it or is refused", "[cases][bound]") {
  for (const std::size_t ranks : {1, 2, 3})
    for (const double slope : {1.0, 0.1, -0.1}) {
      hold(Case<float>{.inputs = PerRank<float>(ranks, ramp<float>(1000, slope)),
                       .bound = absolute(1e-5),
                       .collectives = all_collectives,
                       .refusable = ranks > 1 ? Refusable::sums : Refusable::nothing});
      hold(Case<double>{.inputs = PerRank<double>(ranks, ramp<double>(1000, slope)),
                        .bound = absolute(1e-5),
                        .collectives = all_collectives});
    }
}

TEST_CASE("linear data: a sum in float is refused only where its rounding alone exceeds the bound",
          "[cases][bound]") {
  for (const std::size_t ranks : {2, 3}) {
    const double greatest = 999 * static_cast<double>(ranks * ranks) * 0x1p-24;
    hold(Case<float>{.inputs = PerRank<float>(ranks, ramp<float>(1000, 1)),
                     .bound = absolute(greatest * 1.5)});
  }
}

TEST_CASE("a ramp, and noise, whose compressed form would outgrow the raw one stay in their memory and near "
          "the raw size",
          "[cases][bound]") {
  const auto check = [](const std::vector<float>& x, const std::vector<AnyAlgorithm>& algorithms,
                        double bound) {
    const Case<float> all{.inputs = PerRank<float>(2, x),
                          .bound = absolute(bound),
                          .collectives = copies,
                          .algorithms = algorithms};
    everywhere(all, [&](const AnyCompressor<float>& compressor, const AnyCall<float>& call,
                        const Collected<float>& got) {
      if (compressor.bounded)
        REQUIRE(judge(call, all.inputs, got, bound) == "");  // the fences too
      else
        REQUIRE((all_ok(got.outcomes) && got.intact));
      no_longer_than_raw(got, x.size());
    });
  };
  for (const double bound : {1e-2, 1e-30}) {
    check(ramp<float>(7000, 1, 1), all_algorithms(2), bound);
    check(noise(7000, 5), all_algorithms(2), bound);
    check(noise(513, 6), all_algorithms(2), bound);
  }
  check(ramp<float>(100000, 1, 1), {wring::Ring{}}, 1e-2);
}

TEST_CASE("mixed magnitudes in one block: each within the bound, zero stays zero", "[cases][bound]") {
  const auto zero_stays = []<class T>(const Case<T>& all) {
    hold(all);
    everywhere(all, [&](const AnyCompressor<T>& compressor, const AnyCall<T>&, const Collected<T>& got) {
      if (compressor.mixes) return;
      for (const auto& result : got.results)
        for (std::size_t i = 6; i < result.size(); i += 8) REQUIRE(as_double(result[i]) == 0);
    });
  };
  const std::vector<double> x{1, 0x1p-30, -1, 0x1p-60, 3, -0x1p-90, 0, 7};
  for (const double bound : {0x1p-20, 0x1p-3, 0x1p-110}) {
    zero_stays(Case<float>{
        .inputs = PerRank<float>(2, elements<float>(x)), .bound = absolute(bound), .collectives = copies});
    zero_stays(Case<double>{
        .inputs = PerRank<double>(2, elements<double>(x)), .bound = absolute(bound), .collectives = copies});
    zero_stays(Case<wring::bhalf_t>{.inputs = PerRank<wring::bhalf_t>(2, elements<wring::bhalf_t>(x)),
                                    .bound = absolute(bound),
                                    .collectives = copies});
  }
  zero_stays(Case<float>{.inputs = PerRank<float>(2, elements<float>(x)), .bound = absolute(0x1p-18)});
}

TEST_CASE("relative bounds scale with the data, absolute ones do not, and neither is taken for the other",
          "[cases][bound]") {
  const std::vector<double> x{0, 0.001, 1000}, large{0, 1, 1000000};
  relative_bounds_hold({x, x}, 1e-2);
  relative_bounds_hold({large, large}, 1e-2);
  relative_bounds_hold({{-5, 3, 1000}, {2, 2, 2}, {0, 0, -1}}, 1e-4);
  for (const auto& inputs : {PerRank<double>{x, x}, PerRank<double>{large, large}}) {
    const Case<double> all{.inputs = inputs, .bound = absolute(0.5), .collectives = all_collectives};
    if (inputs[0] == x) hold(all);
    everywhere(all, [&](const AnyCompressor<double>& compressor, const AnyCall<double>& call,
                        const Collected<double>& got) {
      if (!compressor.bounded) return;
      REQUIRE(judge(call, inputs, got, 0.5) == "");
      for (const Outcome& o : got.outcomes) REQUIRE(*o.report.bound <= 0.5);
      if (compressor.name.starts_with("grid")) REQUIRE(*got.outcomes[0].report.bound == 0.5);
    });
  }
}

TEST_CASE("a broadcast's relative bound is that of the root's values, whatever lay in the other buffers",
          "[cases][bound]") {
  const std::vector<double> good{0, 0.001, 1000}, rubbish{1e30, not_a_number, -infinite};
  for (const Bound bound : {relative_to_range(1e-2), relative_to_rms(1e-2)}) {
    const Case<double> all{
        .inputs = PerRank<double>(3, good), .bound = bound, .collectives = {Collective::broadcast}};
    const double error = 10 * (1 + 1e-12);
    for (int root = 0; root < 3; ++root)
      for (const AnyCompressor<double>& compressor : all_compressors<double>())
        for (const AnyAlgorithm& algorithm : all.algorithms) {
          if (!compressor.bounded) continue;
          PerRank<double> inputs(3, rubbish);
          inputs[static_cast<std::size_t>(root)] = good;
          AnyCall<double> call{.collective = Collective::broadcast, .bound = bound, .root = root};
          const auto got = compressor.collect(algorithm, call, inputs);
          INFO(compressor.name << ", root " << root << describe(got.outcomes));
          REQUIRE(judge(call, inputs, got, error) == "");
          for (const Outcome& o : got.outcomes) REQUIRE(*o.report.bound <= error);
        }
  }
}

TEST_CASE(
    "a bound of zero gives the very values or is refused; one that is none is refused, nothing is written",
    "[cases][bound]") {
  const auto check = []<class T>(const PerRank<T>& inputs) {
    for (const double zero : {0.0, -0.0}) {
      hold(Case<T>{.inputs = inputs, .bound = absolute(zero), .collectives = copies});
      hold(Case<T>{.inputs = inputs,
                   .bound = absolute(zero),
                   .collectives = {Collective::allreduce, Collective::reduce_scatter},
                   .operations = {wring::min, wring::max}});
      hold(Case<T>{.inputs = {inputs[0]}, .bound = absolute(zero), .collectives = all_collectives});
      refused(Case<T>{.inputs = inputs,
                      .bound = absolute(zero),
                      .collectives = {Collective::allreduce, Collective::reduce_scatter},
                      .operations = {wring::sum, wring::mean}},
              Cause::unattainable);
    }
    for (const double bad : {-1.0, -5e-324, not_a_number, infinite, -infinite})
      for (const Bound bound : {absolute(bad), relative_to_range(bad), relative_to_rms(bad)})
        refused(Case<T>{.inputs = inputs, .bound = bound, .collectives = all_collectives}, Cause::argument);
  };
  check(PerRank<float>(2, real_numbers<float>(33, 3)));
  check(PerRank<double>(2, real_numbers<double>(33, 3)));
}

TEST_CASE("very small relative bounds: copies are exact, sums refused, nothing crashes", "[cases][bound]") {
  const PerRank<float> inputs(2, real_numbers<float>(8 * 8 * 8, 9));
  double least = 8, greatest = -8, squares = 0;
  for (const float x : inputs[0])
    least = std::min<double>(least, x), greatest = std::max<double>(greatest, x), squares += double(x) * x;
  for (const double e : {1e-4, 1e-7, 1e-12, 1e-16, 5e-324}) {
    hold(Case<float>{.inputs = inputs,
                     .bound = relative_to_range(e),
                     .error = e * (greatest - least) * (1 + 1e-9),
                     .collectives = all_collectives,
                     .refusable = e < 1e-6 ? Refusable::sums : Refusable::nothing});
    const double rms = std::sqrt(squares / 512) * e * (1 + 1e-9);
    hold(Case<float>{.inputs = inputs, .bound = relative_to_rms(e), .error = rms, .collectives = copies});
    hold(Case<float>{.inputs = inputs,
                     .bound = relative_to_rms(e),
                     .error = 2 * rms,
                     .collectives = {Collective::allreduce},
                     .refusable = e < 1e-6 ? Refusable::sums : Refusable::nothing});
  }
}

TEST_CASE("the bound is the very double that was given, in the call and in the report", "[cases][bound]") {
  const Bound bound = absolute(1e-3);
  REQUIRE(bound.value == 1e-3);
  std::vector<double> midpoints(100);
  for (std::size_t k = 0; k < 100; ++k) midpoints[k] = static_cast<double>(k) * 2e-3 + 1e-3;
  const Case<double> all{
      .inputs = PerRank<double>(2, midpoints), .bound = bound, .collectives = all_collectives};
  hold(all);
  everywhere(all, [&](const AnyCompressor<double>& compressor, const AnyCall<double>&,
                      const Collected<double>& got) {
    for (const Outcome& o : got.outcomes)
      if (compressor.name.starts_with("grid")) REQUIRE(o.report.bound == 1e-3);
  });
}

TEST_CASE("small values keep their sign where they exceed the bound", "[cases][bound]") {
  for (const float sign : {1.0f, -1.0f}) {
    std::vector<float> x;
    for (int i = 0; i <= 100; ++i) x.push_back(sign * static_cast<float>(std::pow(10.0, -13 + 0.04 * i)));
    const Case<float> all{.inputs = PerRank<float>(2, x), .bound = absolute(1e-12), .collectives = copies};
    hold(all);
    everywhere(
        all, [&](const AnyCompressor<float>& compressor, const AnyCall<float>&, const Collected<float>& got) {
          for (std::size_t i = 0; i < x.size() && !compressor.mixes; ++i)
            if (!compressor.by_itself)
              REQUIRE(sign * got.results[1][i] >= 0);  // zero, or with its sign
            else if (!compressor.bounded || std::abs(x[i]) > 1e-12f)
              REQUIRE(std::signbit(got.results[1][i]) == std::signbit(x[i]));
        });
  }
}
