// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/narrow.hpp>

/// The stream of sparse pieces as hosts and devices see it: how values are ordered by magnitude, and what a block's descriptor says.
namespace wring::inline v0::detail::sparse {

inline constexpr int block_values = 512;
inline constexpr std::size_t blocks_per_chunk = 32, bitmap_bytes = block_values / 8;
inline constexpr int bitmap_words = block_values / 64;

KOKKOS_INLINE_FUNCTION constexpr std::size_t blocks_of(std::size_t n) {
  return n / block_values + (n % block_values != 0);
}
KOKKOS_INLINE_FUNCTION constexpr int values_in(std::size_t n, std::size_t block) {
  const std::size_t rest = n - block * block_values;
  return rest < block_values ? static_cast<int>(rest) : block_values;
}

/// Elements as integers. A key is the pattern without its sign: as an integer it is ordered as magnitudes are, infinities above them and
/// NaN on top.
template <class T> struct Keys {
  using Key = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                 std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
  static constexpr int bits = 8 * static_cast<int>(sizeof(T)) - 1;
  static constexpr int mantissa_bits = [] {
    if constexpr (sizeof(T) == 8) return 52;
    if constexpr (sizeof(T) == 4) return 23;
    return FloatTraits<T>::greatest > 1e5 ? 7 : 10;
  }();
  static constexpr Key sign = static_cast<Key>(Key{1} << bits),
                       infinity = static_cast<Key>(sign - (Key{1} << mantissa_bits)),
                       nan = static_cast<Key>(infinity + 1),                   ///< of every NaN
      quiet_nan = static_cast<Key>(infinity | Key{1} << (mantissa_bits - 1));  ///< the pattern that is sent

  KOKKOS_INLINE_FUNCTION static Key pattern(const T* x) {
    Key bits_of_x;
    memcpy(&bits_of_x, x, sizeof bits_of_x);
    return bits_of_x;
  }
  KOKKOS_INLINE_FUNCTION static constexpr Key magnitude(Key pattern) {
    return static_cast<Key>(pattern & ~sign);
  }
  /// All NaN are equal.
  KOKKOS_INLINE_FUNCTION static constexpr Key key(Key pattern) {
    const Key k = magnitude(pattern);
    return k < nan ? k : nan;
  }
  KOKKOS_INLINE_FUNCTION static constexpr Key canonical(Key pattern) {
    return magnitude(pattern) > infinity ? quiet_nan : pattern;
  }
};

inline constexpr std::size_t all_ties = std::numeric_limits<std::size_t>::max();

/// Which values are sent: those whose key is above `cut`, and those whose key is `cut` at an index of the tensor below `ties_end`. Zeros
/// never are: `cut` is at least 1.
template <class T> struct Selection {
  using Key = typename Keys<T>::Key;
  Key cut = 1;
  std::size_t ties_end = all_ties;

  KOKKOS_INLINE_FUNCTION constexpr bool takes(Key pattern, std::size_t index) const {
    const Key key = Keys<T>::key(pattern);
    return key > cut || (key == cut && index < ties_end);
  }
  friend bool operator==(const Selection&, const Selection&) = default;
};

/// What was found among the values of a block: how many are marked, and whether any value is NaN.
struct Marked {
  int count = 0;
  bool any_nan = false;
};

/// A block of m values: nothing where all are zeros; up to 63 of them with their places; more of them with a bitmap; or all of them, where
/// that takes no more bytes. As a word of 16 bits: their number, and of those with places how many lie in the first 256.
struct Block {
  int count = 0, in_first_half = 0;
  static constexpr int all = block_values, most_places = 63;

  KOKKOS_INLINE_FUNCTION constexpr bool dense() const { return count == all; }
  KOKKOS_INLINE_FUNCTION constexpr bool has_places() const { return count <= most_places; }
  KOKKOS_INLINE_FUNCTION constexpr std::uint16_t word() const {
    return static_cast<std::uint16_t>(count | in_first_half << 10);
  }
  KOKKOS_INLINE_FUNCTION static constexpr Block from(std::uint16_t word) { return {word & 1023, word >> 10}; }
  KOKKOS_INLINE_FUNCTION static Block read(const std::byte* piece, std::size_t block) {
    std::uint16_t word;
    memcpy(&word, piece + 2 * block, sizeof word);
    return from(word);
  }
  KOKKOS_INLINE_FUNCTION void write(std::byte* piece, std::size_t block) const {
    const std::uint16_t w = word();
    memcpy(piece + 2 * block, &w, sizeof w);
  }
  /// Bytes before the values.
  KOKKOS_INLINE_FUNCTION constexpr std::size_t places_bytes() const {
    return dense() ? 0 : has_places() ? static_cast<std::size_t>(count) : bitmap_bytes;
  }
};

/// Bytes of a block of m values after the descriptors.
template <class T> KOKKOS_INLINE_FUNCTION constexpr std::size_t payload_bytes(const Block& block, int m) {
  return block.places_bytes() + static_cast<std::size_t>(block.dense() ? m : block.count) * sizeof(T);
}

/// The block of m values of which `count` are sent, `in_first_half` of them among the first 256.
template <class T>
KOKKOS_INLINE_FUNCTION constexpr Block block_for(int count, int in_first_half, int m) {
  const Block sparse{count, count <= Block::most_places ? in_first_half : 0};
  const bool shrinks =
      count < Block::all && payload_bytes<T>(sparse, m) < static_cast<std::size_t>(m) * sizeof(T);
  return shrinks ? sparse : Block{Block::all, 0};
}

/// Whether the encoder can have written a descriptor for a block of m values.
template <class T> KOKKOS_INLINE_FUNCTION constexpr bool valid(const Block& b, int m) {
  if (b.count > Block::all) return false;
  if (b.dense()) return b.in_first_half == 0;
  if (b.count > m || payload_bytes<T>(b, m) >= static_cast<std::size_t>(m) * sizeof(T)) return false;
  if (!b.has_places()) return b.in_first_half == 0;
  const int second_half = m > 256 ? m - 256 : 0;
  return b.in_first_half <= b.count && b.in_first_half <= 256 && b.count - b.in_first_half <= second_half;
}

/// Where things are in a piece of n values: descriptors of two bytes, then the blocks, one behind the other.
struct Layout {
  std::size_t n = 0, blocks = 0, payload_at = 0;
  Layout() = default;
  KOKKOS_INLINE_FUNCTION constexpr explicit Layout(std::size_t count)
      : n(count), blocks(blocks_of(count)), payload_at(2 * blocks) {}
  KOKKOS_INLINE_FUNCTION constexpr int values(std::size_t block) const { return values_in(n, block); }
};

}  // namespace wring::inline v0::detail::sparse
