// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives on the grid: the bound, and one answer whichever way it is computed. The same for every element type.
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <wring/compressor/grid.hpp>

#include "support/matrix.hpp"

namespace {

using namespace wring_test;
using wring::Grid;

/// A bound that is attainable for up to 9 ranks with values up to 4: about twice what rounding the result costs, which is one
/// roundoff of up to 36 and a little (up to three in binary64).
template <class T> double tightest_bound() {
  const double roundings = sizeof(T) == 8 ? 3 : 1;
  return 2.2 * 40 * roundings * wring::FloatTraits<T>::unit_roundoff + (sizeof(T) == 2 ? 2e-7 : 0);
}

template <class T> Grid<T> grid_for(unsigned variant, bool sums) {
  using Options = typename Grid<T>::Options;
  using Step = typename Grid<T>::StepKind;
  return Grid<T>(Options{.step = variant % 2 ? Step::power_of_two : Step::short_step,
                         .delta = sums && variant / 2 % 2 == 1});
}

template <class T> void within_the_bound() {
  unsigned number = 0;
  const auto check = [&](Call<Grid<T>>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                         bool uneven) {
    const unsigned variant = static_cast<unsigned>(random_bits(5, number++) % 64);
    call.codec = grid_for<T>(variant, true);
    const double bound = tightest_bound<T>() * std::pow(10, variant / 4 % 4);
    call.bound = wring::absolute(bound);
    const auto inputs = make_inputs<T>(
        call, ranks, n, uneven, [](std::size_t k, std::uint64_t seed) { return real_numbers<T>(k, seed); });
    const auto got = collect(algorithm, call, inputs);
    INFO(describe(call, ranks, algorithm, n) << ", bound " << bound << ", variant " << variant);
    REQUIRE(judge(call, inputs, got, bound) == "");
    REQUIRE(got.outcomes[0].report.bound == bound);
  };
  for_each_case(Grid<T>{}, 9, small_lengths, 4, true, check);
  for_each_case(Grid<T>{}, 9, [](int) { return Lengths{5000, 16385}; }, 12, true, check);
}

/// The whole result of a reduction, put together from the ranks' parts.
template <class T> std::vector<T> whole_result(const Call<Grid<T>>& call, const Collected<T>& got) {
  if (call.collective != wring::Collective::reduce_scatter) return got.results[0];
  std::vector<T> whole;
  for (const auto& part : got.results) whole.insert(whole.end(), part.begin(), part.end());
  return whole;
}

template <class T> void same_bits_every_way() {
  unsigned number = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 9}) {
    for (const wring::Collective collective : collectives) {
      for (const std::size_t n : {std::size_t{37}, std::size_t{1300}}) {
        const unsigned variant = number++;
        Call<Grid<T>> call{.codec = grid_for<T>(variant / 4, true), .collective = collective};
        call.options.operation = operations[variant / 2 % 4];
        call.bound = wring::absolute(tightest_bound<T>() * (variant % 3 == 0 ? 1 : 50));
        auto inputs = make_inputs<T>(call, ranks, n, false, [](std::size_t k, std::uint64_t seed) {
          return real_numbers<T>(k, seed);
        });
        const auto expected = whole_result(call, collect(wring::Ring{}, call, inputs));
        for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
          const auto kept = call.root;
          vary(call, static_cast<unsigned>(random_bits(7, number++) % 1024), ranks);
          call.root = kept;
          if (wring::reduces(collective))
            std::rotate(inputs.begin(), inputs.begin() + (ranks > 1 ? 1 : 0), inputs.end());
          const auto got = collect(algorithm, call, inputs);
          INFO(describe(call, ranks, algorithm, n));
          REQUIRE(all_ok(got.outcomes));
          REQUIRE(got.outcomes[0].report.reproducible);
          REQUIRE(same_bits(whole_result(call, got), expected));
        }
      }
    }
  }
}

}  // namespace
