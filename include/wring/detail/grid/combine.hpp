// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include <wring/detail/grid/emit.hpp>
#include <wring/detail/grid/runs.hpp>
#include <wring/detail/grid/team/kernels.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>
#include <wring/operation.hpp>

namespace wring::inline v0::detail {
namespace grid {

/// A block taken apart: quanta (the predictor undone) and codes.
template <class Q> struct Opened {
  alignas(64) Q q[block_values];
  Planes planes;
};

/// Combines and finishes blocks of quanta Q; knows nothing of element types.
template <class Q> struct BlockCombiner {
  using U = std::make_unsigned_t<Q>;
  const IntegerKernels<Q>& kernels;
  Operation operation;
  int shift;
  bool delta;
  Widths widths;

  BlockCombiner(const Kernels& k, const GridParameters& p, Operation op)
      : kernels(k.of<Q>()), operation(op), shift(p.shift), delta(p.delta), widths(widths_of<Q>(p)) {}

  static Q wrapping_sum(Q a, Q b) { return static_cast<Q>(static_cast<U>(a) + static_cast<U>(b)); }

  Written<Q> combine(const Source<Q>& a, const Source<Q>& b, std::byte* out) const {
    if (a.special() || b.special() || (!adds(operation) && delta)) return combine_opened(a, b, out);
    if (!adds(operation)) return extremum(a, b, out);
    const Q base = delta ? wrapping_sum(a.base, b.base) : Q{0};
    if (a.width() == 0 && copies(b)) return copy(b, base, out);
    if (b.width() == 0 && copies(a)) return copy(a, base, out);
    alignas(64) Q q[block_values];
    unpack_block(kernels, a, q);
    const U ored = unpack_add_block(kernels, b, q);
    Written<Q> w = emit(kernels, widths, q, ored, a.m, nullptr, out);
    w.base = base;
    return w;
  }

  /// Whether a block plus nothing is the block's own bytes: the greatest width may only have been asked for by
  /// `wide`.
  bool copies(const Source<Q>& s) const { return !widths.always && s.width() < widths.widest; }

  static Written<Q> copy(const Source<Q>& s, Q base, std::byte* out) {
    const std::size_t bytes = packed_bytes<Q>(s.m, s.width());
    if (bytes != 0) std::memcpy(out, s.packed(), bytes);
    return {static_cast<unsigned>(s.width()), bytes, base};
  }

  Written<Q> extremum(const Source<Q>& a, const Source<Q>& b, std::byte* out) const {
    alignas(64) Q q[block_values], other[block_values];
    unpack_block(kernels, a, q);
    unpack_block(kernels, b, other);
    kernels.extremum(q, other, operation == Operation::max);
    return emit(kernels, widths, q, kernels.measure(q), a.m, nullptr, out);
  }

  void open(const Source<Q>& s, Opened<Q>& to) const {
    unpack_block(kernels, s, to.q);
    if (delta) kernels.integrate(to.q, s.base);
    if (s.special()) to.planes.read(s.payload, s.m);
  }

  /// Packs quanta with the predictor applied; what lies beyond the last value must cost no bits.
  Written<Q> close(Opened<Q>& block, std::size_t m, std::byte* out) const {
    std::fill(block.q + m, block.q + block_values, delta ? block.q[m - 1] : Q{0});
    const Q base = delta ? block.q[0] : Q{0};
    const U ored = delta ? kernels.difference(block.q) : kernels.measure(block.q);
    Written<Q> w = emit(kernels, widths, block.q, ored, m, block.planes.any() ? &block.planes : nullptr, out);
    w.base = base;
    return w;
  }

  Written<Q> combine_opened(const Source<Q>& a, const Source<Q>& b, std::byte* out) const {
    Opened<Q> first, second;
    open(a, first);
    open(b, second);
    if (adds(operation))
      add_opened(first, second);
    else
      extremum_opened(first, second, a.m);
    return close(first, a.m, out);
  }

  void add_opened(Opened<Q>& a, const Opened<Q>& b) const {
    kernels.add(a.q, b.q);
    for (std::size_t k = 0; k < 8; ++k) {
      a.planes.low[k] |= b.planes.low[k];
      a.planes.high[k] |= b.planes.high[k];
      for (u64 rest = a.planes.special(k); rest != 0; rest &= rest - 1)
        a.q[64 * k + static_cast<std::size_t>(std::countr_zero(rest))] = 0;
    }
  }

  void extremum_opened(Opened<Q>& a, const Opened<Q>& b, std::size_t m) const {
    Planes planes;
    for (std::size_t i = 0; i < m; ++i) {
      const unsigned x = a.planes[i], y = b.planes[i];
      const unsigned first = operation == Operation::max ? positive_infinity : negative_infinity,
                     last = 3 - first;
      unsigned code = finite_code;
      if (x == nan_code || y == nan_code)
        code = nan_code;
      else if (x == first || y == first)
        code = first;
      else if (x == last && y == last)
        code = last;
      const Q p = a.q[i], q = b.q[i];
      if (code != finite_code)
        planes.set(i, code), a.q[i] = 0;
      else if (x == last)
        a.q[i] = q;
      else if (y != last)
        a.q[i] = operation == Operation::max ? std::max(p, q) : std::min(p, q);
    }
    a.planes = planes;
  }

  Written<Q> finish(const Source<Q>& s, std::byte* out) const {
    Opened<Q> block;
    open(s, block);
    if (shift != 0) kernels.shift(block.q, shift);
    return close(block, s.m, out);
  }
};

/// Combines runs of blocks.
template <class Q> struct CombineBlocks {
  BlockCombiner<Q> combiner;
  ReadHead<Q> a, b;
  Head<Q> out;

  template <class Place> Progress over(Run run, Progress at, const Place& place) const {
    Progress p;
    for (std::size_t block = run.first; block < run.last; ++block) {
      const Written<Q> w =
          combiner.combine(a.source(block, at.a + p.a), b.source(block, at.b + p.b), place(p));
      out.set(block, w);
      p.out += w.bytes, p.a += a.bytes(block, 0), p.b += b.bytes(block, 0), p.too_large += w.too_wide;
    }
    return p;
  }
  /// Widths of sums depend on the sums: with several threads the first pass does the work of the second.
  Progress measure(Run run) const {
    alignas(64) std::byte scratch[block_values * sizeof(Q) + planes_bytes];
    return over(run, {a.bytes_before(run.first), b.bytes_before(run.first), 0, 0},
                [&](const Progress&) { return scratch; });
  }
  Progress run(Run run, Progress at) const {
    return over(run, at,
                [&](const Progress& p) { return out.piece + out.layout.payload_at + at.out + p.out; });
  }
};

/// Finishes runs of blocks.
template <class Q> struct FinishBlocks {
  BlockCombiner<Q> combiner;
  ReadHead<Q> in;
  Head<Q> out;

  template <class Place> Progress over(Run run, Progress at, const Place& place) const {
    Progress p;
    for (std::size_t block = run.first; block < run.last; ++block) {
      const Written<Q> w = combiner.finish(in.source(block, at.a + p.a), place(p));
      out.set(block, w);
      p.out += w.bytes, p.a += in.bytes(block, 0), p.too_large += w.too_wide;
    }
    return p;
  }
  Progress measure(Run run) const {
    alignas(64) std::byte scratch[block_values * sizeof(Q) + planes_bytes];
    return over(run, {in.bytes_before(run.first), 0, 0, 0}, [&](const Progress&) { return scratch; });
  }
  Progress run(Run run, Progress at) const {
    return over(run, at,
                [&](const Progress& p) { return out.piece + out.layout.payload_at + at.out + p.out; });
  }
};

inline const Progress& expect_sums(const Progress& total) {
  if (total.too_large)
    throw CodecError(sentence("Grid: ", total.too_large,
                              " blocks are wider than sums of the magnitudes that were agreed upon can be"));
  return total;
}

inline void expect_room(std::size_t room, std::size_t needed) {
  if (room < needed)
    throw CodecError(sentence("Grid: a piece of up to ", needed, " bytes does not fit into ", room));
}

template <class Q, class Exec>
std::size_t combine_as(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                       std::size_t n, std::span<std::byte> out, Operation operation, const GridParameters& p,
                       const Kernels& kernels) {
  const Layout<Q> layout(n, p.delta);
  check_piece(a, layout, p, 0);
  check_piece(b, layout, p, 0);
  if (n == 0) return 0;
  expect_room(out.size(), largest_piece<Q>(n, p.delta, 0, widths_of<Q>(p).widest));
  const Head<Q> head{out.data(), layout, p.delta};
  head.clear_padding();
  const CombineBlocks<Q> body{
      {kernels, p, operation}, {a.data(), layout, p.delta}, {b.data(), layout, p.delta}, head};
  return layout.payload_at + expect_sums(for_runs(exec, "wring::combine", layout.blocks, RunBody(body))).out;
}

template <class Q, class Exec>
std::size_t finish_as(const Exec& exec, std::span<const std::byte> in, std::size_t n,
                      std::span<std::byte> out, const GridParameters& p, const Kernels& kernels) {
  const Layout<Q> layout(n, p.delta);
  check_piece(in, layout, p, 0);
  if (n == 0) return 0;
  expect_room(out.size(), largest_piece<Q>(n, p.delta, 0, widths_of<Q>(p).widest));
  const Head<Q> head{out.data(), layout, p.delta};
  head.clear_padding();
  const FinishBlocks<Q> body{{kernels, p, Operation::sum}, {in.data(), layout, p.delta}, head};
  return layout.payload_at + expect_sums(for_runs(exec, "wring::finish", layout.blocks, RunBody(body))).out;
}

}  // namespace grid

/// Combines two pieces of n values into a third, which has room for the largest; returns its size. Exact, so
/// associative and commutative, where the form is not `values`. Throws CodecError where a piece is not one of
/// n values.
template <class T, class Exec>
std::size_t grid_combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                         std::size_t n, std::span<std::byte> out, Operation operation,
                         const GridParameters& p, const grid::Kernels& kernels) {
  if (p.form == GridParameters::Form::values)
    return grid_team::combine_values<T>(exec, a, b, n, out, operation);
  if (p.raw_blocks) throw CodecError("Grid: pieces of a collective that adds nothing do not combine");
  if (p.form == GridParameters::Form::int64)
    return grid::combine_as<grid::i64>(exec, a, b, n, out, operation, p, kernels);
  return grid::combine_as<grid::i32>(exec, a, b, n, out, operation, p, kernels);
}

template <class T, class Exec>
std::size_t grid_combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                         std::size_t n, std::span<std::byte> out, Operation operation,
                         const GridParameters& p) {
  return grid_combine<T>(exec, a, b, n, out, operation, p, grid::best_kernels());
}

/// Rounds the sums of a piece to multiples of 2^shift steps, ties to even, and packs them again.
template <class T, class Exec>
std::size_t grid_finish(const Exec& exec, std::span<const std::byte> in, std::size_t n,
                        std::span<std::byte> out, const GridParameters& p, const grid::Kernels& kernels) {
  // Values have nothing to round: the least of a sum and itself is the sum, its NaNs canonical.
  if (p.form == GridParameters::Form::values)
    return grid_team::combine_values<T>(exec, in, in, n, out, Operation::min);
  if (p.form == GridParameters::Form::int64) return grid::finish_as<grid::i64>(exec, in, n, out, p, kernels);
  return grid::finish_as<grid::i32>(exec, in, n, out, p, kernels);
}

template <class T, class Exec>
std::size_t grid_finish(const Exec& exec, std::span<const std::byte> in, std::size_t n,
                        std::span<std::byte> out, const GridParameters& p) {
  return grid_finish<T>(exec, in, n, out, p, grid::best_kernels());
}

}  // namespace wring::inline v0::detail
