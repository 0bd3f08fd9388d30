// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

/// Where values are in the words of a piece.
///
/// A block of m values with fields of w bits, f = floor(64 / w) of them in a word, is W = ceil(m / f) words: value i is field i / W of word
/// i % W, so that neighbours lie in neighbouring words. A word is the sum of q 2^(w k) over its fields k, modulo 2^64: a negative quantum
/// borrows from the field above, and sums of words are words of sums as long as every sum fits into w bits.
/// Where special values are counted, as many words as their counters need follow: 2 m fields without sign, of which the first m count
/// the +Inf (and NaN) of each value, the others the -Inf (and NaN).
namespace wring::inline v0::detail::packed_words {

using i64 = std::int64_t;
using u64 = std::uint64_t;

inline constexpr std::size_t block_values = 512;

/// Fields of one width in words.
struct Fields {
  int width = 64;

  KOKKOS_FUNCTION constexpr std::size_t per_word() const { return 64 / static_cast<std::size_t>(width); }
  KOKKOS_FUNCTION constexpr std::size_t words(std::size_t fields) const {
    return (fields + per_word() - 1) / per_word();
  }
  KOKKOS_FUNCTION constexpr u64 mask() const { return ~u64{0} >> (64 - width); }
};

struct Layout {
  std::size_t n = 0;
  Fields quanta{};
  int counter_width = 0;  ///< 0: special values are not counted

  KOKKOS_FUNCTION constexpr Fields counters() const { return {counter_width}; }
  KOKKOS_FUNCTION constexpr std::size_t blocks() const {
    return n / block_values + (n % block_values != 0 ? 1 : 0);
  }
  KOKKOS_FUNCTION constexpr std::size_t values_in(std::size_t block) const {
    return block + 1 < blocks() ? block_values : n - block * block_values;
  }
  /// Words of a block of m values.
  KOKKOS_FUNCTION constexpr std::size_t block_words(std::size_t m) const {
    return quanta.words(m) + (counter_width > 0 ? counters().words(2 * m) : 0);
  }
  KOKKOS_FUNCTION constexpr std::size_t first_word(std::size_t block) const {
    return block * block_words(block_values);
  }
  KOKKOS_FUNCTION constexpr std::size_t words() const {
    return n == 0 ? 0 : first_word(blocks() - 1) + block_words(values_in(blocks() - 1));
  }
  /// Of a piece; the greatest number where 64 bits cannot count them.
  constexpr std::size_t bytes() const {
    const std::size_t most = std::numeric_limits<std::size_t>::max();
    return n > most / 64 ? most : words() * sizeof(u64);
  }
};

}  // namespace wring::inline v0::detail::packed_words
