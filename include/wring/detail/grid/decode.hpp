// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <wring/detail/convert.hpp>
#include <wring/detail/grid/emit.hpp>
#include <wring/detail/grid/runs.hpp>
#include <wring/detail/grid/team/kernels.hpp>

namespace wring::inline v0::detail {
namespace grid {

/// Decodes blocks of quanta Q to elements of T.
template <class T, class Q> struct BlockDecoder {
  using Wide = typename FloatTraits<T>::Wide;
  using U = std::make_unsigned_t<Q>;
  const Kernels& kernels;
  double step, limit;
  int divisor;
  bool delta, streaming;
  /// Quanta of so many bits are decoded in binary32: the same as in binary64 for |q| <= 2^24, and no overflow.
  int narrow_width = 0;

  /// `stream`: the result goes past the caches.
  BlockDecoder(const Kernels& k, const GridParameters& p, bool stream = false)
      : kernels(k), step(std::ldexp(p.step, p.shift)), limit(p.limit), divisor(p.divisor), delta(p.delta),
        streaming(stream) {
    const bool exact = std::has_single_bit(static_cast<unsigned>(divisor)) && step >= 0x1p-900;
    if (exact) step /= divisor, limit /= divisor, divisor = 1;
    if (std::is_same_v<Q, i32> && std::is_same_v<Wide, float> && divisor == 1 && step >= 0x1p-120 &&
        step <= 0x1p100)
      narrow_width = std::clamp(std::ilogb(FloatTraits<T>::greatest / step), 0, 25);
  }

  /// Quanta that fit into `width` bits.
  void decode_quanta(const Q* q, int width, std::size_t m, T* y) const {
    if constexpr (std::is_same_v<Q, i32> && std::is_same_v<Wide, float>)
      if (width <= narrow_width) return decode_in_binary32(q, false, 0, m, y);
    if (may_overflow(width)) {
      for (std::size_t i = 0; i < m; ++i) y[i] = element<T>(static_cast<double>(q[i]), step, divisor, limit);
      return;
    }
    if constexpr (std::is_same_v<T, double>)
      if (m == block_values) return kernels.template of<Q>().to_doubles(q, step, divisor, y);
    alignas(64) double own[block_values];
    kernels.template of<Q>().to_doubles(q, step, divisor, own);
    if (m == block_values)
      for (std::size_t i = 0; i < block_values; ++i) y[i] = narrow<T>(own[i]);
    else
      for (std::size_t i = 0; i < m; ++i) y[i] = narrow<T>(own[i]);
  }

  bool may_overflow(int width) const {
    return std::ldexp(step * 0x1p-64, width - 1) >= FloatTraits<T>::greatest * 0x1p-65;
  }

  void decode_in_binary32(const i32* q, bool residues, i32 base, std::size_t m, T* y) const {
    const auto run = [&](float* to) {
      if (residues)
        kernels.scan_to_floats(q, base, static_cast<float>(step), to);
      else
        kernels.to_floats(q, static_cast<float>(step), to);
    };
    if constexpr (std::is_same_v<T, float>)
      if (m == block_values) return run(y);
    alignas(64) float own[block_values];
    run(own);
    if constexpr (!std::is_same_v<T, float>)
      if (m == block_values) return ConvertRun<Narrow<T>, float, T, block_values>::convert({}, own, y);
    for (std::size_t i = 0; i < m; ++i) y[i] = T(own[i]);
  }

  void decode_residues(Q* q, int width, Q base, std::size_t m, T* y) const {
    if constexpr (std::is_same_v<Q, i32> && std::is_same_v<Wide, float>)
      if (narrow_width == 25 && width <= 14 && base < (1 << 23) && base > -(1 << 23))  // 511 * 2^13 < 2^22
        return decode_in_binary32(q, true, base, m, y);
    const U ored = kernels.template of<Q>().integrate(q, base);
    decode_quanta(q, 1 + static_cast<int>(std::bit_width(ored)), m, y);
  }

  /// Most blocks of floats, in one go.
  bool decode_at_once(const Source<Q>& s, T* y) const {
    if constexpr (std::is_same_v<Q, i32> && std::is_same_v<T, float>) {
      if (delta || s.m != block_values || s.width() > narrow_width) return false;
      kernels.unpack_to_floats(s.width(), s.packed(), static_cast<float>(step), y);
      return true;
    }
    return false;
  }

  void decode(const Source<Q>& s, T* y) const {
    streamed(s.m, y, [&](T* to) { decode_here(s, to); });
  }

  /// Quanta, or residues, that fit into `width` bits. They may be changed.
  void decode(Q* q, int width, Q base, std::size_t m, T* y) const {
    streamed(m, y, [&](T* to) { decode_here(q, width, base, m, to); });
  }

  /// Past the caches, if that is wanted and possible.
  template <class Decode> void streamed(std::size_t m, T* y, const Decode& decode_to) const {
    if constexpr (std::is_same_v<T, float>)
      if (streaming && m == block_values && reinterpret_cast<std::uintptr_t>(y) % 16 == 0) {
        alignas(64) float own[block_values];
        decode_to(own);
        return stream_floats(own, y);
      }
    decode_to(y);
  }

  void decode_here(Q* q, int width, Q base, std::size_t m, T* y) const {
    if (delta)
      decode_residues(q, width, base, m, y);
    else
      decode_quanta(q, width, m, y);
  }

  void decode_here(const Source<Q>& s, T* y) const {
    if (s.width() == static_cast<int>(raw_width)) {
      std::memcpy(y, s.payload, s.m * sizeof(T));
      for (std::size_t i = 0; i < s.m; ++i) y[i] = canonical(y[i]);
      return;
    }
    if (s.width() == 0 && !delta) {
      std::memset(static_cast<void*>(y), 0, s.m * sizeof(T));  // +0 has no bits in any element type
    } else if (!decode_at_once(s, y)) {
      alignas(64) Q q[block_values];
      unpack_block(kernels.template of<Q>(), s, q);
      decode_here(q, s.width(), s.base, s.m, y);
    }
    if (s.special()) put_specials(s, y);
  }

  static void put_specials(const Source<Q>& s, T* y) {
    Planes planes;
    planes.read(s.payload, s.m);
    for (std::size_t i = 0; i < s.m; ++i)
      if (const unsigned code = planes[i]) y[i] = special_value<T>(code);
  }
};

template <class T, class Q> struct DecodeBlocks {
  BlockDecoder<T, Q> decoder;
  ReadHead<Q> head;
  T* y;

  Progress measure(Run run) const {
    Progress p;
    for (std::size_t b = run.first; b < run.last; ++b) p.a += head.bytes(b, sizeof(T));
    return p;
  }
  Progress run(Run run, Progress at) const {
    Progress p;
    for (std::size_t b = run.first; b < run.last; ++b) {
      decoder.decode(head.source(b, at.a + p.a), y + b * block_values);
      p.a += head.bytes(b, sizeof(T));
    }
    if (decoder.streaming) end_streaming();
    return p;
  }
};

template <class Q, class T, class Exec>
void decode_as(const Exec& exec, std::span<const std::byte> in, std::span<T> y, const GridParameters& p,
               const Kernels& kernels, bool streaming) {
  const Layout<Q> layout(y.size(), p.delta);
  check_piece(in, layout, p, sizeof(T));
  const ReadHead<Q> head{in.data(), layout, p.delta};
  const DecodeBlocks<T, Q> body{{kernels, p, streaming}, head, y.data()};
  for_runs(exec, "wring::decode", layout.blocks, RunBody(body));
}

}  // namespace grid

/// Decodes a piece of y.size() values: q * 2^shift * step / divisor. Throws CodecError, with y untouched,
/// where the descriptors are not those of such a piece. `streaming`: past the caches, which pays where the
/// result is too large for them.
template <class T, class Exec>
void grid_decode(const Exec& exec, std::span<const std::byte> in, std::span<T> y, const GridParameters& p,
                 const grid::Kernels& kernels, bool streaming = false) {
  if (p.form == GridParameters::Form::values) return grid_team::decode_values(exec, in, y, p);
  if (p.form == GridParameters::Form::int64)
    return grid::decode_as<grid::i64>(exec, in, y, p, kernels, streaming);
  grid::decode_as<grid::i32>(exec, in, y, p, kernels, streaming);
}

template <class T, class Exec>
void grid_decode(const Exec& exec, std::span<const std::byte> in, std::span<T> y, const GridParameters& p,
                 bool streaming = false) {
  grid_decode(exec, in, y, p, grid::best_kernels(), streaming);
}

}  // namespace wring::inline v0::detail
