// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a bound means, on the result: absolute, relative to the range, relative to the root mean square; hard data; bounds refused.
#include <catch2/catch_test_macros.hpp>

#include <limits>

#include <wring/compressor/grid.hpp>

#include "support/executors.hpp"
#include "support/matrix.hpp"

using namespace wring_test;
using wring::absolute;
using wring::Cause;
using wring::Collective;
using wring::Grid;
using wring::relative_to_range;
using wring::relative_to_rms;

namespace {

template <class T> std::vector<T> generate(std::size_t n, auto f) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = to_element<T>(f(static_cast<double>(i)));
  return x;
}

/// Broadcast and SUM on every algorithm; broadcast within `bound`, SUM too, or refused everywhere where `may_refuse`.
template <class T> void holds(const PerRank<T>& inputs, wring::Bound asked, double bound_broadcast,
                              double bound_sum, bool may_refuse = false) {
  const int ranks = static_cast<int>(inputs.size());
  for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
    for (const Collective collective : {Collective::broadcast, Collective::allreduce}) {
      Call<Grid<T>> call{.collective = collective, .bound = asked};
      const auto got = collect(algorithm, call, inputs);
      INFO(describe(call, ranks, algorithm, inputs[0].size())
           << ", bound " << asked.value << describe(got.outcomes));
      REQUIRE(got.intact);
      if (may_refuse && all_failed(got.outcomes, Cause::unattainable)) continue;
      REQUIRE(judge(call, inputs, got, collective == Collective::broadcast ? bound_broadcast : bound_sum) ==
              "");
    }
}

template <class T> void holds(const PerRank<T>& inputs, wring::Bound asked, bool may_refuse = false) {
  holds(inputs, asked, asked.value, asked.value, may_refuse);
}

/// Refused by all ranks, before anything is written; what cannot be held is refused where something is added.
template <class T> void refused(const PerRank<T>& inputs, wring::Bound bound, Cause cause) {
  const int ranks = static_cast<int>(inputs.size());
  for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
    for (const Collective collective : collectives) {
      if (cause == Cause::unattainable && !wring::reduces(collective)) continue;
      Call<Grid<T>> call{.collective = collective, .bound = bound};
      if (collective == Collective::allgather) call.counts.assign(inputs.size(), inputs[0].size());
      if (collective == Collective::reduce_scatter) call.counts = even_counts(inputs[0].size(), ranks);
      const auto got = collect(algorithm, call, inputs);
      INFO(describe(call, ranks, algorithm, inputs[0].size()) << describe(got.outcomes));
      REQUIRE(all_failed(got.outcomes, cause));
      REQUIRE(got.intact);
      const auto fresh = Fenced<T>(got.results[0].size()).copy(0, got.results[0].size());
      if (collective != Collective::reduce_scatter)
        REQUIRE(same_bits(got.results[0], fresh));  // as it was before
    }
}

}  // namespace

TEST_CASE("bound: linear data, where every difference is the same", "[collective][bound]") {
  for (const std::size_t ranks : {1, 2, 3}) {
    holds(PerRank<float>(ranks, generate<float>(1000, [](double i) { return i; })), absolute(1e-5), true);
    holds(PerRank<float>(ranks, generate<float>(1000, [](double i) { return 0.1 * i; })), absolute(1e-5),
          true);
    holds(PerRank<double>(ranks, generate<double>(1000, [](double i) { return i; })), absolute(1e-5));
    holds(PerRank<double>(ranks, generate<double>(1000, [](double i) { return 0.1 * i; })), absolute(1e-5));
  }
}

TEST_CASE("bound: a ramp whose codes outgrow the raw form stays in its memory and near the raw size",
          "[collective][bound]") {
  const PerRank<float> inputs(2, generate<float>(100000, [](double i) { return i + 1; }));
  for (const AnyAlgorithm& algorithm : all_algorithms(2)) {
    Call<Grid<float>> call{.collective = Collective::broadcast, .bound = absolute(1e-2)};
    const auto got = collect(algorithm, call, inputs);
    INFO(algorithm.name());
    REQUIRE(judge(call, inputs, got, 1e-2) == "");  // the fences too
    const wring::Report& report = got.outcomes[0].report;
    REQUIRE(report.bytes_raw == 400000);
    REQUIRE(report.bytes_sent <= 400000 + report.messages * 256 + 100000 / 512 * 2 + 1024);
  }
}

TEST_CASE("bound: mixed magnitudes in one block", "[collective][bound]") {
  const std::vector<float> x{1, 0x1p-30f, -1, 0x1p-60f, 3, -0x1p-90f, 0, 7};
  for (const double e : {1e-6, 1e-3, 0.5}) holds(PerRank<float>(2, x), absolute(e), true);
}

TEST_CASE("bound: the same data in one dimension and in three", "[collective][bound]") {
  const std::vector<float> x = real_numbers<float>(1000, 4);
  const auto run = [&]<class View>(std::vector<View> views) {
    wring::InProcess world(2);
    std::deque<wring::Broadcast<Grid<float>, wring::InProcessTransport>> spreads;
    for (int r = 0; r < 2; ++r) spreads.emplace_back(Grid<float>{}, world.link(r));
    for (std::size_t i = 0; i < 1000; ++i) {
      if constexpr (View::rank() == 1)
        views[0](i) = x[i];
      else
        views[0](i / 100, i / 10 % 10, i % 10) = x[i];
    }
    REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
      return spreads[static_cast<std::size_t>(r)].start(Exec{}, views[static_cast<std::size_t>(r)], 0,
                                                        absolute(0.1));
    })));
    for (const View& view : views)
      for (std::size_t i = 0; i < 1000; ++i) {
        float y = 0;
        if constexpr (View::rank() == 1)
          y = view(i);
        else
          y = view(i / 100, i / 10 % 10, i % 10);
        REQUIRE(reduced_within(wring::sum, std::vector<float>{x[i]}, y, 0.1));
      }
  };
  using Host = Kokkos::HostSpace;
  run(std::vector<Kokkos::View<float*, Host>>{{"a", 1000}, {"b", 1000}});
  run(std::vector<Kokkos::View<float***, Kokkos::LayoutLeft, Host>>{{"a", 10, 10, 10}, {"b", 10, 10, 10}});
  run(std::vector<Kokkos::View<float***, Kokkos::LayoutRight, Host>>{{"a", 10, 10, 10}, {"b", 10, 10, 10}});
}

TEST_CASE("bound: absolute does not scale with the data, relative ones do", "[collective][bound]") {
  const std::vector<double> x{0, 0.001, 1000}, large{0, 1, 1000000};
  const double rms = 1000 / std::sqrt(3.0) * (1 + 1e-12), r = std::sqrt((1 + 1e-12) / 3) * 1000 * (1 + 1e-9);
  holds(PerRank<double>(2, x), relative_to_range(1e-2), 10, 10);
  holds(PerRank<double>(2, x), relative_to_rms(1e-2), 1e-2 * std::max(rms, r), 2e-2 * std::max(rms, r));
  holds(PerRank<double>(2, large), absolute(0.5));
  holds(PerRank<double>(2, large), relative_to_range(1e-2), 1e4, 1e4);
  Call<Grid<double>> call{.bound = relative_to_range(1e-2)};
  REQUIRE(collect(wring::Ring{}, call, PerRank<double>(2, x)).outcomes[1].report.bound.value() <= 10);
  REQUIRE(collect(wring::Ring{}, call, PerRank<double>(2, x)).outcomes[1].report.bound.value() > 9.999999);
  call.bound = relative_to_rms(1e-2);  // times the number of ranks, for a sum
  const double sum_bound =
      collect(wring::Ring{}, call, PerRank<double>(2, x)).outcomes[0].report.bound.value();
  REQUIRE((sum_bound <= 2e-2 * r && sum_bound > 1.999999e-2 * 1000 / std::sqrt(3.0)));
  call.options.operation = wring::mean;
  const double mean_bound =
      collect(wring::Ring{}, call, PerRank<double>(2, x)).outcomes[0].report.bound.value();
  REQUIRE((mean_bound <= 1e-2 * r && mean_bound > 0.999999e-2 * 1000 / std::sqrt(3.0)));
}

TEST_CASE("bound: range and root mean square are those of all ranks, not of one", "[collective][bound]") {
  const PerRank<double> inputs{{1, 2, 3}, {1, 1, 1}, {101, 1, 1}};
  Call<Grid<double>> call{.bound = relative_to_range(1e-3)};
  for (const Outcome& o : collect(wring::Ring{}, call, inputs).outcomes) {
    REQUIRE(o.report.bound.value() <= 0.1);
    REQUIRE(o.report.bound.value() > 0.0999999);
  }
  call.bound = relative_to_rms(1e-3);
  const double rms = std::sqrt((1 + 4 + 9 + 1 + 1 + 1 + 101.0 * 101 + 1 + 1) / 9);
  for (const Outcome& o : collect(wring::Ring{}, call, inputs).outcomes) {
    REQUIRE(o.report.bound.value() <= 3e-3 * rms * (1 + 1e-12));
    REQUIRE(o.report.bound.value() > 2.99999e-3 * rms);
  }
}

TEST_CASE("bound: the agreed bound does not depend on the order of the ranks", "[collective][bound]") {
  PerRank<double> inputs;
  for (std::uint64_t r = 0; r < 7; ++r)
    inputs.push_back(real_numbers<double>(999, r, std::ldexp(1.0, static_cast<int>(r * 9))));
  std::optional<double> first;
  for (std::size_t turn = 0; turn < 7; ++turn) {
    Call<Grid<double>> call{.bound = relative_to_rms(1e-5)};
    const auto got = collect(wring::Ring{}, call, inputs);
    INFO(describe(got.outcomes));
    REQUIRE(all_ok(got.outcomes));
    for (const Outcome& o : got.outcomes) REQUIRE(o.report.bound == first.value_or(o.report.bound.value()));
    first = got.outcomes[0].report.bound;
    std::swap(inputs[turn], inputs[(turn * 3 + 1) % 7]);
  }
}

TEST_CASE("bound: a part without elements does not spoil the range", "[collective][bound]") {
  Call<Grid<float>> call{
      .collective = Collective::allgather, .bound = relative_to_range(1e-3), .counts = {100, 0}};
  const PerRank<float> inputs{real_numbers<float>(100, 1), {}};
  for (const AnyAlgorithm& algorithm : all_algorithms(2))
    REQUIRE(judge(call, inputs, collect(algorithm, call, inputs), 8e-3) == "");
}

TEST_CASE("bound: zero is exact or refused; negative, NaN and infinite bounds are refused everywhere",
          "[collective][bound]") {
  const PerRank<float> inputs(2, real_numbers<float>(33, 3));
  const PerRank<double> wide(2, real_numbers<double>(33, 3));
  holds(inputs, absolute(0), 0, 0, true);
  holds(wide, absolute(0), 0, 0, true);
  for (const double bad :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    refused(inputs, absolute(bad), Cause::argument);
    refused(wide, absolute(bad), Cause::argument);
    refused(wide, relative_to_rms(bad), Cause::argument);
  }
}

TEST_CASE("bound: very small relative bounds hold or are refused, they never crash", "[collective][bound]") {
  const PerRank<float> inputs(2, real_numbers<float>(512, 9));
  for (const double e : {1e-4, 1e-7, 1e-12, 1e-16}) holds(inputs, relative_to_range(e), 8 * e, 8 * e, true);
  for (const double e : {1e-4, 1e-7, 1e-12, 1e-16}) holds(inputs, relative_to_rms(e), 4 * e, 8 * e, true);
}

TEST_CASE("bound: it is the very double that was given", "[collective][bound]") {
  Call<Grid<double>> call{.collective = Collective::broadcast, .bound = absolute(1e-3)};
  const PerRank<double> inputs(2,
                               generate<double>(100, [](double k) { return k * 2e-3 + 1e-3; }));  // midpoints
  const auto got = collect(wring::Ring{}, call, inputs);
  REQUIRE(judge(call, inputs, got, 1e-3) == "");
  for (const Outcome& o : got.outcomes) REQUIRE(o.report.bound == 1e-3);
}

TEST_CASE("bound: small positive values keep their sign where they exceed the bound", "[collective][bound]") {
  const PerRank<float> inputs(
      2, generate<float>(100, [](double i) { return 1e-13 * std::pow(10.0, i * 0.04); }));
  holds(inputs, absolute(1e-12));
}

TEST_CASE("bound: tiny inputs of every length", "[collective][bound]") {
  for (const std::size_t n : {1, 2, 3, 16 * 17, 17 * 17})
    holds(PerRank<double>(2, real_numbers<double>(n, n)), absolute(1e-5));
}

TEST_CASE("bound: what the element type cannot hold is refused before anything is written",
          "[collective][bound]") {
  refused(PerRank<float>(3, std::vector<float>(50, 1e30f)), absolute(1), Cause::unattainable);
}

TEST_CASE("bound: midpoints and shifts that tie drive the error beyond 0.99 of the bound, never further",
          "[collective][bound]") {
  for (const int ranks : {1, 2, 3, 4, 5, 8, 9})
    for (const wring::Operation operation : {wring::sum, wring::mean}) {
      int shift = 0;  // of the result, on more than four ranks: see CombiningCompressor
      while (ranks > 4 && (2 << shift) <= ranks) ++shift;
      const std::int64_t unit = std::int64_t{1} << shift;
      const double halves = (ranks + (shift > 0 ? static_cast<double>(unit) : 0.0)) / 2;
      const double bound =
          halves / (operation == wring::mean ? ranks : 1) * (1 + 0x1p-30);  // so that the step is 1
      const double residue = 0.5 - 0x1p-30;                                 // a little short of a midpoint
      PerRank<double> inputs(static_cast<std::size_t>(ranks));
      for (std::uint64_t i = 0; i < 4096; ++i) {
        // The sum of the quanta lies halfway between multiples of 2^shift. Such a tie goes to the even multiple: down, if the lower
        // one is even; then all inputs have been rounded down too.
        const std::int64_t below = static_cast<std::int64_t>(i % 7) - 3;
        std::int64_t last = unit * below + unit / 2;
        for (std::size_t r = 0; r < inputs.size(); ++r) {
          const std::int64_t random = static_cast<std::int64_t>(random_bits(r, i) % 64) - 32;
          const std::int64_t q = r + 1 == inputs.size() ? last : random;
          last -= q;
          inputs[r].push_back(static_cast<double>(q) + (below % 2 == 0 ? residue : -residue));
        }
      }
      Call<Grid<double>> call{.options = {.operation = operation}, .bound = absolute(bound)};
      const auto got = collect(wring::Ring{}, call, inputs);
      INFO(ranks << " ranks, " << wring::name_of(operation));
      REQUIRE(judge(call, inputs, got, bound) == "");
      std::size_t beyond = 0;
      for (std::size_t i = 0; i < inputs[0].size(); ++i)
        beyond += !reduced_within(operation, terms_of(Collective::allreduce, 0, inputs, i), got.results[0][i],
                                  0.99 * bound);
      REQUIRE(beyond == inputs[0].size());
    }
}
