// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <wring/detail/convert.hpp>
#include <wring/narrow.hpp>

/// The stream of Lossless as hosts and devices see it: how an element becomes a field, and what a block's descriptor says.
namespace wring::inline v0::detail::lossless {

inline constexpr int block_values = 512;
inline constexpr std::size_t blocks_per_chunk = 32, line = 64;

KOKKOS_INLINE_FUNCTION constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + line - 1) / line * line;
}
KOKKOS_INLINE_FUNCTION constexpr std::size_t blocks_of(std::size_t n) {
  return n / block_values + (n % block_values != 0);
}
KOKKOS_INLINE_FUNCTION constexpr std::size_t chunks_of(std::size_t n) {
  return blocks_of(n) / blocks_per_chunk + (blocks_of(n) % blocks_per_chunk != 0);
}
KOKKOS_INLINE_FUNCTION constexpr int values_in(std::size_t n, std::size_t block) {
  const std::size_t rest = n - block * block_values;
  return rest < block_values ? static_cast<int>(rest) : block_values;
}

/// Which bits of an element are what. `Word` holds a field, `Bits` the pattern of an element.
template <class T> struct Format {
  static constexpr bool is_float = FloatElement<T>;
  static constexpr int bits = 8 * static_cast<int>(sizeof(T));
  using Bits = std::conditional_t<
      sizeof(T) == 1, std::uint8_t,
      std::conditional_t<sizeof(T) == 2, std::uint16_t,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  using Signed = std::make_signed_t<Word>;
  static constexpr int lanes = static_cast<int>(line / sizeof(Word)), rows = block_values / lanes;

  static constexpr int exponent_bits = [] {
    if constexpr (!is_float)
      return 0;
    else
      return FloatTraits<T>::greatest > 1e300 ? 11 : FloatTraits<T>::greatest > 1e5 ? 8 : 5;
  }();
  static constexpr int mantissa_bits = bits - 1 - exponent_bits;
  static constexpr int plain_bits = mantissa_bits + 1;  ///< sign and mantissa, which are sent as they are
  static constexpr Word exponent_mask = (Word{1} << exponent_bits) - 1,
                        mantissa_mask = (Word{1} << (mantissa_bits % (8 * sizeof(Word)))) - 1,
                        sign = Word{1} << (mantissa_bits % (8 * sizeof(Word)));
  /// What turns the order of signed integers into that of unsigned ones.
  static constexpr Word bias = std::is_signed_v<T> && !is_float ? Word{1} << (bits - 1) : Word{0};
  static constexpr int side_bytes = is_float ? (exponent_bits > 8 ? 2 : 1) : static_cast<int>(sizeof(T));
  /// The widest field of a packed block.
  static constexpr int most_width = is_float ? plain_bits + 4 : bits - 1;

  KOKKOS_INLINE_FUNCTION static constexpr Word exponent(Word pattern) {
    return (pattern >> mantissa_bits) & exponent_mask;
  }
};

/// What is said of a block of m values:
/// - raw: the elements as they are;
/// - width 0: all of them equal, one element at the side;
/// - floating point: fields of a code for the exponent, the sign and the mantissa. Code k stands for the exponent base - k, the greatest
///   one for an escape, whose exponent is at the side; with `zero` the one before it for the exponent 0;
/// - integers: fields of the distance to the least, which is at the side.
struct Block {
  static constexpr int raw_width = 127;
  int width = 0, escapes = 0;
  unsigned base = 0;
  bool zero = false;

  KOKKOS_INLINE_FUNCTION constexpr bool raw() const { return width == raw_width; }

  KOKKOS_INLINE_FUNCTION constexpr std::uint32_t word() const {
    return static_cast<std::uint32_t>(width) | (zero ? 1u << 7 : 0u) | base << 8 |
           static_cast<std::uint32_t>(escapes) << 19;
  }
  KOKKOS_INLINE_FUNCTION static constexpr Block from(std::uint32_t word) {
    return {static_cast<int>(word & 127), static_cast<int>(word >> 19 & 1023), word >> 8 & 2047,
            (word >> 7 & 1) != 0};
  }
};

/// How exponents become codes: those in [base - count + 1, base] by their distance to the base, others by `zero` or `escape`.
template <class T> struct Codes {
  using Word = typename Format<T>::Word;
  int bits = 0;
  Word base = 0, count = 1, zero = 1, escape = 1;

  KOKKOS_INLINE_FUNCTION constexpr explicit Codes(const Block& block)
      : bits(block.width - Format<T>::plain_bits), base(block.base) {
    if (bits == 0) return;  // one exponent
    escape = (Word{1} << bits) - 1;
    count = escape - (block.zero ? 1 : 0);
    zero = count;  // the escape where there is no code for zeros
  }
  KOKKOS_INLINE_FUNCTION constexpr Word code(Word exponent) const {
    const Word distance = base - exponent;
    return distance < count ? distance : exponent == 0 ? zero : escape;
  }
  KOKKOS_INLINE_FUNCTION constexpr Word exponent(Word code) const {
    return zero != escape && code == zero ? 0 : (base - code) & Format<T>::exponent_mask;
  }
  KOKKOS_INLINE_FUNCTION constexpr Word field(Word pattern) const {
    using F = Format<T>;
    return code(F::exponent(pattern)) << F::plain_bits | ((pattern >> F::exponent_bits) & F::sign) |
           (pattern & F::mantissa_mask);
  }
  KOKKOS_INLINE_FUNCTION constexpr Word code_of_field(Word field) const {
    return (field >> Format<T>::plain_bits) & ((Word{1} << bits) - 1);
  }
  KOKKOS_INLINE_FUNCTION static constexpr Word pattern(Word field, Word exponent) {
    using F = Format<T>;
    return (field & F::sign) << F::exponent_bits | exponent << F::mantissa_bits | (field & F::mantissa_mask);
  }
};

/// Bytes of the fields of a block, and of what is at the side.
template <class T> KOKKOS_INLINE_FUNCTION constexpr std::size_t payload_bytes(const Block& block, int m) {
  using F = Format<T>;
  if (block.raw()) return padded(static_cast<std::size_t>(m) * sizeof(T));
  const int rows = (m + F::lanes - 1) / F::lanes, word = 8 * static_cast<int>(sizeof(typename F::Word));
  return line * static_cast<std::size_t>((rows * block.width + word - 1) / word);
}
template <class T> KOKKOS_INLINE_FUNCTION constexpr std::size_t side_bytes(const Block& block) {
  if (block.raw()) return 0;
  if (block.width == 0 || !Format<T>::is_float) return sizeof(T);
  return static_cast<std::size_t>(block.escapes) * Format<T>::side_bytes;
}

/// Whether a block takes fewer bytes than its elements do.
template <class T> KOKKOS_INLINE_FUNCTION constexpr bool shrinks(const Block& block, int m) {
  return payload_bytes<T>(block, m) + side_bytes<T>(block) < padded(static_cast<std::size_t>(m) * sizeof(T));
}

/// Whether the encoder can have written a descriptor for a block of m values.
template <class T> KOKKOS_INLINE_FUNCTION constexpr bool valid(std::uint32_t word, int m) {
  using F = Format<T>;
  const Block b = Block::from(word);
  if (word >> 29) return false;
  if (b.raw() || b.width == 0) return word == static_cast<std::uint32_t>(b.width);
  if (!shrinks<T>(b, m)) return false;
  if (!F::is_float) return b.width <= F::most_width && word == static_cast<std::uint32_t>(b.width);
  const int codes = b.width - F::plain_bits;
  return codes >= 0 && codes <= 4 && b.base <= F::exponent_mask && b.escapes <= m &&
         (codes > 0 || b.escapes == 0) && (codes > 1 || !b.zero);
}

/// Element i of a block belongs to lane i mod lanes. Escapes are in the order of lanes, and within a lane of rows.
template <class T> KOKKOS_INLINE_FUNCTION constexpr int index_of(int lane, int row) {
  return row * Format<T>::lanes + lane;
}

/// Sixteen of every 64 values tell how a block is encoded.
inline constexpr int sample_values = 128;
KOKKOS_INLINE_FUNCTION constexpr int sample_index(int k) { return k / 16 * 64 + k % 16; }

/// How the exponents of a sample lie, by their distance from the greatest of them.
struct Spread {
  static constexpr int distances = 19;
  /// Whether some code asks for it.
  KOKKOS_INLINE_FUNCTION static constexpr bool needed(int d) { return (d > 0 && d < 11) || d > 13; }
  std::uint8_t below[distances] = {};  ///< [d]: how many are less than d below the greatest, if needed
  int zeros = 0;                       ///< exponents that are 0
  unsigned greatest = 0;
};

/// The code of a block: of those of 1 to 4 bits, with bases from the greatest exponent to three below it, without and with a code for
/// zeros, the one that costs the sample the fewest bits; the first of equals. No code at all where the sample has one exponent.
template <class T> KOKKOS_INLINE_FUNCTION constexpr Block choose_code(const Spread& s) {
  constexpr int plain = Format<T>::plain_bits, escape_bits = 8 * Format<T>::side_bytes;
  if (s.below[1] == sample_values) return {plain, 0, s.greatest, false};
  const int bases = s.greatest < 3 ? static_cast<int>(s.greatest) + 1 : 4;
  int best = std::numeric_limits<int>::max();  // the cost, the choice in its last five bits
  for (int zero = 0; zero <= (s.zeros > 0 ? 1 : 0); ++zero)
    for (int bits = 1 + zero; bits <= 4; ++bits) {
      const int codes = (1 << bits) - 1 - zero;
      for (int down = 0; down < bases; ++down) {
        const bool apart = zero != 0 && s.greatest >= static_cast<unsigned>(down + codes);
        const int coded = s.below[down + codes] - s.below[down] + (apart ? s.zeros : 0);
        const int cost = sample_values * bits + escape_bits * (sample_values - coded);
        const int choice = cost << 5 | zero << 4 | (bits - 1) << 2 | down;
        best = choice < best ? choice : best;
      }
    }
  return {plain + 1 + (best >> 2 & 3), 0, s.greatest - static_cast<unsigned>(best & 3), (best >> 4 & 1) != 0};
}

/// Where things are in a piece of n values: descriptors of four bytes, then the chunks.
struct Layout {
  std::size_t n = 0, blocks = 0, chunks_at = 0;
  KOKKOS_INLINE_FUNCTION constexpr explicit Layout(std::size_t count)
      : n(count), blocks(blocks_of(count)), chunks_at(padded(4 * blocks)) {}
  KOKKOS_INLINE_FUNCTION constexpr int values(std::size_t block) const { return values_in(n, block); }
  KOKKOS_INLINE_FUNCTION constexpr std::size_t last_of(std::size_t chunk) const {
    const std::size_t end = (chunk + 1) * blocks_per_chunk;
    return end < blocks ? end : blocks;
  }
};

}  // namespace wring::inline v0::detail::lossless
