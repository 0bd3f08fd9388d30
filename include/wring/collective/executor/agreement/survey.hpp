// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <wring/config.hpp>

namespace wring::inline v0::detail {

/// What a compressor found out about a rank's values, as it travels: a positive number in 256ths of an octave. The least of all ranks
/// counts.
struct Survey {
  static constexpr std::int16_t none = std::numeric_limits<std::int16_t>::max();

  std::int16_t logarithm = none;

  static Survey of(double x) {
    if (!(x > 0) || !std::isfinite(x)) return {};
    const double rounded = std::nearbyint(256 * std::log2(x));
    return {static_cast<std::int16_t>(std::clamp(rounded, -32767.0, 32766.0))};
  }

  /// The number; 0 if no rank had one. By operations that round alike everywhere, unlike exp2.
  double value() const {
    if (logarithm == none) return 0;
    double x = 1, root = 2;
    for (int bit = 7; bit >= 0; --bit) {
      root = std::sqrt(root);
      if ((logarithm >> bit & 1) != 0) x *= root;
    }
    return std::ldexp(x, logarithm >> 8);
  }

  void merge(const Survey& other) { logarithm = std::min(logarithm, other.logarithm); }
};

}  // namespace wring::inline v0::detail
