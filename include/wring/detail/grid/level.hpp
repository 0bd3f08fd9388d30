// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <wring/detail/grid/block.hpp>

#if defined(__GNUC__) || defined(__clang__)
#define WRING_GRID_NOINLINE __attribute__((noinline))
#else
#define WRING_GRID_NOINLINE
#endif

/// The block kernels compiled for each level of the instruction set; the level is chosen when the program
/// runs.
namespace wring::inline v0::detail::grid {

enum class Level { scalar, vector16, avx2, avx512 };

/// Block kernels for quanta of one type.
template <class Q> struct IntegerKernels {
  using U = std::make_unsigned_t<Q>;
  void (*pack)(int width, const Q* q, std::byte* out);
  void (*unpack)(int width, const std::byte* in, Q* q);
  U (*unpack_add)(int width, const std::byte* in, Q* q);
  U (*measure)(const Q* q);
  bool (*any)(const Q* q);
  U (*add)(Q* q, const Q* other);
  U (*difference)(Q* q);
  U (*integrate)(Q* q, Q base);
  void (*extremum)(Q* q, const Q* other, bool greatest);
  void (*shift)(Q* q, int shift);
  void (*to_doubles)(const Q* q, double step, int divisor, double* y);
};

struct Kernels {
  Measured<i32> (*quantise_floats)(const float* x, const Step& step, bool delta, i32* q, i32& base);
  u64 (*quantise_doubles)(const double* x, const Step& step, i64* q);
  void (*to_floats)(const i32* q, float step, float* y);
  void (*unpack_to_floats)(int width, const std::byte* in, float step, float* y);  ///< width <= 25
  void (*scan_to_floats)(const i32* q, i32 base, float step, float* y);
  IntegerKernels<i32> words;
  IntegerKernels<i64> long_words;

  template <class Q> const IntegerKernels<Q>& of() const {
    if constexpr (std::is_same_v<Q, i32>)
      return words;
    else
      return long_words;
  }
};

// A level is a class of functions with one target attribute, whose bodies are the generic ones. UNROLLED:
// pack and unpack have a body for each width up to widest_unrolled, which is 2 to 3 times faster and takes seconds to compile.
#define WRING_GRID_ROLLED(NAME, TARGET, BYTES)                                                               \
  struct NAME##Words {                                                                                       \
    static constexpr int bytes = BYTES == 0 ? 4 : BYTES;                                                     \
    TARGET WRING_GRID_NOINLINE static void pack(int w, const i32* q, std::byte* out) {                       \
      pack_rolled<bytes>(w, q, out);                                                                         \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void unpack(int w, const std::byte* in, i32* q) {                      \
      Keep<i32, BYTES> keep{q};                                                                              \
      unpack_rolled<bytes, i32>(w, in, keep);                                                                \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void unpack_to_floats(int w, const std::byte* in, float step,          \
                                                            float* y) {                                      \
      alignas(64) i32 q[block_values];                                                                       \
      unpack(w, in, q);                                                                                      \
      grid::to_floats<BYTES, false>(q, 0, step, y);                                                          \
    }                                                                                                        \
  };
#define WRING_GRID_UNROLLED(NAME, TARGET, BYTES)                                                             \
  struct NAME##Words {                                                                                       \
    TARGET WRING_GRID_NOINLINE static void pack_wide(int w, const i32* q, std::byte* out) {                  \
      if (w == 32) return void(__builtin_memcpy(out, q, block_values * sizeof(i32)));                        \
      pack_rolled<BYTES>(w, q, out);                                                                         \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void unpack_wide(int w, const std::byte* in, i32* q) {                 \
      if (w == 32) return void(__builtin_memcpy(q, in, block_values * sizeof(i32)));                         \
      Keep<i32, BYTES> keep{q};                                                                              \
      unpack_rolled<BYTES, i32>(w, in, keep);                                                                \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void pack(int w, const i32* q, std::byte* out) {                       \
      if (w > widest_unrolled) return pack_wide(w, q, out);                                                  \
      pack_unrolled<BYTES>(w, q, out);                                                                       \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void unpack(int w, const std::byte* in, i32* q) {                      \
      if (w > widest_unrolled) return unpack_wide(w, in, q);                                                 \
      KeepColumns<BYTES> keep{q};                                                                            \
      unpack_unrolled<BYTES>(w, in, keep);                                                                   \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void unpack_to_floats(int w, const std::byte* in, float step,          \
                                                            float* y) {                                      \
      DecodeColumns<BYTES> decode{step, y};                                                                  \
      unpack_unrolled<BYTES>(w, in, decode);                                                                 \
    }                                                                                                        \
  };
#define WRING_GRID_LEVEL(NAME, TARGET, BYTES)                                                                \
  struct NAME##LongWords {                                                                                   \
    TARGET WRING_GRID_NOINLINE static void pack(int w, const i64* q, std::byte* out) {                       \
      pack_rolled<BYTES == 0 ? 8 : BYTES>(w, q, out);                                                        \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void unpack(int w, const std::byte* in, i64* q) {                      \
      Keep<i64, BYTES> keep{q};                                                                              \
      unpack_rolled<BYTES == 0 ? 8 : BYTES, i64>(w, in, keep);                                               \
    }                                                                                                        \
  };                                                                                                         \
  template <class Q> struct NAME##Integers {                                                                 \
    using U = std::make_unsigned_t<Q>;                                                                       \
    using Words = std::conditional_t<std::is_same_v<Q, i32>, NAME##Words, NAME##LongWords>;                  \
    TARGET WRING_GRID_NOINLINE static U unpack_add(int w, const std::byte* in, Q* q) {                       \
      alignas(64) Q other[block_values];                                                                     \
      Words::unpack(w, in, other);                                                                           \
      return grid::add<BYTES>(q, other);                                                                     \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static U measure(const Q* q) { return grid::measure<BYTES>(q); }              \
    TARGET WRING_GRID_NOINLINE static bool any(const Q* q) { return grid::any<BYTES>(q); }                   \
    TARGET WRING_GRID_NOINLINE static U add(Q* q, const Q* other) { return grid::add<BYTES>(q, other); }     \
    TARGET WRING_GRID_NOINLINE static U difference(Q* q) { return grid::difference<BYTES>(q); }              \
    TARGET WRING_GRID_NOINLINE static U integrate(Q* q, Q base) { return grid::integrate<BYTES>(q, base); }  \
    TARGET WRING_GRID_NOINLINE static void extremum(Q* q, const Q* other, bool greatest) {                   \
      grid::extremum(q, other, greatest);                                                                    \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void shift(Q* q, int s) { grid::shift_quanta(q, s); }                  \
    TARGET WRING_GRID_NOINLINE static void to_doubles(const Q* q, double step, int divisor, double* y) {     \
      grid::to_doubles(q, step, divisor, y);                                                                 \
    }                                                                                                        \
    static constexpr IntegerKernels<Q> table() {                                                             \
      return {Words::pack, Words::unpack, unpack_add, measure, any,       add,                               \
              difference,  integrate,     extremum,   shift,   to_doubles};                                  \
    }                                                                                                        \
  };                                                                                                         \
  struct NAME {                                                                                              \
    template <bool Short, bool Delta>                                                                        \
    TARGET WRING_GRID_NOINLINE static Measured<i32> floats(const float* x, const Step& s, i32* q, i32& b) {  \
      return grid::quantise_floats<BYTES, Short, Delta>(x, s, q, b);                                         \
    }                                                                                                        \
    static Measured<i32> quantise_floats(const float* x, const Step& s, bool delta, i32* q, i32& b) {        \
      if (s.power_of_two) return delta ? floats<false, true>(x, s, q, b) : floats<false, false>(x, s, q, b); \
      return delta ? floats<true, true>(x, s, q, b) : floats<true, false>(x, s, q, b);                       \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static u64 quantise_doubles(const double* x, const Step& s, i64* q) {         \
      if (s.power_of_two) return grid::quantise_doubles<BYTES, false>(x, s, q);                              \
      return grid::quantise_doubles<BYTES, true>(x, s, q);                                                   \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void to_floats(const i32* q, float step, float* y) {                   \
      grid::to_floats<BYTES, false>(q, 0, step, y);                                                          \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void scan_to_floats(const i32* q, i32 base, float step, float* y) {    \
      grid::to_floats<BYTES, true>(q, base, step, y);                                                        \
    }                                                                                                        \
    static constexpr Kernels table() {                                                                       \
      return {quantise_floats,                                                                               \
              quantise_doubles,                                                                              \
              to_floats,                                                                                     \
              NAME##Words::unpack_to_floats,                                                                 \
              scan_to_floats,                                                                                \
              NAME##Integers<i32>::table(),                                                                  \
              NAME##Integers<i64>::table()};                                                                 \
    }                                                                                                        \
  };

#define WRING_GRID_NO_TARGET
WRING_GRID_ROLLED(ScalarLevel, WRING_GRID_NO_TARGET, 0)
WRING_GRID_LEVEL(ScalarLevel, WRING_GRID_NO_TARGET, 0)
#if WRING_GRID_NATIVE_VECTORS
WRING_GRID_ROLLED(Vector16Level, WRING_GRID_NO_TARGET, 16)
WRING_GRID_LEVEL(Vector16Level, WRING_GRID_NO_TARGET, 16)
#endif
#if WRING_GRID_X86_64
#define WRING_GRID_AVX2 __attribute__((target("avx2,fma,bmi2")))
#define WRING_GRID_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2")))
WRING_GRID_UNROLLED(Avx2Level, WRING_GRID_AVX2, 32)
WRING_GRID_LEVEL(Avx2Level, WRING_GRID_AVX2, 32)
WRING_GRID_UNROLLED(Avx512Level, WRING_GRID_AVX512, 64)
WRING_GRID_LEVEL(Avx512Level, WRING_GRID_AVX512, 64)
#undef WRING_GRID_AVX2
#undef WRING_GRID_AVX512
#endif
#undef WRING_GRID_NO_TARGET
#undef WRING_GRID_ROLLED
#undef WRING_GRID_UNROLLED
#undef WRING_GRID_LEVEL

/// Whether this program, on this machine, can run a level.
inline bool can_run(Level level) {
  switch (level) {
  case Level::scalar: return true;
  case Level::vector16: return WRING_GRID_NATIVE_VECTORS;
#if WRING_GRID_X86_64
  case Level::avx2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  case Level::avx512:
    return can_run(Level::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  default: return false;
  }
}

/// The fastest level that can run.
inline Level best_level() {
  if (can_run(Level::avx512)) return Level::avx512;
  if (can_run(Level::avx2)) return Level::avx2;
  return can_run(Level::vector16) ? Level::vector16 : Level::scalar;
}

template <class L> inline constexpr Kernels kernels_of = L::table();

inline const Kernels& kernels_for(Level level) {
  switch (level) {
#if WRING_GRID_X86_64
  case Level::avx512: return kernels_of<Avx512Level>;
  case Level::avx2: return kernels_of<Avx2Level>;
#endif
#if WRING_GRID_NATIVE_VECTORS
  case Level::vector16: return kernels_of<Vector16Level>;
#endif
  default: return kernels_of<ScalarLevel>;
  }
}

/// Those of the fastest level that can run. Unlike `kernels_for` it needs no level that never is the fastest: each takes its time to
/// compile.
inline const Kernels& best_kernels() {
  static const Kernels& best = []() -> const Kernels& {
    switch (best_level()) {
#if WRING_GRID_X86_64
    case Level::avx512: return kernels_of<Avx512Level>;
    case Level::avx2: return kernels_of<Avx2Level>;
#endif
#if WRING_GRID_NATIVE_VECTORS
    default: return kernels_of<Vector16Level>;
#else
    default: return kernels_of<ScalarLevel>;
#endif
    }
  }();
  return best;
}

}  // namespace wring::inline v0::detail::grid
