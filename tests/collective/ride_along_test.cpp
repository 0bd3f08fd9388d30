// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Small sums that grow while the ranks agree: the same bits as by any plan, fewer bytes than everybody's values.
#include <catch2/catch_test_macros.hpp>

#include <limits>

#include <wring/compressor/grid.hpp>

#include "support/executors.hpp"
#include "support/matrix.hpp"

using namespace wring_test;
using wring::Collective;
using wring::Grid;

namespace {

constexpr std::size_t most = 65536;

/// A reduction with and without the ride.
template <class T> struct Pair {
  Collected<T> rode, moved;
  bool rode_along() const {
    bool all = true, any = false;
    for (const Outcome& o : rode.outcomes) all = all && o.report.rode_along, any = any || o.report.rode_along;
    REQUIRE(all == any);
    return all;
  }
};

template <class T> Pair<T> both_ways(Call<Grid<T>> call, const PerRank<T>& inputs, double bound) {
  Pair<T> pair;
  call.bound = wring::absolute(bound);
  call.options.ride_along_bytes = most;
  pair.rode = collect(wring::Ring{}, call, inputs);
  call.options.ride_along_bytes = 0;
  pair.moved = collect(wring::Ring{}, call, inputs);
  INFO(describe(pair.rode.outcomes) << describe(pair.moved.outcomes));
  REQUIRE(judge(call, inputs, pair.rode, bound) == "");
  REQUIRE(judge(call, inputs, pair.moved, bound) == "");
  for (std::size_t r = 0; r < inputs.size(); ++r)
    REQUIRE(same_bits(pair.rode.results[r], pair.moved.results[r]));
  return pair;
}

template <class T> void sums_ride(double bound) {
  for (const int ranks : {2, 3, 5, 8})
    for (const Collective what : {Collective::allreduce, Collective::reduce_scatter})
      for (const wring::Operation operation : operations)
        for (const std::size_t n : {std::size_t{1}, std::size_t{37}, std::size_t{513}, std::size_t{5000}}) {
          Call<Grid<T>> call{.collective = what, .options = {.operation = operation}};
          const auto inputs = make_inputs<T>(call, ranks, n, n == 37, [](std::size_t k, std::uint64_t seed) {
            return real_numbers<T>(k, seed);
          });
          INFO(wring::name_of(what) << " " << wring::name_of(operation) << ", " << ranks << " ranks, " << n);
          REQUIRE(both_ways(call, inputs, bound).rode_along());
        }
}

PerRank<float> ramps(int ranks, std::size_t n) {
  PerRank<float> inputs(static_cast<std::size_t>(ranks), std::vector<float>(n));
  for (std::size_t r = 0; r < inputs.size(); ++r)
    for (std::size_t i = 0; i < n; ++i) inputs[r][i] = 0.01f * static_cast<float>((i * 7 + r * 3) % 101);
  return inputs;
}

}  // namespace

TEST_CASE("ride along: sums of every element type, the same bits as by a plan", "[collective][ride]") {
  sums_ride<float>(1e-2);
  sums_ride<double>(1e-3);
  sums_ride<wring::half_t>(10);
  sums_ride<wring::bhalf_t>(100);
}

TEST_CASE("ride along: inputs too large for the anticipated step move by the plan, whichever rank has them",
          "[collective][ride]") {
  for (const int ranks : {2, 3, 4, 7})
    for (const int large : {0, ranks - 1, -1}) {  // -1: several
      INFO(ranks << " ranks, rank " << large << " has large values");
      auto inputs = ramps(ranks, 300);
      PerRank<double> wide(inputs.size(), std::vector<double>(300, 0.25));
      for (std::size_t r = 0; r < inputs.size(); ++r)
        if (static_cast<int>(r) == large || (large < 0 && r != 1)) inputs[r][17] = 1e6f, wide[r][299] = -1e8;
      REQUIRE_FALSE(
          both_ways(Call<Grid<float>>{}, inputs, 0.9).rode_along());  // rounding takes a part of the bound
      REQUIRE_FALSE(both_ways(Call<Grid<double>>{}, wide, 1e-3).rode_along());  // sums beyond 32 bits
    }
}

TEST_CASE("ride along: an unattainable bound is refused on all ranks, and zeros ride", "[collective][ride]") {
  Call<Grid<float>> call{.bound = wring::absolute(1e-3)};
  call.options.ride_along_bytes = most;
  auto inputs = ramps(3, 100);
  inputs[1][5] = 1e6f;
  const auto refused = collect(wring::Ring{}, call, inputs);
  REQUIRE(all_failed(refused.outcomes, wring::Cause::unattainable));
  REQUIRE(both_ways({}, PerRank<float>(3, std::vector<float>(100, 0)), 1e-3).rode_along());
  both_ways({}, PerRank<float>(3, std::vector<float>(100, 0)), 0);
}

TEST_CASE("ride along: special values", "[collective][ride]") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  auto inputs = ramps(5, 600);
  inputs[0][3] = inf, inputs[4][3] = -inf, inputs[2][4] = nan, inputs[3][590] = -inf;
  for (const wring::Operation operation : operations)
    REQUIRE(both_ways(Call<Grid<float>>{.options = {.operation = operation}}, inputs, 1e-3).rode_along());
}

TEST_CASE("ride along: up to the limit that the user sets, and 64 KiB", "[collective][ride]") {
  const auto rides = [](std::size_t n, std::size_t limit) {
    Call<Grid<float>> call{.bound = wring::absolute(1e-3)};
    call.options.ride_along_bytes = limit;
    const auto inputs = ramps(3, n);
    const auto got = collect(wring::Ring{}, call, inputs);
    REQUIRE(judge(call, inputs, got, 1e-3) == "");
    return got.outcomes[0].report.rode_along;
  };
  CHECK(rides(512, 2048));
  CHECK_FALSE(rides(513, 2048));
  CHECK(rides(15000, most));
  CHECK_FALSE(rides(16385, std::size_t{1} << 30));  // the worst case needs more than there is room for
  CHECK_FALSE(rides(1, 0));
}

TEST_CASE("ride along: a sum on its way costs fewer bytes than everybody's values", "[collective][ride]") {
  const auto inputs = ramps(8, 250);
  Call<Grid<float>> call{.bound = wring::absolute(1e-3)};
  call.options.ride_along_bytes = 16384;
  const auto summed = collect(wring::Ring{}, call, inputs);
  call.bound = wring::relative_to_range(1e-3);  // its step comes out of the agreement: values are gathered
  const auto gathered = collect(wring::Ring{}, call, inputs);
  REQUIRE((summed.outcomes[0].report.rode_along && gathered.outcomes[0].report.rode_along));
  CHECK(summed.outcomes[0].report.bytes_sent * 3 < gathered.outcomes[0].report.bytes_sent);
}
