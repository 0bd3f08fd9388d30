// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// EntropyGrid gives the bits that Grid gives, whichever way they are computed, and its bound.
#include <catch2/catch_test_macros.hpp>

#include <cmath>

#include <wring/compressor/entropy_grid.hpp>

#include "collective/group_cases.hpp"

using namespace wring_test;
using wring::EntropyGrid;
using wring::Grid;

namespace {

template <class T> EntropyGrid<T> codec_for(unsigned variant) {
  using Codec = EntropyGrid<T>;
  return Codec(
      {.grid = {.step = variant % 2 ? Grid<T>::StepKind::power_of_two : Grid<T>::StepKind::short_step,
                .delta = variant / 2 % 2 == 1},
       .stage = variant / 4 % 2 ? Codec::Stage::distribution : Codec::Stage::everywhere});
}

template <class T> void same_as_grid(int most_ranks, double scale, const Lengths& lengths, unsigned stride) {
  unsigned number = 0;
  const auto check = [&](Call<EntropyGrid<T>>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                         bool uneven) {
    const unsigned variant = static_cast<unsigned>(random_bits(5, number++) % 64);
    call.codec = codec_for<T>(variant);
    call.bound = wring::absolute(scale * std::pow(10, variant / 8 % 4));
    auto inputs = make_inputs<T>(call, ranks, n, uneven,
                                 [](std::size_t k, std::uint64_t seed) { return real_numbers<T>(k, seed); });
    if (variant % 5 == 0)
      for (auto& input : inputs)
        for (std::size_t i = 3; i < input.size(); i += 701) input[i] = to_element<T>(i % 2 ? NAN : INFINITY);
    INFO(describe(call, ranks, algorithm, n) << ", bound " << call.bound->value << ", variant " << variant);
    const auto got = collect(algorithm, call, inputs);
    REQUIRE(judge(call, inputs, got, call.bound->value) == "");
    Call<Grid<T>> plain{.collective = call.collective,
                        .options = call.options,
                        .bound = call.bound,
                        .root = call.root,
                        .in_place = call.in_place,
                        .counts = call.counts,
                        .world = call.world};
    plain.codec = Grid<T>(typename Grid<T>::Options{.step = variant % 2 ? Grid<T>::StepKind::power_of_two
                                                                        : Grid<T>::StepKind::short_step,
                                                    .delta = variant / 2 % 2 == 1});
    const auto expected = collect(algorithm, plain, inputs);
    for (std::size_t r = 0; r < expected.results.size(); ++r)
      REQUIRE(same_bits(got.results[r], expected.results[r]));
  };
  for_each_case(EntropyGrid<T>{}, most_ranks, [&](int) { return lengths; }, stride, true, check);
}

}  // namespace

TEST_CASE("EntropyGrid<float> gives Grid's bits", "[collective][entropy]") {
  same_as_grid<float>(8, 2e-4, {0, 1, 2, 37, 513, 1300}, 7);
  same_as_grid<float>(4, 2e-4, {70000}, 40);
}
TEST_CASE("EntropyGrid<double> gives Grid's bits", "[collective][entropy]") {
  same_as_grid<double>(5, 1e-6, {1, 700, 5000}, 11);
}
TEST_CASE("EntropyGrid<half_t> gives Grid's bits", "[collective][entropy]") {
  same_as_grid<wring::half_t>(5, 0.2, {1, 700, 5000}, 11);
}

TEST_CASE("EntropyGrid: tensors of a group with stages, steps and bounds of their own have the bits that "
          "they have alone",
          "[collective][entropy]") {
  unsigned number = 0;
  for (const int ranks : {2, 5})
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
      const wring::Collective collective = collectives[number++ % 4];
      const auto result = run_group<EntropyGrid<float>>(
          algorithm,
          {.collective = collective,
           .lengths = {900, 3, 1300, 0, 513},
           .bounds = {wring::absolute(1e-3), wring::absolute(0.1)},
           .own = {codec_for<float>(4), std::nullopt, codec_for<float>(2), codec_for<float>(7)}},
          ranks);
      INFO(name_of(collective) << ", " << algorithm.name());
      REQUIRE(as_alone(algorithm, result));
    }
}

// The sum of a node of one, two or three ranks is as wide as can be when its entropy stage comes.
TEST_CASE("EntropyGrid: sums that were added in the wide form are coded and finished",
          "[collective][entropy]") {
  for (int ranks = 2; ranks <= 6; ++ranks)
    for (const std::size_t n : {1, 900, 40000})
      for (unsigned variant = 4; variant < (n > 1000 ? 5u : 8u); ++variant) {
        Call<EntropyGrid<float>> call{.codec = codec_for<float>(variant)};
        call.bound = wring::absolute(1e-3), call.options.ride_along_bytes = 0;
        const auto inputs = make_inputs<float>(call, ranks, n, false, [](std::size_t k, std::uint64_t seed) {
          return real_numbers<float>(k, seed);
        });
        INFO(ranks << " ranks, " << n << " values, variant " << variant);
        for (const AnyAlgorithm& algorithm : {AnyAlgorithm(wring::Hierarchical<>(ranks)),
                                              AnyAlgorithm(wring::Hierarchical<>((ranks + 1) / 2))})
          REQUIRE(judge(call, inputs, collect(algorithm, call, inputs), 1e-3) == "");
      }
}
