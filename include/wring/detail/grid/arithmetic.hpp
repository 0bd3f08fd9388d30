// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/grid/parameters.hpp>
#include <wring/narrow.hpp>

/// The arithmetic of one element on the grid: what every kernel, whatever its lanes, must reproduce bit for
/// bit.
namespace wring::inline v0::detail::grid {

/// The two bits that stand for an element without a quantum. The code of a sum is the bitwise OR: Inf - Inf =
/// NaN.
enum Code : unsigned { finite_code = 0, positive_infinity = 1, negative_infinity = 2, nan_code = 3 };

template <class Wide> KOKKOS_INLINE_FUNCTION constexpr unsigned code_of(Wide x) {
  if (!(x == x)) return nan_code;
  if (x > std::numeric_limits<Wide>::max()) return positive_infinity;
  return x < std::numeric_limits<Wide>::lowest() ? negative_infinity : finite_code;
}

/// Where kernels may use the plain binary64 formula: below it every product q D is exact.
inline constexpr double exact_product_limit = 0x1p49;
/// Beyond it no quantum is computed at all.
inline constexpr double largest_quotient = 0x1p51;

/// The nearest multiple of the step, as a double; ties to even on a power of two, else down. Requires |x| / D
/// < 2^51.
///
/// t = fl(x * inverse) is within 1/2 of x / D, so its rounding is within 1 of it, and one correction is
/// enough. The remainder is exact: below 2^49 because q m < 2^53, above by the fused multiply-add, for x and
/// q D are then multiples of a common unit in which the remainder is a small integer. So the result does not
/// depend on how a compiler contracts.
KOKKOS_INLINE_FUNCTION double quantum(double x, double step, double inverse, bool power_of_two) {
  constexpr double magic = 0x1.8p52;
  const double t = x * inverse;
  double q = (t + magic) - magic;
  if (power_of_two) return q;
  const bool large = q >= exact_product_limit || q <= -exact_product_limit || step > 0x1p900;
  const double r = large ? Kokkos::fma(-q, step, x) : x - q * step, half = 0.5 * step;
  if (r > half) q += 1;
  if (r <= -half) q -= 1;
  return q;
}

/// Whether `quantum` may be asked: false for values too large, infinities and NaN.
KOKKOS_INLINE_FUNCTION bool has_quantum(double x, double inverse) {
  const double t = x * inverse;
  return t < largest_quotient && t > -largest_quotient;
}

/// round(q / 2^shift), ties to even, without overflow; shift < number of bits - 1.
template <class Q> KOKKOS_INLINE_FUNCTION constexpr Q round_shift(Q q, int shift) {
  if (shift == 0) return q;
  const Q whole = q >> shift, rest = q & ((Q{1} << shift) - 1);
  return whole + ((rest + (whole & 1) + ((Q{1} << (shift - 1)) - 1)) >> shift);
}

template <class T> KOKKOS_INLINE_FUNCTION T quiet_nan() {
  if constexpr (sizeof(T) == 2)
    return T(std::numeric_limits<float>::quiet_NaN());
  else
    return std::numeric_limits<T>::quiet_NaN();
}

/// The element that a code other than 0 stands for.
template <class T> KOKKOS_INLINE_FUNCTION T special_value(unsigned code) {
  if (code == nan_code) return quiet_nan<T>();
  using Wide = typename FloatTraits<T>::Wide;
  const Wide infinity = std::numeric_limits<Wide>::infinity();
  return static_cast<T>(code == positive_infinity ? infinity : -infinity);
}

/// An element as it is, but for NaN, which becomes the canonical one, and -0, which becomes +0 as on the grid.
template <class T> KOKKOS_INLINE_FUNCTION T canonical(T x) {
  const auto wide = widen(x);
  if (wide == 0) return T();
  return wide == wide ? x : quiet_nan<T>();
}

/// The element that q stands for: q * step / divisor, rounded; saturates where it overflows T though |q *
/// step| <= limit * 2^64, which no double may be able to hold.
template <class T> KOKKOS_INLINE_FUNCTION T element(double q, double step, int divisor, double limit) {
  const double sum = q * step;
  double y = sum;
  if (divisor != 1) y /= divisor;
  if constexpr (std::is_same_v<T, double>) {
    if (divisor != 1 && !(sum - sum == 0))
      y = q * (step * 0x1p-64) / divisor * 0x1p64;  // the product alone overflowed
  }
  const T z = narrow<T>(y);
  if (code_of(widen(z)) == finite_code) return z;
  const double scaled = q * (step * 0x1p-64);
  if (!(scaled <= limit && scaled >= -limit)) return z;
  const double greatest = FloatTraits<T>::greatest;
  return narrow<T>(y > 0 ? greatest : -greatest);
}

}  // namespace wring::inline v0::detail::grid
