// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include <wring/compressor/grid.hpp>

/// What the tests of Grid share.
namespace grid_test {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Bytes = std::vector<std::byte>;
using wring::detail::GridParameters;
using wring::detail::Level;

/// More bits than any sum here needs: the exact reference.
#if defined(__SIZEOF_FLOAT128__)
using Exact = __float128;
#else
using Exact = long double;
#endif

inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        not_a_number = std::numeric_limits<double>::quiet_NaN();
inline constexpr Level levels[] = {Level::scalar, Level::vector16, Level::avx2, Level::avx512};

/// The same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t word() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// Multiples of 2^-30 in [-1, 1).
  double signed_unit() { return static_cast<double>(static_cast<std::int64_t>(word()) >> 33) * 0x1p-30; }
  std::uint64_t below(std::uint64_t n) { return word() % n; }

 private:
  std::uint64_t state_;
};

inline std::uint64_t fnv(std::span<const std::byte> bytes) {
  std::uint64_t h = 14695981039346656037u;
  for (const std::byte b : bytes) h = (h ^ static_cast<std::uint64_t>(b)) * 1099511628211u;
  return h;
}

template <class T> T element(double x) {
  if constexpr (std::is_same_v<T, double>)
    return x;
  else
    return T(static_cast<float>(x));
}
template <class T> double number(T x) { return static_cast<double>(wring::detail::widen(x)); }

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

inline GridParameters grid_of(int multiplier, int exponent,
                              GridParameters::Form form = GridParameters::Form::int32) {
  GridParameters p;
  p.form = form;
  p.multiplier = multiplier;
  p.exponent = exponent;
  p.step = std::ldexp(multiplier, exponent);
  p.inverse = 1 / p.step;
  return p;
}

/// Room for any piece of n values.
inline Bytes room_for(std::size_t n) {
  using wring::detail::grid::largest_piece;
  return Bytes(std::max(largest_piece<std::int32_t>(n, true, sizeof(double)),
                        largest_piece<std::int64_t>(n, true, sizeof(double))));
}

template <class T> Bytes encode(const std::vector<T>& x, const GridParameters& p,
                                Level level = wring::detail::best_level()) {
  Bytes out = room_for(x.size());
  std::ranges::fill(out, std::byte{0xA5});
  out.resize(wring::detail::grid_encode<T>(Exec(), std::span<const T>(x), out, p,
                                           wring::detail::grid::kernels_for(level)));
  return out;
}
template <class T>
std::vector<T> decode(const Bytes& in, std::size_t n, const GridParameters& p,
                      Level level = wring::detail::best_level()) {
  std::vector<T> y(n, element<T>(77));
  wring::detail::grid_decode<T>(Exec(), in, std::span(y), p, wring::detail::grid::kernels_for(level));
  return y;
}
template <class T>
Bytes combine(const Bytes& a, const Bytes& b, std::size_t n, wring::Operation operation,
              const GridParameters& p, Level level = wring::detail::best_level()) {
  Bytes out = room_for(n);
  std::ranges::fill(out, std::byte{0xA5});
  out.resize(wring::detail::grid_combine<T>(Exec(), a, b, n, out, operation, p,
                                            wring::detail::grid::kernels_for(level)));
  return out;
}
template <class T>
Bytes finish(const Bytes& in, std::size_t n, const GridParameters& p,
             Level level = wring::detail::best_level()) {
  Bytes out = room_for(n);
  std::ranges::fill(out, std::byte{0xA5});
  out.resize(wring::detail::grid_finish<T>(Exec(), in, n, out, p, wring::detail::grid::kernels_for(level)));
  return out;
}

/// Ranks in one process: what a reduction does to their inputs, in any order.
template <class T> class Reduction {
 public:
  Reduction(typename wring::Grid<T>::Options options, wring::Collective collective,
            wring::Operation operation, int ranks, std::size_t n, double max_abs, double error)
      : codec_(options) {
    wring::Agreed agreed;
    agreed.collective = context_.collective = collective;
    agreed.operation = context_.operation = operation;
    agreed.ranks = context_.ranks = ranks;
    agreed.total = context_.total = context_.count = n;
    agreed.max_abs = max_abs;
    agreed.allowed_error = error;
    agreed.measured = true;
    codec_.prepare(agreed);
  }

  Bytes compress(const std::vector<T>& x, bool wide = false) {
    context_.phase = wring::Phase::own;
    context_.wide = wide;
    Bytes out(codec_.max_compressed_bytes(x.size()));
    out.resize(codec_.compress(Exec(), std::span<const T>(x), out, context_));
    context_.wide = false;
    return out;
  }
  Bytes combine(const Bytes& a, const Bytes& b, bool wide = false) {
    context_.phase = wring::Phase::hop;
    context_.wide = wide;
    Bytes out(codec_.max_combined_bytes(context_.count, context_.ranks));
    out.resize(codec_.combine(Exec(), a, b, out, context_));
    context_.wide = false;
    return out;
  }
  Bytes finish(const Bytes& in) {
    if (!codec_.finishes()) return in;
    context_.phase = wring::Phase::hop;
    Bytes out(codec_.max_combined_bytes(context_.count, context_.ranks));
    out.resize(codec_.finish(Exec(), in, out, context_));
    return out;
  }
  std::vector<T> decompress(const Bytes& in) {
    context_.phase = wring::Phase::final;
    std::vector<T> y(context_.count);
    codec_.decompress(Exec(), std::span<const std::byte>(in), std::span(y), context_);
    return y;
  }

  /// The pieces combined in an order drawn at random.
  Bytes combined(std::vector<Bytes> pieces, Random& random) {
    while (pieces.size() > 1) {
      std::swap(pieces[random.below(pieces.size())], pieces.back());
      const Bytes last = std::move(pieces.back());
      pieces.pop_back();
      Bytes& other = pieces[random.below(pieces.size())];
      other = random.below(2) ? combine(last, other) : combine(other, last);
    }
    return pieces[0];
  }

  wring::Grid<T>& codec() { return codec_; }

 private:
  wring::Grid<T> codec_;
  wring::Context context_;
};

}  // namespace grid_test
