// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "gradients/curve.hpp"
#include "gradients/tensors.hpp"
#include "gradients/trial.hpp"

namespace wring_benchmark {

/// Rates of one codec on runs of values that are encoded one by one, each at the same error.
class Rates {
 public:
  static constexpr int few_settings = 8;

  Rates(const Codec& codec, const std::vector<Values>& runs) : runs_(runs) {
    for (const Values& run : runs)
      for (const Family& family : codec.families) curves_[&run].emplace_back(family, run);
  }

  std::optional<double> bits_at(double level) {
    double bits = 0, count = 0;
    for (const Values& run : runs_) {
      std::optional<double> best;
      for (Curve& curve : curves_[&run])
        if (const auto one = curve.bits_at(level); one && (!best || *one < *best)) best = one;
      if (!best) return std::nullopt;
      bits += *best * static_cast<double>(run.size()), count += static_cast<double>(run.size());
    }
    return bits / count;
  }

  /// The settings of the first run and family, where there are few.
  std::vector<Point> points() {
    std::vector<Point> points;
    for (int setting = 0; setting < curves_[&runs_[0]][0].settings() && setting < few_settings; ++setting)
      points.push_back(curves_[&runs_[0]][0].at(setting));
    return points;
  }

 private:
  const std::vector<Values>& runs_;
  std::map<const Values*, std::vector<Curve>> curves_;
};

}  // namespace wring_benchmark
