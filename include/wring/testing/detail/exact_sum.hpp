// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace wring::inline v0::testing {

/// A sum of doubles without rounding, as an expansion: components that do not overlap, the least first (J. R. Shewchuk, "Adaptive
/// precision floating-point arithmetic and fast robust geometric predicates", 1997, Grow-Expansion). Terms are below 2^1020.
class ExactSum {
 public:
  ExactSum& add(double term) {
    for (double& component : parts_) {
      const double sum = term + component, other = sum - term;
      const double rounding = (term - (sum - other)) + (component - other);
      component = rounding, term = sum;
    }
    parts_.push_back(term);
    return *this;
  }

  /// -1, 0 or 1: the sign of the greatest component that is not zero.
  int sign() const {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part)
      if (*part != 0) return *part < 0 ? -1 : 1;
    return 0;
  }

 private:
  std::vector<double> parts_;
};

/// The same in plain arithmetic, where that leaves no doubt: nearly always, and a hundred times faster.
inline bool clearly_within(double y, const std::vector<double>& terms, double bound, int divisor,
                           double scale) {
  double sum = -divisor * y, magnitude = std::fabs(sum) + divisor * bound;
  for (const double x : terms) sum += x * scale, magnitude += std::fabs(x * scale);
  const double rounding = static_cast<double>(terms.size() + 4) * 0x1p-52 * magnitude + 0x1p-1000;
  return std::fabs(sum) + rounding <= divisor * bound;
}

/// Whether |divisor * y - (sum of terms)| <= divisor * bound, exactly.
inline bool sum_within(double y, const std::vector<double>& terms, double bound, int divisor = 1) {
  if (!std::isfinite(y)) return false;
  if (bound >= 0x1p1020) return true;
  double greatest = std::fabs(y);
  for (const double x : terms) greatest = std::max(greatest, std::fabs(x));
  const double scale = greatest > 0x1p1000 ? 0x1p-64 : 1;  // so that nothing overflows
  if (clearly_within(y * scale, terms, bound * scale, divisor, scale)) return true;
  for (const double direction : {1.0, -1.0}) {
    ExactSum excess;  // direction * (divisor * y - sum) - divisor * bound
    for (const double x : terms) excess.add(-direction * x * scale);
    for (int i = 0; i < divisor; ++i) excess.add(direction * y * scale).add(-bound * scale);
    if (excess.sign() > 0) return false;
  }
  return true;
}

}  // namespace wring::inline v0::testing
