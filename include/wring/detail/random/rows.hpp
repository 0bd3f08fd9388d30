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

/// Random words for 16 places at a time, at each level of the instruction set.
namespace wring::inline v0::detail {

/// What 16 places of a stream give: word k of place l is row[k][l].
struct alignas(64) RandomRows {
  std::uint32_t row[4][16];
  Words4 of(std::size_t l) const { return {{row[0][l], row[1][l], row[2][l], row[3][l]}}; }
};

/// Sixteen places of a stream: of place l, the words of index `index` + l * `next` for the values from `first` + l * `apart` on.
struct RandomPlaces {
  RandomStream stream;
  std::uint64_t first;
  std::uint32_t apart, index, next;

  static RandomPlaces indices(const RandomStream& stream, std::uint64_t first) {
    return {stream, first, 0, 0, 1};
  }
  static RandomPlaces every(std::uint32_t apart, const RandomStream& stream, std::uint64_t first) {
    return {stream, first, apart, 0, 0};
  }
};

inline void random_rows(const RandomPlaces& at, RandomRows& rows) {
  for (std::uint32_t l = 0; l < 16; ++l) {
    const Words4 words = at.stream.words(at.first + std::uint64_t{l} * at.apart, at.index + l * at.next);
    for (int k = 0; k < 4; ++k) rows.row[k][l] = words.word[k];
  }
}

// Words are kept in the low halves of 64-bit lanes, where products need them; what is in the high halves is ignored. Registers come in
// pairs, one for the even places, one for the odd ones: a shift and a mask put them together again.
#define WRING_RANDOM_UNROLL _Pragma("GCC unroll 4")  // g++ would keep the words in memory
#define WRING_RANDOM_ROWS(NAME, TARGET, BYTES, REGISTER, MULTIPLY)                                           \
  TARGET WRING_NOINLINE inline void NAME(const RandomPlaces& at, RandomRows& rows) {                         \
    typedef std::uint64_t V __attribute__((vector_size(BYTES)));                                             \
    constexpr int pairs = 128 / BYTES / 2, lanes = BYTES / 8;                                                \
    constexpr std::uint64_t low = 0xffffffffu;                                                               \
    const V zero{}, multiplier0 = zero + Philox::multiplier0, multiplier1 = zero + Philox::multiplier1;      \
    const V apart = zero + at.apart, next = zero + at.next;                                                  \
    for (int pair = 0; pair < pairs; ++pair) {                                                               \
      V w[2][4];                                                                                             \
      V place;                                                                                               \
      for (int l = 0; l < lanes; ++l) place[l] = 2 * static_cast<unsigned>(pair * lanes + l);                \
      WRING_RANDOM_UNROLL for (int odd = 0; odd < 2; ++odd, place += 1) {                                    \
        w[odd][0] = at.first + (V)MULTIPLY((REGISTER)place, (REGISTER)apart);                                \
        w[odd][1] = w[odd][0] >> 32;                                                                         \
        w[odd][2] = at.index + (V)MULTIPLY((REGISTER)place, (REGISTER)next);                                 \
        w[odd][3] = zero + at.stream.item();                                                                 \
      }                                                                                                      \
      V key0 = zero + at.stream.key().low, key1 = zero + at.stream.key().high;                               \
      for (int round = 0; round < Philox::rounds; ++round) {                                                 \
        WRING_RANDOM_UNROLL for (int odd = 0; odd < 2; ++odd) {                                              \
          const V p = (V)MULTIPLY((REGISTER)w[odd][0], (REGISTER)multiplier0);                               \
          const V q = (V)MULTIPLY((REGISTER)w[odd][2], (REGISTER)multiplier1);                               \
          w[odd][0] = (q >> 32) ^ w[odd][1] ^ key0, w[odd][1] = q;                                           \
          w[odd][2] = (p >> 32) ^ w[odd][3] ^ key1, w[odd][3] = p;                                           \
        }                                                                                                    \
        key0 += Philox::raise0, key1 += Philox::raise1;                                                      \
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
