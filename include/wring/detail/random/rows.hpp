// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <wring/config.hpp>
#include <wring/detail/processor.hpp>
#include <wring/detail/random/philox.hpp>

#if WRING_X86_64
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/// Philox for 16 counters at a time, at each level of the instruction set.
namespace wring::inline v0::detail {

/// What 16 counters that differ in their third word give: word k of counter l is row[k][l].
struct alignas(64) RandomRows {
  std::uint32_t row[4][16];
};

/// The third word of counter l is counter.word[2] + l.
inline void random_rows(Words4 counter, RandomKey key, RandomRows& rows) {
  for (std::uint32_t lane = 0; lane < 16; ++lane) {
    Words4 own = counter;
    own.word[2] += lane;
    const Words4 words = philox(own, key);
    for (int k = 0; k < 4; ++k) rows.row[k][lane] = words.word[k];
  }
}

// Words are kept in the low halves of 64-bit lanes, where products need them; what is in the high halves is ignored. Registers come in
// pairs, one for the even counters, one for the odd ones: a shift and a mask put them together again.
#define WRING_RANDOM_UNROLL _Pragma("GCC unroll 4")  // g++ would keep the words in memory
#define WRING_RANDOM_ROWS(NAME, TARGET, BYTES, REGISTER, MULTIPLY)                                           \
  TARGET WRING_NOINLINE inline void NAME(Words4 counter, RandomKey first_key, RandomRows& rows) {            \
    typedef std::uint64_t V __attribute__((vector_size(BYTES)));                                             \
    constexpr int pairs = 128 / BYTES / 2, lanes = BYTES / 8;                                                \
    constexpr std::uint64_t low = 0xffffffffu;                                                               \
    const V zero{}, multiplier0 = zero + Philox::multiplier0, multiplier1 = zero + Philox::multiplier1;      \
    for (int pair = 0; pair < pairs; ++pair) {                                                               \
      V w[2][4];                                                                                             \
      V even;                                                                                                \
      for (int lane = 0; lane < lanes; ++lane) even[lane] = 2 * static_cast<unsigned>(pair * lanes + lane);  \
      WRING_RANDOM_UNROLL for (int odd = 0; odd < 2; ++odd) {                                                \
        w[odd][0] = zero + counter.word[0], w[odd][1] = zero + counter.word[1];                              \
        w[odd][2] = even + (counter.word[2] + std::uint64_t(odd));                                           \
        w[odd][3] = zero + counter.word[3];                                                                  \
      }                                                                                                      \
      RandomKey key = first_key;                                                                             \
      for (int round = 0; round < Philox::rounds; ++round) {                                                 \
        const V key0 = zero + key.low, key1 = zero + key.high;                                               \
        WRING_RANDOM_UNROLL for (int odd = 0; odd < 2; ++odd) {                                              \
          const V p = (V)MULTIPLY((REGISTER)w[odd][0], (REGISTER)multiplier0);                               \
          const V q = (V)MULTIPLY((REGISTER)w[odd][2], (REGISTER)multiplier1);                               \
          w[odd][0] = (q >> 32) ^ w[odd][1] ^ key0, w[odd][1] = q;                                           \
          w[odd][2] = (p >> 32) ^ w[odd][3] ^ key1, w[odd][3] = p;                                           \
        }                                                                                                    \
        key.low += Philox::raise0, key.high += Philox::raise1;                                               \
      }                                                                                                      \
      WRING_RANDOM_UNROLL for (int k = 0; k < 4; ++k) {                                                      \
        const V together = (w[0][k] & low) | (w[1][k] << 32);                                                \
        __builtin_memcpy(&rows.row[k][pair * 2 * lanes], &together, sizeof together);                        \
      }                                                                                                      \
    }                                                                                                        \
  }

#if WRING_X86_64
WRING_RANDOM_ROWS(random_rows_16, , 16, __m128i, _mm_mul_epu32)
WRING_RANDOM_ROWS(random_rows_32, WRING_AVX2, 32, __m256i, _mm256_mul_epu32)
WRING_RANDOM_ROWS(random_rows_64, WRING_AVX512, 64, __m512i, _mm512_mul_epu32)
#endif
#undef WRING_RANDOM_ROWS
#undef WRING_RANDOM_UNROLL

/// The function for one level.
template <Level level> constexpr auto choose_random_rows() {
#if WRING_X86_64
  if constexpr (level == Level::avx512)
    return random_rows_64;
  else if constexpr (level == Level::avx2)
    return random_rows_32;
  else if constexpr (level == Level::vector16)
    return random_rows_16;
  else
#endif
    return random_rows;
}
template <Level level> inline constexpr auto random_rows_at = choose_random_rows<level>();

}  // namespace wring::inline v0::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
