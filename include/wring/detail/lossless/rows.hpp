// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>

#include <wring/config.hpp>
#include <wring/detail/grid/block.hpp>
#include <wring/detail/lossless/format.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/// What is done to one block of 512 elements on a host, generic over the registers: `Bytes` is their size, 0 for plain scalars.
namespace wring::inline v0::detail::lossless {

using grid::Lanes;
using grid::Row;

/// A row of elements, each in a word.
template <class Bits, class Word, int Bytes>
WRING_ALWAYS_INLINE void load_row(Lanes<Word, Bytes>& v, const std::byte* p) {
  if constexpr (sizeof(Bits) == sizeof(Word)) {
    load(v, p);
  } else {
    constexpr int narrow = Bytes * static_cast<int>(sizeof(Bits)) / static_cast<int>(sizeof(Word));
    typename NativeOf<Bits, narrow>::type part;
    WRING_GRID_UNROLL
    for (int k = 0; k < Lanes<Word, Bytes>::parts; ++k) {
      __builtin_memcpy(&part, p + k * narrow, sizeof part);
      if constexpr (Bytes == sizeof(Word)) v.part[k] = part;
#if WRING_NATIVE_VECTORS
      else
        v.part[k] = __builtin_convertvector(part, typename Lanes<Word, Bytes>::Native);
#endif
    }
  }
}
template <class Bits, class Word, int Bytes>
WRING_ALWAYS_INLINE void store_row(std::byte* p, const Lanes<Word, Bytes>& v) {
  if constexpr (sizeof(Bits) == sizeof(Word)) {
    store(p, v);
  } else {
    constexpr int narrow = Bytes * static_cast<int>(sizeof(Bits)) / static_cast<int>(sizeof(Word));
    using Part = typename NativeOf<Bits, narrow>::type;
    Part part;
    WRING_GRID_UNROLL
    for (int k = 0; k < Lanes<Word, Bytes>::parts; ++k) {
      if constexpr (Bytes == sizeof(Word)) part = static_cast<Bits>(v.part[k]);
#if WRING_NATIVE_VECTORS
      else
        part = __builtin_convertvector(v.part[k], Part);
#endif
      __builtin_memcpy(p + k * narrow, &part, sizeof part);
    }
  }
}

/// 64 bits for each pair of lanes of 32 rows, or lane of 64 rows: which elements are escapes.
struct Marks {
  std::uint64_t words[8] = {};
};

/// What a sample of a block says.
struct Sample {
  Spread spread;
  bool uniform;  ///< all its elements have the same bits
};

/// How many of 128 bytes are less than d, for d below `Spread::distances`.
template <int Bytes> WRING_ALWAYS_INLINE void count_below(const signed char* bytes, std::uint8_t* below) {
  if constexpr (Bytes == 0) {
    for (int d = 0; d < Spread::distances; ++d) {
      int n = 0;
      for (int k = 0; k < sample_values; ++k) n += bytes[k] < d;
      below[d] = static_cast<std::uint8_t>(n);
    }
  } else {
#if WRING_NATIVE_VECTORS
    constexpr int size = Bytes < 32 ? Bytes : 32, parts = sample_values / size;
    typedef signed char V __attribute__((vector_size(size)));
    V v[parts];
    __builtin_memcpy(v, bytes, sizeof v);
#pragma GCC unroll 19
    for (int d = 0; d < Spread::distances; ++d) {
      if (!Spread::needed(d)) continue;
      V less{};
#pragma GCC unroll 8
      for (int k = 0; k < parts; ++k) less -= (V)(v[k] < static_cast<signed char>(d));
      std::uint64_t words[size / 8], sum = 0;
      __builtin_memcpy(words, &less, sizeof less);
      for (const std::uint64_t word : words) sum += word;  // of bytes of at most 16
      below[d] = static_cast<std::uint8_t>((sum * 0x0101010101010101u) >> 56);
    }
#endif
  }
}

template <int Bytes, class T> WRING_ALWAYS_INLINE void take_sample(const std::byte* x, Sample& sample) {
  using F = Format<T>;
  using Word = typename F::Word;
  using L = Row<Word, Bytes>;
  using Native = typename L::Native;
  typename F::Bits pattern;
  __builtin_memcpy(&pattern, x, sizeof pattern);
  const Native none{}, one = none + Word{1}, farthest = none + Word{31};
  L v, e[sample_values / L::count], most{}, differ{}, zeros{};
  for (int k = 0; k < sample_values / L::count; ++k) {
    load_row<typename F::Bits>(v, x + static_cast<std::size_t>(sample_index(k * L::count)) * sizeof(T));
    differ = differ | (v ^ static_cast<Word>(pattern));
    e[k] = (v >> F::mantissa_bits) & F::exponent_mask;
    WRING_GRID_UNROLL
    for (int p = 0; p < L::parts; ++p) {
      most.part[p] = most.part[p] > e[k].part[p] ? most.part[p] : e[k].part[p];
      zeros.part[p] += e[k].part[p] == none ? one : none;
    }
  }
  Word all[L::count], greatest = 0, nothing = 0;
  store(all, most);
  for (const Word w : all) greatest = w > greatest ? w : greatest;
  store(all, zeros);
  for (const Word w : all) nothing += w;
  signed char distances[sample_values];
  for (int k = 0; k < sample_values / L::count; ++k) {
    WRING_GRID_UNROLL
    for (int p = 0; p < L::parts; ++p) {
      v.part[p] = greatest - e[k].part[p];
      v.part[p] = v.part[p] < farthest ? v.part[p] : farthest;
    }
    store_row<std::uint8_t>(reinterpret_cast<std::byte*>(distances) + k * L::count, v);
  }
  count_below<Bytes>(distances, sample.spread.below);
  sample.spread.zeros = static_cast<int>(nothing), sample.spread.greatest = static_cast<unsigned>(greatest);
  sample.uniform = reduce_or(differ) == 0;
}

/// Whether all elements of a block have the same bits.
template <int Bytes, class T> WRING_ALWAYS_INLINE bool is_uniform(const std::byte* x) {
  using F = Format<T>;
  using L = Row<typename F::Word, Bytes>;
  typename F::Bits pattern;
  __builtin_memcpy(&pattern, x, sizeof pattern);
  L v, differ{};
  for (int r = 0; r < F::rows; ++r) {
    load_row<typename F::Bits>(v, x + static_cast<std::size_t>(r * L::count) * sizeof(T));
    differ = differ | (v ^ static_cast<typename F::Word>(pattern));
  }
  return reduce_or(differ) == 0;
}

/// Codes as split and join compare them: in the first bits of a word, where exponents are once the sign is shifted out.
template <class T> struct LeadingCodes {
  using F = Format<T>;
  using Word = typename F::Word;
  static constexpr int word_bits = 8 * static_cast<int>(sizeof(Word)), at = word_bits - F::exponent_bits,
                       sign_out = word_bits - F::bits + 1;
  static constexpr int down = at - F::plain_bits;  ///< from there to a field
  static constexpr Word smallest_normal = Word{1} << at;
  Word base, mask, count, zero, escape;
  WRING_ALWAYS_INLINE explicit LeadingCodes(const Codes<T>& c)
      : base(c.base << at), mask(((Word{1} << c.bits) - 1) << F::plain_bits), count(c.count << at),
        zero(c.zero << at), escape(c.escape << at) {}
};

/// Floating-point elements into fields; marks the escapes. `zeros`: whether there is a code for them.
template <int Bytes, bool zeros, class T> WRING_ALWAYS_INLINE void
split(const std::byte* x, const Codes<T>& codes, typename Format<T>::Signed* fields, Marks& marks) {
  using F = Format<T>;
  using Word = typename F::Word;
  using C = LeadingCodes<T>;
  using L = Row<Word, Bytes>;
  using Native = typename L::Native;
  const C leading(codes);
  const Native none{}, greatest = none + (leading.base | (C::smallest_normal - 1)),
                       count = none + leading.count, zero = none + leading.zero,
                       escape = none + leading.escape, normal = none + C::smallest_normal;
  Native bit = none + Word{1};
  L v, e, code, marked{};
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 4
#endif
  for (int r = 0; r < F::rows; ++r) {
    grid::prefetch(x + static_cast<std::size_t>(r * L::count + 2 * block_values) * sizeof(T));
    load_row<typename F::Bits>(v, x + static_cast<std::size_t>(r * L::count) * sizeof(T));
    e = v << C::sign_out;
    WRING_GRID_UNROLL
    for (int k = 0; k < L::parts; ++k) {
      const Native distance = greatest - e.part[k];  // in its first bits; nothing is borrowed from them
      Native other = escape;
      if constexpr (zeros) other = e.part[k] < normal ? zero : escape;
      code.part[k] = distance < count ? distance : other;
      marked.part[k] |= code.part[k] == escape ? bit : none;
    }
    bit += bit;
    constexpr Word plain = (Word{1} << F::plain_bits) - 1;
    store(fields + r * L::count, (C::down == 0 ? code & ~plain : (code >> C::down) & ~plain) |
                                     ((v >> F::exponent_bits) & F::sign) | (v & F::mantissa_mask));
  }
  store(marks.words, marked);
}

/// The inverse; escapes get some exponent.
template <int Bytes, bool zeros, class T> WRING_ALWAYS_INLINE void
join(const typename Format<T>::Signed* fields, const Codes<T>& codes, std::byte* y, Marks& marks) {
  using F = Format<T>;
  using Word = typename F::Word;
  using C = LeadingCodes<T>;
  using L = Row<Word, Bytes>;
  using Native = typename L::Native;
  const C leading(codes);
  const Native none{}, base = none + (codes.base << F::plain_bits),
                       zero = none + (codes.zero << F::plain_bits),
                       escape = none + (codes.escape << F::plain_bits);
  Native bit = none + Word{1};
  L v, e, code, marked{};
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 4
#endif
  for (int r = 0; r < F::rows; ++r) {
    grid::prefetch_for_write(y + static_cast<std::size_t>(r * L::count + 2 * block_values) * sizeof(T));
    load(v, fields + r * L::count);
    code = v & leading.mask;
    WRING_GRID_UNROLL
    for (int k = 0; k < L::parts; ++k) {
      e.part[k] = base - code.part[k];
      if constexpr (zeros) e.part[k] = code.part[k] == zero ? none : e.part[k];
      marked.part[k] |= code.part[k] == escape ? bit : none;
    }
    bit += bit;
    store_row<typename F::Bits>(y + static_cast<std::size_t>(r * L::count) * sizeof(T),
                                ((v & F::sign) << F::exponent_bits) |
                                    ((e >> 1) & (F::exponent_mask << F::mantissa_bits)) |
                                    (v & F::mantissa_mask));
  }
  store(marks.words, marked);
}

/// The least and the greatest integer of a block, in the order of `bias`.
template <int Bytes, class T>
WRING_ALWAYS_INLINE void find_range(const std::byte* x, typename Format<T>::Word& least,
                                    typename Format<T>::Word& greatest) {
  using F = Format<T>;
  using Word = typename F::Word;
  using L = Row<Word, Bytes>;
  L v, low, high;
  load_row<typename F::Bits>(v, x);
  low = high = v ^ F::bias;
  for (int r = 1; r < F::rows; ++r) {
    load_row<typename F::Bits>(v, x + static_cast<std::size_t>(r * L::count) * sizeof(T));
    v = v ^ F::bias;
    WRING_GRID_UNROLL
    for (int k = 0; k < L::parts; ++k) {
      low.part[k] = v.part[k] < low.part[k] ? v.part[k] : low.part[k];
      high.part[k] = v.part[k] > high.part[k] ? v.part[k] : high.part[k];
    }
  }
  Word lows[L::count], highs[L::count];
  store(lows, low), store(highs, high);
  least = lows[0], greatest = highs[0];
  for (int l = 1; l < L::count; ++l)
    least = lows[l] < least ? lows[l] : least, greatest = highs[l] > greatest ? highs[l] : greatest;
}

/// Integers into their distances to the least one, and back.
template <int Bytes, class T>
WRING_ALWAYS_INLINE void to_distances(const std::byte* x, typename Format<T>::Word least,
                                      typename Format<T>::Signed* fields) {
  using F = Format<T>;
  using L = Row<typename F::Word, Bytes>;
  L v;
  for (int r = 0; r < F::rows; ++r) {
    load_row<typename F::Bits>(v, x + static_cast<std::size_t>(r * L::count) * sizeof(T));
    store(fields + r * L::count, (v ^ F::bias) - least);
  }
}
template <int Bytes, class T> WRING_ALWAYS_INLINE void
from_distances(const typename Format<T>::Signed* fields, int width, typename Format<T>::Word least,
               std::byte* y) {
  using F = Format<T>;
  using Word = typename F::Word;
  using L = Row<Word, Bytes>;
  const Word mask = (Word{1} << width) - 1;
  L v;
  for (int r = 0; r < F::rows; ++r) {
    load(v, fields + r * L::count);
    store_row<typename F::Bits>(y + static_cast<std::size_t>(r * L::count) * sizeof(T),
                                ((v & mask) + least) ^ F::bias);
  }
}

}  // namespace wring::inline v0::detail::lossless

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
