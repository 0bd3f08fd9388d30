// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include <wring/detail/convert.hpp>
#include <wring/detail/grid/emit.hpp>
#include <wring/detail/grid/runs.hpp>
#include <wring/detail/grid/team/kernels.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

namespace wring::inline v0::detail {
namespace grid {

/// The quanta of one block, and what is known of them.
template <class Q> struct Quanta {
  alignas(64) Q q[block_values];
  std::make_unsigned_t<Q> ored = 0;  ///< OR of the magnitudes (of the residues with the delta predictor)
  std::make_unsigned_t<Q> magnitudes = 0;  ///< of the quanta; or more
  Q base = 0;
  Planes planes;
  bool special = false, too_large = false;
};

/// Quantises in binary64, one element at a time: special values, and quanta too large for the fast kernels.
template <class Q>
inline void quantise_exactly(const double* x, std::size_t m, const Step& step, double largest,
                             Quanta<Q>& out) {
  for (std::size_t i = 0; i < m; ++i) {
    const unsigned code = code_of(x[i]);
    double q = 0;
    if (code != finite_code) {
      out.planes.set(i, code), out.special = true;
    } else if (has_quantum(x[i], step.inverse)) {
      q = quantum(x[i], step.step, step.inverse, step.power_of_two);
    } else {
      out.too_large = true;
    }
    if (q > largest || q < -largest) q = 0, out.too_large = true;
    out.q[i] = static_cast<Q>(q);
  }
}

/// Quantises a block held in binary64: vectors where they can be trusted, else element by element. Largest:
/// the greatest |q| that may be kept.
template <class Q>
inline void quantise_wide(const Kernels& kernels, const double* x, std::size_t m, const Step& step,
                          double largest, Quanta<Q>& out) {
  alignas(64) i64 own[std::is_same_v<Q, i64> ? 1 : block_values];
  i64* q = own;
  if constexpr (std::is_same_v<Q, i64>) q = out.q;
  const int bits =
      std::min(step.trusted64, static_cast<int>(std::bit_width(static_cast<u64>(largest) + 1)) - 1);
  if (step.trusted64 != 0 && (kernels.quantise_doubles(x, step, q) >> bits) == 0) {
    if constexpr (!std::is_same_v<Q, i64>)
      for (std::size_t i = 0; i < block_values; ++i) out.q[i] = static_cast<Q>(own[i]);
    return;
  }
  quantise_exactly(x, m, step, largest, out);
}

/// Encodes blocks of T as quanta Q.
template <class T, class Q> struct BlockEncoder {
  using Wide = typename FloatTraits<T>::Wide;
  const Kernels& kernels;
  Step step;
  Widths widths;
  bool delta, raw_blocks;

  BlockEncoder(const Kernels& k, const GridParameters& p)
      : kernels(k), step(p), widths(widths_of<Q>(p)), delta(p.delta), raw_blocks(p.raw_blocks && !p.wide) {}

  /// Beyond it a block is raw, or its values exceed what was agreed upon.
  double largest() const {
    if constexpr (std::is_same_v<Q, i32>)
      return raw_blocks ? 0x1p30 : 0x1p31 - 1;
    else
      return 0x1p61 - 1;
  }

  /// The block as Compute in `own`, filled up so that what is added costs no bits.
  template <class Compute> void widen_block(const T* x, std::size_t m, Compute* own) const {
    if (m == block_values) {
      if constexpr (std::is_same_v<Compute, Wide>)
        return ConvertRun<Widen<T>, T, Wide, block_values>::convert({}, x, own);
      for (std::size_t i = 0; i < block_values; ++i) own[i] = static_cast<Compute>(widen(x[i]));
    } else {
      for (std::size_t i = 0; i < m; ++i) own[i] = static_cast<Compute>(widen(x[i]));
      const Compute last = delta ? own[m - 1] : Compute{0};
      for (std::size_t i = m; i < block_values; ++i) own[i] = last;
    }
  }

  /// The fast path: binary32. False where its quanta cannot be trusted.
  bool quantise_narrow(const T* x, std::size_t m, Quanta<i32>& out) const {
    if (step.trusted32 == 0) return false;
    const auto run = [&](const float* values) {
      const Measured<i32> measured = kernels.quantise_floats(values, step, delta, out.q, out.base);
      out.ored = measured.residues, out.magnitudes = measured.quanta;
      return (measured.quanta >> step.trusted32) == 0;
    };
    if constexpr (std::is_same_v<T, float>)
      if (m == block_values) return run(x);
    alignas(64) float own[block_values];
    widen_block(x, m, own);
    return run(own);
  }

  void quantise(const T* x, std::size_t m, Quanta<Q>& out) const {
    if constexpr (std::is_same_v<Q, i32> && std::is_same_v<Wide, float>)
      if (quantise_narrow(x, m, out)) return;
    alignas(64) double own[block_values];
    widen_block(x, m, own);
    quantise_wide(kernels, own, m, step, largest(), out);
    if (m < block_values) std::fill(out.q + m, out.q + block_values, delta ? out.q[m - 1] : Q{0});
    out.base = delta ? out.q[0] : Q{0};
    out.ored = out.magnitudes = kernels.template of<Q>().measure(out.q);
    if (delta) out.ored = kernels.template of<Q>().difference(out.q);
  }

  unsigned descriptor(const Quanta<Q>& quanta) const {
    const int needed = width_of<Q>(quanta.ored, quanta.ored != 0 || kernels.template of<Q>().any(quanta.q));
    const int w = widths.always ? widths.widest : needed > widths.widest ? 0 : needed;
    return static_cast<unsigned>(w) | (quanta.special ? specials_bit : 0);
  }

  bool stays_raw(const Quanta<Q>& quanta, std::size_t m) const {
    if (!raw_blocks) return false;
    return quanta.too_large || payload_bytes<Q>(descriptor(quanta), m, sizeof(T)) >= padded(m * sizeof(T));
  }

  std::size_t measure(const T* x, std::size_t m, Progress& p) const {
    Quanta<Q> quanta;
    quantise(x, m, quanta);
    if (stays_raw(quanta, m)) return padded(m * sizeof(T));
    p.too_large += quanta.too_large, p.quanta |= quanta.magnitudes;
    return payload_bytes<Q>(descriptor(quanta), m, sizeof(T));
  }

  /// Encodes m values at `out`; notes in `p` how large they are, and whether larger than was agreed upon.
  Written<Q> encode(const T* x, std::size_t m, std::byte* out, Progress& p) const {
    Quanta<Q> quanta;
    quantise(x, m, quanta);
    if (stays_raw(quanta, m)) {
      std::memcpy(out, x, m * sizeof(T));
      std::memset(out + m * sizeof(T), 0, padded(m * sizeof(T)) - m * sizeof(T));
      return {raw_width, padded(m * sizeof(T)), 0};
    }
    p.too_large += quanta.too_large, p.quanta |= quanta.magnitudes;
    Written<Q> w = emit(kernels.template of<Q>(), widths, quanta.q, quanta.ored, m,
                        quanta.special ? &quanta.planes : nullptr, out);
    w.base = quanta.base;
    p.too_large += w.too_wide;
    return w;
  }
};

/// Encodes runs of blocks.
template <class T, class Q> struct EncodeBlocks {
  BlockEncoder<T, Q> encoder;
  const T* x;
  Head<Q> head;

  Progress measure(Run run) const {
    Progress p;
    for (std::size_t b = run.first; b < run.last; ++b)
      p.out += encoder.measure(x + b * block_values, head.layout.values_in(b), p);
    return p;
  }
  Progress run(Run run, Progress at) const {
    Progress p;
    std::byte* out = head.piece + head.layout.payload_at + at.out;
    for (std::size_t b = run.first; b < run.last; ++b) {
      const Written<Q> w = encoder.encode(x + b * block_values, head.layout.values_in(b), out + p.out, p);
      head.set(b, w);
      p.out += w.bytes;
    }
    return p;
  }
};

inline void expect_agreed(const Progress& total) {
  if (total.too_large)
    throw CodecError(
        sentence("Grid: values of ", total.too_large,
                 " blocks exceed the magnitude that was agreed upon; did the input change meanwhile?"));
}

/// Encodes; `Progress::out` is the size of the whole piece.
template <class Q, class T, class Exec>
Progress encode_as(const Exec& exec, std::span<const T> x, std::span<std::byte> out, const GridParameters& p,
                   const Kernels& kernels) {
  const Layout<Q> layout(x.size(), p.delta);
  if (x.empty()) return {};
  if (out.size() < largest_piece<Q>(x.size(), p.delta, p.raw_blocks ? sizeof(T) : 0, widths_of<Q>(p).widest))
    throw CodecError("Grid: the room for an encoded piece is too small");
  const Head<Q> head{out.data(), layout, p.delta};
  head.clear_padding();
  const EncodeBlocks<T, Q> body{{kernels, p}, x.data(), head};
  Progress total = for_runs(exec, "wring::encode", layout.blocks, RunBody(body));
  total.out += layout.payload_at;
  return total;
}

}  // namespace grid

/// Encodes x at `out`, which has room for the largest piece, and says how large the values are. The bytes do not
/// depend on `kernels`.
template <class T, class Exec>
grid::Progress grid_encode_and_measure(const Exec& exec, std::span<const T> x, std::span<std::byte> out,
                                       const GridParameters& p, const grid::Kernels& kernels) {
  if (p.form == GridParameters::Form::values)
    return {0, 0, x.empty() ? 0 : grid_team::encode_values(exec, x, out), 0, ~grid::u64{0}};
  if (p.form == GridParameters::Form::int64) return grid::encode_as<grid::i64>(exec, x, out, p, kernels);
  return grid::encode_as<grid::i32>(exec, x, out, p, kernels);
}

/// The same; returns the number of bytes. Throws CodecError where a value exceeds the magnitude that the
/// parameters were made for.
template <class T, class Exec>
std::size_t grid_encode(const Exec& exec, std::span<const T> x, std::span<std::byte> out,
                        const GridParameters& p, const grid::Kernels& kernels) {
  const grid::Progress total = grid_encode_and_measure(exec, x, out, p, kernels);
  grid::expect_agreed(total);
  return total.out;
}

template <class T, class Exec>
std::size_t grid_encode(const Exec& exec, std::span<const T> x, std::span<std::byte> out,
                        const GridParameters& p) {
  return grid_encode(exec, x, out, p, grid::best_kernels());
}

}  // namespace wring::inline v0::detail
