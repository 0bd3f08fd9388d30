// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NaN, infinities, subnormals, zeros and constants: as IEEE arithmetic has them, and never to the harm of a neighbour.
#include <catch2/catch_test_macros.hpp>

#include <limits>

#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>

#include "collective/special_cases.hpp"
#include "support/executors.hpp"

using namespace wring_test;
using wring::Collective;
using wring::Grid;
using wring::None;

TEST_CASE("specials: a NaN stays a NaN and its neighbours stay in bound", "[collective][special]") {
  everywhere<Grid<float>>({.bound = wring::absolute(1e-3)},
                          PerRank<float>{{1, 2, quiet, 4, 5}, {1, 1, 1, 1, 1}}, 1e-3);
  everywhere<None<float>>({}, PerRank<float>{{1, 2, quiet, 4, 5}, {1, 1, 1, 1, 1}}, 0);
  everywhere<wring::Cast<wring::half_t>>({}, PerRank<float>{{1, 2, quiet, 4, 5}, {1, 1, 1, 1, 1}}, 0);
}

TEST_CASE("specials: the greatest numbers beside infinities", "[collective][special]") {
  constexpr float greatest = std::numeric_limits<float>::max();
  const std::vector<float> x{inf, -inf, quiet, 1, greatest, -greatest}, zero(6, 0);
  const double bound = 1e36;
  everywhere<Grid<float>>({.bound = wring::absolute(bound)}, {x, zero}, bound);
  everywhere<None<float>>({}, {x, zero}, 0);
}

TEST_CASE("specials: blocks of subnormal and tiny numbers keep the smallest bound", "[collective][special]") {
  std::vector<float> x;
  for (const float unit : {1e-45f, 1e-40f, 1e-38f, 1e-35f})
    for (int i = 1; i <= 8; ++i) x.push_back(unit * static_cast<float>(i) * (i % 2 ? 1.0f : -1.0f));
  std::vector<float> y(x.rbegin(), x.rend());
  const double u = 0x1p-24;
  for (const double bound : {1e-42, 1e-44}) {
    INFO(bound);
    everywhere<Grid<float>>({.bound = wring::absolute(bound + 2 * u * 1.7e-34)}, {x, y},
                            bound + 2 * u * 1.7e-34);
  }
  everywhere<None<float>>({}, {x, y}, 2 * u * 1e-34);
}

TEST_CASE("specials: nothing but zeros, relative bounds included", "[collective][special]") {
  const PerRank<float> zeros(3, std::vector<float>(2048, 0)), sevens(3, std::vector<float>(2048, 7));
  for (const wring::Bound bound :
       {wring::absolute(0), wring::relative_to_range(0.1), wring::relative_to_rms(0.1)})
    everywhere<Grid<float>>({.bound = bound}, zeros, 0);
  everywhere<Grid<float>>({.bound = wring::absolute(1e-5)}, sevens, 1e-5);
  everywhere<Grid<float>>({.bound = wring::relative_to_rms(1e-5)}, sevens, 3 * 7e-5);
}

TEST_CASE("specials: a constant has no range: a bound relative to it holds only where no rounding is needed",
          "[collective][special]") {
  Call<Grid<float>> call{.bound = wring::relative_to_range(0.1)};
  const auto got = collect(wring::Ring{}, call, PerRank<float>(2, std::vector<float>(100, 7)));
  INFO(describe(got.outcomes));
  REQUIRE((all_failed(got.outcomes, wring::Cause::unattainable) ||
           judge(call, PerRank<float>(2, std::vector<float>(100, 7)), got, 0) == ""));
}

TEST_CASE("specials: a finite sum beyond the greatest number is an infinity, a mean within the range is not",
          "[collective][special]") {
  const PerRank<float> inputs(3, std::vector<float>{3.0e38f, -3.0e38f, 1});
  for (const AnyAlgorithm& algorithm : all_algorithms(3)) {
    INFO(algorithm.name());
    Call<Grid<float>> call{.options = {.operation = wring::mean}, .bound = wring::absolute(1e33)};
    auto got = collect(algorithm, call, inputs);
    REQUIRE(judge(call, inputs, got, 1e33) == "");
    call.options.operation = wring::sum;
    got = collect(algorithm, call, inputs);
    INFO(describe(got.outcomes));
    REQUIRE(all_ok(got.outcomes));
    for (const auto& result : got.results) REQUIRE((result[0] == inf && result[1] == -inf));
    // Without compression partial sums overflow: no bound can be promised, on any rank.
    Call<None<float>> plain{.options = {.operation = wring::mean}, .bound = wring::absolute(1e33)};
    const auto refused = collect(algorithm, plain, inputs);
    INFO(describe(refused.outcomes));
    REQUIRE(all_failed(refused.outcomes, wring::Cause::unattainable));
  }
}

TEST_CASE("specials: sums that depend on the order are the same on all ranks, and with the grid always",
          "[collective][special]") {
  const PerRank<float> inputs{{1e8f}, {1}, {-1e8f}, {1}};
  for (const std::size_t n : {1, 1000}) {
    PerRank<float> data;
    std::vector<float> first;
    for (const auto& x : inputs) data.emplace_back(n, x[0]);
    for (const AnyAlgorithm& algorithm : all_algorithms(4)) {
      INFO(algorithm.name());
      Call<None<float>> call;
      REQUIRE(judge(call, data, collect(algorithm, call, data), 20) == "");  // checks that the ranks agree
      Call<Grid<float>> grid{.bound = wring::absolute(30)};  // magnitudes up to 1e8 in binary32
      for (int run = 0; run < 10; ++run) {
        const auto got = collect(algorithm, grid, data);
        REQUIRE(judge(grid, data, got, 30) == "");
        if (first.empty()) first = got.results[0];
        REQUIRE(same_bits(got.results[0], first));
      }
    }
  }
}
