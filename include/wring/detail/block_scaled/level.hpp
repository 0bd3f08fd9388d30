// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <wring/detail/block_scaled/rotate.hpp>
#include <wring/detail/block_scaled/rows.hpp>
#include <wring/detail/grid/level.hpp>

/// The block kernels compiled for each level of the instruction set; the level is chosen when the program runs.
namespace wring::inline v0::detail::block_scaled {

/// How a group is rotated, forwards and backwards.
template <class Wide> struct RotationKernels {
  void (*forwards)(const Words4& signs, Wide* v);
  void (*backwards)(const Words4& signs, Wide* v);
};

struct Kernels {
  void (*measure_floats)(const float* x, i32* greatest);
  void (*measure_doubles)(const double* x, i64* greatest);
  unsigned (*nearest)(const float* x, const Factors& factors, i32* q);
  unsigned (*drawn)(const float* x, const Factors& factors, const RandomRows* draws, i32* q);
  void (*draw)(Words4 counter, RandomKey key, RandomRows& rows);
  RotationKernels<float> rotate_floats;
  RotationKernels<double> rotate_doubles;
  void (*pack)(const i32* q, std::byte* out);
  void (*unpack)(const std::byte* in, i32* q);
  void (*decode)(const std::byte* in, const float* scales, float* y);
  void (*decode_add)(const std::byte* in, const float* scales, float* y);

  template <class Wide> const RotationKernels<Wide>& rotation() const {
    if constexpr (std::is_same_v<Wide, double>)
      return rotate_doubles;
    else
      return rotate_floats;
  }
};

#define WRING_BLOCK_SCALED_LEVEL(NAME, TARGET, BYTES, UNROLLED, DRAW)                                        \
  struct NAME##Values {                                                                                      \
    TARGET WRING_GRID_NOINLINE static void measure_floats(const float* x, i32* greatest) {                   \
      block_scaled::measure<BYTES>(x, greatest);                                                             \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void measure_doubles(const double* x, i64* greatest) {                 \
      block_scaled::measure<BYTES>(x, greatest);                                                             \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static unsigned nearest(const float* x, const Factors& f, i32* q) {           \
      return quantise_nearest<BYTES>(x, f, q);                                                               \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static unsigned drawn(const float* x, const Factors& f, const RandomRows* d,  \
                                                     i32* q) {                                               \
      return quantise_drawn<BYTES>(x, f, d, q);                                                              \
    }                                                                                                        \
    template <class Wide, bool Back> TARGET WRING_GRID_NOINLINE static void rotate(const Words4& signs,      \
                                                                                   Wide* v) {                \
      block_scaled::rotate<BYTES, Back>(signs, v);                                                           \
    }                                                                                                        \
  };                                                                                                         \
  template <int Bits> struct NAME {                                                                          \
    TARGET WRING_GRID_NOINLINE static void pack(const i32* q, std::byte* out) {                              \
      block_scaled::pack<Bits, BYTES, UNROLLED>(q, out);                                                     \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void unpack(const std::byte* in, i32* q) {                             \
      block_scaled::unpack<Bits, BYTES>(in, q);                                                              \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void decode(const std::byte* in, const float* scales, float* y) {      \
      block_scaled::decode<Bits, BYTES, UNROLLED, false>(in, scales, y);                                     \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void decode_add(const std::byte* in, const float* scales, float* y) {  \
      block_scaled::decode<Bits, BYTES, UNROLLED, true>(in, scales, y);                                      \
    }                                                                                                        \
    static constexpr Kernels table() {                                                                       \
      using Values = NAME##Values;                                                                           \
      return {Values::measure_floats,                                                                        \
              Values::measure_doubles,                                                                       \
              Values::nearest,                                                                               \
              Values::drawn,                                                                                 \
              DRAW,                                                                                          \
              {Values::template rotate<float, false>, Values::template rotate<float, true>},                 \
              {Values::template rotate<double, false>, Values::template rotate<double, true>},               \
              pack,                                                                                          \
              unpack,                                                                                        \
              decode,                                                                                        \
              decode_add};                                                                                   \
    }                                                                                                        \
  };

#define WRING_BLOCK_SCALED_NO_TARGET
WRING_BLOCK_SCALED_LEVEL(ScalarLevel, WRING_BLOCK_SCALED_NO_TARGET, 0, false, random_rows)
#if WRING_GRID_X86_64
WRING_BLOCK_SCALED_LEVEL(Vector16Level, WRING_BLOCK_SCALED_NO_TARGET, 16, false, random_rows_16)
#define WRING_BLOCK_SCALED_AVX2 __attribute__((target("avx2,fma,bmi2")))
#define WRING_BLOCK_SCALED_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")))
WRING_BLOCK_SCALED_LEVEL(Avx2Level, WRING_BLOCK_SCALED_AVX2, 32, true, random_rows_32)
WRING_BLOCK_SCALED_LEVEL(Avx512Level, WRING_BLOCK_SCALED_AVX512, 64, true, random_rows_64)
#undef WRING_BLOCK_SCALED_AVX2
#undef WRING_BLOCK_SCALED_AVX512
#elif WRING_GRID_NATIVE_VECTORS
WRING_BLOCK_SCALED_LEVEL(Vector16Level, WRING_BLOCK_SCALED_NO_TARGET, 16, true, random_rows)
#endif
#undef WRING_BLOCK_SCALED_NO_TARGET
#undef WRING_BLOCK_SCALED_LEVEL

template <class L> inline constexpr Kernels kernels_of = L::table();

/// Those of a level that this program, on this machine, can run.
template <int Bits> const Kernels& kernels_for(grid::Level level) {
  switch (level) {
#if WRING_GRID_X86_64
  case grid::Level::avx512: return kernels_of<Avx512Level<Bits>>;
  case grid::Level::avx2: return kernels_of<Avx2Level<Bits>>;
#endif
#if WRING_GRID_NATIVE_VECTORS
  case grid::Level::vector16: return kernels_of<Vector16Level<Bits>>;
#endif
  default: return kernels_of<ScalarLevel<Bits>>;
  }
}

/// Those of the fastest level. Unlike `kernels_for` it needs none that never is the fastest: each takes its time to compile.
template <int Bits> const Kernels& best_kernels() {
  static const Kernels& best = []() -> const Kernels& {
    switch (grid::best_level()) {
#if WRING_GRID_X86_64
    case grid::Level::avx512: return kernels_of<Avx512Level<Bits>>;
    case grid::Level::avx2: return kernels_of<Avx2Level<Bits>>;
#endif
#if WRING_GRID_NATIVE_VECTORS
    default: return kernels_of<Vector16Level<Bits>>;
#else
    default: return kernels_of<ScalarLevel<Bits>>;
#endif
    }
  }();
  return best;
}

}  // namespace wring::inline v0::detail::block_scaled
