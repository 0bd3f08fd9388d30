// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include <wring/detail/grid/decode.hpp>
#include <wring/detail/grid/encode.hpp>
#include <wring/detail/packed_words/layout.hpp>
#include <wring/detail/packed_words/pack.hpp>
#include <wring/detail/packed_words/parameters.hpp>
#include <wring/detail/value_kernels.hpp>

/// Blocks of 512 values on a host: quantised and decoded by Grid's kernels, packed in vectors.
namespace wring::inline v0::detail::packed_words {

inline constexpr std::size_t blocks_per_task = values_per_task / block_values;

/// Counters of one block: field i counts where `counted(i)`.
template <class Counted>
void write_counters(const Fields& fields, std::size_t count, std::byte* out, Counted counted) {
  const std::size_t words = fields.words(count);
  for (std::size_t j = 0; j < words; ++j) {
    u64 word = 0;
    int shift = 0;
    for (std::size_t i = j; i < count; i += words, shift += fields.width)
      word |= static_cast<u64>(counted(i)) << shift;
    std::memcpy(out + j * sizeof word, &word, sizeof word);
  }
}

/// Calls `counted(i)` for every field in which any rank has counted.
template <class Counted>
void read_counters(const Fields& fields, std::size_t count, const std::byte* in, Counted counted) {
  const std::size_t words = fields.words(count);
  for (std::size_t j = 0; j < words; ++j) {
    u64 word = 0;
    std::memcpy(&word, in + j * sizeof word, sizeof word);
    for (std::size_t i = j; i < count && word != 0; i += words) {
      if ((word & fields.mask()) != 0) counted(i);
      word = fields.width == 64 ? 0 : word >> fields.width;
    }
  }
}

template <class T, class Q> struct EncodeBlocks {
  const T* x;
  std::byte* out;
  const Parameters* parameters;
  std::size_t n;
  std::size_t* too_large;
  Kernels<Q> kernels;

  void operator()(std::size_t task) const {
    const Layout layout = parameters->layout(n);
    const grid::BlockEncoder<T, Q> encoder(grid::best_kernels(), parameters->grid);
    const std::size_t first = task * blocks_per_task,
                      last = std::min(first + blocks_per_task, layout.blocks());
    std::size_t found = 0;
    for (std::size_t b = first; b < last; ++b)
      found += encode(encoder, x + b * block_values, layout.values_in(b), layout,
                      out + layout.first_word(b) * sizeof(u64));
    if (found > 0) Kokkos::atomic_add(too_large, found);
  }

  std::size_t encode(const grid::BlockEncoder<T, Q>& encoder, const T* values, std::size_t m,
                     const Layout& layout, std::byte* to) const {
    grid::Quanta<Q> quanta;
    encoder.quantise(values, m, quanta);
    std::size_t found = quanta.too_large ? 1 : 0;
    if (m < block_values) std::fill(quanta.q + m, quanta.q + block_values, Q{0});
    if (kernels.any_exceeds(quanta.q, static_cast<Q>(parameters->most)))
      for (std::size_t i = 0; i < m; ++i)
        if (quanta.q[i] > parameters->most || quanta.q[i] < -parameters->most) quanta.q[i] = 0, ++found;
    kernels.pack(quanta.q, m, layout.quanta, to);
    if (layout.counter_width == 0) return found + (quanta.special ? 1 : 0);
    write_counters(layout.counters(), 2 * m, to + layout.quanta.words(m) * sizeof(u64), [&](std::size_t i) {
      return (i < m ? quanta.planes[i] : quanta.planes[i - m] >> 1) & 1u;
    });
    return found;
  }
};

template <class T, class Q> struct DecodeBlocks {
  const std::byte* in;
  T* y;
  const Parameters* parameters;
  std::size_t n;
  Kernels<Q> kernels;

  void operator()(std::size_t task) const {
    const Layout layout = parameters->layout(n);
    const grid::BlockDecoder<T, Q> decoder(grid::best_kernels(), parameters->grid);
    const std::size_t first = task * blocks_per_task,
                      last = std::min(first + blocks_per_task, layout.blocks());
    for (std::size_t b = first; b < last; ++b)
      decode(decoder, in + layout.first_word(b) * sizeof(u64), layout.values_in(b), layout,
             y + b * block_values);
  }

  void decode(const grid::BlockDecoder<T, Q>& decoder, const std::byte* from, std::size_t m,
              const Layout& layout, T* to) const {
    alignas(64) Q q[block_values + spare_fields];
    kernels.unpack(from, m, layout.quanta, q);
    if (m < block_values) std::fill(q + m, q + block_values, Q{0});
    if (parameters->grid.shift != 0) grid::best_kernels().template of<Q>().shift(q, parameters->grid.shift);
    decoder.decode_quanta(q, layout.quanta.width, m, to);
    if (layout.counter_width == 0) return;
    grid::Planes planes;
    read_counters(layout.counters(), 2 * m, from + layout.quanta.words(m) * sizeof(u64), [&](std::size_t i) {
      i < m ? planes.set(i, grid::positive_infinity) : planes.set(i - m, grid::negative_infinity);
    });
    for (std::size_t i = 0; planes.any() && i < m; ++i)
      if (planes[i] != grid::finite_code) to[i] = grid::special_value<T>(planes[i]);
  }
};

template <class T, class Exec> std::size_t encode_blocks(const Exec& exec, std::span<const T> x,
                                                         std::byte* out, const Parameters& p) {
  std::size_t too_large = 0;
  const auto run = [&]<class Q>(Q) {
    for_each_task("wring::encode", exec, x.size(),
                  EncodeBlocks<T, Q>{x.data(), out, &p, x.size(), &too_large, best_kernels<Q>()});
  };
  p.grid.form == GridParameters::Form::int32 ? run(std::int32_t{}) : run(i64{});
  exec.fence("wring::encode");
  return too_large;
}

template <class T, class Exec>
void decode_blocks(const Exec& exec, const std::byte* in, std::span<T> y, const Parameters& p) {
  const auto run = [&]<class Q>(Q) {
    for_each_task("wring::decode", exec, y.size(),
                  DecodeBlocks<T, Q>{in, y.data(), &p, y.size(), best_kernels<Q>()});
  };
  p.grid.form == GridParameters::Form::int32 ? run(std::int32_t{}) : run(i64{});
  exec.fence("wring::decode");
}

}  // namespace wring::inline v0::detail::packed_words
