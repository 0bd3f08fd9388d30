// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <wring/narrow.hpp>

/// The step with which rounding values to its multiples makes an error that was asked for.
namespace wring::inline v0::detail::gradient {

/// How values are rounded, in 4096ths of a step: up from `up` above a multiple on; or drawn, with the error expected of that.
struct Rule {
  static constexpr int unit = 4096;
  std::int32_t up = unit / 2;
  bool draws = false;

  /// Of whatever distribution, no error exceeds this many steps, root mean square.
  double worst() const { return draws ? 0.5 : std::max(0.5, static_cast<double>(up) / unit); }
};

/// The dead zone, in 4096ths of a step, for a step in units of the root mean square: it grows with the step, from 0.52 to 0.75.
inline std::int32_t dead_zone_for(double step) {
  return static_cast<std::int32_t>(2130 + 348 * std::clamp(step, 0.0, 2.7));
}

/// Some of a rank's values: all of them, or runs that lie equally far apart.
template <class T> class Sample {
 public:
  static constexpr std::size_t run_values = 64;

  Sample(std::span<const T> values, std::size_t most)
      : values_(values), all_((values.size() + run_values - 1) / run_values),
        runs_(std::min(all_, most / run_values)) {}

  bool complete() const { return runs_ == all_; }

  /// Sum of squares, and of squared errors, in units of the square of `unit`, per value.
  double mean_square(double unit) const {
    double sum = 0;
    for (std::size_t run = 0; run < runs_; ++run) {
      Wide x[run_values];
      load(run, x);
      for (const Wide v : x) sum += static_cast<double>(v) / unit * (static_cast<double>(v) / unit);
    }
    return sum / count();
  }

  /// The mean squared error with this step, in units of its square; that of values that become two steps or more as if they were spread
  /// evenly, so that a step a little different makes no other error. Computed in whole 4096ths, so that no contraction changes it.
  double squared_error(double step, const Rule& rule) const {
    if (!(Rule::unit / step <= FloatTraits<Wide>::greatest)) return 1;  // too small a step to tell
    const Wide factor = static_cast<Wide>(Rule::unit / step);
    std::uint64_t sum = 0;
    for (std::size_t run = 0; run < runs_; ++run) {
      Wide x[run_values];
      load(run, x);
      sum += rule.draws ? squared_errors<true>(x, factor, rule) : squared_errors<false>(x, factor, rule);
    }
    return static_cast<double>(sum) / (double{Rule::unit} * Rule::unit) / count();
  }

 private:
  using Wide = typename FloatTraits<T>::Wide;

  double count() const { return static_cast<double>(complete() ? values_.size() : runs_ * run_values); }

  /// Magnitudes of a run, zeros behind the last value and for what is not finite.
  void load(std::size_t run, Wide* x) const {
    const std::size_t at = complete()   ? run * run_values
                           : runs_ == 1 ? 0
                                        : (values_.size() - run_values) / (runs_ - 1) * run;
    const std::size_t m = std::min(run_values, values_.size() - at);
    for (std::size_t i = 0; i < m; ++i) {
      const Wide magnitude = std::fabs(widen(values_[at + i]));
      x[i] = magnitude <= FloatTraits<T>::greatest ? magnitude : 0;
    }
    std::fill(x + m, x + run_values, Wide(0));
  }

  /// By masks: branches would be taken at random.
  template <bool draws> static std::uint32_t squared_errors(const Wide* x, Wide factor, const Rule& rule) {
    constexpr std::uint32_t unit = Rule::unit;
    const auto up = static_cast<std::uint32_t>(rule.up);
    const std::uint32_t spread = unit * unit / 12 + (up - unit / 2) * (up - unit / 2);
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < run_values; ++i) {
      const Wide scaled = std::min(x[i] * factor, Wide(1 << 24));
      const auto t = static_cast<std::uint32_t>(static_cast<std::int32_t>(scaled));
      if constexpr (draws) {
        const std::uint32_t part = t & (unit - 1);
        sum += part * (unit - part);
      } else {
        const std::uint32_t error = t - (unit & (0u - static_cast<std::uint32_t>(t >= up))),
                            beyond = 0u - static_cast<std::uint32_t>(t >= unit + up);
        sum += (error * error & ~beyond) | (spread & beyond);
      }
    }
    return sum;
  }

  std::span<const T> values_;
  std::size_t all_, runs_;
};

/// The greatest step, in units of the root mean square of `values`, with which the mean squared error is at most `target` times their
/// mean square: within a 256th of an octave, as a sample of the values shows it. Where no sample is like the whole, a step with which
/// no distribution has more. `rule(step)` says how values are rounded with a step.
template <class T, class RuleOf>
double step_for(std::span<const T> values, double root_mean_square, double target, const RuleOf& rule) {
  static constexpr int octave = 256, stride = octave / 2, octaves = 12;
  const double safe = std::sqrt(target) / rule(std::numeric_limits<double>::max()).worst();
  for (const std::size_t most : {std::size_t{8192}, std::size_t{1} << 17, std::size_t{1} << 20}) {
    const Sample<T> sample(values, most);
    const double square = sample.mean_square(root_mean_square);
    if (!sample.complete() && !(square > 0.7 && square < 1.4)) continue;
    const auto step = [&](int k) { return safe * std::exp2(k / double{octave}); };
    const auto exceeds = [&](int k) {
      return step(k) * step(k) * sample.squared_error(step(k) * root_mean_square, rule(step(k))) > target;
    };
    int below = 0, above = stride;
    while (above < octaves * octave && !exceeds(above)) below = above, above += stride;
    while (above - below > 1) {
      const int middle = (below + above) / 2;
      (exceeds(middle) ? above : below) = middle;
    }
    return step(below);
  }
  return safe;
}

}  // namespace wring::inline v0::detail::gradient
