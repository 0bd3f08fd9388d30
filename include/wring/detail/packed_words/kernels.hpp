// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstddef>
#include <span>

#include <wring/detail/grid/arithmetic.hpp>
#include <wring/detail/packed_words/blocks.hpp>
#include <wring/detail/packed_words/layout.hpp>
#include <wring/detail/packed_words/parameters.hpp>
#include <wring/detail/spaces.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/error.hpp>

/// Whole pieces: on a host block by block, elsewhere word by word, which is what neighbouring threads read and write side by side. Sizes were
/// checked.
namespace wring::inline v0::detail::packed_words {

/// Word j of a block; what it is made of.
struct Place {
  std::size_t block, word, values;  ///< `values`: of the block
};
KOKKOS_INLINE_FUNCTION Place place_of(const Layout& layout, std::size_t word) {
  const std::size_t each = layout.block_words(block_values), block = word / each;
  return {block, word - block * each, layout.values_in(block)};
}

/// One word of a piece for each index. `too_large`: how many values exceed what was agreed upon.
template <class T> struct EncodeWords {
  const T* x;
  u64* out;
  Layout layout;
  double step, inverse;
  bool power_of_two;
  i64 most;

  KOKKOS_FUNCTION void operator()(std::size_t index, std::size_t& too_large) const {
    const Place at = place_of(layout, index);
    const T* values = x + at.block * block_values;
    const std::size_t quanta = layout.quanta.words(at.values);
    out[index] = at.word < quanta ? quanta_word(values, at.values, at.word, quanta, too_large)
                                  : counters_word(values, at.values, at.word - quanta);
  }

  KOKKOS_FUNCTION u64 quanta_word(const T* values, std::size_t m, std::size_t word, std::size_t words,
                                  std::size_t& too_large) const {
    u64 sum = 0;
    int shift = 0;
    for (std::size_t i = word; i < m; i += words, shift += layout.quanta.width)
      sum += static_cast<u64>(quantum_of(static_cast<double>(widen(values[i])), too_large)) << shift;
    return sum;
  }

  KOKKOS_FUNCTION i64 quantum_of(double value, std::size_t& too_large) const {
    if (grid::code_of(value) != grid::finite_code) {
      too_large += layout.counter_width == 0 ? 1 : 0;
      return 0;
    }
    const bool known = grid::has_quantum(value, inverse);
    const double q = known ? grid::quantum(value, step, inverse, power_of_two) : 0;
    const auto whole = static_cast<i64>(q);
    if (known && whole <= most && whole >= -most) return whole;
    ++too_large;
    return 0;
  }

  KOKKOS_FUNCTION u64 counters_word(const T* values, std::size_t m, std::size_t word) const {
    const std::size_t words = layout.counters().words(2 * m);
    u64 sum = 0;
    int shift = 0;
    for (std::size_t i = word; i < 2 * m; i += words, shift += layout.counter_width) {
      const unsigned code = grid::code_of(static_cast<double>(widen(values[i < m ? i : i - m])));
      sum += static_cast<u64>((i < m ? code : code >> 1) & 1u) << shift;
    }
    return sum;
  }
};

/// The values of one word of quanta for each index.
template <class T> struct DecodeWords {
  const u64* in;
  T* y;
  Layout layout;
  double step, limit;
  int shift, divisor;

  KOKKOS_FUNCTION void operator()(std::size_t index) const {
    const Place at = place_of(layout, index);
    const std::size_t words = layout.quanta.words(at.values);
    if (at.word >= words) return;
    u64 word = in[index];
    for (std::size_t i = at.word; i < at.values; i += words) {
      const i64 q = lowest_field(word, layout.quanta.width);
      word = layout.quanta.width == 64 ? 0 : (word - static_cast<u64>(q)) >> layout.quanta.width;
      const unsigned code = layout.counter_width == 0 ? 0 : code_of(at, i);
      y[at.block * block_values + i] =
          code != 0
              ? grid::special_value<T>(code)
              : grid::element<T>(static_cast<double>(grid::round_shift(q, shift)), step, divisor, limit);
    }
  }

  /// Field 0 of a word, with its sign.
  KOKKOS_FUNCTION static i64 lowest_field(u64 word, int width) {
    const int rest = 64 - width;
    return static_cast<i64>(word << rest) >> rest;
  }

  KOKKOS_FUNCTION unsigned code_of(const Place& at, std::size_t i) const {
    return count_of(at, i) | count_of(at, at.values + i) << 1;
  }
  /// 1 if any rank has counted in this field.
  KOKKOS_FUNCTION unsigned count_of(const Place& at, std::size_t field) const {
    const Fields counters = layout.counters();
    const std::size_t words = counters.words(2 * at.values);
    const u64 word = in[layout.first_word(at.block) + layout.quanta.words(at.values) + field % words];
    return (word >> (static_cast<int>(field / words) * counters.width) & counters.mask()) != 0 ? 1 : 0;
  }
};

/// How many values were too large.
template <class T, class Exec> std::size_t encode(const Exec& exec, std::span<const T> x, std::byte* out,
                                                  const Parameters& p) {
  const Layout layout = p.layout(x.size());
  if (x.empty()) return 0;
  if constexpr (RunsOnHost<Exec>) {
    return encode_blocks<T>(exec, x, out, p);
  } else {
    std::size_t too_large = 0;
    const EncodeWords<T> kernel{x.data(),       reinterpret_cast<u64*>(out), layout, p.grid.step,
                                p.grid.inverse, p.grid.multiplier == 8,      p.most};
    const Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>> policy(exec, 0, layout.words());
    Kokkos::parallel_reduce("wring::encode", policy, kernel, too_large);
    exec.fence("wring::encode");
    return too_large;
  }
}

/// `shift` and `divisor` of the grid are those of this call.
template <class T, class Exec> void decode(const Exec& exec, const std::byte* in, std::span<T> y,
                                           const Parameters& p) {
  const Layout layout = p.layout(y.size());
  if (y.empty()) return;
  if constexpr (RunsOnHost<Exec>) {
    decode_blocks<T>(exec, in, y, p);
  } else {
    const DecodeWords<T> kernel{reinterpret_cast<const u64*>(in),
                                y.data(),
                                layout,
                                Kokkos::ldexp(p.grid.step, p.grid.shift),
                                p.grid.limit,
                                p.grid.shift,
                                p.grid.divisor};
    for_each_value("wring::decode", exec, layout.words(), kernel);
  }
}

/// out = a + b, word by word.
template <class Exec> void add(const Exec& exec, const std::byte* a, const std::byte* b, std::byte* out,
                               std::size_t bytes) {
  const std::size_t words = bytes / sizeof(u64);
  combine_values<u64>(exec, {reinterpret_cast<u64*>(out), words}, {reinterpret_cast<const u64*>(a), words},
                      {reinterpret_cast<const u64*>(b), words}, Operation::sum);
}

}  // namespace wring::inline v0::detail::packed_words
