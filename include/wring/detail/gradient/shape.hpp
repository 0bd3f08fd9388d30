// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include <wring/detail/grid/parameters.hpp>
#include <wring/detail/random/philox.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/narrow.hpp>

/// What is done to values before the grid rounds them to its nearest multiples.
namespace wring::inline v0::detail::gradient {

/// How: magnitudes below `dead` become 0; or every value one of the multiples on either side of it, drawn.
struct Shape {
  double dead = 0;
  bool draws = false;
  RandomStream random{};
  double step = 1, inverse = 1;
  std::uint64_t first = 0;  ///< index of the first value within its tensor

  bool changes() const { return draws || dead > 0; }
};

/// Shapes values_per_task values per index.
template <class T> struct ShapeValues {
  using Wide = typename FloatTraits<T>::Wide;
  Shape shape;
  const T* values;
  T* shaped;
  std::size_t count;

  void operator()(std::size_t task) const {
    const std::size_t begin = task * values_per_task, end = std::min(begin + values_per_task, count);
    if (shape.draws)
      draw(begin, end);
    else
      zero(begin, end);
  }

 private:
  static constexpr std::size_t group_values = 128;
  static constexpr int digits = FloatTraits<T>::unit_roundoff == 0x1p-53   ? 53
                                : FloatTraits<T>::unit_roundoff == 0x1p-24 ? 24
                                : FloatTraits<T>::unit_roundoff == 0x1p-11 ? 11
                                                                           : 8;
  /// Beyond so many steps the multiples on either side of a value may not be elements.
  static constexpr double most_steps =
      static_cast<double>(std::uint64_t{1} << (digits - 2 < 48 ? digits - 2 : 48));

  void zero(std::size_t begin, std::size_t end) const {
    const Wide dead = static_cast<Wide>(shape.dead);
    for (std::size_t i = begin; i < end; ++i) {
      const Wide x = widen(values[i]);
      shaped[i] = x < dead && x > -dead ? T() : values[i];
    }
  }

  /// Draws belong to places in the tensor, wherever pieces and tasks begin.
  void draw(std::size_t begin, std::size_t end) const {
    for (std::size_t i = begin; i < end;) {
      const std::uint64_t place = shape.first + i, group = place / group_values * group_values;
      const std::size_t in_group = static_cast<std::size_t>(place - group),
                        m = std::min(group_values - in_group, end - i);
      Words4 words[16];
      for (std::uint32_t lane = 0; lane < 16; ++lane) words[lane] = shape.random.words(group, lane);
      for (std::size_t k = in_group; k < in_group + m; ++k, ++i) {
        const std::uint32_t word = words[k % 16].word[k / 16 % 4];
        shaped[i] = drawn(values[i], (word >> (k < 64 ? 0 : 16)) & 0xffffu);
      }
    }
  }

  /// The upper multiple if its part of the way exceeds (draw + 1/2) / 2^16. The remainder is exact, as in `grid::quantum`.
  T drawn(T value, std::uint32_t draw) const {
    const auto x = static_cast<double>(widen(value));
    const double t = x * shape.inverse;
    if (!(t < most_steps && t > -most_steps)) return value;
    double q = std::floor(t), rest = x - q * shape.step;
    if (rest < 0) q -= 1, rest += shape.step;
    if (rest >= shape.step) q += 1, rest -= shape.step;
    if ((static_cast<double>(draw) + 0.5) * 0x1p-16 * shape.step < rest) q += 1;
    const T y = narrow<T>(q * shape.step);
    return std::isfinite(widen(y)) ? y : value;  // the grid knows how to saturate
  }
};

template <class T, class Exec>
void shape_values(const Exec& exec, const Shape& shape, std::span<const T> values, T* shaped) {
  for_each_task("wring::shape", exec, values.size(),
                ShapeValues<T>{shape, values.data(), shaped, values.size()});
}

}  // namespace wring::inline v0::detail::gradient
