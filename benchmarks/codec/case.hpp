// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/bound.hpp>
#include <wring/compressor/concept.hpp>

#include "codec/data_set.hpp"
#include "support/buffer.hpp"

namespace wring_benchmark {

/// The values of two ranks, their encodings for a sum within a bound, and a compressor prepared for it.
template <class Codec> class Case {
 public:
  using T = typename Codec::value_type;
  static constexpr bool combines = wring::CombiningCompressor<Codec>, adds = wring::AddingCompressor<Codec>,
                        bounded = combines && wring::BoundedCompressor<Codec>;

  Case(const DataSet& set, std::size_t bytes, wring::Bound bound, Codec codec)
      : mine(bytes / sizeof(T)), theirs(count()), decoded(count()), copy(count()), codec_(codec), encoded_(0),
        other_(0), combined_(0), scratch_(0) {
    fill(mine.span(), set.mine), fill(theirs.span(), set.theirs);
    measure(bound);
    context_.ranks = 2, context_.count = context_.total = count();
    prepare();
    encoded_ = Buffer<std::byte>(codec_.max_compressed_bytes(count()));
    other_ = Buffer<std::byte>(codec_.max_compressed_bytes(count()));
    if constexpr (wring::ScratchCompressor<Codec>) {
      scratch_ = Buffer<std::byte>(codec_.scratch_bytes(count()));
      context_.scratch = scratch_.span();
    }
    if constexpr (combines) combined_ = Buffer<std::byte>(codec_.max_combined_bytes(count(), 2));
    other_size_ = codec_.compress(Exec(), values(theirs), other_.span(), context_);
    encode();
  }

  std::size_t count() const { return mine.span().size(); }
  double bits() const { return 8.0 * static_cast<double>(size_) / static_cast<double>(count()); }

  void encode() { size_ = codec_.compress(Exec(), values(mine), encoded_.span(), context_); }
  void decode() { codec_.decompress(Exec(), piece(), decoded.span(), context_); }
  void combine() {
    if constexpr (combines)
      combined_size_ = codec_.combine(Exec(), piece(), other_piece(), combined_.span(), context_);
    else if constexpr (adds)
      codec_.decompress_add(Exec(), other_piece(), decoded.span(), context_);
  }

  /// The largest error of an encoding, as a part of the root mean square.
  double error() {
    decode();
    double worst = 0;
    for (std::size_t i = 0; i < count(); ++i)
      worst = std::max(worst, std::fabs(wide(decoded, i) - wide(mine, i)));
    return root_mean_square_ > 0 ? worst / root_mean_square_ : 0;
  }

  /// The largest error of the sum of both ranks' encodings, as a part of the bound.
  double error_of_bound() {
    if constexpr (bounded) {
      combine();
      std::span<const std::byte> sum = combined_.span().first(combined_size_);
      wring::Context final = context_;
      final.phase = wring::Phase::final, final.terms = 2;
      Buffer<std::byte> finished(codec_.max_combined_bytes(count(), 2));
      if constexpr (wring::FinishingCompressor<Codec>)
        if (codec_.finishes())
          sum = finished.span().first(codec_.finish(Exec(), sum, finished.span(), final));
      codec_.decompress(Exec(), sum, decoded.span(), final);
      double worst = 0;
      for (std::size_t i = 0; i < count(); ++i)
        worst = std::max(worst, std::fabs(wide(decoded, i) - (wide(mine, i) + wide(theirs, i))));
      return worst / allowed_error_;
    }
    return 0;
  }

  /// The entropy of the multiples of the step to which the first million of values, or of differences of neighbours, is rounded,
  /// in bits: what no lossless coder of single values gets below.
  std::optional<double> entropy(bool of_differences) const {
    if constexpr (requires { codec_.step(); }) {
      if (!codec_.step()) return std::nullopt;
      std::map<std::int64_t, std::size_t> histogram;
      const std::size_t n = std::min(count(), std::size_t{1} << 20);
      std::int64_t before = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t q = std::llrint(wide(mine, i) / *codec_.step());
        ++histogram[of_differences ? q - before : q], before = q;
      }
      double bits = 0;
      for (const auto& [q, times] : histogram) {
        const double part = static_cast<double>(times) / static_cast<double>(n);
        bits -= part * std::log2(part);
      }
      return bits;
    }
    return std::nullopt;
  }

  Buffer<T> mine, theirs, decoded, copy;

 private:
  using Exec = Kokkos::DefaultHostExecutionSpace;

  static double wide(const Buffer<T>& buffer, std::size_t i) {
    return wring::detail::widen(buffer.data()[i]);
  }
  static std::span<const T> values(const Buffer<T>& buffer) { return buffer.span(); }
  static void fill(std::span<T> to, const std::vector<float>& from) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<T>(from[i % from.size()]);
  }
  std::span<const std::byte> piece() const { return encoded_.span().first(size_); }
  std::span<const std::byte> other_piece() const { return other_.span().first(other_size_); }

  void measure(wring::Bound bound) {
    double squares = 0, least = wide(mine, 0), most = least;
    for (const Buffer<T>* buffer : {&mine, &theirs})
      for (std::size_t i = 0; i < count(); ++i) {
        const double x = wide(*buffer, i);
        squares += x * x, least = std::min(least, x), most = std::max(most, x);
      }
    max_abs_ = std::max(std::fabs(least), std::fabs(most));
    root_mean_square_ = std::sqrt(squares / 2 / static_cast<double>(count()));
    using enum wring::Bound::Kind;
    allowed_error_ = bound.value * (bound.kind == rms     ? 2 * root_mean_square_
                                    : bound.kind == range ? most - least
                                                          : 1);
  }

  void prepare() {
    if constexpr (wring::PreparedCompressor<Codec>) {
      wring::Agreed agreed;
      agreed.ranks = 2, agreed.total = count(), agreed.max_abs = max_abs_, agreed.finite = true;
      if (bounded) agreed.allowed_error = allowed_error_, agreed.measured = true;
      codec_.prepare(agreed);
    }
  }

  Codec codec_;
  wring::Context context_;
  Buffer<std::byte> encoded_, other_, combined_, scratch_;
  std::size_t size_ = 0, other_size_ = 0, combined_size_ = 0;
  double max_abs_ = 0, root_mean_square_ = 0, allowed_error_ = 0;
};

}  // namespace wring_benchmark
