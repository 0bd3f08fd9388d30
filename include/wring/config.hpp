// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/version.hpp>

#if defined(__FAST_MATH__) || (defined(_MSC_VER) && defined(_M_FP_FAST))
#error                                                                                                       \
    "wring: fast-math breaks error bounds and special values; compile the files that include wring without it"
#endif

#if defined(__GNUC__) || defined(__clang__)
#define WRING_ALWAYS_INLINE inline __attribute__((always_inline))
#else
#define WRING_ALWAYS_INLINE inline
#endif
