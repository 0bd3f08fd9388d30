// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/grid/level.hpp>
#include <wring/detail/packed_words/layout.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/// Quanta of one block into words and back, rows of eight words side by side, for each level of the instruction set.
namespace wring::inline v0::detail::packed_words {

/// Whole rows are written past the quanta of a block: they have room for so many more.
inline constexpr std::size_t row_words = 8, spare_fields = 64 + row_words;

/// `Bytes` of words of 64 bits, and as many quanta Q.
template <class Q, int Bytes> struct Part {
#if WRING_NATIVE_VECTORS
  static constexpr int lanes = Bytes / 8;
  typedef u64 Words __attribute__((vector_size(Bytes)));
  typedef i64 Signed __attribute__((vector_size(Bytes)));
  typedef Q Quanta __attribute__((vector_size(lanes * sizeof(Q))));
  WRING_ALWAYS_INLINE static void load(Words& words, const Q* q) {
    Quanta some;
    __builtin_memcpy(&some, q, sizeof some);
    words = (Words) __builtin_convertvector(some, Signed);
  }
  WRING_ALWAYS_INLINE static void store(Q* q, const Words& words) {
    const Quanta some = __builtin_convertvector((Signed)words, Quanta);
    __builtin_memcpy(q, &some, sizeof some);
  }
#endif
};
template <class Q> struct Part<Q, 8> {
  static constexpr int lanes = 1;
  using Words = u64;
  WRING_ALWAYS_INLINE static void load(u64& word, const Q* q) {
    word = static_cast<u64>(static_cast<i64>(*q));
  }
  WRING_ALWAYS_INLINE static void store(Q* q, u64 word) { *q = static_cast<Q>(static_cast<i64>(word)); }
};

/// What a row adds to words behind the last is not written.
template <int Bytes, class Q>
WRING_ALWAYS_INLINE void pack_rows(const Q* q, std::size_t m, const Fields& fields, std::byte* out) {
  using P = Part<Q, Bytes>;
  constexpr std::size_t parts = row_words / static_cast<std::size_t>(P::lanes);
  const std::size_t words = fields.words(m);
  for (std::size_t first = 0; first < words; first += row_words) {
    typename P::Words row[parts] = {}, some;
    int shift = 0;
    for (std::size_t i = first; i < m; i += words, shift += fields.width) {
      const Q* from = q + i;
      Q last[row_words] = {};
      if (m - i < row_words) {
        std::memcpy(last, from, (m - i) * sizeof(Q));
        from = last;
      }
      for (std::size_t p = 0; p < parts; ++p) {
        P::load(some, from + p * static_cast<std::size_t>(P::lanes));
        row[p] += some << shift;
      }
    }
    const std::size_t count = words - first < row_words ? words - first : row_words;
    std::memcpy(out + first * sizeof(u64), row, count * sizeof(u64));
  }
}

/// With half a field's range added to every field none is negative, and each can be cut out by itself. The rows of one field are followed by
/// those of the next, so that what is written past the end of one is overwritten.
template <int Bytes, class Q>
WRING_ALWAYS_INLINE void unpack_rows(const std::byte* in, std::size_t m, const Fields& fields, Q* q) {
  using P = Part<Q, Bytes>;
  constexpr std::size_t parts = row_words / static_cast<std::size_t>(P::lanes);
  const std::size_t words = fields.words(m);
  const u64 half = u64{1} << (fields.width - 1), mask = fields.mask();
  u64 halves = 0, from[row_words];
  for (std::size_t k = 0; k < fields.per_word(); ++k)
    halves += half << (k * static_cast<std::size_t>(fields.width));
  int shift = 0;
  for (std::size_t begin = 0; begin < m; begin += words, shift += fields.width)
    for (std::size_t first = 0; first < words; first += row_words) {
      const std::size_t count = words - first < row_words ? words - first : row_words;
      typename P::Words row[parts];
      if (count == row_words) {
        std::memcpy(row, in + first * sizeof(u64), sizeof row);
      } else {
        std::memcpy(from, in + first * sizeof(u64), count * sizeof(u64));
        std::memset(from + count, 0, (row_words - count) * sizeof(u64));
        std::memcpy(row, from, sizeof row);
      }
      for (std::size_t p = 0; p < parts; ++p)
        P::store(q + begin + first + p * static_cast<std::size_t>(P::lanes),
                 (((row[p] + halves) >> shift) & mask) - half);
    }
}

/// Whether any of the quanta of a block exceeds `most` in magnitude: most - q or most + q is then negative.
template <int Bytes, class Q> WRING_ALWAYS_INLINE bool any_exceeds(const Q* q, Q most) {
  using U = std::make_unsigned_t<Q>;
  using V = typename NativeOf<U, Bytes == 8 ? static_cast<int>(sizeof(Q)) : Bytes>::type;
  constexpr std::size_t lanes = sizeof(V) / sizeof(Q);
  const U limit = static_cast<U>(most);
  V signs{}, some;
  for (std::size_t i = 0; i < block_values; i += lanes) {
    std::memcpy(&some, q + i, sizeof some);
    signs |= (limit - some) | (limit + some);
  }
  U each[lanes], all = 0;
  std::memcpy(each, &signs, sizeof signs);
  for (const U sign : each) all |= sign;
  return all >> (8 * sizeof(Q) - 1) != 0;
}

template <class Q> struct Kernels {
  bool (*any_exceeds)(const Q* q, Q most);
  void (*pack)(const Q* q, std::size_t m, const Fields& fields, std::byte* out);
  void (*unpack)(const std::byte* in, std::size_t m, const Fields& fields, Q* q);
};

template <Level level, class Q> constexpr Kernels<Q> make_kernels() {
  constexpr int bytes = register_bytes<level> >= (WRING_X86_64 ? 32 : 16) ? register_bytes<level> : 8;
  return {compiled<level, packed_words::any_exceeds<bytes, Q>>, compiled<level, pack_rows<bytes, Q>>,
          compiled<level, unpack_rows<bytes, Q>>};
}
template <Level level, class Q> inline constexpr Kernels<Q> kernels_at = make_kernels<level, Q>();

/// For a level that can run.
template <class Q> const Kernels<Q>& kernels_for(Level level) {
  return with_level(level, []<Level l>() -> const Kernels<Q>& { return kernels_at<l, Q>; });
}

/// Those of the fastest level that can run.
template <class Q> const Kernels<Q>& best_kernels() {
  return with_best_level([]<Level level>() -> const Kernels<Q>& { return kernels_at<level, Q>; });
}

}  // namespace wring::inline v0::detail::packed_words

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
