// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>

#include <wring/detail/grid/combine.hpp>
#include <wring/detail/grid/decode.hpp>
#include <wring/detail/grid/encode.hpp>

namespace wring::inline v0::detail {
namespace grid {

/// Adds two blocks, of which one may not be encoded yet, and decodes the sum: what encoding, combining and decoding give, with each
/// value in registers or in the first-level cache from its first use to its last.
template <class T> struct BlockAccumulator {
  BlockEncoder<T, i32> encoder;
  BlockCombiner<i32> combiner;
  BlockDecoder<T, i32> decoder;

  /// `result`: where the decoded sum goes, if anywhere.
  Written<i32> add(const T* x, const Source<i32>& piece, std::byte* out, T* result, Progress& p) const {
    Quanta<i32> own;
    encoder.quantise(x, piece.m, own);
    if (!own.special && !own.too_large && plain(piece)) return add(own.q, own.base, piece, out, result);
    alignas(64) std::byte encoded[block_values * sizeof(i32) + planes_bytes];
    const Written<i32> w = encoder.encode(x, piece.m, encoded, p);
    return combine({w.descriptor, encoded, piece.m, w.base}, piece, out, result);
  }

  Written<i32> add(const Source<i32>& a, const Source<i32>& b, std::byte* out, T* result) const {
    if (!plain(a) || !plain(b)) return combine(a, b, out, result);
    alignas(64) i32 q[block_values];
    unpack_block(combiner.kernels, a, q);
    return add(q, a.base, b, out, result);
  }

 private:
  bool plain(const Source<i32>& s) const { return !s.special() && adds(combiner.operation); }

  Written<i32> add(i32* q, i32 base, const Source<i32>& piece, std::byte* out, T* result) const {
    const u32 ored = unpack_add_block(combiner.kernels, piece, q);
    Written<i32> w = emit(combiner.kernels, combiner.widths, q, ored, piece.m, nullptr, out);
    if (combiner.delta) w.base = BlockCombiner<i32>::wrapping_sum(base, piece.base);
    if (result) decoder.decode(q, static_cast<int>(w.descriptor), w.base, piece.m, result);
    return w;
  }

  Written<i32> combine(const Source<i32>& a, const Source<i32>& b, std::byte* out, T* result) const {
    const Written<i32> w = combiner.combine(a, b, out);
    if (result) decoder.decode({w.descriptor, out, a.m, w.base}, result);
    return w;
  }
};

/// Accumulates runs of blocks.
template <class T> struct AccumulateBlocks {
  BlockAccumulator<T> accumulator;
  const T* x;         ///< own values, or
  ReadHead<i32> own;  ///< what they are encoded as
  ReadHead<i32> piece;
  Head<i32> out;
  T* result;

  template <class Place> Progress over(Run run, Progress at, T* to, const Place& place) const {
    Progress p;
    for (std::size_t b = run.first; b < run.last; ++b) {
      const std::size_t first = b * block_values;
      T* const y = to ? to + first : nullptr;
      const Source<i32> theirs = piece.source(b, at.b + p.b);
      const Written<i32> w = x ? accumulator.add(x + first, theirs, place(p), y, p)
                               : accumulator.add(own.source(b, at.a + p.a), theirs, place(p), y);
      out.set(b, w);
      p.too_large += w.too_wide;
      p.out += w.bytes, p.b += piece.bytes(b, 0);
      if (!x) p.a += own.bytes(b, 0);
    }
    return p;
  }
  /// Leaves the result alone: it may lie where the values do.
  Progress measure(Run run) const {
    alignas(64) std::byte scratch[block_values * sizeof(i32) + planes_bytes];
    const Progress at{x ? 0 : own.bytes_before(run.first), piece.bytes_before(run.first)};
    return over(run, at, nullptr, [&](const Progress&) { return scratch; });
  }
  Progress run(Run run, Progress at) const {
    const Progress p = over(run, at, result, [&](const Progress& done) {
      return out.piece + out.layout.payload_at + at.out + done.out;
    });
    if (result && accumulator.decoder.streaming) end_streaming();
    return p;
  }
};

}  // namespace grid

/// Adds to a piece, of quanta in int32, as many values, not encoded (`x`) or encoded (`own`): the other of the two is empty.
/// Writes the bytes that `grid_encode` and `grid_combine` with `p` would give at `out`, which has room for the largest piece, and
/// returns how many. Unless `result` is empty, decodes them into it with `complete`; it may be x itself. Errors are those of
/// encoding and combining.
template <class T, class Exec>
std::size_t grid_accumulate(const Exec& exec, std::span<const T> x, std::span<const std::byte> own,
                            std::span<const std::byte> piece, std::size_t n, std::span<std::byte> out,
                            std::span<T> result, Operation operation, const GridParameters& p,
                            const GridParameters& complete, const grid::Kernels& kernels,
                            bool streaming = false) {
  using namespace grid;
  const Layout<i32> layout(n, p.delta);
  check_piece(piece, layout, p, 0);
  if (x.empty()) check_piece(own, layout, p, 0);
  if (n == 0) return 0;
  expect_room(out.size(), largest_piece<i32>(n, p.delta, 0, widths_of<i32>(p).widest));
  const grid::Head<i32> head{out.data(), layout, p.delta};
  head.clear_padding();
  const AccumulateBlocks<T> body{{{kernels, p}, {kernels, p, operation}, {kernels, complete, streaming}},
                                 x.empty() ? nullptr : x.data(),
                                 {own.data(), layout, p.delta},
                                 {piece.data(), layout, p.delta},
                                 head,
                                 result.empty() ? nullptr : result.data()};
  const Progress total = for_runs(exec, "wring::combine", layout.blocks, RunBody(body));
  expect_agreed(total);
  return layout.payload_at + total.out;
}

}  // namespace wring::inline v0::detail
