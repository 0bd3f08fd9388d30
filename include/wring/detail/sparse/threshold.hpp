// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <wring/compressor/concept.hpp>
#include <wring/detail/sparse/format.hpp>
#include <wring/error.hpp>

/// From a bound on the result to the threshold below which values need not be sent.
namespace wring::inline v0::detail::sparse {

/// The values whose magnitude is not below `threshold`, and which are not zeros.
template <class T> Selection<T> not_below(double threshold) {
  using Key = typename Keys<T>::Key;
  const T nearest = narrow<T>(threshold);
  Key cut = Keys<T>::key(Keys<T>::pattern(&nearest));
  if (static_cast<double>(widen(nearest)) < threshold) ++cut;
  return {.cut = std::max(cut, Key{1})};
}

/// The rounding of the additions of a reduction, at most, where |inputs| <= max_abs and the result is within E of the exact one:
///   SUM: (p - 1) u (p max_abs + E);  MEAN: (p - 1) u (p max_abs + p E) / p + u (max_abs + E) + the least subnormal.
/// (16-bit types add in float and round once more: u (1 + 2^-12).) MIN, MAX and copies round nothing. Infinite where a partial sum may
/// exceed the range.
template <class T> double rounding_of_sums(const Agreed& agreed, double error) {
  if (!reduces(agreed.collective) || !adds(agreed.operation) || agreed.ranks == 1 || agreed.max_abs == 0)
    return 0;
  constexpr double up = 1 + 0x1p-40;
  const bool averages = agreed.operation == Operation::mean;
  const double u = FloatTraits<T>::unit_roundoff * (1 + 0x1p-12) * up, p = agreed.ranks;
  const double sum = (p * agreed.max_abs + (averages ? p : 1) * error) * up;
  if (sum > FloatTraits<T>::greatest) return std::numeric_limits<double>::infinity();
  const double added = (p - 1) * u * sum * up;
  if (!averages) return added;
  return (added / p + u * (agreed.max_abs + error) + FloatTraits<T>::least_subnormal) * up;
}

/// The greatest threshold that keeps the bound: of a SUM every rank's values may be off by a p-th of what the additions leave.
template <class T> double threshold_for(const Agreed& agreed) {
  const double error = *agreed.allowed_error, rounding = rounding_of_sums<T>(agreed, error);
  constexpr double down = 1 - 0x1p-40;
  const double left = rounding > 0 ? (error - rounding) * down : error;
  if (!(left >= 0))
    throw BoundUnattainable(fmt::format(
        "an error of {:g} cannot be held for {} ranks with values of type {} up to {:g}: their sum is "
        "rounded by more; ask for a larger bound or use a wider type",
        error, agreed.ranks, FloatTraits<T>::name, agreed.max_abs));
  const bool total = reduces(agreed.collective) && agreed.operation == Operation::sum;
  return total && agreed.ranks > 1 ? left / agreed.ranks * down : left;
}

}  // namespace wring::inline v0::detail::sparse
