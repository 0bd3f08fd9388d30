// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

#include <wring/detail/block_scaled/arithmetic.hpp>
#include <wring/detail/grid/layout.hpp>

/// Where things are in a piece: the scales, padded to 64 bytes, then the fields, in the blocks of 512 that Grid has.
namespace wring::inline v0::detail::block_scaled {

using grid::block_values;

inline constexpr int block_groups = static_cast<int>(block_values) / group_values, lanes = 16,
                     group_rows = group_values / lanes;

/// A piece of n values in fields of `bits`. A rotated group has all its fields, even where the values end before it.
struct Layout {
  std::size_t n;
  int bits;
  bool rotates = false;

  KOKKOS_INLINE_FUNCTION constexpr std::size_t groups() const {
    return n / group_values + (n % group_values != 0);
  }
  KOKKOS_INLINE_FUNCTION constexpr std::size_t blocks() const {
    return n / block_values + (n % block_values != 0);
  }
  KOKKOS_INLINE_FUNCTION constexpr std::size_t fields_at() const { return (2 * groups() + 63) / 64 * 64; }
  KOKKOS_INLINE_FUNCTION constexpr std::size_t block_bytes() const {
    return 64 * static_cast<std::size_t>(bits);
  }
  KOKKOS_INLINE_FUNCTION constexpr std::size_t block_at(std::size_t block) const {
    return fields_at() + block * block_bytes();
  }
  KOKKOS_INLINE_FUNCTION constexpr std::size_t values_in(std::size_t block) const {
    return block + 1 < blocks() ? block_values : n - block * block_values;
  }
  /// Rows of 16 words of 32 bits that the fields of a block of m values fill.
  KOKKOS_INLINE_FUNCTION constexpr std::size_t word_rows(std::size_t m) const {
    if (rotates) m = (m + group_values - 1) / group_values * group_values;
    return ((m + lanes - 1) / lanes * static_cast<std::size_t>(bits) + 31) / 32;
  }
  KOKKOS_INLINE_FUNCTION constexpr std::size_t bytes() const {
    if (n == 0) return 0;
    return block_at(blocks() - 1) + 64 * word_rows(values_in(blocks() - 1));
  }
};

}  // namespace wring::inline v0::detail::block_scaled
