// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/compressor/concept.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// What the additions of a reduction leave of an error.
namespace wring::inline v0::detail {

inline constexpr double down =
    1 - 0x1p-40;  ///< a factor that outweighs the rounding of the few operations below
inline constexpr double up = 1 + 0x1p-40;

/// The allowed error less the rounding of the additions, where |inputs| <= max_abs and the result is within `error` E of the exact one:
///   SUM:  (p - 1) u (A + E),  A = p max_abs;
///   MEAN: (p - 1) u (A + p E) / p + u (max_abs + E) + the least subnormal.
/// (16-bit types add in float and round once more: u (1 + 2^-12).) MIN, MAX, copies and zeros round nothing. Negative where nothing is left, or
/// where a partial sum may exceed the range.
template <FloatElement T>
double left_by_sums(double error, double max_abs, Collective collective, Operation operation, int ranks) {
  if (!reduces(collective) || !adds(operation) || ranks == 1 || max_abs == 0) return error;
  const bool averages = operation == Operation::mean;
  const double u = FloatTraits<T>::unit_roundoff * (1 + 0x1p-12) * up, p = ranks;
  const double sum = (p * max_abs + (averages ? p : 1) * error) * up;
  if (sum > FloatTraits<T>::greatest) return -1;
  double rounding = (p - 1) * u * sum * up;
  if (averages) rounding = (rounding / p + u * (max_abs + error) + FloatTraits<T>::least_subnormal) * up;
  return (error - rounding) * down;
}

}  // namespace wring::inline v0::detail
