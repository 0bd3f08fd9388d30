// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "gradients/trial.hpp"
#include "support/statistics.hpp"

/// What gradients look like.
namespace wring_benchmark {

/// The fourth moment in units of the square of the second, less the 3 of a normal distribution.
inline double excess_kurtosis(std::span<const float> x) {
  double fourth = 0;
  for (const float v : x) fourth += std::pow(double{v}, 4);
  const double square = squares_of(x);
  return square > 0 ? fourth * static_cast<double>(x.size()) / (square * square) - 3 : 0;
}

/// The share of |x|^2 that the largest hundredth of the values has.
inline double share_of_largest(std::span<const float> x) {
  std::vector<float> squares(x.size());
  std::ranges::transform(x, squares.begin(), [](float v) { return v * v; });
  const std::size_t k = x.size() / 100;
  std::ranges::nth_element(squares, squares.begin() + static_cast<std::ptrdiff_t>(k), std::greater<>());
  double sum = 0;
  for (std::size_t i = 0; i < k; ++i) sum += squares[i];
  return sum / squares_of(x);
}

/// Mean magnitudes of blocks of 128, in octaves: half of the distance between the 16th and the 84th hundredth, which is the standard
/// deviation where they are distributed normally. Blocks of zeros are left out.
inline double octaves_between_blocks(std::span<const float> x) {
  constexpr std::size_t block = 128;
  std::vector<double> octaves;
  for (std::size_t first = 0; first + block <= x.size(); first += block) {
    double magnitude = 0;
    for (const float v : x.subspan(first, block)) magnitude += std::fabs(double{v});
    if (magnitude > 0) octaves.push_back(std::log2(magnitude / block));
  }
  return (quantile(octaves, 0.84) - quantile(octaves, 0.16)) / 2;
}

/// <x, y> / (|x| |y|).
inline double correlation(std::span<const float> x, std::span<const float> y) {
  double product = 0;
  for (std::size_t i = 0; i < x.size(); ++i) product += double{x[i]} * y[i];
  return product / std::sqrt(squares_of(x) * squares_of(y));
}

}  // namespace wring_benchmark
