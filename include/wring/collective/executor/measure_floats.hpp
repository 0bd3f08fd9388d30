// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <wring/bound.hpp>
#include <wring/config.hpp>

/// The measurement of floats on a host, at memory speed: the arithmetic of MeasureValues<float> (16 lanes, the same order of
/// additions, hence the same bits), written in native vectors and compiled for each level of the instruction set.
namespace wring::inline v0::detail {

/// The figures of one task's values, as a kernel leaves them. The sum is of (x * 2^-exponent)^2.
struct TaskMagnitudes {
  double max_abs, least, greatest, squares;
  int exponent;
};

#if (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define WRING_MEASURES_IN_VECTORS 1

template <class T, int bytes> struct NativeVector {
  typedef T type __attribute__((vector_size(bytes)));
};

template <int bytes> struct MeasureRow {
  using F = typename NativeVector<float, bytes>::type;
  using I = typename NativeVector<std::int32_t, bytes>::type;
  using D = typename NativeVector<double, bytes>::type;
  using H = typename NativeVector<float, bytes / 2>::type;
  static constexpr int vectors = 64 / bytes, lanes = bytes / 4;

  I greatest[vectors] = {};
  F low[vectors], high[vectors];
  D squares[2 * vectors] = {};

  template <Bound::Kind kind> WRING_ALWAYS_INLINE void add(const float* x) {
    for (int k = 0; k < vectors; ++k) {
      F v;
      std::memcpy(&v, x + k * lanes, bytes);
      const I magnitude = __builtin_bit_cast(I, v) & 0x7fffffff;
      const I finite = magnitude < 0x7f800000;
      const I kept = magnitude & finite;
      greatest[k] = kept > greatest[k] ? kept : greatest[k];
      if constexpr (kind == Bound::Kind::range) {
        low[k] = (finite & (v < low[k])) ? v : low[k];
        high[k] = (finite & (v > high[k])) ? v : high[k];
      }
      if constexpr (kind == Bound::Kind::rms) {
        H half;
        for (int h = 0; h < 2; ++h) {
          std::memcpy(&half, reinterpret_cast<const char*>(&kept) + h * bytes / 2, bytes / 2);
          const D d = __builtin_convertvector(half, D);
          squares[2 * k + h] += d * d;
        }
      }
    }
  }
};

/// Whole rows of 16 values: leaves max_abs, range and the 16 lane sums; the caller adds what is left over.
template <int bytes, Bound::Kind kind>
WRING_ALWAYS_INLINE void measure_rows(const float* x, std::size_t rows, TaskMagnitudes& r, double* sums) {
  MeasureRow<bytes> row;
  for (int k = 0; k < row.vectors; ++k)
    for (int l = 0; l < row.lanes; ++l) row.low[k][l] = __builtin_inff(), row.high[k][l] = -__builtin_inff();
  for (std::size_t i = 0; i < rows; ++i) row.template add<kind>(x + 16 * i);
  std::memcpy(sums, row.squares, sizeof row.squares);
  for (int k = 0; k < row.vectors; ++k)
    for (int l = 0; l < row.lanes; ++l) {
      float a;
      const std::int32_t bits = row.greatest[k][l];
      std::memcpy(&a, &bits, 4);
      r.max_abs = a > r.max_abs ? a : r.max_abs;
      r.least = row.low[k][l] < r.least ? row.low[k][l] : r.least;
      r.greatest = row.high[k][l] > r.greatest ? row.high[k][l] : r.greatest;
    }
}

#define WRING_MEASURE_LEVEL(NAME, TARGET, BYTES)                                                             \
  TARGET __attribute__((noinline)) inline void NAME(const float* x, std::size_t rows, Bound::Kind kind,      \
                                                    TaskMagnitudes& r, double* sums) {                       \
    if (kind == Bound::Kind::range)                                                                          \
      measure_rows<BYTES, Bound::Kind::range>(x, rows, r, sums);                                             \
    else if (kind == Bound::Kind::rms)                                                                       \
      measure_rows<BYTES, Bound::Kind::rms>(x, rows, r, sums);                                               \
    else                                                                                                     \
      measure_rows<BYTES, Bound::Kind::absolute>(x, rows, r, sums);                                          \
  }
WRING_MEASURE_LEVEL(measure_rows_16, , 16)
#if defined(__x86_64__)
WRING_MEASURE_LEVEL(measure_rows_32, __attribute__((target("avx2,fma"))), 32)
WRING_MEASURE_LEVEL(measure_rows_64, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))),
                    64)
#endif
#undef WRING_MEASURE_LEVEL

inline void measure_floats(const float* x, std::size_t rows, Bound::Kind kind, TaskMagnitudes& r,
                           double* sums) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return measure_rows_64(x, rows, kind, r, sums);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return measure_rows_32(x, rows, kind, r, sums);
#endif
  measure_rows_16(x, rows, kind, r, sums);
}
#endif

}  // namespace wring::inline v0::detail
