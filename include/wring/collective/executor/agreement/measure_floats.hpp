// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <wring/bound.hpp>
#include <wring/config.hpp>
#include <wring/detail/processor.hpp>

/// The measurement of floats on a host, at memory speed: the arithmetic of MeasureValues<float> (16 lanes, the same order of
/// additions, hence the same bits), written in native vectors.
namespace wring::inline v0::detail {

/// The figures of one task's values, as a kernel leaves them. The sum is of (x * 2^-exponent)^2.
struct TaskMagnitudes {
  double max_abs, least, greatest, squares;
  int exponent;
};

#if WRING_NATIVE_VECTORS && !defined(__HIPCC__)
/// Half a register of floats as a register of doubles.
template <class D, class H> WRING_ALWAYS_INLINE void to_doubles(D& d, const H& half) {
#if WRING_X86_64 && !defined(__clang__)
  if constexpr (sizeof(D) >= 32) {  // one instruction, which g++ 14 takes apart
    asm("vcvtps2pd %1, %0" : "=v"(d) : "vm"(half));
    return;
  }
#endif
  d = __builtin_convertvector(half, D);
}

template <int bytes> struct MeasureRow {
  using F = typename NativeOf<float, bytes>::type;
  using I = typename NativeOf<std::int32_t, bytes>::type;
  using D = typename NativeOf<double, bytes>::type;
  using H = typename NativeOf<float, bytes / 2>::type;
  static constexpr int vectors = 64 / bytes, lanes = bytes / 4;
  static constexpr std::int32_t not_finite = 0x7f800000;

  I greatest[vectors] = {};
  F low[vectors], high[vectors];
  D squares[2 * vectors] = {};

  WRING_ALWAYS_INLINE MeasureRow() {
    for (int k = 0; k < vectors; ++k)
      for (int l = 0; l < lanes; ++l) low[k][l] = __builtin_inff(), high[k][l] = -__builtin_inff();
  }

  /// Takes in 16 values. Not `careful`: as if all were finite; `greatest` tells afterwards whether they were.
  template <Bound::Kind kind, bool careful> WRING_ALWAYS_INLINE void add(const float* x) {
    for (int k = 0; k < vectors; ++k) {
      I bits, magnitude;
      F v;
      std::memcpy(&bits, x + k * lanes, bytes);
      magnitude = bits & 0x7fffffff;
      if constexpr (careful) bits = magnitude < not_finite ? bits : 0, magnitude = bits & 0x7fffffff;
      greatest[k] = magnitude > greatest[k] ? magnitude : greatest[k];
      std::memcpy(&v, &bits, bytes);
      if constexpr (kind == Bound::Kind::range) add_range<careful>(k, v, x + k * lanes);
      if constexpr (kind == Bound::Kind::rms) {
        D d;
        H half[2];
        if constexpr (careful)
          std::memcpy(half, &v, bytes);
        else
          std::memcpy(half, x + k * lanes, bytes);
        for (int h = 0; h < 2; ++h) to_doubles(d, half[h]), squares[2 * k + h] += d * d;
      }
    }
  }

  template <bool careful> WRING_ALWAYS_INLINE void add_range(int k, const F& value, const float* x) {
    F v = value;
    I finite = I{} - 1;
    if constexpr (careful) {
      std::memcpy(&finite, x, bytes);
      std::memcpy(&v, x, bytes);
      finite = (finite & 0x7fffffff) < not_finite;
    }
    low[k] = (finite & (v < low[k])) ? v : low[k];
    high[k] = (finite & (v > high[k])) ? v : high[k];
  }

  WRING_ALWAYS_INLINE bool all_finite() const {
    std::int32_t all[16], most = 0;
    std::memcpy(all, greatest, sizeof all);
    for (const std::int32_t one : all) most = one > most ? one : most;
    return most < not_finite;
  }

  /// Leaves max_abs, range and the 16 sums.
  WRING_ALWAYS_INLINE void leave(TaskMagnitudes& r, double* sums) const {
    std::memcpy(sums, squares, sizeof squares);
    float magnitudes[16], least[16], most[16];
    std::memcpy(magnitudes, greatest, 64), std::memcpy(least, low, 64), std::memcpy(most, high, 64);
    for (int l = 0; l < 16; ++l) {
      r.max_abs = magnitudes[l] > r.max_abs ? magnitudes[l] : r.max_abs;
      r.least = least[l] < r.least ? least[l] : r.least;
      r.greatest = most[l] > r.greatest ? most[l] : r.greatest;
    }
  }
};

/// Whole rows of 16 values: leaves max_abs, range and the 16 lane sums; the caller adds what is left over.
template <int bytes, Bound::Kind kind>
WRING_ALWAYS_INLINE void measure_rows(const float* x, std::size_t rows, TaskMagnitudes& r, double* sums) {
  MeasureRow<bytes> row;
  for (std::size_t i = 0; i < rows; ++i) {
    __builtin_prefetch(x + 16 * i + 1024);
    row.template add<kind, false>(x + 16 * i);
  }
  if (row.all_finite()) return row.leave(r, sums);
  MeasureRow<bytes> careful;
  for (std::size_t i = 0; i < rows; ++i) careful.template add<kind, true>(x + 16 * i);
  careful.leave(r, sums);
}

template <int bytes> WRING_ALWAYS_INLINE void measure_rows(const float* x, std::size_t rows, Bound::Kind kind,
                                                           TaskMagnitudes& r, double* sums) {
  if (kind == Bound::Kind::range)
    measure_rows<bytes, Bound::Kind::range>(x, rows, r, sums);
  else if (kind == Bound::Kind::rms)
    measure_rows<bytes, Bound::Kind::rms>(x, rows, r, sums);
  else
    measure_rows<bytes, Bound::Kind::absolute>(x, rows, r, sums);
}

inline void measure_floats(const float* x, std::size_t rows, Bound::Kind kind, TaskMagnitudes& r,
                           double* sums) {
  with_best_level(
      [&]<Level level>() { compiled<level, measure_rows<register_bytes<level>>>(x, rows, kind, r, sums); });
}
#endif

}  // namespace wring::inline v0::detail
