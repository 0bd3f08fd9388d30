// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a user reads who compiles in a way that breaks the contract.
#include <wring/config.hpp>

// CASE_fast_math expects: wring: fast-math breaks error bounds and special values
// CASE_fast_math flags: -ffast-math
#if defined(CASE_fast_math)
#endif
// CASE_finite_math expects: wring: fast-math breaks error bounds and special values
// CASE_finite_math flags: -ffinite-math-only
#if defined(CASE_finite_math)
#endif
