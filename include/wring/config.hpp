// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/version.hpp>

// What a compiler says of it: all of fast-math, or the parts that remove tests for NaN, or change the order of additions.
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ > 0) ||                 \
    defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) ||                                         \
    (defined(_MSC_VER) && defined(_M_FP_FAST))
#error                                                                                                       \
    "wring: fast-math breaks error bounds and special values; compile the files that include wring without it"
#endif

#if defined(__GNUC__) || defined(__clang__)
#define WRING_ALWAYS_INLINE inline __attribute__((always_inline))
#define WRING_NOINLINE __attribute__((noinline))
#define WRING_COLD __attribute__((cold, noinline))  // branches to it are laid aside, and small
#else
#define WRING_ALWAYS_INLINE inline
#define WRING_NOINLINE
#define WRING_COLD
#endif

namespace wring::inline v0::detail {

/// Whether the processor is set to flush subnormal results or operands to zero: fast-math in any library of the program does that.
inline bool flushes_subnormals() {
  volatile float least_normal = 0x1p-126f, half = 0.5f;
  volatile float subnormal = least_normal * half;
  return subnormal * 2.0f == 0.0f;
}

}  // namespace wring::inline v0::detail
