// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/grid/arithmetic.hpp>
#include <wring/detail/grid/lanes.hpp>
#include <wring/detail/grid/pack.hpp>

#if WRING_X86_64
#include <xmmintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/// What is done to one block of 512 values, generic over the registers: `Bytes` is their size, 0 for plain
/// scalars.
namespace wring::inline v0::detail::grid {

/// The step in the forms that the kernels use.
struct Step {
  double step, inverse;
  float step32, inverse32, half32;
  float smaller32, larger32;  ///< x times them lies on either side of x / D, rounding included
  bool power_of_two;
  int trusted32;  ///< quanta below 2^trusted32 are right when computed in binary32; 0: none
  int trusted64;  ///< and in binary64

  explicit Step(const GridParameters& p)
      : step(p.step), inverse(p.inverse), step32(static_cast<float>(p.step)),
        inverse32(static_cast<float>(p.inverse)), half32(static_cast<float>(0.5 * p.step)),
        smaller32(inverse32 * (1 - 0x3p-23f)), larger32(inverse32 * (1 + 0x3p-23f)),
        power_of_two(p.multiplier == 8) {
    // Above, q D could overflow; below, the step or its inverse would not be a normal number.
    trusted32 = p.step > 0x1p100 || p.step < 0x1p-125 ? 0 : power_of_two ? 22 : 20;
    trusted64 = p.step > 0x1p900 ? 0 : power_of_two ? 51 : 49;
  }
};

inline constexpr u32 magic_bits = 0x4B400000;  ///< of 1.5 * 2^23

/// ORs of the magnitudes: of the quanta, which shows whether they can be trusted, and of the residues, which
/// gives the width.
template <class Q> struct Measured {
  std::make_unsigned_t<Q> quanta, residues;
};

template <class T, int Bytes> using Row = Lanes<T, Bytes == 0 ? static_cast<int>(sizeof(T)) : Bytes>;

/// Adding 1.5 * 2^23 leaves the rounded quotient in the low bits: no conversion, and NaN, infinities and what
/// is too large show as |q| >= 2^22. The product q D is exact where q is trusted.
template <bool Short, class U, class F> WRING_ALWAYS_INLINE void quantise_row(U& q, const F& v,
                                                                              const Step& s) {
  constexpr float magic = 0x1.8p23f;
  const F y = v * s.inverse32 + magic;
  reinterpret(q, y);
  q = q - magic_bits;
  if constexpr (Short) correct(q, v - (y - magic) * s.step32, s.half32);
}

/// The same where two quotients, too small and too large in magnitude by more than their roundings, round
/// alike; `doubt` is not 0 where they do not: near a tie. Half the work of a correction.
template <bool Short, class U, class F>
WRING_ALWAYS_INLINE void quantise_row_quickly(U& q, U& doubt, const F& v, const Step& s) {
  constexpr float magic = 0x1.8p23f;
  if constexpr (Short) {
    U other;
    reinterpret(q, v * s.smaller32 + magic);
    reinterpret(other, v * s.larger32 + magic);
    doubt = doubt | (q ^ other);
  } else {
    reinterpret(q, v * s.inverse32 + magic);
  }
  q = q - magic_bits;
}

/// The quantum of the first value, in every lane.
template <bool Short, class U, class F> WRING_ALWAYS_INLINE i32 first_quantum(U& all, const float* x,
                                                                              const Step& s) {
  F v;
  load(v, x);
  quantise_row<Short>(all, v, s);
  u32 lanes[16];
  store(lanes, all);
  fill(all, lanes[0]);
  return static_cast<i32>(lanes[0]);
}

template <int Bytes, bool Short, bool Delta>
WRING_ALWAYS_INLINE Measured<i32> quantise_carefully(const float* x, const Step& s, i32* q, i32& base) {
  using U = Row<u32, Bytes>;
  using F = Row<float, Bytes>;
  U quanta{}, residues{}, previous{}, row, before;
  F v;
  if constexpr (Delta) base = first_quantum<Short, U, F>(previous, x, s);
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 4
#endif
  for (int r = 0; r < block_rows<u32>; ++r) {
    load(v, x + r * 16);
    quantise_row<Short>(row, v, s);
    quanta = quanta | magnitude(row);
    if constexpr (Delta) {
      predecessors(before, previous, row);
      previous = row;
      row = row - before;
      residues = residues | magnitude(row);
    }
    store(q + r * 16, row);
  }
  const u32 all = reduce_or(quanta);
  if constexpr (Delta)
    return {all, reduce_or(residues)};
  else
    return {all, all};
}

/// Quanta, or residues, of a block in as few instructions as most blocks need. False where they are in doubt:
/// a value near a tie; residues so large that quanta which were not looked at might not be trusted.
template <int Bytes, bool Short, bool Delta>
WRING_ALWAYS_INLINE bool quantise_quickly(const float* x, const Step& s, i32* q, i32& base,
                                          Measured<i32>& measured) {
  using U = Row<u32, Bytes>;
  using F = Row<float, Bytes>;
  U kept{}, doubt{}, previous{}, row, before;
  F v;
  if constexpr (Delta) base = first_quantum<Short, U, F>(previous, x, s);
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 4
#endif
  for (int r = 0; r < block_rows<u32>; ++r) {
    prefetch(x + r * 16 + 2 * block_values);
    load(v, x + r * 16);
    quantise_row_quickly<Short>(row, doubt, v, s);
    if constexpr (Delta) {
      predecessors(before, previous, row);
      previous = row;
      row = row - before;
    }
    kept = kept | magnitude(row);
    store(q + r * 16, row);
  }
  measured.residues = measured.quanta = reduce_or(kept);
  if constexpr (Delta) {  // quanta < 2^19 + 511 * 2^10
    const u32 first = static_cast<u32>(base < 0 ? -base : base);
    if ((measured.residues >> 10) != 0 || (first >> 19) != 0) return false;
    measured.quanta = first + (511u << std::bit_width(measured.residues));
  }
  if constexpr (Short)
    return reduce_or(doubt) == 0;
  else
    return true;
}

template <int Bytes, bool Short, bool Delta>
WRING_ALWAYS_INLINE Measured<i32> quantise_floats(const float* x, const Step& step, i32* q, i32& base) {
  const Step s = step;  // a copy of its own, which no store through q may change
  Measured<i32> measured;
  // x86 without AVX2 is rare enough to go without what takes long to compile
  if constexpr (!WRING_X86_64 || Bytes > 16)
    if (quantise_quickly<Bytes, Short, Delta>(x, s, q, base, measured)) return measured;
  return quantise_carefully<Bytes, Short, Delta>(x, s, q, base);
}

/// The same in binary64, with 1.5 * 2^52. Returns the OR of the magnitudes.
template <int Bytes, bool Short> WRING_ALWAYS_INLINE u64 quantise_doubles(const double* x, const Step& step_,
                                                                          i64* q) {
  constexpr double magic = 0x1.8p52;
  Row<u64, Bytes> all{}, row;
  Row<double, Bytes> v;
  const Step s = step_;
  const double half = 0.5 * s.step;
  for (int r = 0; r < block_rows<u64>; ++r) {
    prefetch(x + r * 8 + block_values);
    load(v, x + r * 8);
    const Row<double, Bytes> y = v * s.inverse + magic;
    reinterpret(row, y);
    row = row - u64{0x4338000000000000};
    if constexpr (Short) correct(row, v - (y - magic) * s.step, half);
    all = all | magnitude(row);
    store(q + r * 8, row);
  }
  return reduce_or(all);
}

template <int Bytes, class Q> WRING_ALWAYS_INLINE std::make_unsigned_t<Q> measure(const Q* q) {
  using U = std::make_unsigned_t<Q>;
  Row<U, Bytes> all{}, row;
  for (int r = 0; r < block_rows<U>; ++r) load(row, q + r * Row<U, Bytes>::count), all = all | magnitude(row);
  return reduce_or(all);
}

template <int Bytes, class Q> WRING_ALWAYS_INLINE bool any(const Q* q) {
  using U = std::make_unsigned_t<Q>;
  Row<U, Bytes> all{}, row;
  for (int r = 0; r < block_rows<U>; ++r) load(row, q + r * Row<U, Bytes>::count), all = all | row;
  return reduce_or(all) != 0;
}

/// q += other; the OR of the sums' magnitudes.
template <int Bytes, class Q> WRING_ALWAYS_INLINE std::make_unsigned_t<Q> add(Q* q, const Q* other) {
  using U = std::make_unsigned_t<Q>;
  Row<U, Bytes> all{}, a, b;
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 4
#endif
  for (int r = 0; r < block_rows<U>; ++r) {
    load(a, q + r * Row<U, Bytes>::count);
    load(b, other + r * Row<U, Bytes>::count);
    a = a + b;
    all = all | magnitude(a);
    store(q + r * Row<U, Bytes>::count, a);
  }
  return reduce_or(all);
}

/// Replaces quanta by residues, the first by 0; the OR of the residues' magnitudes.
template <int Bytes, class Q> WRING_ALWAYS_INLINE std::make_unsigned_t<Q> difference(Q* q) {
  using U = std::make_unsigned_t<Q>;
  Row<U, Bytes> all{}, previous, row, before;
  fill(previous, static_cast<U>(q[0]));
  for (int r = 0; r < block_rows<U>; ++r) {
    load(row, q + r * Row<U, Bytes>::count);
    predecessors(before, previous, row);
    previous = row;
    row = row - before;
    all = all | magnitude(row);
    store(q + r * Row<U, Bytes>::count, row);
  }
  return reduce_or(all);
}

/// The inverse of difference; the OR of the quanta's magnitudes.
template <int Bytes, class Q> WRING_ALWAYS_INLINE std::make_unsigned_t<Q> integrate(Q* q, Q base) {
  using U = std::make_unsigned_t<Q>;
  Row<U, Bytes> all{}, carry, row;
  fill(carry, static_cast<U>(base));
  for (int r = 0; r < block_rows<U>; ++r) {
    load(row, q + r * Row<U, Bytes>::count);
    scan(row, carry);
    all = all | magnitude(row);
    store(q + r * Row<U, Bytes>::count, row);
  }
  return reduce_or(all);
}

/// y = q * step in binary32: right where |q| <= 2^24.
template <int Bytes, bool Delta> WRING_ALWAYS_INLINE void to_floats(const i32* q, i32 base, float step,
                                                                    float* y) {
  Row<u32, Bytes> carry, row;
  Row<i32, Bytes> value;
  Row<float, Bytes> f;
  if constexpr (Delta) fill(carry, static_cast<u32>(base));
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 4
#endif
  for (int r = 0; r < block_rows<u32>; ++r) {
    prefetch_for_write(y + r * 16 + 2 * block_values);
    load(row, q + r * 16);
    if constexpr (Delta) scan(row, carry);
    reinterpret(value, row);
    convert(f, value);
    store(y + r * 16, f * step);
  }
}

/// Copies the floats of a block to memory aligned to 16 bytes, past the caches; `end_streaming` orders what
/// follows.
inline void stream_floats(const float* from, float* to) {
#if WRING_X86_64
  for (std::size_t i = 0; i < block_values; i += 4) _mm_stream_ps(to + i, _mm_load_ps(from + i));
#else
  __builtin_memcpy(to, from, block_values * sizeof(float));
#endif
}
inline void end_streaming() {
#if WRING_X86_64
  _mm_sfence();
#endif
}

/// y = q * step / divisor in binary64.
template <class Q> WRING_ALWAYS_INLINE void to_doubles(const Q* q, double step, int divisor, double* y) {
  if (divisor == 1) {
    for (std::size_t i = 0; i < block_values; ++i) y[i] = static_cast<double>(q[i]) * step;
  } else {
    const double by = divisor;
    for (std::size_t i = 0; i < block_values; ++i) y[i] = static_cast<double>(q[i]) * step / by;
  }
}

template <class Q> WRING_ALWAYS_INLINE void extremum(Q* q, const Q* other, bool greatest) {
  if (greatest) {
    for (std::size_t i = 0; i < block_values; ++i) q[i] = q[i] > other[i] ? q[i] : other[i];
  } else {
    for (std::size_t i = 0; i < block_values; ++i) q[i] = q[i] < other[i] ? q[i] : other[i];
  }
}

template <class Q> WRING_ALWAYS_INLINE void shift_quanta(Q* q, int shift) {
  const Q half = static_cast<Q>((Q{1} << (shift - 1)) - 1), mask = static_cast<Q>((Q{1} << shift) - 1);
  for (std::size_t i = 0; i < block_values; ++i) {
    const Q whole = q[i] >> shift;
    q[i] = whole + (((q[i] & mask) + (whole & 1) + half) >> shift);
  }
}

/// A sink that keeps the rows.
template <class Q, int Bytes> struct Keep {
  Q* q;
  WRING_ALWAYS_INLINE void operator()(int r, const Row<Q, Bytes>& row) {
    store(q + r * Row<Q, Bytes>::count, row);
  }
};

#if WRING_NATIVE_VECTORS
/// What becomes of the columns of a block as they are unpacked. They are kept:
template <int Bytes> struct KeepColumns {
  using Signed = typename NativeOf<i32, Bytes>::type;
  i32* q;
  WRING_ALWAYS_INLINE void operator()(int r, const Signed& v) { __builtin_memcpy(q + r * 16, &v, Bytes); }
  WRING_ALWAYS_INLINE void next_column() { q += Bytes / 4; }
};
/// ... or decoded, right where |q| <= 2^24:
template <int Bytes> struct DecodeColumns {
  using Signed = typename NativeOf<i32, Bytes>::type;
  using Floats = typename NativeOf<float, Bytes>::type;
  float step;
  float* y;
  WRING_ALWAYS_INLINE void operator()(int r, const Signed& v) {
    const Floats value = __builtin_convertvector(v, Floats) * step;
    prefetch_for_write(y + r * 16 + 2 * block_values);
    __builtin_memcpy(y + r * 16, &value, Bytes);
  }
  WRING_ALWAYS_INLINE void next_column() { y += Bytes / 4; }
};
#endif

}  // namespace wring::inline v0::detail::grid

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
