// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/grid/lanes.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/// Fields of w bits, in as many independent little-endian streams as a row has lanes.
namespace wring::inline v0::detail::grid {

template <class Word> inline constexpr int word_bits = 8 * static_cast<int>(sizeof(Word));
template <class Word> inline constexpr int block_rows = static_cast<int>(block_values * sizeof(Word) / 64);

#if WRING_NATIVE_VECTORS
/// Widths up to this one have bodies of their own; quanta that floats come from are no wider.
inline constexpr int widest_unrolled = 25;

/// After so many rows the fields of a width lie as at first: that part of a block is unrolled, but no less than four rows. Blocks in
/// two columns are slower in parts.
template <class V> constexpr int rows_unrolled(int width) {
  int rows = block_rows<u32>;
  while (sizeof(V) == 64 && width % 2 == 0 && rows > 4) width /= 2, rows /= 2;
  return rows;
}

/// Packs rows of a column, as wide as a register V of the hardware; width known when compiled, so that
/// every shift is a constant. Columns have nothing to do with one another.
template <int Width, int Rows, class V> WRING_ALWAYS_INLINE void pack_rows(const i32* q, std::byte* out) {
  constexpr u32 mask = (1u << Width) - 1;
  V word{}, field;
  int filled = 0;
#pragma GCC unroll 32
  for (int r = 0; r < Rows; ++r) {
    __builtin_memcpy(&field, q + r * 16, sizeof field);
    field &= mask;
    if (filled)
      word |= field << filled;
    else
      word = field;
    filled += Width;
    if (filled >= 32) {
      __builtin_memcpy(out, &word, sizeof word);
      prefetch_for_write(out + 2048);
      out += 64, filled -= 32;
      if (filled) word = field >> (Width - filled);
    }
  }
}

template <int Width, class V> WRING_ALWAYS_INLINE void pack_column(const i32* q, std::byte* out) {
  constexpr int rows = rows_unrolled<V>(Width);
  if constexpr (rows == block_rows<u32>)
    pack_rows<Width, rows, V>(q, out);
  else
    for (int row = 0; row < block_rows<u32>; row += rows, out += rows * Width * 2)
      pack_rows<Width, rows, V>(q + row * 16, out);
}

/// Unpacks rows of a column, from `first` on, and hands the column's part of each to `sink(row number, part)`. A pair of shifts
/// extracts a field and extends its sign.
template <int Width, int Rows, class V, class Sink>
WRING_ALWAYS_INLINE void unpack_rows(const std::byte* in, int first, Sink& sink) {
  V word, next, high;
  __builtin_memcpy(&word, in, sizeof word);
  int taken = 0;
#pragma GCC unroll 32
  for (int r = 0; r < Rows; ++r) {
    const int end = taken + Width;
    if (end <= 32) {
      high = end == 32 ? word : word << (32 - end);
      taken = end;
      if (end == 32 && r + 1 < Rows) in += 64, __builtin_memcpy(&word, in, sizeof word), taken = 0;
    } else {
      in += 64;
      prefetch(in + 2048);
      __builtin_memcpy(&next, in, sizeof next);
      high = (next << (64 - end)) | (word >> (end - 32));
      word = next, taken = end - 32;
    }
    sink(first + r, (typename Sink::Signed)high >> (32 - Width));
  }
}

template <int Width, class V, class Sink> WRING_ALWAYS_INLINE void unpack_column(const std::byte* in,
                                                                                 Sink& sink) {
  constexpr int rows = rows_unrolled<V>(Width);
  if constexpr (rows == block_rows<u32>)
    unpack_rows<Width, rows, V>(in, 0, sink);
  else
    for (int row = 0; row < block_rows<u32>; row += rows, in += rows * Width * 2)
      unpack_rows<Width, rows, V>(in, row, sink);
}

// clang-format off
#define WRING_GRID_WIDTHS(M)                                                                             \
  M(1) M(2) M(3) M(4) M(5) M(6) M(7) M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15) M(16)                 \
  M(17) M(18) M(19) M(20) M(21) M(22) M(23) M(24) M(25)
// clang-format on

/// width <= `widest_unrolled`, as below.
template <int Bytes> WRING_ALWAYS_INLINE void pack_unrolled(int width, const i32* q, std::byte* out) {
  using V = typename NativeOf<u32, Bytes>::type;
  for (int column = 0; column < 64; column += Bytes, q += Bytes / 4, out += Bytes) switch (width) {
#define WRING_GRID_CASE(W)                                                                                   \
  case W: pack_column<W, V>(q, out); break;
      WRING_GRID_WIDTHS(WRING_GRID_CASE)
#undef WRING_GRID_CASE
    default: return;
    }
}

/// Hands the quanta to `sink`, column by column. `Sink::Signed` is the register.
template <int Bytes, class Sink> WRING_ALWAYS_INLINE void unpack_unrolled(int width, const std::byte* in,
                                                                          Sink& sink) {
  using V = typename NativeOf<u32, Bytes>::type;
  for (int column = 0; column < 64; column += Bytes, in += Bytes, sink.next_column()) switch (width) {
#define WRING_GRID_CASE(W)                                                                                   \
  case W: unpack_column<W, V>(in, sink); break;
      WRING_GRID_WIDTHS(WRING_GRID_CASE)
#undef WRING_GRID_CASE
    default:
      for (int r = 0; r < block_rows<u32>; ++r) sink(r, typename Sink::Signed{});
    }
}
#undef WRING_GRID_WIDTHS
#endif

/// One body for all widths: slower, and quick to compile.
template <int Bytes, class Q> WRING_ALWAYS_INLINE void pack_rolled(int width, const Q* q, std::byte* out) {
  using Word = std::make_unsigned_t<Q>;
  constexpr int bits = word_bits<Word>;
  if (width == 0) return;
  const Word mask = static_cast<Word>(~Word{0}) >> (bits - width);
  Lanes<Word, Bytes> word{}, field;
  int filled = 0;
  for (int r = 0; r < block_rows<Word>; ++r) {
    load(field, q + r * Lanes<Word, Bytes>::count);
    field = field & mask;
    word = word | (field << filled);
    filled += width;
    if (filled >= bits) {
      store(out, word);
      out += 64, filled -= bits;
      if (filled)
        word = field >> (width - filled);
      else
        word = Lanes<Word, Bytes>{};
    }
  }
}

template <int Bytes, class Q, class Sink> WRING_ALWAYS_INLINE void
unpack_rolled(int width, const std::byte* in, Sink& sink) {
  using Word = std::make_unsigned_t<Q>;
  constexpr int bits = word_bits<Word>;
  Lanes<Word, Bytes> word{}, next, high;
  Lanes<Q, Bytes> field{};
  if (width) load(word, in);
  int taken = 0;
  for (int r = 0; r < block_rows<Word>; ++r) {
    if (width) {
      if (taken == bits) in += 64, load(word, in), taken = 0;
      const int end = taken + width;
      if (end <= bits) {
        high = word << (bits - end), taken = end;
      } else {
        in += 64;
        load(next, in);
        high = (next << (2 * bits - end)) | (word >> (end - bits));
        word = next, taken = end - bits;
      }
      reinterpret(field, high);
      field = field >> (bits - width);
    }
    sink(r, field);
  }
}

}  // namespace wring::inline v0::detail::grid

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
