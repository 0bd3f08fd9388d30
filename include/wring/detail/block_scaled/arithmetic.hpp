// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/grid/arithmetic.hpp>
#include <wring/narrow.hpp>

/// The arithmetic of one value and of one scale: what every kernel, whatever its lanes, must reproduce bit for bit.
namespace wring::inline v0::detail::block_scaled {

using grid::Code;
using grid::code_of;

inline constexpr int group_values = 128;

/// Levels on either side of 0 in a field of so many bits. In a marked group the outermost codes stand for special values, and there is
/// one level less.
constexpr int levels_of(int bits, bool marked = false) {
  return (1 << (bits - 1)) - 1 - static_cast<int>(marked);
}

/// The scale of a group: a positive bfloat16, whose sign bit marks groups of another form.
struct Scale {
  static constexpr std::uint16_t mark = 0x8000, greatest = 0x7f7f;
  static constexpr std::uint16_t least = 0x0580;  ///< 2^-116 (1.2e-35): what would need less counts as zero

  std::uint16_t pattern = 0;

  KOKKOS_INLINE_FUNCTION bool marked() const { return (pattern & mark) != 0; }
  /// Any pattern has a value: those of infinities and NaN, which are never written, count as the greatest scale.
  KOKKOS_INLINE_FUNCTION float value() const {
    const std::uint16_t magnitude = static_cast<std::uint16_t>(pattern & 0x7fffu);
    return float_from_bfloat16(magnitude < greatest ? magnitude : greatest);
  }

  /// The least scale with which so many levels reach max_abs, finite: no value is clipped, unless it exceeds what bfloat16 can hold.
  KOKKOS_INLINE_FUNCTION static Scale for_levels(double max_abs, int levels) {
    if (levels == 0) return {};
    const double quotient = max_abs / levels;
    if (quotient >= 0x1.fep127) return {greatest};
    auto pattern = static_cast<std::uint16_t>(float_bits(static_cast<float>(quotient)) >> 16);
    if (static_cast<double>(float_from_bfloat16(pattern)) * levels < max_abs) ++pattern;
    if (pattern > greatest) pattern = greatest;
    return {pattern < least ? std::uint16_t{0} : pattern};
  }
};

KOKKOS_INLINE_FUNCTION double clamped(double x, double limit) {
  return x > limit ? limit : x < -limit ? -limit : x;
}

/// x / scale rounded to a whole number, within 1 of the nearest one, where that is at most 2^9.
KOKKOS_INLINE_FUNCTION double rough_quotient(double x, double scale) {
  constexpr double magic = 0x1.8p52;
  return (clamped(x / scale, 512) + magic) - magic;
}

/// The level nearest to x, ties to even. The product of a level and a scale has 16 bits, so that it and the remainder are exact and
/// no contraction changes them.
KOKKOS_INLINE_FUNCTION int nearest_level(double x, double scale, int levels) {
  if (scale == 0) return 0;
  const double q = rough_quotient(x, scale), rest = x - q * scale, half = 0.5 * scale;
  int level = static_cast<int>(q);
  const bool odd = (level & 1) != 0;
  if (rest > half || (rest == half && odd))
    ++level;
  else if (rest < -half || (rest == -half && odd))
    --level;
  return level > levels ? levels : level < -levels ? -levels : level;
}

/// One of the levels on either side of x: the upper one if its part of the way exceeds (draw + 1/2) / 2^16.
KOKKOS_INLINE_FUNCTION int drawn_level(double x, double scale, int levels, std::uint32_t draw) {
  if (scale == 0) return 0;
  const double q = rough_quotient(x, scale);
  double rest = x - q * scale;
  int level = static_cast<int>(q);
  if (rest < 0) --level, rest += scale;
  const double part = (static_cast<double>(draw) + 0.5) * 0x1p-16 * scale;
  if (part < rest) ++level;
  return level > levels ? levels : level < -levels ? -levels : level;
}

/// The code of a value in a marked group: NaN and the infinities have the outermost ones.
template <int Bits> struct MarkedCodes {
  static constexpr int nan = -(1 << (Bits - 1)), positive_infinity = levels_of(Bits),
                       negative_infinity = -levels_of(Bits);

  KOKKOS_INLINE_FUNCTION static int of(unsigned special) {
    return special == grid::nan_code            ? nan
           : special == grid::positive_infinity ? positive_infinity
                                                : negative_infinity;
  }
  KOKKOS_INLINE_FUNCTION static unsigned special(int code) {
    return code == nan                 ? grid::nan_code
           : code == positive_infinity ? grid::positive_infinity
           : code == negative_infinity ? grid::negative_infinity
                                       : grid::finite_code;
  }
};

/// What a level of a group decodes to, before it is narrowed: exact, but for values beyond the greatest of T, which saturate.
template <class T> KOKKOS_INLINE_FUNCTION typename FloatTraits<T>::Wide level_value(int level, float scale) {
  const double y = static_cast<double>(level) * static_cast<double>(scale);
  return static_cast<typename FloatTraits<T>::Wide>(clamped(y, FloatTraits<T>::greatest));
}

/// What a code of a group decodes to. Coefficients of a rotated group are as wide as the computation type.
template <class T, int Bits>
KOKKOS_INLINE_FUNCTION typename FloatTraits<T>::Wide code_value(int code, Scale scale, bool rotated) {
  using Wide = typename FloatTraits<T>::Wide;
  if (scale.marked()) {
    const unsigned special = MarkedCodes<Bits>::special(code);
    if (special != grid::finite_code) return grid::special_value<Wide>(special);
  } else if (rotated) {
    return level_value<Wide>(code, scale.value());
  }
  return level_value<T>(code, scale.value());
}

}  // namespace wring::inline v0::detail::block_scaled
