// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include <wring/detail/grid/runs.hpp>
#include <wring/detail/lossless/block.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/detail/sizes.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/error.hpp>

/// Whole pieces on a host: chunks of 32 blocks, each of which decodes alone, shared out among the threads.
namespace wring::inline v0::detail {
namespace lossless {

using grid::Progress;
using grid::Run;

inline std::uint32_t read_descriptor(const std::byte* piece, std::size_t block) {
  std::uint32_t word;
  std::memcpy(&word, piece + 4 * block, sizeof word);
  return word;
}

/// The most bytes that a piece of n values can have: raw blocks, descriptors, and the padding of what is at the side.
template <class T> constexpr std::size_t largest_piece(std::size_t n) {
  const std::size_t most = std::numeric_limits<std::size_t>::max(), values = checked_bytes(n, sizeof(T));
  const std::size_t fixed = padded(4 * blocks_of(n)) + line * (chunks_of(n) + 1);
  if (values > most - fixed) throw InvalidArgument(sentence("wring: lossless: ", n, " values are too many"));
  return values + fixed;
}

template <class T> struct EncodeBlocks {
  const Kernels<T>& kernels;
  const T* x;
  Layout layout;
  std::byte* piece;

  Progress measure(Run run) const {
    BlockEncoder<T> encoder(kernels);
    Progress p;
    each_chunk(run, [&](std::size_t first, std::size_t last) {
      std::size_t side = 0;
      for (std::size_t b = first; b < last; ++b) {
        const Block block = encoder.take(x + b * block_values, layout.values(b));
        p.out += payload_bytes<T>(block, layout.values(b)), side += side_bytes<T>(block);
      }
      p.out += padded(side);
    });
    return p;
  }

  Progress run(Run run, Progress at) const {
    BlockEncoder<T> encoder(kernels);
    Progress p;
    std::byte* out = piece + layout.chunks_at + at.out;
    each_chunk(run, [&](std::size_t first, std::size_t last) {
      std::byte
          sides[blocks_per_chunk * block_values * Format<T>::side_bytes / (Format<T>::is_float ? 1 : 512)];
      std::size_t side = 0;
      for (std::size_t b = first; b < last; ++b) {
        const int m = layout.values(b);
        const Block block = encoder.take(x + b * block_values, m);
        const std::uint32_t word = block.word();
        std::memcpy(piece + 4 * b, &word, sizeof word);
        encoder.write_payload(out + p.out);
        encoder.write_side(sides + side);
        p.out += payload_bytes<T>(block, m), side += side_bytes<T>(block);
        p.a += block.raw();
      }
      std::memcpy(out + p.out, sides, side);
      std::memset(out + p.out + side, 0, padded(side) - side);
      p.out += padded(side);
    });
    return p;
  }

  template <class Use> void each_chunk(Run run, const Use& use) const {
    for (std::size_t first = run.first; first < run.last; first += blocks_per_chunk)
      use(first, first + blocks_per_chunk < run.last ? first + blocks_per_chunk : run.last);
  }
};

/// value += other, in the computation type: a loop over it vectorises for 16-bit elements, too. For hosts.
template <class T> struct AddElement {
  void operator()(const T& other, T& value) const {
    if constexpr (Format<T>::is_float)
      store_element(value, load_element(value) + load_element(other));
    else
      value = add_values(value, other);
  }
};

/// Decodes into the values, or adds to them.
template <class T, bool add> struct DecodeBlocks {
  const Kernels<T>& kernels;
  T* y;
  Layout layout;
  const std::byte* piece;

  Block block(std::size_t b) const { return Block::from(read_descriptor(piece, b)); }

  /// Bytes of the payloads of a chunk, and of all of it.
  std::pair<std::size_t, std::size_t> sizes(std::size_t first, std::size_t last) const {
    std::size_t payload = 0, side = 0;
    for (std::size_t b = first; b < last; ++b)
      payload += payload_bytes<T>(block(b), layout.values(b)), side += side_bytes<T>(block(b));
    return {payload, payload + padded(side)};
  }

  Progress measure(Run run) const {
    Progress p;
    for (std::size_t first = run.first; first < run.last; first += blocks_per_chunk)
      p.out += sizes(first, std::min(first + blocks_per_chunk, run.last)).second;
    return p;
  }

  Progress run(Run run, Progress at) const {
    Progress p;
    for (std::size_t first = run.first; first < run.last; first += blocks_per_chunk) {
      const std::size_t last = std::min(first + blocks_per_chunk, run.last);
      const auto [payloads, chunk] = sizes(first, last);
      const std::byte* payload = piece + layout.chunks_at + at.out + p.out;
      const std::byte* side = payload + payloads;
      for (std::size_t b = first; b < last; ++b) {
        p.too_large += !decode(b, payload, side);
        payload += payload_bytes<T>(block(b), layout.values(b)), side += side_bytes<T>(block(b));
      }
      p.out += chunk;
    }
    return p;
  }

  bool decode(std::size_t b, const std::byte* payload, const std::byte* side) const {
    const int m = layout.values(b);
    T* const to = y + b * block_values;
    if constexpr (add) {
      T own[block_values];
      const bool sound = decode_block(kernels, block(b), payload, side, own, m);
      if (m == block_values)
        ConvertRun<AddElement<T>, T, T, block_values>::convert({}, own, to);
      else
        for (int i = 0; i < m; ++i) AddElement<T>()(own[i], to[i]);
      return sound;
    } else {
      return decode_block(kernels, block(b), payload, side, to, m);
    }
  }
};

/// Throws CodecError unless the piece has the size that its descriptors announce.
template <class T> void check_piece(std::span<const std::byte> piece, const Layout& layout) {
  if (piece.size() < layout.chunks_at)
    throw CodecError(sentence("wring: lossless: a piece of ", piece.size(), " bytes is too short for ",
                              layout.n, " values"));
  std::size_t size = layout.chunks_at;
  for (std::size_t first = 0; first < layout.blocks; first += blocks_per_chunk) {
    std::size_t side = 0;
    for (std::size_t b = first; b < layout.last_of(first / blocks_per_chunk); ++b) {
      const std::uint32_t word = read_descriptor(piece.data(), b);
      if (!valid<T>(word, layout.values(b)))
        throw CodecError(sentence("wring: lossless: block ", b, " has descriptor ", word,
                                  ", which compress never writes"));
      size += payload_bytes<T>(Block::from(word), layout.values(b)), side += side_bytes<T>(Block::from(word));
    }
    size += padded(side);
  }
  if (size != piece.size())
    throw CodecError(
        sentence("wring: lossless: the descriptors announce ", size, " bytes, the piece has ", piece.size()));
}

inline void expect_sound(std::size_t damaged) {
  if (damaged != 0)
    throw CodecError(
        sentence("wring: lossless: ", damaged, " blocks have other numbers of escapes than announced"));
}

}  // namespace lossless

/// Encodes x at `out`, which has room for the largest piece. `a` of the result: blocks that stay raw. The bytes do not depend on
/// `kernels`.
template <class T, class Exec>
grid::Progress lossless_encode(const Exec& exec, std::span<const T> x, std::span<std::byte> out,
                               const lossless::Kernels<T>& kernels) {
  expect_space("lossless", out.size(), lossless::largest_piece<T>(x.size()));
  if (x.empty()) return {};
  const lossless::Layout layout(x.size());
  std::memset(out.data() + 4 * layout.blocks, 0, layout.chunks_at - 4 * layout.blocks);
  const lossless::EncodeBlocks<T> body{kernels, x.data(), layout, out.data()};
  grid::Progress total = grid::for_runs(exec, "wring::encode", layout.blocks, grid::RunBody(body));
  total.out += layout.chunks_at;
  return total;
}

/// Decodes a piece of y.size() values, or adds it to them. Throws CodecError, with y untouched where the descriptors are not those of such
/// a piece.
template <bool add, class T, class Exec>
void lossless_decode(const Exec& exec, std::span<const std::byte> in, std::span<T> y,
                     const lossless::Kernels<T>& kernels) {
  const lossless::Layout layout(y.size());
  lossless::check_piece<T>(in, layout);
  const lossless::DecodeBlocks<T, add> body{kernels, y.data(), layout, in.data()};
  const grid::Progress total = grid::for_runs(exec, "wring::decode", layout.blocks, grid::RunBody(body));
  lossless::expect_sound(total.too_large);
}

}  // namespace wring::inline v0::detail
