// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <bit>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <wring/config.hpp>

/// Element types: the two 16-bit floating-point formats, and what the library must know of each type.
namespace wring::inline v0 {
namespace detail {

KOKKOS_INLINE_FUNCTION constexpr std::uint32_t float_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
KOKKOS_INLINE_FUNCTION constexpr float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

/// Either of two patterns, by masks: compilers neither branch on it nor move what it chooses from behind a branch, so that the
/// loops over these conversions vectorise.
KOKKOS_INLINE_FUNCTION constexpr std::uint32_t choose(bool first, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t mask = 0u - static_cast<std::uint32_t>(first);
  return (a & mask) | (b & ~mask);
}

/// IEEE binary16 nearest to x, ties to even; overflow gives an infinity, NaN a quiet NaN. Same bits on every backend: integer
/// arithmetic, and one float addition that rounds a result below 2^-14 to units of 2^-24 (the last place of numbers near 0.5).
KOKKOS_INLINE_FUNCTION constexpr std::uint16_t binary16_from_float(float x) {
  const std::uint32_t u = float_bits(x), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  const bool tiny = magnitude < 0x38800000u,
             beyond = magnitude >= 0x477ff000u;  // below 2^-14; rounds to 65536 or more
  const std::uint32_t subnormal = float_bits(float_of(choose(tiny, magnitude, 0)) + 0.5f) - 0x3f000000u;
  const std::uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  const std::uint32_t special = choose(magnitude > 0x7f800000u, 0x7e00u, 0x7c00u);
  return static_cast<std::uint16_t>(sign | choose(beyond, special, choose(tiny, subnormal, normal)));
}

KOKKOS_INLINE_FUNCTION constexpr float float_from_binary16(std::uint16_t h) {
  const std::uint32_t sign = (std::uint32_t{h} & 0x8000u) << 16;
  const std::uint32_t exponent = h & 0x7c00u, mantissa = h & 0x3ffu,
                      shifted = (std::uint32_t{h} & 0x7fffu) << 13;
  const std::uint32_t special = shifted | 0x7f800000u | choose(mantissa != 0, 0x400000u, 0u);
  const std::uint32_t normal = shifted + 0x38000000u;
  const std::uint32_t subnormal =
      float_bits(float_of(0x3f000000u | mantissa) - 0.5f);  // exact: mantissa * 2^-24
  return float_of(sign | choose(exponent == 0x7c00u, special, choose(exponent == 0, subnormal, normal)));
}

/// bfloat16 nearest to x, ties to even; NaN gives a quiet NaN.
KOKKOS_INLINE_FUNCTION constexpr std::uint16_t bfloat16_from_float(float x) {
  const std::uint32_t u = float_bits(x), rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>(choose((u & 0x7fffffffu) > 0x7f800000u, (u >> 16) | 0x40u, rounded));
}

KOKKOS_INLINE_FUNCTION constexpr float float_from_bfloat16(std::uint16_t b) {
  return float_of(std::uint32_t{b} << 16);
}

}  // namespace detail

/// IEEE binary16 as an element type, 2 bytes on every backend (Kokkos' own half_t is a plain float on CPUs).
struct half_t {
  std::uint16_t bits = 0;
  half_t() = default;
  KOKKOS_INLINE_FUNCTION constexpr explicit half_t(float x) : bits(detail::binary16_from_float(x)) {}
  KOKKOS_INLINE_FUNCTION constexpr explicit operator float() const {
    return detail::float_from_binary16(bits);
  }
};

/// bfloat16 as an element type, 2 bytes on every backend.
struct bhalf_t {
  std::uint16_t bits = 0;
  bhalf_t() = default;
  KOKKOS_INLINE_FUNCTION constexpr explicit bhalf_t(float x) : bits(detail::bfloat16_from_float(x)) {}
  KOKKOS_INLINE_FUNCTION constexpr explicit operator float() const {
    return detail::float_from_bfloat16(bits);
  }
};

/// What the library knows of a floating-point element type. `Wide` is the type in which it is computed with.
template <class T> struct FloatTraits;

template <> struct FloatTraits<float> {
  using Wide = float;
  static constexpr const char* name = "float";
  static constexpr double unit_roundoff = 0x1p-24, greatest = 0x1.fffffep127, least_subnormal = 0x1p-149;
};
template <> struct FloatTraits<double> {
  using Wide = double;
  static constexpr const char* name = "double";
  static constexpr double unit_roundoff = 0x1p-53, greatest = 0x1.fffffffffffffp1023,
                          least_subnormal = 0x1p-1074;
};
template <> struct FloatTraits<half_t> {
  using Wide = float;
  static constexpr const char* name = "half_t";
  static constexpr double unit_roundoff = 0x1p-11, greatest = 65504, least_subnormal = 0x1p-24;
};
template <> struct FloatTraits<bhalf_t> {
  using Wide = float;
  static constexpr const char* name = "bhalf_t";
  static constexpr double unit_roundoff = 0x1p-8, greatest = 0x1.fep127, least_subnormal = 0x1p-133;
};
#if defined(KOKKOS_HALF_T_IS_FLOAT) && !KOKKOS_HALF_T_IS_FLOAT
template <> struct FloatTraits<Kokkos::Experimental::half_t> : FloatTraits<half_t> {};
#endif
#if defined(KOKKOS_BHALF_T_IS_FLOAT) && !KOKKOS_BHALF_T_IS_FLOAT
template <> struct FloatTraits<Kokkos::Experimental::bhalf_t> : FloatTraits<bhalf_t> {};
#endif

/// Types that lossy compressors take: float, double, and the 16-bit formats (ours, and Kokkos' where they are 16 bits wide).
template <class T>
concept FloatElement = requires { FloatTraits<T>::unit_roundoff; };

template <class T> inline constexpr bool is_complex_v = false;
template <class T> inline constexpr bool is_complex_v<std::complex<T>> = true;
template <class T> inline constexpr bool is_complex_v<Kokkos::complex<T>> = true;

/// Types that can be moved and added at all: the above, integers, and complex numbers (SUM and MEAN alone).
template <class T>
concept ElementType = FloatElement<T> || (std::integral<T> && !std::same_as<T, bool>) || is_complex_v<T>;

namespace detail {

/// The value of an element in its computation type: exact.
template <class T> KOKKOS_INLINE_FUNCTION typename FloatTraits<T>::Wide widen(T x) {
  return static_cast<typename FloatTraits<T>::Wide>(x);
}

/// The element nearest to y. From double to a 16-bit type it rounds twice, through float: within u(1 + 2^-12).
template <class T> KOKKOS_INLINE_FUNCTION T narrow(double y) {
  if constexpr (std::is_same_v<T, double>)
    return y;
  else if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(y);
  else
    return T(static_cast<float>(y));
}

}  // namespace detail
}  // namespace wring::inline v0
