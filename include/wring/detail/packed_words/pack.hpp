// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>

#include <wring/config.hpp>
#include <wring/detail/packed_words/layout.hpp>

/// Quanta of one block into words and back, several words side by side.
namespace wring::inline v0::detail::packed_words {

/// Words that are worked on side by side. Reading and writing whole rows of them reaches past the end of a block's quanta.
inline constexpr std::size_t row_words = 8, spare_fields = 64 + row_words;

/// `q` has block_values entries; those from m on are zeros.
template <class Q> void pack(const Q* q, std::size_t m, const Fields& fields, std::byte* out) {
  const std::size_t words = fields.words(m);
  for (std::size_t first = 0; first < words; first += row_words) {
    const std::size_t count = words - first < row_words ? words - first : row_words;
    u64 row[row_words] = {};
    int shift = 0;
    for (std::size_t i = first; i < m; i += words, shift += fields.width) {
      const std::size_t there = m - i < count ? m - i : count;
      if (there == row_words)
        for (std::size_t l = 0; l < row_words; ++l)
          row[l] += static_cast<u64>(static_cast<i64>(q[i + l])) << shift;
      else
        for (std::size_t l = 0; l < there; ++l)
          row[l] += static_cast<u64>(static_cast<i64>(q[i + l])) << shift;
    }
    std::memcpy(out + first * sizeof(u64), row, count * sizeof(u64));
  }
}

/// `q` has room for spare_fields entries more than values.
template <class Q> void unpack(const std::byte* in, std::size_t m, const Fields& fields, Q* q) {
  const std::size_t words = fields.words(m);
  const int rest = 64 - fields.width;
  for (std::size_t first = 0; first < words; first += row_words) {
    const std::size_t count = words - first < row_words ? words - first : row_words;
    u64 row[row_words] = {};
    std::memcpy(row, in + first * sizeof(u64), count * sizeof(u64));
    for (std::size_t i = first; i < m; i += words)
      for (std::size_t l = 0; l < row_words; ++l) {
        const i64 lowest = static_cast<i64>(row[l] << rest) >> rest;
        row[l] = rest == 0 ? 0 : (row[l] - static_cast<u64>(lowest)) >> fields.width;
        if (l < count) q[i + l] = static_cast<Q>(lowest);
      }
  }
}

}  // namespace wring::inline v0::detail::packed_words
