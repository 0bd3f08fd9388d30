// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include <wring/detail/entropy/block.hpp>
#include <wring/detail/entropy/model.hpp>

/// Models that need no table in the stream: one for each scale that a block's values can have.
namespace wring::inline v0::detail::entropy {

/// Scales are half octaves of the mean magnitude: 2^((scale - 15) / 2); 0 is that of zeros. Beyond the greatest that has a model
/// of its own, low bits are left aside until the rest has scale 20 or 21.
inline constexpr int greatest_modelled = 21, greatest_scale = 78;

// clang-format off
/// By benchmarks/codec/entropy_scales.py. For each model: the frequency of the escape, then of the magnitudes 0, 1, 2, ... for one sign.
/// The last two are for values whose low bits are gone: v and -1 - v have the same magnitude.
inline constexpr std::uint16_t scale_frequencies[] = {
    1, 4063, 16,
    1, 4049, 23,
    1, 4031, 32,
    1, 4005, 45,
    1, 3967, 64,
    1, 3915, 90,
    1, 3841, 127,
    1, 3735, 179, 1,
    1, 3587, 251, 3,
    1, 3387, 346, 8,
    1, 3117, 466, 22, 1,
    1, 2779, 598, 57, 3,
    1, 2373, 717, 127, 15, 2,
    1, 1941, 783, 231, 51, 10, 2,
    1, 1525, 773, 337, 120, 39, 12, 3, 1,
    1, 1157, 696, 405, 202, 94, 42, 18, 7, 3, 1, 1,
    1, 861, 582, 413, 260, 157, 92, 52, 29, 16, 8, 4, 2, 1, 1,
    1, 623, 460, 374, 276, 199, 140, 96, 66, 44, 29, 19, 12, 8, 5, 3, 2, 1, 1, 1,
    2, 446, 350, 311, 255, 206, 164, 129, 100, 77, 59, 45, 34, 25, 19, 14, 10, 7, 5, 4, 3, 2, 1, 1, 1, 1, 1,
    2, 318, 260, 245, 215, 187, 161, 138, 117, 99, 83, 69, 58, 48, 39, 32, 26, 22, 18, 14, 11, 9, 7, 6, 5, 4, 3,
    2, 2, 2, 1, 1, 1, 1, 1, 1,
    4, 224, 189, 186, 171, 156, 141, 128, 115, 103, 92, 82, 72, 64, 57, 50, 44, 38, 33, 29, 25, 22, 19, 17, 14,
    12, 11, 9, 8, 7, 6, 5, 4, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    2, 286, 261, 231, 201, 174, 149, 127, 107, 90, 76, 63, 52, 43, 35, 29, 24, 19, 16, 13, 10, 8, 7, 5, 4, 3, 3,
    2, 2, 1, 1, 1, 1, 1, 1, 1,
    4, 204, 193, 178, 164, 149, 135, 121, 109, 97, 87, 77, 68, 60, 53, 47, 41, 36, 31, 27, 24, 21, 18, 15, 13,
    11, 10, 8, 7, 6, 5, 5, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
};
inline constexpr std::uint8_t scale_lengths[] = {3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 5, 5, 6, 7, 9, 12, 15, 20, 27, 36, 48, 36, 48};

/// The same for scales 1 to 21 of values whose own scale is known: exp(-|t|^1.75), with shorter tails.
inline constexpr std::uint16_t own_scale_frequencies[] = {
1, 4063, 16,
    1, 4049, 23,
    1, 4031, 32,
    1, 4005, 45,
    1, 3967, 64,
    1, 3913, 91,
    1, 3839, 128,
    1, 3733, 181,
    1, 3585, 255,
    1, 3375, 359, 1,
    1, 3085, 498, 7,
    1, 2707, 664, 30,
    1, 2261, 813, 100, 4,
    1, 1799, 882, 235, 29, 2,
    1, 1371, 840, 386, 110, 22, 3, 1,
    1, 1013, 718, 467, 227, 89, 29, 8, 2, 1,
    1, 735, 568, 456, 304, 180, 95, 45, 20, 8, 3, 1,
    1, 527, 429, 388, 310, 231, 163, 108, 68, 41, 23, 12, 6, 3, 1, 1,
    1, 373, 314, 304, 269, 229, 189, 151, 117, 88, 64, 46, 32, 21, 14, 9, 6, 3, 2, 1, 1, 1,
    1, 267, 226, 228, 213, 195, 175, 155, 135, 115, 97, 81, 66, 53, 42, 33, 26, 20, 15, 11, 8, 6, 4, 3, 2, 1, 1, 1, 1, 1,
    2, 180, 162, 166, 160, 153, 144, 135, 125, 115, 104, 94, 84, 75, 66, 58, 51, 44, 37, 32, 27, 23, 19, 16, 13, 11, 9, 7, 6, 4, 4, 3, 2, 2, 1, 1, 1, 1, 1, 1,
};
inline constexpr std::uint8_t own_scale_lengths[] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 5, 6, 8, 10, 12, 16, 22, 30, 40};
// clang-format on

/// A block's scale, from the sum of its m values' magnitudes.
inline int scale_of(std::uint64_t sum, std::size_t m) {
  if (sum == 0) return 0;
  sum = m == block_values ? sum : (sum * block_values + m / 2) / m;
  const int octave = static_cast<int>(std::bit_width(sum)) - 1;
  const std::uint64_t mantissa = sum << (63 - octave);  // thresholds: 2^(1/4) and 2^(3/4)
  return 2 * octave + (mantissa >= 0x9837f0518db8a970) + (mantissa >= 0xd744fccad69d6af5) + 1;
}

/// Number of low bits that are left aside.
constexpr int shift_of(int scale) {
  return scale <= greatest_modelled ? 0 : (scale - greatest_modelled + 1) / 2;
}

/// The models of all scales, and those of the steps from one block's scale to the next. Constants, made when they are first needed.
class ScaleModels {
 public:
  static const ScaleModels& get() {
    static const ScaleModels models;
    return models;
  }

  /// Of a scale from 1 to `greatest_scale`.
  const Model& of(int scale) const {
    const int low = shift_of(scale);
    return models_[static_cast<std::size_t>(low == 0 ? scale - 1 : greatest_modelled + scale - 2 * low - 20)];
  }

  /// Of scales from 1 to `greatest_modelled`, numbered from 0, for values that have each their own.
  const ModelSet& each() const { return each_; }

  /// 64ths of bits that values around 0 take by the model of a scale up to `greatest_modelled`, or by their own scale's. Index: as in
  /// ModelSet.
  using Costs = std::array<std::uint16_t, ModelSet::symbols>;
  const Costs& costs(int scale) const { return costs_[static_cast<std::size_t>(scale - 1)]; }
  const Costs& own_costs(std::size_t number) const { return own_costs_[number]; }

  /// Of steps from one block's scale to the next, each kind with fewer that are not 0 than the one before; and the kind for `count`
  /// steps whose magnitudes add up to `sum`.
  const Model& steps(unsigned kind) const { return steps_[kind]; }
  static unsigned steps_for(std::size_t sum, std::size_t count) {
    return 1000 * sum > 848 * count ? 0 : 1000 * sum > 278 * count ? 1 : 1000 * sum > 68 * count ? 2 : 3;
  }

 private:
  ScaleModels() {
    const std::uint16_t* from = scale_frequencies;
    for (std::size_t k = 0; k < models_.size(); from += scale_lengths[k], ++k)
      models_[k] = mirrored(from, scale_lengths[k] - 1u, k < greatest_modelled);
    from = own_scale_frequencies;
    for (int k = 0; k < ModelSet::count; from += own_scale_lengths[k], ++k)
      each_.assign(k, std::span(from, own_scale_lengths[k]));
    for (std::size_t k = 0; k < costs_.size(); ++k)
      for (std::uint32_t s = 0; s < ModelSet::symbols; ++s) {
        const Model& model = models_[k];
        const std::uint32_t symbol = model.symbol_of(static_cast<std::int32_t>(s) + ModelSet::lowest);
        const std::uint32_t own = each_.push[k * ModelSet::symbols + s];
        costs_[k][s] = cost_of(model.push[symbol] >> 16, symbol == model.escape);
        own_costs_[k][s] = cost_of(own >> 16, (own & ModelSet::escaped) != 0);
      }
    // 2^-|d|, 4^-|d|, 16^-|d| and 64^-|d|, nearly
    static constexpr std::uint16_t steps[][14] = {{1, 1365, 682, 341, 171, 85, 43, 21, 11, 5, 3, 1, 1, 1},
                                                  {1, 2451, 614, 154, 38, 10, 3, 1, 1, 1},
                                                  {1, 3601, 226, 14, 2, 1, 1, 1, 1, 1},
                                                  {1, 3957, 62, 1, 1, 1, 1, 1, 1, 1}};
    steps_[0] = mirrored(steps[0], 13, true);
    for (std::size_t kind = 1; kind < steps_.size(); ++kind) steps_[kind] = mirrored(steps[kind], 9, true);
  }

  /// 64 log2(4096 / frequency), and what follows an escape.
  static std::uint16_t cost_of(std::uint32_t frequency, bool escape) {
    const int octave = static_cast<int>(std::bit_width(frequency)) - 1;
    std::uint64_t mantissa = std::uint64_t{frequency} << (31 - octave),
                  logarithm = static_cast<unsigned>(octave);
    for (int bit = 0; bit < 6; ++bit) {
      mantissa = mantissa * mantissa >> 31;
      logarithm = 2 * logarithm + (mantissa >> 32);
      mantissa >>= mantissa >> 32;
    }
    return static_cast<std::uint16_t>(64 * precision - logarithm + (escape ? 64 * 32 : 0));
  }

  /// From the frequencies of the escape and of n magnitudes. `centred`: 0 stands alone.
  static Model mirrored(const std::uint16_t* of, std::size_t n, bool centred) {
    std::array<std::uint16_t, 2 * 64 + 1> all{};
    const std::size_t positive = centred ? n - 1 : n;  // index of magnitude 0 with its positive sign
    for (std::size_t k = 0; k < n; ++k) all[positive + k] = all[positive - k - (centred ? 0 : 1)] = of[1 + k];
    const std::size_t count = positive + n;
    all[count] = of[0];
    return Model(-static_cast<std::int32_t>(positive), std::span(all.data(), count + 1));
  }

  std::array<Model, std::size(scale_lengths)> models_;
  std::array<Model, 4> steps_;
  ModelSet each_;
  std::array<Costs, ModelSet::count> costs_, own_costs_;
};

}  // namespace wring::inline v0::detail::entropy
