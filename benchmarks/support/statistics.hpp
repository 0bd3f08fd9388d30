// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wring_benchmark {

/// The value below which the given part of the values lies, interpolated linearly between neighbours.
inline double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const double at = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double rest = at - static_cast<double>(below);
  return rest == 0 ? values[below] : values[below] + rest * (values[below + 1] - values[below]);
}

inline double median(const std::vector<double>& values) { return quantile(values, 0.5); }

inline std::vector<double> quotients(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) result.push_back(a[i] / b[i]);
  return result;
}

}  // namespace wring_benchmark
