// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <wring/detail/grid/layout.hpp>
#include <wring/detail/grid/level.hpp>
#include <wring/detail/processor.hpp>
#include <wring/detail/random/philox.hpp>
#include <wring/detail/random/rows.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/narrow.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/// What is done to values before the grid rounds them to its nearest multiples.
namespace wring::inline v0::detail::gradient {

#if WRING_NATIVE_VECTORS
/// Rounds groups of 128 floats to drawn multiples of the step, as `ShapeBlock::drawn` does. False where a value is too large for that in
/// binary32: below 2^19 steps products, remainders (to the nearest multiple) and the parts that are drawn are exact.
WRING_ALWAYS_INLINE bool draw_floats(const float* x, const RandomRows& rows, float step, float inverse,
                                     float* y) {
  typedef float F __attribute__((vector_size(64)));
  typedef std::int32_t I __attribute__((vector_size(64)));
  constexpr float magic = 0x1.8p23f;
  const F limit = F{} + 0x1p19f * step;
  const I step_bits = (I)(F{} + step), limit_bits = (I)limit;
  I within = I{} - 1;
  for (int k = 0; k < 8; ++k) {
    F v;
    I word, bits;
    std::memcpy(&v, x + 16 * k, sizeof v), std::memcpy(&word, rows.row[k % 4], sizeof word);
    const I draw = k < 4 ? word & 0xffff : word >> 16 & 0xffff;
    F q = (v * inverse + magic) - magic;
    const F rest = v - q * step;
    bits = (I)rest >> 31;  // all ones below 0
    q += __builtin_convertvector(bits, F);
    const F part = (__builtin_convertvector(draw, F) + 0.5f) * (0x1p-16f * step) - (F)(bits & step_bits);
    q -= __builtin_convertvector((I)(part - rest) >> 31, F);
    v = q * step;
    std::memcpy(&bits, x + 16 * k, sizeof bits);
    within &= (bits & 0x7fffffff) < limit_bits;
    std::memcpy(y + 16 * k, &v, sizeof v);
  }
  std::int32_t all = -1;
  for (int l = 0; l < 16; ++l) all &= within[l];
  return all != 0;
}
#endif

/// What draws need, as this machine does it fastest: random numbers for 32 places at a time, and a group of floats, or nullptr.
struct DrawKernels {
  void (*rows)(const RandomPlaces& at, RandomRows (&rows)[2]);
  bool (*floats)(const float* x, const RandomRows& rows, float step, float inverse, float* y);
};
inline DrawKernels best_draw_kernels() {
  return with_best_level([]<Level level>() -> DrawKernels {
#if WRING_NATIVE_VECTORS
    return {random_rows_at<level>, compiled<level, draw_floats>};
#else
    return {random_rows_at<level>, nullptr};
#endif
  });
}

/// How: magnitudes lose `less`, down to 0; or every value becomes one of the multiples on either side of it, drawn.
struct Shape {
  double less = 0;
  bool draws = false;
  RandomStream random{};
  DrawKernels kernels{};
  double step = 1, inverse = 1;
  std::uint64_t first = 0;  ///< index of the first value within its tensor

  bool changes() const { return draws || less > 0; }
};

/// Shapes blocks of 512 values.
template <class T> struct ShapeBlock {
  using Wide = typename FloatTraits<T>::Wide;
  Shape shape;

  /// Values of block b, m of them, as they are to be rounded: in `shaped`.
  const T* operator()(const T* x, std::size_t b, std::size_t m, T* shaped) const {
    if (shape.draws)
      draw(x, b * grid::block_values, m, shaped);
    else
      lessen(x, m, shaped);
    return shaped;
  }

 private:
  static constexpr std::size_t group_values = 128, lanes = 16;
  static constexpr int digits = FloatTraits<T>::unit_roundoff == 0x1p-53   ? 53
                                : FloatTraits<T>::unit_roundoff == 0x1p-24 ? 24
                                : FloatTraits<T>::unit_roundoff == 0x1p-11 ? 11
                                                                           : 8;
  /// Beyond so many steps the multiples on either side of a value may not be elements.
  static constexpr double most_steps =
      static_cast<double>(std::uint64_t{1} << (digits - 2 < 48 ? digits - 2 : 48));

  void lessen(const T* __restrict x, std::size_t m, T* __restrict shaped) const {
    const auto less = static_cast<Wide>(shape.less);
    if (m == grid::block_values)
      for (std::size_t i = 0; i < grid::block_values; ++i) shaped[i] = lessened(x[i], less);
    else
      for (std::size_t i = 0; i < m; ++i) shaped[i] = lessened(x[i], less);
  }
  WRING_ALWAYS_INLINE static T lessened(T x, Wide less) {
    const Wide wide = widen(x), magnitude = std::fabs(wide) - less;
    return narrow<T>(std::copysign(magnitude < 0 ? Wide(0) : magnitude, wide));  // NaN stays NaN
  }

  /// Draws belong to places in the tensor, wherever pieces begin.
  void draw(const T* x, std::size_t begin, std::size_t m, T* shaped) const {
    constexpr std::size_t pair_values = 2 * group_values;
    for (std::size_t i = 0; i < m;) {
      const std::uint64_t place = shape.first + begin + i, pair = place / pair_values * pair_values;
      const auto in_pair = static_cast<std::size_t>(place - pair);
      const std::size_t count = std::min(pair_values - in_pair, m - i);
      RandomRows rows[2];
      shape.kernels.rows(RandomPlaces::indices(shape.random, pair, group_values), rows);
      if (count < pair_values || !draw_quickly(x + i, rows[0], shaped + i) ||
          !draw_quickly(x + i + group_values, rows[1], shaped + i + group_values))
        draw_one_by_one(x + i, in_pair, count, rows, shaped + i);
      i += count;
    }
  }

  void draw_one_by_one(const T* x, std::size_t in_pair, std::size_t count, const RandomRows (&rows)[2],
                       T* shaped) const {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t k = (in_pair + i) % group_values;
      const std::uint32_t word = rows[(in_pair + i) / group_values].row[k / lanes % 4][k % lanes];
      shaped[i] = drawn(x[i], (k < group_values / 2 ? word : word >> 16) & 0xffff);
    }
  }

  bool draw_quickly(const T* x, const RandomRows& rows, T* shaped) const {
    if constexpr (std::is_same_v<T, float>)
      if (shape.kernels.floats != nullptr && shape.step > 0x1p-100 && shape.step < 0x1p100)
        return shape.kernels.floats(x, rows, static_cast<float>(shape.step),
                                    static_cast<float>(shape.inverse), shaped);
    return false;
  }

  /// The upper multiple if its part of the way exceeds (draw + 1/2) / 2^16. The remainder to the nearest multiple is exact, as in `grid::quantum`; to the lower one it
  /// need not be.
  WRING_ALWAYS_INLINE T drawn(T value, std::uint32_t draw) const {
    constexpr double magic = 0x1.8p52;
    const auto x = static_cast<double>(widen(value));
    const double t = x * shape.inverse;
    double q = (t + magic) - magic;
    const double rest = x - q * shape.step;
    const bool below = rest < 0;
    q = below ? q - 1 : q;
    const double part = (static_cast<double>(draw) + 0.5) * (0x1p-16 * shape.step) - (below ? shape.step : 0);
    q = part < rest ? q + 1 : q;
    const T y = narrow<T>(q * shape.step);
    const bool safe = t < most_steps && t > -most_steps && std::fabs(widen(y)) <= FloatTraits<T>::greatest;
    return safe ? y : value;  // the grid knows what to do
  }
};

/// Shapes values_per_task values per index.
template <class T> struct ShapeValues {
  ShapeBlock<T> block;
  const T* x;
  T* shaped;
  std::size_t count;

  void operator()(std::size_t task) const {
    const std::size_t end = std::min((task + 1) * values_per_task, count);
    for (std::size_t at = task * values_per_task; at < end; at += grid::block_values)
      block(x + at, at / grid::block_values, std::min(grid::block_values, end - at), shaped + at);
  }
};

template <class T, class Exec>
void shape_values(const Exec& exec, const Shape& shape, std::span<const T> x, T* shaped) {
  for_each_task("wring::shape", exec, x.size(), ShapeValues<T>{{shape}, x.data(), shaped, x.size()});
}

}  // namespace wring::inline v0::detail::gradient

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
