// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/block_scaled/layout.hpp>
#include <wring/detail/grid/block.hpp>
#include <wring/detail/random/rows.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/// What is done to one block of 512 values in rows of 16, generic over the registers: `Bytes` is their size, 0 for plain scalars.
namespace wring::inline v0::detail::block_scaled {

using grid::i32;
using grid::i64;
using grid::Row;
using grid::u32;
using grid::u64;

/// The factors of the groups of a block. Where a scale has no inverse in binary32 that would do they are 0.
struct Factors {
  float inverse[block_groups];
};

/// By how much more a quotient x / scale may be, in relative terms, than x times the inverse: four roundings, that of x
/// included, make 2^-22.
inline constexpr float relative_margin = 0x1.8p-22f;
/// Of these a step has as many as there are draws.
inline constexpr float units_per_step = 0x1p16f;
/// From this scale on the units of a step have an inverse.
inline constexpr float least_drawn_scale = 0x1p-108f;

/// Lane by lane the greater of two rows of positive numbers.
template <class I, int Bytes>
WRING_ALWAYS_INLINE void raise(grid::Lanes<I, Bytes>& most, const grid::Lanes<I, Bytes>& row) {
  WRING_GRID_UNROLL
  for (int k = 0; k < grid::Lanes<I, Bytes>::parts; ++k)
    most.part[k] = row.part[k] > most.part[k] ? row.part[k] : most.part[k];
}

template <class I, int Bytes> WRING_ALWAYS_INLINE I greatest_lane(const grid::Lanes<I, Bytes>& row) {
  constexpr int left = Bytes < 16 ? 64 / static_cast<int>(sizeof(I)) : 16 / static_cast<int>(sizeof(I));
  I lane[64 / sizeof(I)];
#if WRING_NATIVE_VECTORS
  if constexpr (Bytes >= 16) {
    typedef I V __attribute__((vector_size(16)));
    V quarter[4];
    store(quarter, row);
    const V a = quarter[0] > quarter[1] ? quarter[0] : quarter[1],
            b = quarter[2] > quarter[3] ? quarter[2] : quarter[3], most = a > b ? a : b;
    __builtin_memcpy(lane, &most, sizeof most);
  } else
#endif
    store(lane, row);
  for (int half = left / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] = lane[l + half] > lane[l] ? lane[l + half] : lane[l];
  return lane[0];
}

/// The bits of a float or double.
template <class Wide> using PatternOf = std::conditional_t<sizeof(Wide) == 8, i64, i32>;

/// The bits of the greatest |x| in some rows, NaN above all.
template <class Wide, int Bytes> class GreatestOfRows {
 public:
  using I = PatternOf<Wide>;

  WRING_ALWAYS_INLINE void take(const Row<Wide, Bytes>& row) {
    Row<I, Bytes> bits;
    reinterpret(bits, row);
    raise(most_, bits & static_cast<I>(~std::make_unsigned_t<I>{0} >> 1));
  }
  WRING_ALWAYS_INLINE I lane() const { return greatest_lane(most_); }

 private:
  Row<I, Bytes> most_{};
};

/// Of each group.
template <int Bytes, class Wide, class I> WRING_ALWAYS_INLINE void measure(const Wide* x, I* greatest) {
  constexpr int count = 64 / static_cast<int>(sizeof(I));
  for (int group = 0; group < block_groups; ++group) {
    GreatestOfRows<Wide, Bytes> most;
    Row<Wide, Bytes> row;
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 4
#endif
    for (int r = 0; r < group_values / count; ++r, x += count) {
      if constexpr (sizeof(I) == 8) grid::prefetch(x + block_values);  // floats: see quantise_nearest
      load(row, x);
      most.take(row);
    }
    greatest[group] = most.lane();
  }
}

/// The levels of a block, nearest. Two quotients, too small and too large, round alike unless a value is near a tie: returns a bit for
/// each group in which that is in doubt.
template <int Bytes> WRING_ALWAYS_INLINE unsigned quantise_nearest(const float* x, const Factors& factors,
                                                                   i32* q) {
  constexpr float magic = 0x1.8p23f;
  Row<u32, Bytes> doubt[block_groups], row, other;
  Row<float, Bytes> v;
  for (int group = 0; group < block_groups; ++group) {
    const float smaller = factors.inverse[group] * (1 - relative_margin),
                larger = factors.inverse[group] * (1 + relative_margin);
    doubt[group] = Row<u32, Bytes>{};
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 4
#endif
    for (int r = 0; r < group_rows; ++r, x += lanes, q += lanes) {
      grid::prefetch(x + 2 * block_values);  // here, where memory is idle
      load(v, x);
      reinterpret(row, v * smaller + magic);
      reinterpret(other, v * larger + magic);
      doubt[group] = doubt[group] | (row ^ other);
      store(q, row - grid::magic_bits);
    }
  }
  if (reduce_or((doubt[0] | doubt[1]) | (doubt[2] | doubt[3])) == 0) return 0;
  unsigned in_doubt = 0;
  for (int group = 0; group < block_groups; ++group)
    in_doubt |= static_cast<unsigned>(reduce_or(doubt[group]) != 0) << group;
  return in_doubt;
}

/// The levels of a block by the draws of its groups. In units of 2^-16 steps, the level is the least whole number of steps that is not below
/// the quotient less draw + 1/2. Quotients of up to 2^23 units are known but for 3 of them: returns a bit for each group with a value
/// for which these decide.
template <int Bytes> WRING_ALWAYS_INLINE unsigned quantise_drawn(const float* x, const Factors& factors,
                                                                 const RandomRows* draws, i32* q) {
  Row<u32, Bytes> row;
  Row<i32, Bytes> units, draw;
  Row<float, Bytes> v;
  unsigned in_doubt = 0;
  for (int group = 0; group < block_groups; ++group, ++draws) {
    const float inverse = factors.inverse[group] * units_per_step;
    if (inverse == 0) {  // where values may be special
      for (int i = 0; i < group_values; ++i) q[i] = 0;
      x += group_values, q += group_values;
      continue;
    }
    Row<i32, Bytes> doubt{};
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 8
#endif
    for (int r = 0; r < group_rows; ++r, x += lanes, q += lanes) {
      load(v, x);
      convert(units, v * inverse + (units_per_step - 1));
      load(row, draws->row[r & 3]);
      reinterpret(draw, r < 4 ? row & 0xffffu : row >> 16);
      units = units - draw;
      store(q, units >> 16);
      doubt = doubt | (((units + 3) & 0xffff) - 6);
    }
    in_doubt |= static_cast<unsigned>(reduce_or(doubt) < 0) << group;
  }
  return in_doubt;
}

/// Fields from levels, and levels from fields.
template <int Bits, int Bytes, bool Unrolled> WRING_ALWAYS_INLINE void pack(const i32* q, std::byte* out) {
#if WRING_NATIVE_VECTORS
  if constexpr (Unrolled) {
    using V = typename NativeOf<u32, Bytes>::type;
    for (int column = 0; column < 64; column += Bytes, q += Bytes / 4, out += Bytes)
      grid::pack_column<Bits, V>(q, out);
    return;
  }
#endif
  grid::pack_rolled<Bytes == 0 ? 4 : Bytes>(Bits, q, out);
}

template <int Bits, int Bytes> WRING_ALWAYS_INLINE void unpack(const std::byte* in, i32* q) {
  grid::Keep<i32, Bytes> keep{q};
  grid::unpack_rolled<Bytes == 0 ? 4 : Bytes, i32>(Bits, in, keep);
}

#if WRING_NATIVE_VECTORS
/// What becomes of the columns of a block as they are unpacked: level times scale, added to what is there or in its place.
template <int Bytes, bool Add> struct ScaleColumns {
  using Signed = typename NativeOf<i32, Bytes>::type;
  using Floats = typename NativeOf<float, Bytes>::type;
  const float* scale;
  float* y;
  WRING_ALWAYS_INLINE void operator()(int r, const Signed& v) {
    Floats value = __builtin_convertvector(v, Floats) * scale[r / group_rows];
    if constexpr (Add) {
      Floats own;
      __builtin_memcpy(&own, y + r * lanes, Bytes);
      value += own;
    }
    grid::prefetch_for_write(y + r * lanes + 2 * block_values);
    __builtin_memcpy(y + r * lanes, &value, Bytes);
  }
};
#endif

/// y = level * scale, or y += level * scale, for a whole block. Products have 16 bits: contraction does not change the sums.
template <int Bits, int Bytes, bool Unrolled, bool Add>
WRING_ALWAYS_INLINE void decode(const std::byte* in, const float* scales, float* y) {
  float scale[block_groups];  // of its own, which no store through y may change
  for (int group = 0; group < block_groups; ++group) scale[group] = scales[group];
#if WRING_NATIVE_VECTORS
  if constexpr (Unrolled) {
    using V = typename NativeOf<u32, Bytes>::type;
    for (int column = 0; column < 64; column += Bytes, in += Bytes, y += Bytes / 4) {
      ScaleColumns<Bytes, Add> sink{scale, y};
      grid::unpack_column<Bits, V>(in, sink);
    }
    return;
  }
#endif
  alignas(64) i32 q[block_values];
  unpack<Bits, Bytes>(in, q);
  for (std::size_t i = 0; i < block_values; ++i) {
    const float value = static_cast<float>(q[i]) * scale[i / group_values];
    y[i] = Add ? y[i] + value : value;
  }
}

}  // namespace wring::inline v0::detail::block_scaled

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
