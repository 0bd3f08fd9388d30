// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace wring::inline v0 {

/// A bound on the error of every finite element of the *result* (not of each rank's contribution).
struct Bound {
  enum class Kind { absolute, range, rms };
  Kind kind = Kind::absolute;
  double value = 0;
  friend constexpr bool operator==(const Bound&, const Bound&) = default;
};

/// |result - exact| <= error, in the units of the data.
constexpr Bound absolute(double error) { return {Bound::Kind::absolute, error}; }

/// |result - exact| <= fraction * (max - min), over the finite inputs of all ranks.
constexpr Bound relative_to_range(double fraction) { return {Bound::Kind::range, fraction}; }

/// |result - exact| <= fraction * (root mean square of the inputs of all ranks), times the number of ranks for SUM. Values that
/// are not finite count as zeros.
constexpr Bound relative_to_rms(double fraction) { return {Bound::Kind::rms, fraction}; }

}  // namespace wring::inline v0
