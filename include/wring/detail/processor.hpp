// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/config.hpp>

// nvcc's front end does not know vector extensions of dependent size; it gets the portable lanes.
#if (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDACC__)
#define WRING_NATIVE_VECTORS 1
#else
#define WRING_NATIVE_VECTORS 0
#endif

#if WRING_NATIVE_VECTORS && defined(__x86_64__) && !defined(__HIP_DEVICE_COMPILE__)
#define WRING_X86_64 1
#define WRING_AVX2 __attribute__((target("avx2,fma,bmi2,popcnt")))
#define WRING_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,popcnt")))
#else
#define WRING_X86_64 0
#endif

// Before a loop in which no value depends on another one, whatever the pointers say.
#if defined(__clang__)
#define WRING_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__) && !defined(__CUDACC__)
#define WRING_INDEPENDENT _Pragma("GCC ivdep")
#else
#define WRING_INDEPENDENT
#endif

/// Loops on a host are compiled for each level of the instruction set, and the level is chosen when the program runs. All levels give
/// the same bits.
namespace wring::inline v0::detail {

/// The last two exist on x86-64 alone.
enum class Level { scalar, vector16, avx2, avx512 };

/// The size of a level's registers; 0: plain scalars.
template <Level level> inline constexpr int register_bytes = level == Level::avx512     ? 64
                                                             : level == Level::avx2     ? 32
                                                             : level == Level::vector16 ? 16
                                                                                        : 0;

/// What the hardware holds `Bytes` of T in: a vector, or for Bytes = sizeof(T) a T.
template <class T, int Bytes> struct NativeOf {
#if WRING_NATIVE_VECTORS
  typedef T type __attribute__((vector_size(Bytes)));
#endif
};
template <class T> struct NativeOf<T, static_cast<int>(sizeof(T))> {
  using type = T;
};

/// Whether this program, on this machine, can run a level.
inline bool can_run(Level level) {
  switch (level) {
  case Level::scalar: return true;
  case Level::vector16: return WRING_NATIVE_VECTORS;
#if WRING_X86_64
  case Level::avx2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
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

/// `use.template operator()<level>()`.
template <class Use> decltype(auto) with_level(Level level, const Use& use) {
  switch (level) {
#if WRING_X86_64
  case Level::avx512: return use.template operator()<Level::avx512>();
  case Level::avx2: return use.template operator()<Level::avx2>();
#endif
#if WRING_NATIVE_VECTORS
  case Level::vector16: return use.template operator()<Level::vector16>();
#endif
  default: return use.template operator()<Level::scalar>();
  }
}

/// The same for the fastest level that can run, without those that never are the fastest: each takes its time to compile.
template <class Use> decltype(auto) with_best_level(const Use& use) {
  switch (best_level()) {
#if WRING_X86_64
  case Level::avx512: return use.template operator()<Level::avx512>();
  case Level::avx2: return use.template operator()<Level::avx2>();
#endif
  default: return use.template operator()<WRING_NATIVE_VECTORS ? Level::vector16 : Level::scalar>();
  }
}

/// `body`, a function that is always inlined, compiled for the levels.
template <auto body> struct Compiled;
template <class R, class... A, R (*body)(A...)> struct Compiled<body> {
  WRING_NOINLINE static R plain(A... a) { return body(a...); }
#if WRING_X86_64
  WRING_AVX2 WRING_NOINLINE static R avx2(A... a) { return body(a...); }
  WRING_AVX512 WRING_NOINLINE static R avx512(A... a) { return body(a...); }
#endif

  template <Level level> static constexpr auto at() {
#if WRING_X86_64
    if constexpr (level == Level::avx512)
      return avx512;
    else if constexpr (level == Level::avx2)
      return avx2;
    else
#endif
      return plain;
  }
};

/// The function for one level.
template <Level level, auto body> inline constexpr auto compiled = Compiled<body>::template at<level>();

/// The function for the fastest level that can run.
template <auto body> auto best_compiled() {
  return with_best_level([]<Level level>() { return compiled<level, body>; });
}

}  // namespace wring::inline v0::detail
