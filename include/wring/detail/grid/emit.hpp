// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include <wring/detail/grid/level.hpp>

/// How quanta become the bytes of a block and back.
namespace wring::inline v0::detail::grid {

/// The codes of the special elements of a block: two planes of one bit for each element.
struct Planes {
  std::array<u64, 8> low{}, high{};
  unsigned operator[](std::size_t i) const {
    return static_cast<unsigned>((low[i / 64] >> (i % 64)) & 1) |
           static_cast<unsigned>((high[i / 64] >> (i % 64)) & 1) << 1;
  }
  void set(std::size_t i, unsigned code) {
    low[i / 64] |= u64{code & 1} << (i % 64);
    high[i / 64] |= u64{code >> 1} << (i % 64);
  }
  /// 64 bits, one for each element from 64 * k on that is special.
  u64 special(std::size_t k) const { return low[k] | high[k]; }
  bool any() const {
    u64 all = 0;
    for (std::size_t k = 0; k < 8; ++k) all |= special(k);
    return all != 0;
  }
  /// Reads the planes of m elements; what lies beyond counts as finite.
  void read(const std::byte* from, std::size_t m) {
    const auto word = [](const std::byte* p) {
      u64 w = 0;
      for (int i = 7; i >= 0; --i) w = w << 8 | static_cast<u64>(p[i]);
      return w;
    };
    for (std::size_t k = 0; k < 8; ++k) {
      const u64 mask = m >= 64 * (k + 1) ? ~u64{0} : m > 64 * k ? (u64{1} << (m - 64 * k)) - 1 : 0;
      low[k] = word(from + 8 * k) & mask;
      high[k] = word(from + 64 + 8 * k) & mask;
    }
  }
  void write(std::byte* to) const {
    for (std::size_t k = 0; k < 8; ++k)
      for (std::size_t i = 0; i < 8; ++i) {
        to[8 * k + i] = static_cast<std::byte>(low[k] >> (8 * i));
        to[64 + 8 * k + i] = static_cast<std::byte>(high[k] >> (8 * i));
      }
  }
};

/// What became of a block.
template <class Q> struct Written {
  unsigned descriptor = 0;
  std::size_t bytes = 0;
  Q base = 0;
  bool too_wide = false;  ///< for what was agreed upon: zeros were written
};

/// A block as it is read: descriptor, first byte of the payload, number of values, base of the predictor.
template <class Q> struct Source {
  unsigned descriptor;
  const std::byte* payload;
  std::size_t m;
  Q base;
  int width() const { return static_cast<int>(descriptor & width_mask); }
  bool special() const { return (descriptor & specials_bit) != 0; }
  const std::byte* packed() const { return payload + (special() ? planes_bytes : 0); }
};

/// Words are little endian in memory and in the stream alike; the library refuses other machines when
/// compiled.
static_assert(std::endian::native == std::endian::little, "wring: Grid streams are little endian");

template <class Q> Q read_word(const std::byte* from) {
  Q q;
  std::memcpy(&q, from, sizeof q);
  return q;
}

/// Calls `use(width, bytes)` with a full block's worth of readable packed words.
template <class Q, class Use> auto with_full_block(const Source<Q>& s, const Use& use) {
  if (s.m == block_values) return use(s.width(), s.packed());
  alignas(64) std::byte full[block_values * sizeof(Q)];
  std::memset(full, 0, sizeof full);
  if (s.width() != 0) std::memcpy(full, s.packed(), packed_bytes<Q>(s.m, s.width()));
  return use(s.width(), static_cast<const std::byte*>(full));
}

template <class Q> void unpack_block(const IntegerKernels<Q>& kernels, const Source<Q>& s, Q* q) {
  with_full_block(s, [&](int w, const std::byte* bytes) { kernels.unpack(w, bytes, q); });
}

/// q += the block; returns the OR of the sums' magnitudes.
template <class Q>
std::make_unsigned_t<Q> unpack_add_block(const IntegerKernels<Q>& kernels, const Source<Q>& s, Q* q) {
  return with_full_block(s, [&](int w, const std::byte* bytes) { return kernels.unpack_add(w, bytes, q); });
}

template <class Q>
Written<Q> emit(const IntegerKernels<Q>& kernels, const Widths& widths, const Q* q,
                std::make_unsigned_t<Q> ored, std::size_t m, const Planes* planes, std::byte* out);

/// In place of a block that is too wide.
template <class Q> WRING_COLD Written<Q> emit_zeros(const IntegerKernels<Q>& kernels, const Widths& widths,
                                                    std::size_t m, const Planes* planes, std::byte* out) {
  alignas(64) const Q zeros[block_values] = {};
  Written<Q> written = emit<Q>(kernels, widths, zeros, 0, m, planes, out);
  written.too_wide = true;
  return written;
}

/// Packs a block whose magnitudes were ORed.
template <class Q>
Written<Q> emit(const IntegerKernels<Q>& kernels, const Widths& widths, const Q* q,
                std::make_unsigned_t<Q> ored, std::size_t m, const Planes* planes, std::byte* out) {
  const int needed = width_of<Q>(ored, ored != 0 || kernels.any(q));
  if (needed > widths.widest) return emit_zeros(kernels, widths, m, planes, out);
  const int w = widths.always ? widths.widest : needed;
  const std::size_t bytes = packed_bytes<Q>(m, w);
  Written<Q> written{static_cast<unsigned>(w), bytes, 0};
  if (planes) {
    planes->write(out);
    out += planes_bytes;
    written.descriptor |= specials_bit, written.bytes += planes_bytes;
  }
  if (m == block_values) {
    kernels.pack(w, q, out);
  } else if (w != 0) {
    alignas(64) std::byte full[block_values * sizeof(Q)];
    kernels.pack(w, q, full);
    std::memcpy(out, full, bytes);
  }
  return written;
}

/// The head of a piece that is being written: descriptors, bases, zeros between them.
template <class Q> struct Head {
  std::byte* piece;
  Layout<Q> layout;
  bool delta;
  void clear_padding() const {
    std::memset(piece + layout.blocks, 0, layout.bases_at - layout.blocks);
    if (delta) {
      const std::size_t used = layout.blocks * sizeof(Q);
      std::memset(piece + layout.bases_at + used, 0, layout.payload_at - layout.bases_at - used);
    }
  }
  void set(std::size_t block, const Written<Q>& w) const {
    piece[block] = static_cast<std::byte>(w.descriptor);
    if (delta) std::memcpy(piece + layout.bases_at + block * sizeof(Q), &w.base, sizeof(Q));
  }
};

/// The head of a piece that is being read, checked before.
template <class Q> struct ReadHead {
  const std::byte* piece;
  Layout<Q> layout;
  bool delta;
  unsigned descriptor(std::size_t block) const { return static_cast<unsigned>(piece[block]); }
  Source<Q> source(std::size_t block, std::size_t payload_offset) const {
    const Q base = delta ? read_word<Q>(piece + layout.bases_at + block * sizeof(Q)) : Q{0};
    return {descriptor(block), piece + layout.payload_at + payload_offset, layout.values_in(block), base};
  }
  std::size_t bytes(std::size_t block, std::size_t element) const {
    return payload_bytes<Q>(descriptor(block), layout.values_in(block), element);
  }
  std::size_t bytes_before(std::size_t block) const {
    std::size_t sum = 0;
    for (std::size_t b = 0; b < block; ++b) sum += bytes(b, 0);
    return sum;
  }
};

}  // namespace wring::inline v0::detail::grid
