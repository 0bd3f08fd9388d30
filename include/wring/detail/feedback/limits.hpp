// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <wring/compressor/concept.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// From the bound on a result to what may be paid back in one operation: docs/accuracy.md#error-feedback.
namespace wring::inline v0::detail::feedback {

inline constexpr double unlimited = std::numeric_limits<double>::infinity();
inline constexpr double above = 1 + 0x1p-40, below = 1 - 0x1p-40;  ///< outweigh the rounding of what follows
inline constexpr double inner_share = 0.45;                        ///< of a bound

/// Of what is paid back to values, and to sums.
struct Limits {
  double own = unlimited, result = unlimited;
  bool still = false;  ///< nothing is paid back, nothing kept
};

template <class Inner> void prepare_for_share(Inner& inner, const Agreed& share, double error) {
  try {
    inner.prepare(share);
  } catch (const BoundUnattainable& refusal) {
    throw BoundUnattainable(fmt::format("error feedback encodes with {} of the bound of {:g}: {}",
                                        inner_share, error, refusal.what()));
  }
}

/// Prepares a compressor that combines for its part of a bound. F is p E of a mean, else E, in units of sums:
///
///     0.45 F + n l + r + a <= F,
///
/// n the encodings of own values (p, or 1), a the error of one, l = a + 2 u max|x| what is paid back to each (its next residual is no larger,
/// rounding of v + e included), r what is paid back to a sum before it is finished, encoded with one a more.
template <class Inner> Limits divide_bound(Inner& inner, const Agreed& agreed) {
  using Traits = FloatTraits<typename Inner::value_type>;
  const bool sums = reduces(agreed.collective) && adds(agreed.operation);
  const bool averages = sums && agreed.operation == Operation::mean;
  const double terms = sums ? agreed.ranks : 1, error = *agreed.allowed_error;
  const bool may_overflow = sums && terms * agreed.max_abs * above > Traits::greatest;
  if (error == 0 || may_overflow) {
    inner.prepare(agreed);
    return {.still = true};
  }
  Agreed share = agreed;
  share.allowed_error = inner_share * error;
  prepare_for_share(inner, share, error);
  const double whole = averages ? terms * error : error, a = inner.error(agreed.max_abs);
  const double own = (a + 2 * Traits::unit_roundoff * agreed.max_abs + 2 * Traits::least_subnormal) * above;
  double left = (1 - inner_share) * whole * below - terms * own * above;
  if constexpr (FinishingCompressor<Inner>) left -= inner.finishes() ? a : 0;
  if (!(left >= 0))
    throw BoundUnattainable(
        fmt::format("error feedback: an error of {:g} cannot hold the rounding of values and residuals to {}",
                    error, Traits::name));
  return {.own = own, .result = left * below};
}

/// Prepares any compressor.
template <class Inner> Limits prepare(Inner& inner, const Agreed& agreed) {
  if constexpr (CombiningCompressor<Inner> && BoundedCompressor<Inner>)
    if (agreed.allowed_error) return divide_bound(inner, agreed);
  inner.prepare(agreed);
  return {.still = agreed.measured && agreed.max_abs == 0};
}

/// The greatest number of a type that is not above a limit.
template <class Wide> Wide rounded_down(double limit) {
  const Wide x = static_cast<Wide>(limit);
  return static_cast<double>(x) > limit ? std::nextafter(x, Wide(0)) : x;
}

}  // namespace wring::inline v0::detail::feedback
