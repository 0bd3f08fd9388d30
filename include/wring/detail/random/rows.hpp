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

/// Random words for 32 places at a time, at each level of the instruction set.
namespace wring::inline v0::detail {

/// What 16 places of a stream give: word k of place l is row[k][l].
struct alignas(64) RandomRows {
  std::uint32_t row[4][16];
  Words4 of(std::size_t l) const { return {{row[0][l], row[1][l], row[2][l], row[3][l]}}; }
};

/// Two times 16 places of a stream: place l of row r has the words of index `index` + l * `next` for the values from
/// `first` + l * `apart` + r * `further` on.
struct RandomPlaces {
  RandomStream stream;
  std::uint64_t first;
  std::uint32_t apart, further, index, next;

  /// Indices 0 to 15 for values from `first` on, and for those `further` on.
  static RandomPlaces indices(const RandomStream& stream, std::uint64_t first, std::uint32_t further) {
    return {stream, first, 0, further, 0, 1};
  }
  /// Index 0 for 32 places, one behind the other.
  static RandomPlaces every(std::uint32_t apart, const RandomStream& stream, std::uint64_t first) {
    return {stream, first, apart, 16 * apart, 0, 0};
  }
};

inline void random_rows(const RandomPlaces& at, RandomRows (&rows)[2]) {
  for (std::uint32_t r = 0; r < 2; ++r)
    for (std::uint32_t l = 0; l < 16; ++l) {
      const std::uint64_t first = at.first + std::uint64_t{l} * at.apart + std::uint64_t{r} * at.further;
      const Words4 words = at.stream.words(first, at.index + l * at.next);
      for (int k = 0; k < 4; ++k) rows[r].row[k][l] = words.word[k];
    }
}

// Words are kept in the low halves of 64-bit lanes, where products need them; what is in the high halves is ignored. Registers come in
// pairs, one for the even places, one for the odd ones: a shift and a mask put them together again. As many go side by side as there is room for.
#define WRING_RANDOM_UNROLL _Pragma("GCC unroll 4")  // g++ would keep the words in memory
#define WRING_RANDOM_ROWS(NAME, TARGET, BYTES, REGISTER, MULTIPLY)                                           \
  TARGET WRING_NOINLINE inline void NAME(const RandomPlaces& at, RandomRows(&rows)[2]) {                     \
    typedef std::uint64_t V __attribute__((vector_size(BYTES)));                                             \
    constexpr int registers = BYTES == 64 ? 4 : 2, lanes = BYTES / 8;                                        \
    constexpr std::uint64_t low = 0xffffffffu;                                                               \
    const V zero{}, multiplier0 = zero + Philox::multiplier0, multiplier1 = zero + Philox::multiplier1;      \
    const V apart = zero + at.apart, next = zero + at.next;                                                  \
    for (int begin = 0; begin < 32; begin += registers * lanes) {                                            \
      const auto begin_of = [&](int g) { return begin + g / 2 * 2 * lanes; };                                \
      V w[registers][4];                                                                                     \
      WRING_RANDOM_UNROLL for (int g = 0; g < registers; ++g) {                                              \
        const std::uint64_t first =                                                                          \
            at.first + static_cast<unsigned>(begin_of(g) / 16) * std::uint64_t{at.further};                  \
        V place;                                                                                             \
        for (int l = 0; l < lanes; ++l) place[l] = static_cast<unsigned>(begin_of(g) % 16 + g % 2 + 2 * l);  \
        w[g][0] = first + (V)MULTIPLY((REGISTER)place, (REGISTER)apart), w[g][1] = w[g][0] >> 32;            \
        w[g][2] = at.index + (V)MULTIPLY((REGISTER)place, (REGISTER)next);                                   \
        w[g][3] = zero + at.stream.item();                                                                   \
      }                                                                                                      \
      V key0 = zero + at.stream.key().low, key1 = zero + at.stream.key().high;                               \
      for (int round = 0; round < Philox::rounds; ++round) {                                                 \
        WRING_RANDOM_UNROLL for (int g = 0; g < registers; ++g) {                                            \
          const V p = (V)MULTIPLY((REGISTER)w[g][0], (REGISTER)multiplier0);                                 \
          const V q = (V)MULTIPLY((REGISTER)w[g][2], (REGISTER)multiplier1);                                 \
          w[g][0] = (q >> 32) ^ w[g][1] ^ key0, w[g][1] = q;                                                 \
          w[g][2] = (p >> 32) ^ w[g][3] ^ key1, w[g][3] = p;                                                 \
        }                                                                                                    \
        key0 += Philox::raise0, key1 += Philox::raise1;                                                      \
      }                                                                                                      \
      WRING_RANDOM_UNROLL for (int g = 0; g < registers; g += 2)                                             \
          WRING_RANDOM_UNROLL for (int k = 0; k < 4; ++k) {                                                  \
        const V together = (w[g][k] & low) | (w[g + 1][k] << 32);                                            \
        __builtin_memcpy(&rows[begin_of(g) / 16].row[k][begin_of(g) % 16], &together, sizeof together);      \
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
