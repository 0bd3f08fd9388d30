// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include <wring/detail/grid/parameters.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

/// Where things are in the piece of a stream: descriptors, bases, payloads.
namespace wring::inline v0::detail::grid {

using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;

inline constexpr std::size_t block_values = 512, blocks_per_chunk = 32, planes_bytes = 128;
inline constexpr unsigned width_mask = 63, raw_width = 63, specials_bit = 64;

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
constexpr std::size_t blocks_of(std::size_t n) { return n / block_values + (n % block_values != 0); }

/// The widest field of a block, in bits.
template <class Q> inline constexpr int full_width = std::is_same_v<Q, i32> ? 32 : 62;
/// How wide blocks may be, in bits, and whether all are as wide as that.
struct Widths {
  int widest;
  bool always;
};
template <class Q> constexpr Widths widths_of(const GridParameters& p) {
  return {p.widest < full_width<Q> ? p.widest : full_width<Q>, p.wide};
}

/// Values side by side: one in each lane.
template <class Q> inline constexpr std::size_t lanes = 64 / sizeof(Q);

/// Bytes of m packed values of w bits.
template <class Q> constexpr std::size_t packed_bytes(std::size_t m, int w) {
  const std::size_t bits = (m + lanes<Q> - 1) / lanes<Q> * static_cast<std::size_t>(w);
  return 64 * ((bits + 8 * sizeof(Q) - 1) / (8 * sizeof(Q)));
}

/// Bytes of the payload that a descriptor announces for a block of m values; `element` is the size of an
/// element.
template <class Q> constexpr std::size_t payload_bytes(unsigned descriptor, std::size_t m,
                                                       std::size_t element) {
  const unsigned w = descriptor & width_mask;
  if (w == raw_width) return padded(m * element);
  return packed_bytes<Q>(m, static_cast<int>(w)) + (descriptor & specials_bit ? planes_bytes : 0);
}

/// The width that two's complement values need, given the OR of q ^ (q >> all) and whether any q is not 0.
template <class Q> constexpr int width_of(std::make_unsigned_t<Q> ored, bool any) {
  if (ored == 0) return any ? 1 : 0;
  const int w = 1 + static_cast<int>(std::bit_width(ored));
  return w < full_width<Q> ? w : full_width<Q>;
}

/// The parts of a piece of n values.
template <class Q> struct Layout {
  std::size_t n, blocks, bases_at, payload_at;
  constexpr Layout(std::size_t count, bool delta)
      : n(count), blocks(blocks_of(count)), bases_at(padded(blocks)),
        payload_at(bases_at + (delta ? padded(blocks * sizeof(Q)) : 0)) {}
  constexpr std::size_t values_in(std::size_t block) const {
    return block + 1 < blocks ? block_values : n - block_values * block;
  }
};

/// Sum that stops at the greatest number instead of wrapping.
constexpr std::size_t saturating_add(std::size_t a, std::size_t b) {
  return a + b < a ? std::numeric_limits<std::size_t>::max() : a + b;
}

/// The most bytes that a piece of n values can have whose blocks are up to `widest` bits wide. `raw`: bytes of an element, where blocks
/// may be stored as they are, else 0.
template <class Q>
constexpr std::size_t largest_piece(std::size_t n, bool delta, std::size_t raw, int widest = full_width<Q>) {
  const Layout<Q> layout(n, delta);
  const std::size_t rows = n / lanes<Q> + (n % lanes<Q> != 0),
                    packed = lanes<Q> * static_cast<std::size_t>(widest) / 8,
                    row = packed > lanes<Q> * raw ? packed : lanes<Q> * raw;
  const std::size_t most = std::numeric_limits<std::size_t>::max() / (row == 0 ? 1 : row);
  const std::size_t fixed =
      layout.payload_at + layout.blocks * planes_bytes + (n == 0 ? 0 : 64);  // lines may not be full
  return saturating_add(rows > most ? std::numeric_limits<std::size_t>::max() : rows * row, fixed);
}

/// Throws CodecError unless `piece` has the size that its descriptors announce. Returns the descriptors.
template <class Q>
const unsigned char* check_piece(std::span<const std::byte> piece, const Layout<Q>& layout,
                                 const GridParameters& parameters, std::size_t element) {
  const auto* descriptors = reinterpret_cast<const unsigned char*>(piece.data());
  if (piece.size() < layout.payload_at)
    throw CodecError(
        sentence("Grid: a piece of ", piece.size(), " bytes is too short for ", layout.n, " values"));
  std::size_t size = layout.payload_at;
  for (std::size_t b = 0; b < layout.blocks; ++b) {
    const unsigned d = descriptors[b], w = d & width_mask;
    const bool raw = w == raw_width;
    if (d > 127 ||
        (raw ? !parameters.raw_blocks || d != raw_width : w > static_cast<unsigned>(full_width<Q>)))
      throw CodecError(sentence("Grid: block ", b, " has descriptor ", d, ", which compress never writes"));
    size += payload_bytes<Q>(d, layout.values_in(b), element);
  }
  if (size != piece.size())
    throw CodecError(
        sentence("Grid: the descriptors announce ", size, " bytes, the piece has ", piece.size()));
  return descriptors;
}

}  // namespace wring::inline v0::detail::grid
