// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include <wring/compressor/concept.hpp>
#include <wring/detail/grid/prepare.hpp>
#include <wring/detail/packed_words/layout.hpp>
#include <wring/error.hpp>

/// How a bound on the result becomes a step, as for Grid, and a width of fields. Pure functions of agreed values.
namespace wring::inline v0::detail::packed_words {

/// What all ranks agreed upon for one tensor.
struct Parameters {
  GridParameters grid;    ///< `values` never
  i64 most = 0;           ///< no rank's quantum is greater in magnitude
  int width = 64;         ///< bits of a field, with sign
  int counter_width = 0;  ///< bits of a counter of special values; 0: there are none

  Layout layout(std::size_t n) const { return {n, {width}, counter_width}; }
};

/// The greatest |q| of |x| <= max_abs: x / D is rounded to the nearest.
inline i64 greatest_quantum(double max_abs, double step) {
  return static_cast<i64>(grid::up(grid::up(max_abs / step) + 0.5));
}

/// Grid's parameters where its quanta are integers, or nothing.
template <class T> std::optional<GridParameters> integers(const grid::Request& request) {
  auto p = grid::on_grid<T>(request);
  if (!p || !(request.max_abs / p->step < 0x1p51 - 1)) return std::nullopt;
  p->raw_blocks = false;
  return p;
}

template <class T> Parameters choose_parameters(const Agreed& agreed, bool power_of_two) {
  if (reduces(agreed.collective) && !adds(agreed.operation))
    throw InvalidArgument(fmt::format("PackedWords adds, and cannot take the {} of values: use Grid",
                                      name_of(agreed.operation)));
  const grid::Request request = grid::request_of("PackedWords", agreed, power_of_two, false);
  const auto grid = integers<T>(request);
  if (!grid)
    throw BoundUnattainable(fmt::format(
        "PackedWords<{}>: no sums of 64-bit integers keep an error of {} for the {} of {} ranks "
        "with magnitudes up to {}; ask for more, or use Grid, which may add the values themselves",
        FloatTraits<T>::name, request.error, name_of(agreed.operation), agreed.ranks, agreed.max_abs));
  Parameters p;
  p.grid = *grid;
  p.most = greatest_quantum(request.max_abs, p.grid.step);
  const int terms = request.sums() ? request.ranks : 1;
  p.width = 1 + static_cast<int>(std::bit_width(static_cast<u64>(p.most) * static_cast<u64>(terms)));
  p.grid.form = p.width <= 32 ? GridParameters::Form::int32 : GridParameters::Form::int64;
  if (!agreed.finite) p.counter_width = static_cast<int>(std::bit_width(static_cast<unsigned>(terms)));
  return p;
}

}  // namespace wring::inline v0::detail::packed_words
