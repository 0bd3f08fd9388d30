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
using grid::NativeOf;
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
#if WRING_GRID_NATIVE_VECTORS
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
#if WRING_GRID_NATIVE_VECTORS
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

/// The bits, and the exponents, of the sample of a block.
template <class T> struct Sample {
  using Word = typename Format<T>::Word;
  alignas(64) Word exponents[sample_values];
  Word greatest;
  bool uniform;  ///< all elements of the sample have the same bits
};

template <int Bytes, class T> WRING_ALWAYS_INLINE void take_sample(const std::byte* x, Sample<T>& sample) {
  using F = Format<T>;
  using Word = typename F::Word;
  using L = Row<Word, Bytes>;
  constexpr int rows_together = 16 / L::count;
  typename F::Bits pattern;
  __builtin_memcpy(&pattern, x, sizeof pattern);
  L v, e, most{}, differ{};
  for (int k = 0; k < sample_values; k += L::count) {
    const int row = k / 16 * 4 * rows_together + k % 16 / L::count;
    load_row<typename F::Bits>(v, x + static_cast<std::size_t>(row * L::count) * sizeof(T));
    differ = differ | (v ^ static_cast<Word>(pattern));
    e = (v >> F::mantissa_bits) & F::exponent_mask;
    store(sample.exponents + k, e);
    WRING_GRID_UNROLL
    for (int p = 0; p < L::parts; ++p) most.part[p] = most.part[p] > e.part[p] ? most.part[p] : e.part[p];
  }
  Word all[L::count];
  store(all, most);
  sample.greatest = 0;
  for (const Word one : all) sample.greatest = one > sample.greatest ? one : sample.greatest;
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

/// Floating-point elements into fields; marks the escapes.
template <int Bytes, class T> WRING_ALWAYS_INLINE void
split(const std::byte* x, const Codes<T>& codes, typename Format<T>::Signed* fields, Marks& marks) {
  using F = Format<T>;
  using Word = typename F::Word;
  using L = Row<Word, Bytes>;
  using Native = typename L::Native;
  const Native count = Native{} + codes.count, zero = Native{} + codes.zero, escape = Native{} + codes.escape,
               none{};
  L v, e, distance, code, marked{};
#if WRING_GRID_NATIVE_VECTORS
#pragma GCC unroll 2
#endif
  for (int r = 0; r < F::rows; ++r) {
    const Native bit = Native{} + (Word{1} << r);
    load_row<typename F::Bits>(v, x + static_cast<std::size_t>(r * L::count) * sizeof(T));
    e = (v >> F::mantissa_bits) & F::exponent_mask;
    WRING_GRID_UNROLL
    for (int k = 0; k < L::parts; ++k) {
      distance.part[k] = codes.base - e.part[k];
      code.part[k] = e.part[k] == none ? zero : escape;
      code.part[k] = distance.part[k] < count ? distance.part[k] : code.part[k];
      marked.part[k] |= code.part[k] == escape ? bit : none;
    }
    store(fields + r * L::count,
          (code << F::plain_bits) | ((v >> F::exponent_bits) & F::sign) | (v & F::mantissa_mask));
  }
  store(marks.words, marked);
}

/// The inverse; escapes get some exponent.
template <int Bytes, class T> WRING_ALWAYS_INLINE void
join(const typename Format<T>::Signed* fields, const Codes<T>& codes, std::byte* y, Marks& marks) {
  using F = Format<T>;
  using Word = typename F::Word;
  using L = Row<Word, Bytes>;
  using Native = typename L::Native;
  const Word mask = (Word{1} << codes.bits) - 1;
  const Native zero = Native{} + codes.zero, escape = Native{} + codes.escape, none{};
  L v, e, code, marked{};
#if WRING_GRID_NATIVE_VECTORS
#pragma GCC unroll 2
#endif
  for (int r = 0; r < F::rows; ++r) {
    const Native bit = Native{} + (Word{1} << r);
    load(v, fields + r * L::count);
    code = (v >> F::plain_bits) & mask;
    WRING_GRID_UNROLL
    for (int k = 0; k < L::parts; ++k) {
      e.part[k] = code.part[k] == zero ? none : (codes.base - code.part[k]) & F::exponent_mask;
      marked.part[k] |= code.part[k] == escape ? bit : none;
    }
    store_row<typename F::Bits>(
        y + static_cast<std::size_t>(r * L::count) * sizeof(T),
        ((v & F::sign) << F::exponent_bits) | (e << F::mantissa_bits) | (v & F::mantissa_mask));
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
