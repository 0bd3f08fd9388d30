// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include <wring/detail/grid/runs.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/detail/sizes.hpp>
#include <wring/detail/sparse/block.hpp>
#include <wring/error.hpp>

/// Whole pieces on a host: runs of blocks shared out among the threads. Where they begin follows from the descriptors.
namespace wring::inline v0::detail {
namespace sparse {

using grid::Progress;
using grid::Run;

/// The most bytes that a piece of n values can have.
template <class T> constexpr std::size_t largest_piece(std::size_t n) {
  const std::size_t values = checked_bytes(n, sizeof(T)), descriptors = 2 * blocks_of(n);
  if (values > std::numeric_limits<std::size_t>::max() - descriptors)
    throw InvalidArgument(sentence("wring: sparse: ", n, " values are too many"));
  return values + descriptors;
}

/// A piece whose descriptors are valid.
template <class T> struct ReadPiece {
  const std::byte* bytes;
  Layout layout;

  Block block(std::size_t b) const { return Block::read(bytes, b); }
  std::size_t size(std::size_t b) const { return payload_bytes<T>(block(b), layout.values(b)); }
  std::size_t size(Run run) const {
    std::size_t sum = 0;
    for (std::size_t b = run.first; b < run.last; ++b) sum += size(b);
    return sum;
  }
  const std::byte* payload(std::size_t at) const { return bytes + layout.payload_at + at; }
};

/// Throws CodecError unless the piece has the size that its descriptors announce.
template <class T> ReadPiece<T> open_piece(std::span<const std::byte> piece, std::size_t n) {
  const ReadPiece<T> opened{piece.data(), Layout(n)};
  const Layout& layout = opened.layout;
  if (piece.size() < layout.payload_at)
    throw CodecError(
        sentence("wring: sparse: a piece of ", piece.size(), " bytes is too short for ", n, " values"));
  std::size_t size = layout.payload_at;
  for (std::size_t b = 0; b < layout.blocks; ++b) {
    if (!valid<T>(opened.block(b), layout.values(b)))
      throw CodecError(sentence("wring: sparse: block ", b, " has descriptor ", opened.block(b).word(),
                                ", which compress never writes"));
    size += opened.size(b);
  }
  if (size != piece.size())
    throw CodecError(
        sentence("wring: sparse: the descriptors announce ", size, " bytes, the piece has ", piece.size()));
  return opened;
}

inline void expect_sound(std::size_t damaged) {
  if (damaged != 0)
    throw CodecError(sentence("wring: sparse: ", damaged, " blocks have other places than announced"));
}

/// Values into a piece. `first`: the index of x[0] in its tensor.
template <class T> struct EncodeBlocks {
  const Kernels<T>& kernels;
  const T* x;
  Layout layout;
  Selection<T> selection;
  std::size_t first;
  std::byte* piece;

  Block take(BlockEncoder<T>& encoder, std::size_t b) const {
    return encoder.take(x + b * block_values, layout.values(b), selection, first + b * block_values);
  }
  Progress measure(Run run) const {
    BlockEncoder<T> encoder(kernels);
    Progress p;
    for (std::size_t b = run.first; b < run.last; ++b)
      p.out += payload_bytes<T>(take(encoder, b), layout.values(b));
    return p;
  }
  Progress run(Run run, Progress at) const {
    BlockEncoder<T> encoder(kernels);
    std::byte* out = piece + layout.payload_at + at.out;
    Progress p;
    for (std::size_t b = run.first; b < run.last; ++b) {
      const Block block = take(encoder, b);
      block.write(piece, b);
      encoder.write(out + p.out);
      p.out += payload_bytes<T>(block, layout.values(b));
    }
    return p;
  }
};

/// A piece into values, or added to them.
template <class T, bool add> struct DecodeBlocks {
  const Kernels<T>& kernels;
  ReadPiece<T> piece;
  int divisor;
  T* y;

  Progress measure(Run run) const {
    Progress p;
    p.a = piece.size(run);
    return p;
  }
  Progress run(Run run, Progress at) const {
    BlockDecoder<T> decoder(kernels, divisor);
    Progress p;
    for (std::size_t b = run.first; b < run.last; ++b) {
      T* const to = y + b * block_values;
      p.too_large += !decoder.open(piece.block(b), piece.layout.values(b), piece.payload(at.a + p.a));
      if constexpr (add)
        decoder.add(to);
      else
        decoder.store(to);
      p.a += piece.size(b);
    }
    return p;
  }
};

/// Two pieces into one.
template <class T> struct CombineBlocks {
  const Kernels<T>& kernels;
  ReadPiece<T> a, b;
  Operation operation;
  std::byte* piece;

  Progress measure(Run run) const {
    return each(run, {}, [](std::size_t, const Block&, const auto&, std::size_t) {});
  }
  Progress run(Run run, Progress at) const {
    return each(run, at, [&](std::size_t k, const Block& block, const auto& write, std::size_t out) {
      block.write(piece, k);
      write(piece + a.layout.payload_at + at.out + out);
    });
  }

 private:
  /// Calls `use(number, block, write, bytes before it)` for every block of the sum; `write(out)` writes it.
  template <class Use> Progress each(Run run, Progress at, const Use& use) const {
    BlockDecoder<T> left(kernels), right(kernels);
    MergedPlaces<T> merged;
    BlockEncoder<T> encoder(kernels);
    T values[block_values];
    Progress p;
    for (std::size_t k = run.first; k < run.last; ++k) {
      const int m = a.layout.values(k);
      const Block one = a.block(k), other = b.block(k);
      const std::byte *from = a.payload(at.a + p.a), *from_other = b.payload(at.b + p.b);
      Block block;
      if (adds(operation) && (one.count == 0 || other.count == 0)) {  // as it is
        block = one.count == 0 ? other : one;
        const std::byte* payload = one.count == 0 ? from_other : from;
        use(k, block, [&](std::byte* out) { std::memcpy(out, payload, payload_bytes<T>(block, m)); }, p.out);
      } else if (adds(operation) && MergedPlaces<T>::serves(one, other, m)) {
        p.too_large += !merged.take(one, from, other, from_other);
        block = merged.block();
        use(k, block, [&](std::byte* out) { merged.write(out); }, p.out);
      } else {
        p.too_large += !left.open(one, m, from);
        p.too_large += !right.open(other, m, from_other);
        combine_blocks(left, right, operation, values, m);
        block = encoder.take(values, m);
        use(k, block, [&](std::byte* out) { encoder.write(out); }, p.out);
      }
      p.a += a.size(k), p.b += b.size(k), p.out += payload_bytes<T>(block, m);
    }
    return p;
  }
};

}  // namespace sparse

/// Encodes at `out` the values of x that the selection takes; returns the size of the piece. The bytes do not depend on `kernels`.
template <class T, class Exec>
std::size_t sparse_encode(const Exec& exec, std::span<const T> x, std::span<std::byte> out,
                          const sparse::Selection<T>& selection, std::size_t first,
                          const sparse::Kernels<T>& kernels) {
  const sparse::Layout layout(x.size());
  if (x.empty()) return 0;
  const sparse::EncodeBlocks<T> body{kernels, x.data(), layout, selection, first, out.data()};
  return layout.payload_at + grid::for_runs(exec, "wring::encode", layout.blocks, grid::RunBody(body)).out;
}

/// Decodes a piece of y.size() values, each divided by `divisor`, or adds it to them. Throws CodecError, with y untouched where the
/// descriptors are not those of such a piece.
template <bool add, class T, class Exec>
void sparse_decode(const Exec& exec, std::span<const std::byte> in, std::span<T> y, int divisor,
                   const sparse::Kernels<T>& kernels) {
  const sparse::DecodeBlocks<T, add> body{kernels, sparse::open_piece<T>(in, y.size()), divisor, y.data()};
  const std::size_t blocks = body.piece.layout.blocks;
  sparse::expect_sound(grid::for_runs(exec, "wring::decode", blocks, grid::RunBody(body)).too_large);
}

/// Combines two pieces of n values at `out`; returns the size of the sum, or of the extremum, where values that were not sent are zeros.
template <class T, class Exec>
std::size_t sparse_combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                           std::size_t n, std::span<std::byte> out, Operation operation,
                           const sparse::Kernels<T>& kernels) {
  const sparse::CombineBlocks<T> body{kernels, sparse::open_piece<T>(a, n), sparse::open_piece<T>(b, n),
                                      operation, out.data()};
  const sparse::Layout& layout = body.a.layout;
  if (layout.blocks == 0) return 0;
  const auto total = grid::for_runs(exec, "wring::combine", layout.blocks, grid::RunBody(body));
  sparse::expect_sound(total.too_large);
  return layout.payload_at + total.out;
}

}  // namespace wring::inline v0::detail
