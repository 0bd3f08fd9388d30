// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include <wring/detail/entropy/block.hpp>
#include <wring/detail/entropy/model.hpp>
#include <wring/detail/processor.hpp>

/// Blocks in vectors. The gathers, compressions and expansions that this is made of have no portable form.
namespace wring::inline v0::detail::entropy {

/// Registers of 16 lanes.
struct Avx512 {
  using Vector = __m512i;
  using Mask = __mmask16;
  static constexpr int lanes = 16;
  static constexpr Mask all = 0xffff;

#define WRING_OP WRING_AVX512 static WRING_ALWAYS_INLINE
  WRING_OP Vector load(const void* p) { return _mm512_loadu_si512(p); }
  WRING_OP void store(void* p, const Vector& v) { _mm512_storeu_si512(p, v); }
  WRING_OP Vector load_halves(const void* p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  WRING_OP void store_halves(void* p, const Vector& v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(v));
  }
  /// Bytes, and the squares of bytes below 2^7, added up in some lanes.
  WRING_OP Vector add_bytes(const Vector& v) { return _mm512_sad_epu8(v, _mm512_setzero_si512()); }
  WRING_OP Vector add_squares(const Vector& v) {
    return _mm512_madd_epi16(_mm512_maddubs_epi16(v, v), _mm512_set1_epi16(1));
  }
  WRING_OP Vector fill(std::uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  WRING_OP Vector add(const Vector& a, const Vector& b) { return _mm512_add_epi32(a, b); }
  WRING_OP Vector subtract(const Vector& a, const Vector& b) { return _mm512_sub_epi32(a, b); }
  WRING_OP Vector multiply(const Vector& a, const Vector& b) { return _mm512_mullo_epi32(a, b); }
  WRING_OP Vector both(const Vector& a, const Vector& b) { return _mm512_and_si512(a, b); }
  WRING_OP Vector either(const Vector& a, const Vector& b) { return _mm512_or_si512(a, b); }
  WRING_OP Vector exclusive(const Vector& a, const Vector& b) { return _mm512_xor_si512(a, b); }
  WRING_OP Vector least(const Vector& a, const Vector& b) { return _mm512_min_epu32(a, b); }
  WRING_OP Vector left(const Vector& a, int bits) {
    return _mm512_slli_epi32(a, static_cast<unsigned>(bits));
  }
  WRING_OP Vector right(const Vector& a, int bits) {
    return _mm512_srli_epi32(a, static_cast<unsigned>(bits));
  }
  WRING_OP Vector right_signed(const Vector& a, int bits) {
    return _mm512_srai_epi32(a, static_cast<unsigned>(bits));
  }
  WRING_OP Mask equal(const Vector& a, const Vector& b) { return _mm512_cmpeq_epi32_mask(a, b); }
  WRING_OP Mask below(const Vector& a, const Vector& b) {
    return _mm512_cmplt_epu32_mask(a, b);
  }  // below 2^31
  WRING_OP Vector choose(Mask which, const Vector& a, const Vector& b) {
    return _mm512_mask_mov_epi32(b, which, a);
  }
  WRING_OP Vector gather(const std::uint32_t* from, const Vector& index) {
    return _mm512_i32gather_epi32(index, from, 4);
  }
  /// The low halves of the chosen lanes one after the other, and 32 bytes in all.
  WRING_OP void store_words(void* p, Mask which, const Vector& v) {
    _mm256_storeu_si256(static_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(which, v)));
  }
  /// Words for the chosen lanes, one after the other, zeros for the others.
  WRING_OP Vector load_words(const void* p, Mask which) {
    return _mm512_maskz_expand_epi32(
        which, _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p))));
  }
  /// Exact: a quotient below 2^20 that is no integer is at least 2^-12 away from one, which binary64 can tell.
  WRING_OP Vector divide(const Vector& a, const Vector& b) {
    const __m256i low = _mm512_cvttpd_epu32(_mm512_div_pd(_mm512_cvtepu32_pd(_mm512_castsi512_si256(a)),
                                                          _mm512_cvtepu32_pd(_mm512_castsi512_si256(b))));
    const __m256i high =
        _mm512_cvttpd_epu32(_mm512_div_pd(_mm512_cvtepu32_pd(_mm512_extracti64x4_epi64(a, 1)),
                                          _mm512_cvtepu32_pd(_mm512_extracti64x4_epi64(b, 1))));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
#undef WRING_OP
};

/// Which lanes of eight are chosen, as bytes: for each set of lanes the chosen ones in order, and the number of chosen lanes before
/// each.
struct LaneTables {
  std::array<std::uint64_t, 256> chosen{}, before{};
  constexpr LaneTables() {
    for (unsigned set = 0; set < 256; ++set) {
      std::uint64_t count = 0;
      for (unsigned lane = 0; lane < 8; ++lane) {
        before[set] |= count << (8 * lane);
        if (set >> lane & 1) chosen[set] |= std::uint64_t{lane} << (8 * count++);
      }
    }
  }
};
inline constexpr LaneTables lane_tables;

/// Registers of 8 lanes.
struct Avx2 {
  using Vector = __m256i;
  using Mask = unsigned;
  static constexpr int lanes = 8;
  static constexpr Mask all = 0xff;

#define WRING_OP WRING_AVX2 static WRING_ALWAYS_INLINE
  WRING_OP Vector load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  WRING_OP void store(void* p, const Vector& v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
  WRING_OP Vector load_halves(const void* p) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  WRING_OP void store_halves(void* p, const Vector& v) {
    _mm_storeu_si128(static_cast<__m128i*>(p),
                     _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
  }
  WRING_OP Vector add_bytes(const Vector& v) { return _mm256_sad_epu8(v, _mm256_setzero_si256()); }
  WRING_OP Vector add_squares(const Vector& v) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(v, v), _mm256_set1_epi16(1));
  }
  WRING_OP Vector fill(std::uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  WRING_OP Vector add(const Vector& a, const Vector& b) { return _mm256_add_epi32(a, b); }
  WRING_OP Vector subtract(const Vector& a, const Vector& b) { return _mm256_sub_epi32(a, b); }
  WRING_OP Vector multiply(const Vector& a, const Vector& b) { return _mm256_mullo_epi32(a, b); }
  WRING_OP Vector both(const Vector& a, const Vector& b) { return _mm256_and_si256(a, b); }
  WRING_OP Vector either(const Vector& a, const Vector& b) { return _mm256_or_si256(a, b); }
  WRING_OP Vector exclusive(const Vector& a, const Vector& b) { return _mm256_xor_si256(a, b); }
  WRING_OP Vector least(const Vector& a, const Vector& b) { return _mm256_min_epu32(a, b); }
  WRING_OP Vector left(const Vector& a, int bits) { return _mm256_slli_epi32(a, bits); }
  WRING_OP Vector right(const Vector& a, int bits) { return _mm256_srli_epi32(a, bits); }
  WRING_OP Vector right_signed(const Vector& a, int bits) { return _mm256_srai_epi32(a, bits); }
  WRING_OP Mask mask_of(const Vector& v) {
    return static_cast<Mask>(_mm256_movemask_ps(_mm256_castsi256_ps(v)));
  }
  WRING_OP Mask equal(const Vector& a, const Vector& b) { return mask_of(_mm256_cmpeq_epi32(a, b)); }
  WRING_OP Mask below(const Vector& a, const Vector& b) {
    return mask_of(_mm256_cmpgt_epi32(b, a));
  }  // below 2^31
  WRING_OP Vector lanes_of(const std::uint64_t& bytes) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(&bytes)));
  }
  WRING_OP Vector choose(Mask which, const Vector& a, const Vector& b) {
    const Vector bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const Vector chosen = _mm256_cmpeq_epi32(_mm256_and_si256(fill(which), bit), bit);
    return _mm256_blendv_epi8(b, a, chosen);
  }
  WRING_OP Vector gather(const std::uint32_t* from, const Vector& index) {
    return _mm256_i32gather_epi32(reinterpret_cast<const int*>(from), index, 4);
  }
  WRING_OP void store_words(void* p, Mask which, const Vector& v) {
    const Vector ordered =
        _mm256_permutevar8x32_epi32(both(v, fill(0xffff)), lanes_of(lane_tables.chosen[which]));
    _mm_storeu_si128(static_cast<__m128i*>(p),
                     _mm_packus_epi32(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1)));
  }
  WRING_OP Vector load_words(const void* p, Mask which) {
    const Vector words = _mm256_cvtepu16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
    const Vector placed = _mm256_permutevar8x32_epi32(words, lanes_of(lane_tables.before[which]));
    return choose(which, placed, _mm256_setzero_si256());
  }
  /// As above.
  WRING_OP Vector divide(const Vector& a, const Vector& b) {
    const __m128i low = _mm256_cvttpd_epi32(
                      _mm256_div_pd(doubles(_mm256_castsi256_si128(a)), doubles(_mm256_castsi256_si128(b)))),
                  high = _mm256_cvttpd_epi32(_mm256_div_pd(doubles(_mm256_extracti128_si256(a, 1)),
                                                           doubles(_mm256_extracti128_si256(b, 1))));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
  }
  WRING_OP __m256d doubles(const __m128i& v) {  // the low bits of 2^52 + v
    const __m256d magic = _mm256_set1_pd(0x1p52);
    return _mm256_sub_pd(_mm256_or_pd(_mm256_castsi256_pd(_mm256_cvtepu32_epi64(v)), magic), magic);
  }
#undef WRING_OP
};

/// The coder in registers R.
#define WRING_ENTROPY_LEVEL(NAME, TARGET, R)                                                                 \
  class NAME {                                                                                               \
    using V = R::Vector;                                                                                     \
    using M = R::Mask;                                                                                       \
    static constexpr int parts = static_cast<int>(wide_lanes) / R::lanes;                                    \
    static constexpr int rows = static_cast<int>(block_values / wide_lanes);                                 \
                                                                                                             \
   public:                                                                                                   \
    TARGET static std::byte* push(std::uint32_t* states, const Model& model, int shift,                      \
                                  const std::int32_t* q, std::byte* to) {                                    \
      const int lower = lower_bits(shift);                                                                   \
      V x[parts], v[parts], symbol[parts];                                                                   \
      M known[parts], low[parts];                                                                            \
      for (int k = 0; k < parts; ++k) x[k] = R::load(states + R::lanes * k);                                 \
      for (int row = rows; row-- > 0;) {                                                                     \
        bool plain = true;                                                                                   \
        for (int k = 0; k < parts; ++k) {                                                                    \
          v[k] = R::load(q + static_cast<int>(wide_lanes) * row + R::lanes * k);                             \
          low[k] = model.has_common ? not_common(model, v[k]) : R::all;                                      \
          if (lower != 0) push_bits(x[k], low[k], v[k], lower, to);                                          \
        }                                                                                                    \
        if (shift > 16)                                                                                      \
          for (int k = 0; k < parts; ++k) push_bits(x[k], low[k], R::right(v[k], 16), shift - 16, to);       \
        for (int k = 0; k < parts; ++k) {                                                                    \
          v[k] = R::right_signed(v[k], shift);                                                               \
          known[k] = look_up(model, v[k], symbol[k]);                                                        \
          if (model.has_common) {                                                                            \
            symbol[k] = R::choose(low[k], symbol[k], R::fill(model.push[model.escape + 1]));                 \
            known[k] = static_cast<M>(known[k] | (R::all & ~low[k]));                                        \
          }                                                                                                  \
          plain = plain && known[k] == R::all;                                                               \
        }                                                                                                    \
        if (!plain)                                                                                          \
          for (const int from : {0, 16})                                                                     \
            for (int k = 0; k < parts; ++k)                                                                  \
              push_bits(x[k], static_cast<M>(R::all & ~known[k]), R::right_signed(v[k], from), 16, to);      \
        for (int k = 0; k < parts; ++k) push_symbol(x[k], symbol[k], to);                                    \
      }                                                                                                      \
      for (int k = 0; k < parts; ++k) R::store(states + R::lanes * k, x[k]);                                 \
      return to;                                                                                             \
    }                                                                                                        \
                                                                                                             \
    TARGET static void pop(std::uint32_t* states, const Model& model, int shift, std::int32_t* q,            \
                           Reader& in) {                                                                     \
      const V lowest = R::fill(static_cast<std::uint32_t>(model.lowest)), escape = R::fill(model.escape);    \
      Reader at = in; /* a copy of its own, which no store through q may change */                           \
      V x[parts], v[parts];                                                                                  \
      M escaped[parts], low[parts];                                                                          \
      for (int k = 0; k < parts; ++k) x[k] = R::load(states + R::lanes * k);                                 \
      for (int row = 0; row < rows; ++row) {                                                                 \
        M any = 0;                                                                                           \
        for (int k = 0; k < parts; ++k) {                                                                    \
          v[k] = pop_symbol(x[k], model.slot, R::fill(0));                                                   \
          escaped[k] = R::equal(v[k], escape), any = static_cast<M>(any | escaped[k]);                       \
          low[k] = model.has_common ? static_cast<M>(R::all & ~R::below(escape, v[k])) : R::all;             \
          v[k] = R::add(v[k], lowest);                                                                       \
        }                                                                                                    \
        refill(x, at);                                                                                       \
        if (any) pop_escaped(v, x, escaped, at);                                                             \
        for (const int bits : {shift > 16 ? shift - 16 : 0, lower_bits(shift)}) {                            \
          if (bits == 0) continue;                                                                           \
          for (int k = 0; k < parts; ++k) pop_bits(v[k], x[k], low[k], bits);                                \
          refill(x, at);                                                                                     \
        }                                                                                                    \
        for (int k = 0; k < parts; ++k) {                                                                    \
          if (model.has_common)                                                                              \
            v[k] = R::choose(low[k], v[k], R::fill(static_cast<std::uint32_t>(model.common)));               \
          R::store(q + static_cast<int>(wide_lanes) * row + R::lanes * k, v[k]);                             \
        }                                                                                                    \
      }                                                                                                      \
      for (int k = 0; k < parts; ++k) R::store(states + R::lanes * k, x[k]);                                 \
      in = at;                                                                                               \
    }                                                                                                        \
                                                                                                             \
    TARGET static std::byte* push_each(std::uint32_t* states, const ModelSet& models,                        \
                                       const std::uint16_t* which, const std::int32_t* q, std::byte* to) {   \
      V x[parts], v[parts], symbol[parts];                                                                   \
      M escaped[parts];                                                                                      \
      for (int k = 0; k < parts; ++k) x[k] = R::load(states + R::lanes * k);                                 \
      for (int row = rows; row-- > 0;) {                                                                     \
        M any = 0;                                                                                           \
        for (int k = 0; k < parts; ++k) {                                                                    \
          const int at = static_cast<int>(wide_lanes) * row + R::lanes * k;                                  \
          v[k] = R::load(q + at);                                                                            \
          const V s = R::subtract(v[k], R::fill(static_cast<std::uint32_t>(ModelSet::lowest)));              \
          symbol[k] =                                                                                        \
              R::gather(models.push, R::add(R::left(R::load_halves(which + at), ModelSet::symbol_bits),      \
                                            R::least(s, R::fill(ModelSet::escape))));                        \
          const V mark = R::fill(ModelSet::escaped);                                                         \
          escaped[k] = R::equal(R::both(symbol[k], mark), mark), any = static_cast<M>(any | escaped[k]);     \
          symbol[k] = R::both(symbol[k], R::fill(~ModelSet::escaped));                                       \
        }                                                                                                    \
        if (any)                                                                                             \
          for (const int from : {0, 16})                                                                     \
            for (int k = 0; k < parts; ++k)                                                                  \
              push_bits(x[k], escaped[k], R::right_signed(v[k], from), 16, to);                              \
        for (int k = 0; k < parts; ++k) push_symbol(x[k], symbol[k], to);                                    \
      }                                                                                                      \
      for (int k = 0; k < parts; ++k) R::store(states + R::lanes * k, x[k]);                                 \
      return to;                                                                                             \
    }                                                                                                        \
                                                                                                             \
    TARGET static void pop_each(std::uint32_t* states, const ModelSet& models, const std::uint16_t* which,   \
                                std::int32_t* q, Reader& in) {                                               \
      Reader at = in;                                                                                        \
      V x[parts], v[parts];                                                                                  \
      M escaped[parts];                                                                                      \
      for (int k = 0; k < parts; ++k) x[k] = R::load(states + R::lanes * k);                                 \
      for (int row = 0; row < rows; ++row) {                                                                 \
        M any = 0;                                                                                           \
        for (int k = 0; k < parts; ++k) {                                                                    \
          const V model = R::load_halves(which + static_cast<int>(wide_lanes) * row + R::lanes * k);         \
          v[k] = pop_symbol(x[k], models.slot, R::left(model, precision));                                   \
          escaped[k] = R::equal(v[k], R::fill(ModelSet::escape)), any = static_cast<M>(any | escaped[k]);    \
          v[k] = R::add(v[k], R::fill(static_cast<std::uint32_t>(ModelSet::lowest)));                        \
        }                                                                                                    \
        refill(x, at);                                                                                       \
        if (any) pop_escaped(v, x, escaped, at);                                                             \
        for (int k = 0; k < parts; ++k)                                                                      \
          R::store(q + static_cast<int>(wide_lanes) * row + R::lanes * k, v[k]);                             \
      }                                                                                                      \
      for (int k = 0; k < parts; ++k) R::store(states + R::lanes * k, x[k]);                                 \
      in = at;                                                                                               \
    }                                                                                                        \
                                                                                                             \
    TARGET static std::uint64_t magnitudes(const std::int32_t* q) {                                          \
      V low = R::fill(0), high = low; /* halves, so that no lane overflows */                                \
      for (std::size_t i = 0; i < block_values; i += R::lanes) {                                             \
        const V v = R::load(q + i), negative = R::both(v, R::right_signed(v, 31));                           \
        const V magnitude = R::subtract(v, R::left(negative, 1));                                            \
        low = R::add(low, R::both(magnitude, R::fill(0xffff))),                                              \
        high = R::add(high, R::right(magnitude, 16));                                                        \
      }                                                                                                      \
      std::uint32_t lows[R::lanes], highs[R::lanes];                                                         \
      R::store(lows, low), R::store(highs, high);                                                            \
      std::uint64_t sum = 0;                                                                                 \
      for (int l = 0; l < R::lanes; ++l) sum += lows[l] + (std::uint64_t{highs[l]} << 16);                   \
      return sum;                                                                                            \
    }                                                                                                        \
                                                                                                             \
    TARGET static void own_models(const std::uint16_t* before, int scale, std::uint16_t* which) {            \
      constexpr std::uint32_t up = 16; /* so that no number is below 0 */                                    \
      for (std::size_t i = 0; i < block_values; i += R::lanes) {                                             \
        const V average = R::load_halves(before + i);                                                        \
        V k = R::fill(static_cast<std::uint32_t>(scale - 1) + up - own_thresholds.size() / 2);               \
        for (const std::uint16_t threshold : own_thresholds)                                                 \
          k = R::choose(R::below(average, R::fill(threshold)), k, R::add(k, R::fill(1)));                    \
        k = R::least(R::choose(R::below(k, R::fill(up)), R::fill(up), k),                                    \
                     R::fill(up + ModelSet::count - 1));                                                     \
        R::store_halves(which + i, R::subtract(k, R::fill(up)));                                             \
      }                                                                                                      \
    }                                                                                                        \
                                                                                                             \
    TARGET static void relative(const std::int32_t* q, std::int32_t factor, std::uint16_t* magnitudes) {     \
      for (std::size_t i = 0; i < block_values; i += R::lanes)                                               \
        R::store_halves(magnitudes + i, relative_of(R::load(q + i), factor));                                \
    }                                                                                                        \
                                                                                                             \
    TARGET static void learn(const std::uint16_t* before, const std::int32_t* q, std::int32_t factor,        \
                             std::uint16_t* after) {                                                         \
      for (std::size_t i = 0; i < block_values; i += R::lanes) {                                             \
        const V average = R::load_halves(before + i),                                                        \
                rest = R::subtract(relative_of(R::load(q + i), factor), average);                            \
        R::store_halves(after + i, R::add(average, R::right_signed(rest, 3)));                               \
      }                                                                                                      \
    }                                                                                                        \
                                                                                                             \
    TARGET static Sums fold(const std::uint8_t* values, std::size_t row, std::size_t rows) {                 \
      V sums = R::fill(0), squares = sums;                                                                   \
      for (std::size_t c = 0; c + 64 <= row; c += 64) {                                                      \
        alignas(64) std::uint8_t bytes[64];                                                                  \
        fold_columns(values + c, row, rows, bytes);                                                          \
        for (std::size_t k = 0; k < 64; k += 4 * R::lanes) {                                                 \
          const V some = R::load(bytes + k);                                                                 \
          sums = R::add(sums, R::add_bytes(some)), squares = R::add(squares, R::add_squares(some));          \
        }                                                                                                    \
      }                                                                                                      \
      std::uint32_t parts_of[2][R::lanes];                                                                   \
      R::store(parts_of[0], sums), R::store(parts_of[1], squares);                                           \
      Sums all;                                                                                              \
      for (const std::uint32_t part : parts_of[0]) all.of_all += part;                                       \
      for (const std::uint32_t part : parts_of[1]) all.of_squares += part;                                   \
      return all;                                                                                            \
    }                                                                                                        \
                                                                                                             \
   private:                                                                                                  \
    TARGET static WRING_ALWAYS_INLINE V relative_of(const V& v, std::int32_t factor) {                       \
      const V sign = R::right_signed(v, 31);                                                                 \
      const V magnitude = R::subtract(R::exclusive(v, sign), sign);                                          \
      const V clipped = R::least(magnitude, R::fill(greatest_clipped));                                      \
      return R::least(R::right(R::multiply(clipped, R::fill(static_cast<std::uint32_t>(factor))), 2),        \
                      R::fill(greatest_relative));                                                           \
    }                                                                                                        \
    static int lower_bits(int shift) { return shift < 16 ? shift : 16; }                                     \
                                                                                                             \
    TARGET static WRING_ALWAYS_INLINE M not_common(const Model& model, const V& v) {                         \
      return static_cast<M>(R::all & ~R::equal(v, R::fill(static_cast<std::uint32_t>(model.common))));       \
    }                                                                                                        \
                                                                                                             \
    /* The entries of the symbols; which of them are no escapes. */                                          \
    TARGET static WRING_ALWAYS_INLINE M look_up(const Model& model, const V& v, V& symbol) {                 \
      const V s = R::subtract(v, R::fill(static_cast<std::uint32_t>(model.lowest)));                         \
      symbol = R::gather(model.push, R::least(s, R::fill(model.escape)));                                    \
      const V escape = R::fill(model.push[model.escape]);                                                    \
      const M unknown = static_cast<M>(R::equal(symbol, escape) | R::below(symbol, R::fill(1u << 16)));      \
      symbol = R::choose(unknown, escape, symbol);                                                           \
      return static_cast<M>(R::all & ~unknown);                                                              \
    }                                                                                                        \
                                                                                                             \
    /* The low words of the lanes in `which`, which lose them. */                                            \
    TARGET static WRING_ALWAYS_INLINE void words_of(V& x, M which, std::byte*& to) {                         \
      R::store_words(to, which, x);                                                                          \
      to += 2 * _mm_popcnt_u32(which);                                                                       \
      x = R::choose(which, R::right(x, 16), x);                                                              \
    }                                                                                                        \
                                                                                                             \
    TARGET static WRING_ALWAYS_INLINE void push_symbol(V& x, const V& symbol, std::byte*& to) {              \
      const V frequency = R::right(symbol, 16);                                                              \
      words_of(x, static_cast<M>(R::all & ~R::below(R::right(x, 20), frequency)), to);                       \
      /* q 2^12 + (x - q f) + start */                                                                       \
      x = R::add(R::add(x, R::both(symbol, R::fill(0xffff))),                                                \
                 R::multiply(R::divide(x, frequency), R::subtract(R::fill(total_frequency), frequency)));    \
    }                                                                                                        \
                                                                                                             \
    /* The lowest bits of v, 1 to 16 of them. */                                                             \
    TARGET static WRING_ALWAYS_INLINE void push_bits(V& x, M which, const V& v, int bits, std::byte*& to) {  \
      const M empty = R::equal(R::right(x, 32 - bits), R::fill(0));                                          \
      words_of(x, static_cast<M>(which & ~empty), to);                                                       \
      x = R::choose(which, R::either(R::left(x, bits), R::both(v, R::fill((1u << bits) - 1))), x);           \
    }                                                                                                        \
                                                                                                             \
    /* Below those of v. */                                                                                  \
    TARGET static WRING_ALWAYS_INLINE void pop_bits(V& v, V& x, M which, int bits) {                         \
      v = R::choose(which, R::either(R::left(v, bits), R::both(x, R::fill((1u << bits) - 1))), v);           \
      x = R::choose(which, R::right(x, bits), x);                                                            \
    }                                                                                                        \
                                                                                                             \
    TARGET static WRING_ALWAYS_INLINE void pop_escaped(V (&v)[parts], V (&x)[parts],                         \
                                                       const M (&which)[parts], Reader& in) {                \
      for (int half = 0; half < 2; ++half) {                                                                 \
        for (int k = 0; k < parts; ++k) pop_bits(v[k], x[k], which[k], 16);                                  \
        refill(x, in);                                                                                       \
      }                                                                                                      \
    }                                                                                                        \
                                                                                                             \
    /* Slots are those from `first` on. */                                                                   \
    TARGET static WRING_ALWAYS_INLINE V pop_symbol(V& x, const std::uint32_t* slots, const V& first) {       \
      const V places = R::fill(total_frequency - 1),                                                         \
              slot = R::gather(slots, R::add(R::both(x, places), first));                                    \
      const V frequency = R::add(R::both(R::right(slot, 8), places), R::fill(1));                            \
      x = R::add(R::multiply(frequency, R::right(x, precision)), R::right(slot, 20));                        \
      return R::both(slot, R::fill(255));                                                                    \
    }                                                                                                        \
                                                                                                             \
    /* States that are too small take a word each. */                                                        \
    TARGET static WRING_ALWAYS_INLINE void refill(V (&x)[parts], Reader& in) {                               \
      M which[parts];                                                                                        \
      unsigned words = 0;                                                                                    \
      for (int k = 0; k < parts; ++k) {                                                                      \
        which[k] = R::equal(R::right(x[k], 16), R::fill(0));                                                 \
        words += static_cast<unsigned>(_mm_popcnt_u32(which[k]));                                            \
      }                                                                                                      \
      const std::byte* from = in.take(words);                                                                \
      for (int k = 0; k < parts; from += 2 * _mm_popcnt_u32(which[k]), ++k)                                  \
        x[k] = R::choose(which[k], R::either(R::left(x[k], 16), R::load_words(from, which[k])), x[k]);       \
    }                                                                                                        \
  };
WRING_ENTROPY_LEVEL(Avx2Level, WRING_AVX2, Avx2)
WRING_ENTROPY_LEVEL(Avx512Level, WRING_AVX512, Avx512)
#undef WRING_ENTROPY_LEVEL

}  // namespace wring::inline v0::detail::entropy
