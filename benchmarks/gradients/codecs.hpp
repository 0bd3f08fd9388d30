// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <wring/compressor.hpp>

#include "gradients/ideal.hpp"
#include "gradients/trial.hpp"

#if WRING_BENCHMARK_ZFP
#include "05_wrapped_library/zfp.hpp"
#endif

/// The codecs of the study: a new one is a line in `all_codecs`.
namespace wring_benchmark {

inline constexpr std::array block_scaled_bits{8, 6, 5, 4, 3, 2};

/// BlockScaled with each number of bits. Settings are the numbers.
template <std::size_t... Which>
Family block_scaled(wring::Rounding rounding, std::optional<wring::RandomRotation> rotation,
                    std::index_sequence<Which...>) {
  return {
      sizeof...(Which), [rounding, rotation](std::span<const float> values, int setting) {
        std::unique_ptr<Trial> trial;
        const auto make = [&]<int Bits>() {
          using Compressor = wring::BlockScaled<float, Bits>;
          trial = trial_of(Compressor({.rounding = rounding, .rotation = rotation}), values);
        };
        ((setting == static_cast<int>(Which) ? make.template operator()<block_scaled_bits[Which]>() : void()),
         ...);
        return trial;
      }};
}
inline Family block_scaled(wring::Rounding rounding,
                           std::optional<wring::RandomRotation> rotation = std::nullopt) {
  return block_scaled(rounding, rotation, std::make_index_sequence<block_scaled_bits.size()>());
}

/// Thresholds from half a step to four steps.
inline std::vector<Family> filters(bool at_random) {
  std::vector<Family> families;
  for (const double threshold : {0.5, 1.0, 2.0, 4.0})
    families.push_back(ideal_family([=](std::span<const float> x, std::span<float> y, double step) {
      return filter_and_round(x, y, step, threshold, at_random);
    }));
  return families;
}

inline std::vector<Family> dead_zones() {
  std::vector<Family> families;
  for (const double zone : {0.55, 0.6, 0.65, 0.7})
    families.push_back(ideal_family([=](std::span<const float> x, std::span<float> y, double step) {
      return dead_zone(x, y, step, zone);
    }));
  return families;
}

template <class Compressor> Family single(Compressor compressor) {
  return chosen(1, [compressor](int) { return compressor; });
}

/// Gradient with targets of all sizes, 4 in each octave.
inline Family targeted(wring::Gradient<float>::Options options) {
  return chosen(72, [options](int setting) {
    wring::Gradient<float>::Options own = options;
    own.target = std::exp2(setting / 4.0 - 18);
    return wring::Gradient<float>(own);
  });
}

/// Shares from all to one in a million.
inline Family top_k() {
  return chosen(160, [](int setting) { return wring::TopK<float>({.ratio = std::exp2(-setting / 8.0)}); });
}

/// The first one is what bits above the entropy are counted from.
inline std::vector<Codec> all_codecs() {
  using namespace wring;
  const StochasticRounding stochastic{1};
  std::vector<Codec> codecs{
      {"one_table", {ideal_family(one_table)}, true},
      {"one_table_dead_zone", dead_zones(), true},
      {"gradient", {targeted({})}},
      {"gradient_stochastic", {targeted({.rounding = stochastic})}},
      {"gradient_packed", {targeted({.form = Gradient<float>::Form::packed})}},
      {"entropy_grid", {bounded(EntropyGrid<float>())}},
      {"grid", {bounded(Grid<float>())}},
      {"block_scaled", {block_scaled(NearestRounding{})}},
      {"block_scaled_stochastic", {block_scaled(stochastic)}},
      {"block_scaled_rotated", {block_scaled(NearestRounding{}, RandomRotation{1})}},
      {"cast_bf16", {single(Cast<bhalf_t, float>())}},
      {"cast_fp16", {single(Cast<half_t, float>())}},
      {"lossless", {single(Lossless<float>())}},
      {"filter_and_round", filters(true), true},
      {"filter_and_round_nearest", filters(false), true},
      {"largest", {largest_family()}, true},
      {"top_k", {top_k()}},
  };
#if WRING_BENCHMARK_ZFP
  codecs.push_back({"zfp", {bounded(Zfp<float>())}});
#endif
  return codecs;
}

}  // namespace wring_benchmark
