// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include <wring/detail/processor.hpp>
#include <wring/detail/sparse/format.hpp>

/// Full blocks in vectors: comparisons to bit masks, compression and expansion by masks, which have no portable form.
namespace wring::inline v0::detail::sparse {

/// Registers of 64 bytes. `Key`: of an element.
template <class Key> struct Avx512Rows {
  static constexpr int lanes = 64 / static_cast<int>(sizeof(Key));  ///< compared at once
  static constexpr int moved = sizeof(Key) == 8 ? 8 : 16;           ///< packed and unpacked at once

#define WRING_OP WRING_AVX512 static WRING_ALWAYS_INLINE
  /// Which of `lanes` patterns have a magnitude of at least `least`.
  WRING_OP std::uint64_t at_least(const std::byte* x, Key magnitude_bits, Key least) {
    const __m512i v = _mm512_loadu_si512(x);
    if constexpr (sizeof(Key) == 2)
      return _mm512_cmpge_epu16_mask(
          _mm512_and_si512(v, _mm512_set1_epi16(static_cast<short>(magnitude_bits))),
          _mm512_set1_epi16(static_cast<short>(least)));
    else if constexpr (sizeof(Key) == 4)
      return _mm512_cmpge_epu32_mask(_mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(magnitude_bits))),
                                     _mm512_set1_epi32(static_cast<int>(least)));
    else
      return _mm512_cmpge_epu64_mask(
          _mm512_and_si512(v, _mm512_set1_epi64(static_cast<long long>(magnitude_bits))),
          _mm512_set1_epi64(static_cast<long long>(least)));
  }
  /// Those of `moved` elements that are marked, side by side; writes `moved` elements.
  WRING_OP void pack(const std::byte* x, unsigned marks, std::byte* out) {
    if constexpr (sizeof(Key) == 2) {
      const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(
                                                               static_cast<__mmask16>(marks), wide)));
    } else if constexpr (sizeof(Key) == 4) {
      _mm512_storeu_si512(out,
                          _mm512_maskz_compress_epi32(static_cast<__mmask16>(marks), _mm512_loadu_si512(x)));
    } else {
      _mm512_storeu_si512(out,
                          _mm512_maskz_compress_epi64(static_cast<__mmask8>(marks), _mm512_loadu_si512(x)));
    }
  }
  /// The inverse, zeros where there is no mark; reads `moved` elements.
  WRING_OP void unpack(const std::byte* in, unsigned marks, std::byte* y) {
    if constexpr (sizeof(Key) == 2) {
      const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), _mm512_cvtepi32_epi16(_mm512_maskz_expand_epi32(
                                                             static_cast<__mmask16>(marks), wide)));
    } else if constexpr (sizeof(Key) == 4) {
      _mm512_storeu_si512(y,
                          _mm512_maskz_expand_epi32(static_cast<__mmask16>(marks), _mm512_loadu_si512(in)));
    } else {
      _mm512_storeu_si512(y, _mm512_maskz_expand_epi64(static_cast<__mmask8>(marks), _mm512_loadu_si512(in)));
    }
  }
#undef WRING_OP
};

template <class T> struct Avx512Level {
  using Key = typename Keys<T>::Key;
  using Rows = Avx512Rows<Key>;

  WRING_AVX512 static Marked mark(const T* x, Key least, std::uint64_t* bitmap) {
    constexpr Key magnitude_bits = static_cast<Key>(~Keys<T>::sign);
    const auto* bytes = reinterpret_cast<const std::byte*>(x);
    Marked marked;
    std::uint64_t nan = 0;
    for (int w = 0; w < bitmap_words; ++w) {
      std::uint64_t word = 0;
      for (int i = 0; i < 64; i += Rows::lanes, bytes += 64) {
        word |= Rows::at_least(bytes, magnitude_bits, least) << i;
        nan |= Rows::at_least(bytes, magnitude_bits, Keys<T>::nan);
      }
      bitmap[w] = word, marked.count += std::popcount(word);
    }
    marked.any_nan = nan != 0;
    return marked;
  }

  WRING_AVX512 static void pack(const T* x, const std::uint64_t* bitmap, T* out) {
    for (int i = 0; i < block_values; i += Rows::moved) {
      const unsigned marks = row(bitmap, i);
      Rows::pack(reinterpret_cast<const std::byte*>(x + i), marks, reinterpret_cast<std::byte*>(out));
      out += std::popcount(marks);
    }
  }

  WRING_AVX512 static void unpack(const T* in, const std::uint64_t* bitmap, T* y) {
    for (int i = 0; i < block_values; i += Rows::moved) {
      const unsigned marks = row(bitmap, i);
      Rows::unpack(reinterpret_cast<const std::byte*>(in), marks, reinterpret_cast<std::byte*>(y + i));
      in += std::popcount(marks);
    }
  }

 private:
  static WRING_ALWAYS_INLINE unsigned row(const std::uint64_t* bitmap, int i) {
    return static_cast<unsigned>(bitmap[i / 64] >> (i % 64)) & ((1u << Rows::moved) - 1);
  }
};

/// Comparisons alone, in registers of 32 bytes, of signed integers: magnitudes have no sign.
template <class T> struct Avx2Level {
  using Key = typename Keys<T>::Key;

  WRING_AVX2 static Marked mark(const T* x, Key least, std::uint64_t* bitmap) {
    const auto* bytes = reinterpret_cast<const std::byte*>(x);
    Marked marked;
    std::uint32_t nan = 0;
    for (int w = 0; w < bitmap_words; ++w) {
      std::uint64_t word = 0;
      for (int i = 0; i < 64; i += 32 / static_cast<int>(sizeof(Key)), bytes += 32) {
        word |= std::uint64_t(above(bytes, static_cast<Key>(least - 1))) << i;
        nan |= above(bytes, Keys<T>::infinity);
      }
      bitmap[w] = word, marked.count += std::popcount(word);
    }
    marked.any_nan = nan != 0;
    return marked;
  }

 private:
  WRING_AVX2 static WRING_ALWAYS_INLINE std::uint32_t above(const std::byte* x, Key below) {
    constexpr Key bits = static_cast<Key>(~Keys<T>::sign);
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
    if constexpr (sizeof(Key) == 2) {
      const __m256i larger =
          _mm256_cmpgt_epi16(_mm256_and_si256(v, _mm256_set1_epi16(static_cast<short>(bits))),
                             _mm256_set1_epi16(static_cast<short>(below)));
      const __m128i bytes =
          _mm_packs_epi16(_mm256_castsi256_si128(larger), _mm256_extracti128_si256(larger, 1));
      return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes));
    } else if constexpr (sizeof(Key) == 4) {
      const __m256i larger =
          _mm256_cmpgt_epi32(_mm256_and_si256(v, _mm256_set1_epi32(static_cast<int>(bits))),
                             _mm256_set1_epi32(static_cast<int>(below)));
      return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(larger)));
    } else {
      const __m256i larger =
          _mm256_cmpgt_epi64(_mm256_and_si256(v, _mm256_set1_epi64x(static_cast<long long>(bits))),
                             _mm256_set1_epi64x(static_cast<long long>(below)));
      return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(larger)));
    }
  }
};

}  // namespace wring::inline v0::detail::sparse
