// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <wring/compressor/concept.hpp>
#include <wring/detail/sparse/format.hpp>
#include <wring/detail/sum_rounding.hpp>
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

/// The greatest threshold that keeps the bound: of a SUM every rank's values may be off by a p-th of what the additions leave.
template <class T> double threshold_for(const Agreed& agreed) {
  const double error = *agreed.allowed_error;
  const double left =
      left_by_sums<T>(error, agreed.max_abs, agreed.collective, agreed.operation, agreed.ranks);
  if (!(left >= 0))
    throw BoundUnattainable(fmt::format(
        "an error of {:g} cannot be held for {} ranks with values of type {} up to {:g}: their sum is "
        "rounded by more; ask for a larger bound or use a wider type",
        error, agreed.ranks, FloatTraits<T>::name, agreed.max_abs));
  const bool total = reduces(agreed.collective) && agreed.operation == Operation::sum;
  return total && agreed.ranks > 1 ? left / agreed.ranks * down : left;
}

}  // namespace wring::inline v0::detail::sparse
