// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "gradients/trial.hpp"

/// Codecs that are not written: the bits are those that an ideal entropy coder with one table would need, the table itself not
/// counted. No coder of single values with one table gets below them.
namespace wring_benchmark {

/// n times the entropy of a histogram of n symbols.
inline double entropy_bits(std::span<const std::size_t> histogram) {
  double n = 0, bits = 0;
  for (const std::size_t times : histogram) n += static_cast<double>(times);
  for (const std::size_t times : histogram)
    if (times != 0) bits -= static_cast<double>(times) * std::log2(static_cast<double>(times) / n);
  return bits;
}

/// The entropy of integers, in bits for all of them.
inline double entropy_bits_of(const std::vector<std::int32_t>& symbols) {
  if (symbols.empty()) return 0;
  const auto [least, most] = std::ranges::minmax(symbols);
  std::vector<std::size_t> histogram(static_cast<std::size_t>(most - least) + 1);
  for (const std::int32_t q : symbols) ++histogram[static_cast<std::size_t>(q - least)];
  return entropy_bits(histogram);
}

/// What a study codec does when it "encodes": values become their reconstructions, and the bits are returned.
using Ideal = std::function<double(std::span<const float> values, std::span<float> decoded)>;

class IdealTrial final : public Trial {
 public:
  IdealTrial(Ideal ideal, std::span<const float> values)
      : ideal_(std::move(ideal)), values_(values), decoded_(values.size()) {}
  void encode() override { bits_ = ideal_(values_, decoded_); }
  void decode() override {}
  double bits() const override { return bits_; }
  std::span<const float> decoded() const override { return decoded_; }

 private:
  Ideal ideal_;
  std::span<const float> values_;
  std::vector<float> decoded_;
  double bits_ = 0;
};

/// `of(values, decoded, step)` for steps of every size.
template <class Of> Family ideal_family(Of of) {
  return {scales, [of](std::span<const float> values, int setting) -> std::unique_ptr<Trial> {
            const double step = 2 * scale_of(values, setting);
            return std::make_unique<IdealTrial>(
                [of, step](std::span<const float> x, std::span<float> y) { return of(x, y, step); }, values);
          }};
}

/// The nearest multiples of a step.
inline double one_table(std::span<const float> values, std::span<float> decoded, double step) {
  std::vector<std::int32_t> quanta(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    quanta[i] = static_cast<std::int32_t>(std::lrint(values[i] / step));
    decoded[i] = static_cast<float>(quanta[i] * step);
  }
  return entropy_bits_of(quanta);
}

/// Multiples of a step of which 0 takes what is below `zone` steps; the small ones are decoded to the mean of what was rounded to
/// them.
inline double dead_zone(std::span<const float> values, std::span<float> decoded, double step, double zone) {
  constexpr std::int32_t centred = 16;
  std::array<double, centred> sums{}, counts{};
  std::vector<std::int32_t> quanta(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double t = std::fabs(values[i]) / step;
    const auto q = static_cast<std::int32_t>(std::max(0.0, std::floor(t + 1 - zone)));
    if (q < centred) sums[static_cast<std::size_t>(q)] += t, ++counts[static_cast<std::size_t>(q)];
    quanta[i] = values[i] < 0 ? -q : q;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto q = static_cast<std::size_t>(std::abs(quanta[i]));
    const double t = q == 0 ? 0 : q < centred ? sums[q] / counts[q] : static_cast<double>(q);
    decoded[i] = static_cast<float>(std::copysign(t * step, quanta[i]));
  }
  return entropy_bits_of(quanta);
}

/// The k largest magnitudes, 16 bits for each of them, which are not rounded, and the entropy of where they are.
inline double largest(std::span<const float> values, std::span<float> decoded, double share) {
  const std::size_t n = values.size(),
                    k = std::min(n, static_cast<std::size_t>(std::ceil(share * static_cast<double>(n))));
  std::vector<float> magnitudes(n);
  std::ranges::transform(values, magnitudes.begin(), [](float x) { return std::fabs(x); });
  if (k < n)
    std::ranges::nth_element(magnitudes, magnitudes.begin() + static_cast<std::ptrdiff_t>(k),
                             std::greater<>());
  const float cut = k < n ? magnitudes[k] : 0;
  for (std::size_t i = 0; i < n; ++i) decoded[i] = std::fabs(values[i]) > cut ? values[i] : 0;
  const std::array<std::size_t, 2> where{k, n - k};
  return 16.0 * static_cast<double>(k) + entropy_bits(where);
}

/// Shares from all to one in a million.
inline Family largest_family() {
  return {160, [](std::span<const float> values, int setting) -> std::unique_ptr<Trial> {
            const double share = std::exp2(-setting / 8.0);
            return std::make_unique<IdealTrial>(
                [share](std::span<const float> x, std::span<float> y) { return largest(x, y, share); },
                values);
          }};
}

/// The filter-and-round pipeline of COMPSO for second-order training, from its description: what is smaller than a threshold is filtered out and
/// flagged in a bitmap; the rest is rounded to multiples of a step, at random to one of the two neighbours; bitmap and quanta are
/// entropy coded.
inline double filter_and_round(std::span<const float> values, std::span<float> decoded, double step,
                               double threshold, bool at_random) {
  std::mt19937_64 random(1);
  std::vector<std::int32_t> quanta;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double t = values[i] / step, draw = at_random ? static_cast<double>(random() >> 11) * 0x1p-53 : 0.5;
    decoded[i] = 0;
    if (std::fabs(t) < threshold) continue;
    quanta.push_back(static_cast<std::int32_t>(std::floor(t + draw)));
    decoded[i] = static_cast<float>(quanta.back() * step);
  }
  const std::array<std::size_t, 2> bitmap{quanta.size(), values.size() - quanta.size()};
  return entropy_bits(bitmap) + entropy_bits_of(quanta);
}

}  // namespace wring_benchmark
