// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <wring/config.hpp>
#include <wring/detail/block_scaled/coding.hpp>
#include <wring/detail/block_scaled/rows.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/// The random rotation of a group on a host: H D forwards, D H / 128 backwards, D the signs, H the Hadamard matrix of order 128 in its
/// natural order. Sums and differences only, in an order that is fixed: the same bits everywhere.
namespace wring::inline v0::detail::block_scaled {

template <class Wide, int Bytes> WRING_ALWAYS_INLINE void butterfly(grid::Lanes<Wide, Bytes>& a,
                                                                    grid::Lanes<Wide, Bytes>& b) {
  const grid::Lanes<Wide, Bytes> sum = a + b;
  b = a - b;
  a = sum;
}

/// Sums in the lanes without the bit `Stride`, differences in those with it: the other lane and, with a sign, the lane itself. A product by
/// a sign is exact, so that contraction changes nothing.
template <int Stride, class Native, class Index, Index... L>
WRING_ALWAYS_INLINE void butterfly_lanes(Native& v, std::integer_sequence<Index, L...>) {
#if WRING_NATIVE_VECTORS
  const Native other = __builtin_shufflevector(v, v, (L ^ Stride)...), sign = {(L & Stride ? -1 : 1)...};
  v = other + v * sign;
#else
  (void)v;
#endif
}

/// Sums and differences of the lanes of a row that are `Stride` apart, then of those half as far apart, and so on.
template <int Stride, class Wide, int Bytes>
WRING_ALWAYS_INLINE void butterflies_within(grid::Lanes<Wide, Bytes>& row) {
  using Row = grid::Lanes<Wide, Bytes>;
  if constexpr (Stride >= Row::per_part) {
    constexpr int apart = Stride / Row::per_part;
    WRING_GRID_UNROLL
    for (int k = 0; k < Row::parts; ++k)
      if ((k & apart) == 0) {
        const auto sum = row.part[k] + row.part[k + apart];
        row.part[k + apart] = row.part[k] - row.part[k + apart];
        row.part[k] = sum;
      }
  } else {
    for (int k = 0; k < Row::parts; ++k)
      butterfly_lanes<Stride>(row.part[k], std::make_integer_sequence<int, Row::per_part>{});
  }
  if constexpr (Stride > 1) butterflies_within<Stride / 2>(row);
}

template <int Rows, class Row> WRING_ALWAYS_INLINE void butterflies(Row* row) {
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 4
#endif
  for (int apart = Rows / 2; apart > 0; apart /= 2)
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 16
#endif
    for (int r = 0; r < Rows; ++r)
      if ((r & apart) == 0) butterfly(row[r], row[r + apart]);
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 16
#endif
  for (int r = 0; r < Rows; ++r) butterflies_within<Row::count / 2>(row[r]);
}

/// Changes the signs of the lanes whose bits, from `first` on, are set.
template <class Wide, int Bytes>
WRING_ALWAYS_INLINE void change_signs(grid::Lanes<Wide, Bytes>& row, std::uint32_t bits, int first) {
  using U = std::conditional_t<sizeof(Wide) == 8, std::uint64_t, std::uint32_t>;
  constexpr int top = 8 * static_cast<int>(sizeof(U)) - 1;
  U shift[64 / sizeof(U)];
  for (int l = 0; l < grid::Lanes<Wide, Bytes>::count; ++l) shift[l] = static_cast<U>(top - first - l);
  grid::Lanes<U, Bytes> shifts, sign, pattern;
  load(shifts, shift);
  fill(sign, static_cast<U>(bits));
  WRING_GRID_UNROLL
  for (int k = 0; k < grid::Lanes<U, Bytes>::parts; ++k) sign.part[k] = sign.part[k] << shifts.part[k];
  reinterpret(pattern, row);
  reinterpret(row, pattern ^ (sign & (U{1} << top)));
}

template <int Rows, class Row> WRING_ALWAYS_INLINE void change_signs(Row* row, const Words4& signs) {
  constexpr int each = 32 / Row::count;  // rows for which a word has bits
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 16
#endif
  for (int r = 0; r < Rows; ++r) change_signs(row[r], signs.word[r / each], r % each * Row::count);
}

/// The values of a group, in registers as far as they go.
template <class Wide, int Bytes> struct GroupRows {
  using Row = grid::Row<Wide, Bytes>;
  static constexpr int count = group_values / Row::count;
  Row row[count];

  WRING_ALWAYS_INLINE explicit GroupRows(const Wide* x) {
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 16
#endif
    for (int r = 0; r < count; ++r) load(row[r], x + r * Row::count);
  }
};

/// A group, from x to y. Returns the bits of the greatest |y|, NaN above all; in exact arithmetic it is not less than the greatest |x|,
/// since the squares add up to 128 times as much.
template <int Bytes, class Wide>
WRING_ALWAYS_INLINE PatternOf<Wide> rotate(const Words4& signs, const Wide* x, Wide* y) {
  using Rows = GroupRows<Wide, Bytes>;
  Rows v(x);
  change_signs<Rows::count>(v.row, signs);
  butterflies<Rows::count>(v.row);
  GreatestOfRows<Wide, Bytes> greatest;
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 16
#endif
  for (int r = 0; r < Rows::count; ++r) {
    grid::prefetch(x + r * Rows::Row::count + 2 * block_values);
    greatest.take(v.row[r]);
    store(y + r * Rows::Row::count, v.row[r]);
  }
  return greatest.lane();
}

/// Back, in place.
template <int Bytes, class Wide> WRING_ALWAYS_INLINE void rotate_back(const Words4& signs, Wide* y) {
  using Rows = GroupRows<Wide, Bytes>;
  Rows v(y);
  butterflies<Rows::count>(v.row);
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 16
#endif
  for (int r = 0; r < Rows::count; ++r) v.row[r] = v.row[r] * rotation_norm<Wide>;
  change_signs<Rows::count>(v.row, signs);
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 16
#endif
  for (int r = 0; r < Rows::count; ++r) store(y + r * Rows::Row::count, v.row[r]);
}

}  // namespace wring::inline v0::detail::block_scaled

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
