// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <wring/bound.hpp>
#include <wring/collective/executor/agreement/measure_floats.hpp>
#include <wring/collective/executor/agreement/survey.hpp>
#include <wring/collective/executor/memory/buffers.hpp>
#include <wring/detail/reduce.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/narrow.hpp>

/// What a bound needs to know of the input: the greatest magnitude, the range, the sum of squares. Non-finite values count as
/// zeros. Every figure is a function of the rank's values alone (fixed blocks, added in a fixed order), and the merge over ranks is
/// exact, so that neither threads nor the order of ranks can change a bit of it.
namespace wring::inline v0::detail {

/// A sum of squares as two 32-bit digits on an absolute grid of powers of 2^32: value = (high * 2^32 + low) * 2^(32 (index - 1)).
/// The digits are those of the greatest rank's top digit and the one below; a merge adds digits without carrying, and what lies
/// below is dropped by everyone alike, so that the order of merges does not matter (the idea of reproducible binned summation).
struct SumOfSquares {
  std::uint64_t high = 0, low = 0;
  std::int32_t index = std::numeric_limits<std::int32_t>::min();
  std::int32_t unused = 0;  ///< every byte travels

  static SumOfSquares from(double mantissa, int exponent) {  // mantissa * 2^exponent >= 0
    SumOfSquares s;
    if (!(mantissa > 0)) return s;
    int e = 0;
    const double fraction = std::frexp(mantissa, &e);  // in [0.5, 1)
    e += exponent;
    s.index = static_cast<std::int32_t>(e >= 0 ? e / 32 : -((-e + 31) / 32));
    // fraction * 2^(e - 32 index) is below 2^32: its integer part is the top digit, 32 bits of its fraction the next
    const double top = std::ldexp(fraction, e - 32 * s.index);
    s.high = static_cast<std::uint64_t>(top);
    s.low = static_cast<std::uint64_t>(std::ldexp(top - static_cast<double>(s.high), 32));
    return s;
  }

  void merge(const SumOfSquares& other) {
    if (other.index > index) {
      const SumOfSquares mine = *this;
      *this = other;
      merge(mine);
    } else if (other.index == index) {
      high += other.high, low += other.low;
    } else if (other.index == index - 1) {
      low += other.high;
    }
  }

  /// sqrt(sum / count), rounded down a little: a bound derived from it is never too large, since the sum is not.
  double root_mean(double count) const {
    if (high == 0 && low == 0) return 0;
    const double digits = static_cast<double>(high) * 0x1p32 + static_cast<double>(low);
    const double mean = digits / count * (1 - 0x1p-50);
    const int shift = 16 * (std::clamp(index, -1000, 1000) - 1);  // half of an even one; beyond any number
    return std::ldexp(std::sqrt(mean), shift) * (1 - 0x1p-50);
  }
};

struct Magnitudes {
  double max_abs = 0;
  double least = std::numeric_limits<double>::infinity(), greatest = -std::numeric_limits<double>::infinity();
  SumOfSquares squares;
  std::uint64_t special_values =
      0;  ///< 1: there are NaN or infinities; looked for where the compressor sums words
  Survey survey;
  std::int16_t unused = 0;   ///< every byte travels
  std::uint32_t sample = 0;  ///< a number for some of the values; looked at where the compressor remembers

  void merge(const Magnitudes& other) {
    max_abs = std::max(max_abs, other.max_abs), special_values |= other.special_values;
    least = std::min(least, other.least), greatest = std::max(greatest, other.greatest);
    squares.merge(other.squares), survey.merge(other.survey), sample += other.sample;
  }
};

/// Measures values_per_task values per index. One pass for max_abs; range and squares only where asked for.
template <class T> struct MeasureValues {
  using Wide = typename FloatTraits<T>::Wide;
  const T* values;
  std::size_t count;
  Bound::Kind kind;
  TaskMagnitudes* results;

  static constexpr int lanes = 16;

  KOKKOS_FUNCTION static Wide finite(T x) {
    const Wide w = widen(x);
    const Wide zero = w - w;  // NaN unless w is finite
    return zero == 0 ? w : Wide(0);
  }
  KOKKOS_FUNCTION static bool is_finite(T x) {
    const Wide w = widen(x);
    return w - w == 0;
  }

  KOKKOS_FUNCTION void operator()(std::size_t task) const {
    const std::size_t first = task * values_per_task;
    const std::size_t last = first + values_per_task < count ? first + values_per_task : count;
    TaskMagnitudes r{0, Kokkos::Experimental::infinity_v<double>, -Kokkos::Experimental::infinity_v<double>,
                     0, 0};
    double sums[lanes] = {};
#if WRING_NATIVE_VECTORS && !defined(__HIPCC__)
    if constexpr (std::is_same_v<T, float>) {
      const std::size_t rows = (last - first) / lanes;
      measure_floats(values + first, rows, kind, r, sums);
      finish(first + rows * lanes, last, r, sums);
      results[task] = r;
      return;
    }
#endif
    measure_max(first, last, r);
    if (kind == Bound::Kind::range) measure_range(first, last, r);
    if (kind == Bound::Kind::rms && r.max_abs > 0) measure_squares(first, last, r, sums);
    results[task] = r;
  }

  /// What is left after whole rows, and the sum of the lanes in a fixed order.
  KOKKOS_FUNCTION void finish(std::size_t first, std::size_t last, TaskMagnitudes& r, double* sums) const {
    measure_max(first, last, r);
    if (kind == Bound::Kind::range) measure_range(first, last, r);
    if (kind != Bound::Kind::rms) return;
    for (std::size_t i = first; i < last; ++i) {
      const double x = shortened(values[i], 1);
      sums[0] += x * x;
    }
    r.squares = add_lanes(sums);
  }

  KOKKOS_FUNCTION void measure_max(std::size_t first, std::size_t last, TaskMagnitudes& r) const {
    for (std::size_t i = first; i < last; ++i) {
      const double a = static_cast<double>(Kokkos::fabs(finite(values[i])));
      r.max_abs = a > r.max_abs ? a : r.max_abs;
    }
  }

  KOKKOS_FUNCTION void measure_range(std::size_t first, std::size_t last, TaskMagnitudes& r) const {
    for (std::size_t i = first; i < last; ++i)
      if (is_finite(values[i])) {
        const double x = static_cast<double>(widen(values[i]));
        r.least = x < r.least ? x : r.least;
        r.greatest = x > r.greatest ? x : r.greatest;
      }
  }

  /// Squares are exact in double: of the 24 bits of a float, or of a double cut to 26 bits and scaled by the task's maximum. So
  /// a multiplication contracted with the addition gives the same bits.
  KOKKOS_FUNCTION void measure_squares(std::size_t first, std::size_t last, TaskMagnitudes& r,
                                       double* sums) const {
    double scale = 1;
    if constexpr (std::is_same_v<T, double>) {
      const auto bits = Kokkos::bit_cast<std::uint64_t>(r.max_abs);
      const int exponent = static_cast<int>(bits >> 52) - 1023;
      r.exponent = exponent < -1000 ? -1000 : exponent > 1000 ? 1000 : exponent;
      scale = Kokkos::bit_cast<double>(static_cast<std::uint64_t>(1023 - r.exponent) << 52);
    }
    const std::size_t rows_end = first + (last - first) / lanes * lanes;
    for (std::size_t i = first; i < last; ++i) {
      const double x = shortened(values[i], scale);
      sums[i < rows_end ? (i - first) % lanes : 0] += x * x;
    }
    r.squares = add_lanes(sums);
  }

  KOKKOS_FUNCTION static double add_lanes(double* sums) {
    for (int width = lanes / 2; width > 0; width /= 2)
      for (int l = 0; l < width; ++l) sums[l] += sums[l + width];
    return sums[0];
  }

  KOKKOS_FUNCTION static double shortened(T value, double scale) {
    const double x = static_cast<double>(finite(value));
    if constexpr (std::is_same_v<T, double>) {
      constexpr std::uint64_t keep = ~((std::uint64_t(1) << 27) - 1);
      return Kokkos::bit_cast<double>(Kokkos::bit_cast<std::uint64_t>(x * scale) & keep);
    } else {
      return x;
    }
  }
};

/// Looks at values_per_task values per index: greater than 0 if there are any that are not finite.
template <class T> struct FindSpecialValues : GreatestOf<int> {
  const T* values;
  std::size_t count;
  FindSpecialValues(const T* x, std::size_t n) : values(x), count(n) {}

  KOKKOS_FUNCTION void operator()(std::size_t task, int& found) const {
    const std::size_t first = task * values_per_task;
    const std::size_t last = first + values_per_task < count ? first + values_per_task : count;
    using Wide = typename FloatTraits<T>::Wide;
    Wide all = 0;  // x - x is 0, or NaN
    for (std::size_t i = first; i < last; ++i) all += widen(values[i]) - widen(values[i]);
    found |= all == 0 ? 0 : 1;
  }
};

/// Whether any value is NaN or an infinity. Synchronises.
template <class T, class Exec> bool has_special_values(const Exec& exec, std::span<const T> values) {
  const std::size_t tasks = (values.size() + values_per_task - 1) / values_per_task;
  return reduce("wring::measure", exec, tasks, FindSpecialValues<T>(values.data(), values.size()), 1) != 0;
}

/// Adds up numbers for values at equal distances, each with its place.
template <class T> struct SampleValues : SumOf<std::uint32_t> {
  static constexpr std::size_t most = 256;
  const T* values;
  std::size_t stride;
  SampleValues(const T* x, std::size_t apart) : values(x), stride(apart) {}

  KOKKOS_FUNCTION void operator()(std::size_t k, std::uint32_t& sum) const {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(values + k * stride);
    std::uint64_t h = k + 1;
    for (std::size_t b = 0; b < sizeof(T); ++b) {
      h = (h ^ bytes[b]) * 0x9e3779b97f4a7c15u;
      h ^= h >> 29;
    }
    sum += static_cast<std::uint32_t>(h >> 16);
  }
};

/// A number for the bits of up to 256 values, spread over all of them. Synchronises.
template <class T, class Exec> std::uint32_t sample(const Exec& exec, std::span<const T> values) {
  const std::size_t stride = std::max<std::size_t>(1, values.size() / SampleValues<T>::most);
  const std::size_t count = std::min(values.size(), SampleValues<T>::most);
  return reduce("wring::measure", exec, count, SampleValues<T>(values.data(), stride));
}

/// Measures on `exec`; `workspace` is host-accessible memory that the caller keeps between calls. Synchronises.
template <class T, class Exec, class Space>
Magnitudes measure(const Exec& exec, std::span<const T> values, Bound::Kind kind,
                   std::unique_ptr<Buffer<Space>>& workspace) {
  Magnitudes total;
  if (values.empty()) return total;
  const std::size_t tasks = (values.size() + values_per_task - 1) / values_per_task;
  const std::size_t bytes = tasks * sizeof(TaskMagnitudes);
  if (!workspace || workspace->capacity() < bytes) workspace = std::make_unique<Buffer<Space>>(bytes);
  auto* const results = reinterpret_cast<TaskMagnitudes*>(workspace->data());
  for_each_task("wring::measure", exec, values.size(),
                MeasureValues<T>{values.data(), values.size(), kind, results});
  exec.fence("wring::measure");
  double squares = 0;
  int exponent = 0;
  for (std::size_t t = 0; t < tasks; ++t) {  // in order: the same for any number of threads
    const TaskMagnitudes& r = results[t];
    total.max_abs = std::max(total.max_abs, r.max_abs);
    total.least = std::min(total.least, r.least), total.greatest = std::max(total.greatest, r.greatest);
    if (!(r.squares > 0)) continue;
    if (!(squares > 0) || r.exponent > exponent) {
      squares = std::ldexp(squares, 2 * std::max(-2000, exponent - r.exponent)), exponent = r.exponent;
    }
    squares += std::ldexp(r.squares, 2 * std::max(-2000, r.exponent - exponent));
  }
  // Each addition may have rounded up: tasks here, and no more than 512 within a task.
  squares *= 1 - static_cast<double>(tasks + 512) * 0x1p-52;
  total.squares = SumOfSquares::from(squares, 2 * exponent);
  return total;
}

}  // namespace wring::inline v0::detail
