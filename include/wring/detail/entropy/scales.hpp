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
    // 2^-|d|, 4^-|d|, 16^-|d| and 64^-|d|, nearly
    static constexpr std::uint16_t steps[][14] = {{1, 1365, 682, 341, 171, 85, 43, 21, 11, 5, 3, 1, 1, 1},
                                                  {1, 2451, 614, 154, 38, 10, 3, 1, 1, 1},
                                                  {1, 3601, 226, 14, 2, 1, 1, 1, 1, 1},
                                                  {1, 3957, 62, 1, 1, 1, 1, 1, 1, 1}};
    steps_[0] = mirrored(steps[0], 13, true);
    for (std::size_t kind = 1; kind < steps_.size(); ++kind) steps_[kind] = mirrored(steps[kind], 9, true);
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
};

}  // namespace wring::inline v0::detail::entropy
