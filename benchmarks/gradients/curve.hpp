// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>

#include "gradients/trial.hpp"

namespace wring_benchmark {

/// Bits per value and |x - y|^2 / |x|^2.
struct Point {
  double bits, error;
};

/// Rate against error of one family on some values. Trials are made when they are asked for, and once.
class Curve {
 public:
  Curve(const Family& family, std::span<const float> values)
      : family_(family), values_(values), squares_(squares_of(values)) {}

  int settings() const { return family_.settings; }

  Point at(int setting) {
    if (const auto known = points_.find(setting); known != points_.end()) return known->second;
    const auto trial = family_.trial(values_, setting);
    trial->encode(), trial->decode();
    const double distance = squared_distance(values_, trial->decoded());
    const Point point{trial->bits() / static_cast<double>(values_.size()),
                      squares_ > 0 ? distance / squares_ : 0};
    return points_.emplace(setting, point).first->second;
  }

  /// The coarsest setting that is no worse than this error: -1 if all are worse.
  int setting_for(double error) {
    int fine = -1, coarse = family_.settings;
    while (coarse - fine > 1) {
      const int between = (fine + coarse) / 2;
      (at(between).error <= error ? fine : coarse) = between;
    }
    return fine;
  }

  /// Bits per value at this very error: on the straight line, in the logarithm of the error, between the settings on either side of it. A
  /// codec whose coarsest setting is more accurate than that has the bits of this setting.
  std::optional<double> bits_at(double error) {
    const int fine = setting_for(error);
    if (fine < 0) return std::nullopt;
    const Point a = at(fine);
    if (fine + 1 == family_.settings) return a.bits;
    const Point b = at(fine + 1);
    if (!(a.error > 0)) return a.bits;
    const double part = std::log(error / a.error) / std::log(b.error / a.error);
    return std::min(a.bits, a.bits + part * (b.bits - a.bits));
  }

 private:
  const Family& family_;
  std::span<const float> values_;
  double squares_;
  std::map<int, Point> points_;
};

}  // namespace wring_benchmark
