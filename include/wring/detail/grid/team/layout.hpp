// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <wring/detail/grid/team/arithmetic.hpp>

/// Where things lie in a piece: the stream format seen by a single thread.
namespace wring::inline v0::detail::grid_team {

inline constexpr int block_values = 512;
inline constexpr std::size_t line = 64;  ///< bytes; every part of a piece is a multiple
inline constexpr std::size_t plane_bytes = block_values / 8;

KOKKOS_INLINE_FUNCTION constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}
KOKKOS_INLINE_FUNCTION constexpr std::size_t blocks_of(std::size_t n) {
  return (n + block_values - 1) / block_values;
}

/// Values of block b of n.
KOKKOS_INLINE_FUNCTION constexpr int values_in(std::size_t n, std::size_t b) {
  const std::size_t rest = n - b * block_values;
  return rest < block_values ? static_cast<int>(rest) : block_values;
}

/// A descriptor: six bits of width, one for special values.
struct Descriptor {
  static constexpr int raw = 63, special_bit = 0x40;
  static constexpr std::uint8_t impossible =
      0xff;  ///< written for a block that has no encoding: the audit finds it
  KOKKOS_INLINE_FUNCTION static int width(std::uint8_t d) { return d & 63; }
  KOKKOS_INLINE_FUNCTION static bool has_specials(std::uint8_t d) { return (d & special_bit) != 0; }
};

/// Packed words of 32 or 64 bits: lane l owns words l, lanes + l, 2 lanes + l, ... and the values l, lanes +
/// l, ...
template <class Word> struct Lanes {
  using Signed = std::make_signed_t<Word>;
  static constexpr int bits = 8 * sizeof(Word);
  static constexpr int count = static_cast<int>(line / sizeof(Word));
  static constexpr int rows = block_values / count;
  static constexpr int full_width = bits == 32 ? 32 : 62;

  KOKKOS_INLINE_FUNCTION static int rows_for(int values) { return (values + count - 1) / count; }
  KOKKOS_INLINE_FUNCTION static int lines_for(int width, int values) {
    return (rows_for(values) * width + bits - 1) / bits;
  }

  /// Word k of a lane: the bits that its values have there. `value(r)` is the value of row r.
  template <class Values> KOKKOS_INLINE_FUNCTION static Word pack(int k, int width, int rows,
                                                                  const Values& value) {
    const Word mask = width == bits ? Word(~Word(0)) : Word((Word(1) << width) - 1);
    const int first_bit = k * bits;
    Word word = 0;
    for (int r = first_bit / width; r < rows && r * width < first_bit + bits; ++r) {
      const int at = r * width - first_bit;
      const Word v = value(r) & mask;
      word |= at >= 0 ? Word(v << at) : Word(v >> -at);
    }
    return word;
  }

  /// The value of row r and lane l.
  KOKKOS_INLINE_FUNCTION static Word unpack(const Word* words, int r, int l, int width) {
    if (width == 0) return 0;
    const int bit = r * width, k = bit / bits, s = bit % bits;
    Word v = words[k * count + l] >> s;
    if (s + width > bits) v |= words[(k + 1) * count + l] << (bits - s);
    return static_cast<Word>(static_cast<Signed>(v << (bits - width)) >> (bits - width));
  }
};

/// What a block's width and form follow from: the OR of the contributions of its values. Bits 0 to 61: the
/// bit length is the width; then a flag for values too large to pack, one for special values.
class Extent {
 public:
  static constexpr std::uint64_t too_large = std::uint64_t(1) << 62, special = std::uint64_t(1) << 63;

  /// {0, -1} has width 1, {0} has 0: hence the bit for q != 0.
  KOKKOS_INLINE_FUNCTION static std::uint64_t of(std::int64_t q) {
    const std::uint64_t magnitude = static_cast<std::uint64_t>(q ^ (q >> 63));
    const std::uint64_t extent = (magnitude << 1) | (q != 0 ? 1u : 0u);
    return extent >> 62 ? too_large : extent;
  }
  KOKKOS_INLINE_FUNCTION static int width(std::uint64_t extent, int full_width) {
    if (extent & too_large) return full_width;
    const std::uint64_t m = extent & ~special;
    int width = 0;
    for (int half = 32; half; half /= 2)
      if (m >> (width + half)) width += half;
    width += m ? 1 : 0;
    return width < full_width ? width : full_width;
  }
};

/// A piece of n values as the kernels see it. `Byte` is std::byte or const std::byte.
template <class Word, class Byte> struct Piece {
  template <class U> using Like = std::conditional_t<std::is_const_v<Byte>, const U, U>;

  Byte* bytes = nullptr;
  std::size_t size = 0;  ///< of the span, in bytes
  std::size_t n = 0;
  std::size_t element_bytes = 0;
  bool delta = false, raw_allowed = false;

  KOKKOS_FUNCTION std::size_t blocks() const { return blocks_of(n); }
  KOKKOS_FUNCTION std::size_t bases_at() const { return round_up(blocks(), line); }
  KOKKOS_FUNCTION std::size_t payload_at() const {
    return bases_at() + (delta ? round_up(blocks() * sizeof(Word), line) : 0);
  }
  KOKKOS_FUNCTION Like<std::uint8_t>& descriptor(std::size_t b) const {
    return reinterpret_cast<Like<std::uint8_t>*>(bytes)[b];
  }
  KOKKOS_FUNCTION Like<Word>& base(std::size_t b) const {
    return reinterpret_cast<Like<Word>*>(bytes + bases_at())[b];
  }

  /// Whether the encoder could have written this descriptor.
  KOKKOS_FUNCTION bool valid(std::uint8_t d) const {
    const int width = Descriptor::width(d);
    if (d & 0x80) return false;
    return width == Descriptor::raw ? raw_allowed && !Descriptor::has_specials(d)
                                    : width <= Lanes<Word>::full_width;
  }

  KOKKOS_FUNCTION std::size_t raw_bytes(std::size_t b) const {
    return round_up(static_cast<std::size_t>(values_in(n, b)) * element_bytes, line);
  }
  /// Bytes of the payload of block b when its descriptor is d; 0 where d is not valid.
  KOKKOS_FUNCTION std::size_t payload_bytes(std::size_t b, std::uint8_t d) const {
    if (!valid(d)) return 0;
    if (Descriptor::width(d) == Descriptor::raw) return raw_bytes(b);
    return (Descriptor::has_specials(d) ? 2 * plane_bytes : 0) +
           line * static_cast<std::size_t>(Lanes<Word>::lines_for(Descriptor::width(d), values_in(n, b)));
  }
};

/// The payload of one block, open for reading.
template <class Word> struct Payload {
  const std::byte* bytes = nullptr;
  int width = 0;
  bool specials = false, raw = false;

  KOKKOS_FUNCTION const Word* words() const {
    return reinterpret_cast<const Word*>(bytes + (specials ? 2 * plane_bytes : 0));
  }
  KOKKOS_FUNCTION unsigned code(int i) const {
    if (!specials) return grid::finite_code;
    const auto* plane = reinterpret_cast<const std::uint32_t*>(bytes);
    constexpr int words = block_values / 32;
    return ((plane[i / 32] >> (i % 32)) & 1u) | (((plane[words + i / 32] >> (i % 32)) & 1u) << 1);
  }
  KOKKOS_FUNCTION Word residue(int i) const {
    return Lanes<Word>::unpack(words(), i / Lanes<Word>::count, i % Lanes<Word>::count, width);
  }
};

/// Which blocks of a piece one team works on. The offset of a payload is a sum over all descriptors before
/// it, which every team computes for its first block: no scratch memory outside the team, and with a bounded
/// number of teams less traffic than the payload itself.
struct Chunks {
  static constexpr std::size_t most_teams = 2048;

  std::size_t blocks = 0, per_team = 1;

  explicit Chunks(std::size_t n) : blocks(blocks_of(n)), per_team((blocks + most_teams - 1) / most_teams) {}
  int teams() const { return static_cast<int>((blocks + per_team - 1) / per_team); }
  KOKKOS_FUNCTION std::size_t first(int team) const { return static_cast<std::size_t>(team) * per_team; }
  KOKKOS_FUNCTION std::size_t last(int team) const {
    const std::size_t end = first(team) + per_team;
    return end < blocks ? end : blocks;
  }
};

}  // namespace wring::inline v0::detail::grid_team
