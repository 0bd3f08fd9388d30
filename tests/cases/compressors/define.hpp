// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <utility>
#include <variant>

#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/entropy_grid.hpp>
#include <wring/compressor/error_feedback.hpp>
#include <wring/compressor/gradient.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/lossless.hpp>
#include <wring/compressor/packed_words.hpp>
#include <wring/compressor/threshold.hpp>
#include <wring/compressor/top_k.hpp>

#include "cases/compressors.hpp"

namespace wring_test {

/// A call with a compressor.
template <class Codec, class T> Call<Codec> with(const Codec& codec, const AnyCall<T>& call) {
  return {codec,     call.collective, call.options, call.bound,
          call.root, call.in_place,   call.counts,  call.world};
}

template <class Codec, class T = typename Codec::value_type>
AnyCompressor<T> any_compressor(const Codec& codec) {
  const wring::Identity identity = codec.identity();
  AnyCompressor<T> any{.name = identity.name + " " + identity.options,
                       .bounded = wring::BoundedCompressor<Codec>,
                       .adds_values = !wring::CombiningCompressor<Codec>};
  any.collect = [codec](const AnyAlgorithm& algorithm, const AnyCall<T>& call, const PerRank<T>& inputs) {
    return collect(algorithm, with(codec, call), inputs);
  };
  return any;
}

template <class To, class T> AnyCompressor<T> any_cast() {
  AnyCompressor<T> any = any_compressor(wring::Cast<To, T>{});
  any.roundoff = wring::FloatTraits<To>::unit_roundoff;
  any.least_subnormal = wring::FloatTraits<To>::least_subnormal;
  any.greatest = wring::FloatTraits<To>::greatest;
  return any;
}

/// BlockScaled of a width that is known at run time only: the collectives are compiled once for all of them.
template <class T, int... Bits> class AnyWidth {
 public:
  using value_type = T;
  template <int B> explicit AnyWidth(const wring::BlockScaled<T, B>& codec) : codec_(codec) {}

  wring::Identity identity() const {
    return std::visit([](const auto& codec) { return codec.identity(); }, codec_);
  }
  std::size_t max_compressed_bytes(std::size_t n) const { return compressed_bytes(n); }
  std::size_t compressed_bytes(std::size_t n) const {
    return std::visit([n](const auto& codec) { return codec.compressed_bytes(n); }, codec_);
  }
  template <class E> std::size_t compress(const E& exec, std::span<const T> values,
                                          std::span<std::byte> bytes, const wring::Context& c) const {
    return std::visit([&](const auto& codec) { return codec.compress(exec, values, bytes, c); }, codec_);
  }
  template <class E> void decompress(const E& exec, std::span<const std::byte> bytes, std::span<T> values,
                                     const wring::Context& c) const {
    std::visit([&](const auto& codec) { codec.decompress(exec, bytes, values, c); }, codec_);
  }
  template <class E> void decompress_add(const E& exec, std::span<const std::byte> bytes, std::span<T> values,
                                         const wring::Context& c) const {
    std::visit([&](const auto& codec) { codec.decompress_add(exec, bytes, values, c); }, codec_);
  }

 private:
  std::variant<wring::BlockScaled<T, Bits>...> codec_;
};
template <class T> using Widths =
    std::conditional_t<std::is_same_v<T, float>, AnyWidth<float, 2, 3, 4, 5, 6, 8>, AnyWidth<T, 4, 8>>;

/// Its error is relative to the greatest value of a group; in groups with special values there is one level less, with 2 bits none but 0.
template <class T, int Bits>
AnyCompressor<T> any_block_scaled(const typename wring::BlockScaled<T, Bits>::Options& options) {
  AnyCompressor<T> any = any_compressor(Widths<T>(wring::BlockScaled<T, Bits>(options)));
  const int levels = std::max(1, (1 << (Bits - 1)) - 2);
  const bool nearest = std::holds_alternative<wring::NearestRounding>(options.rounding) && Bits > 2;
  const double scale = 1.01 / levels, spread = options.rotation ? 2 * 5.7 * std::sqrt(128.0) : 1;
  any.by_itself = false;
  any.mixes = options.rotation.has_value();
  any.roundoff = (nearest ? scale / 2 : scale) * spread + wring::FloatTraits<T>::unit_roundoff;
  any.greatest =
      std::min(wring::FloatTraits<T>::greatest, levels * wring::FloatTraits<wring::bhalf_t>::greatest);
  any.least_subnormal = levels * 0x1p-115 * spread;  // less counts as zero
  return any;
}

/// The values that an input's greatest half consists of: NaN, then by magnitude, of equal ones the first; no zeros.
template <class T> std::vector<T> greatest_half(const std::vector<T>& x) {
  const auto before = [&](std::size_t a, std::size_t b) {
    const double u = std::fabs(as_double(x[a])), v = std::fabs(as_double(x[b]));
    return std::isnan(u) ? !std::isnan(v) : u > v;
  };
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), before);
  std::vector<T> half(x.size(), to_element<T>(0));
  const auto k = static_cast<std::size_t>(std::nearbyint(0.5 * static_cast<double>(x.size())));
  for (std::size_t i = 0; i < std::min(x.size(), std::max<std::size_t>(1, k)); ++i)
    half[order[i]] = x[order[i]];
  return half;
}

template <class T> AnyCompressor<T> any_top_half() {
  AnyCompressor<T> any = any_compressor(wring::TopK<T>({.ratio = 0.5}));
  any.selected = greatest_half<T>;
  any.adds_values = true;  // one by one, though they are encoded
  any.by_itself = false;
  return any;
}

/// Integers in words, never values as they are.
template <class T> AnyCompressor<T> any_packed_words() {
  AnyCompressor<T> any = any_compressor(wring::PackedWords<T>{});
  any.sums_only = any.sums_words = true;
  any.least_bound = 1.01 * wring::FloatTraits<T>::unit_roundoff, any.least_error = 0x1p-115;
  return any;
}

/// The second of two operations: what the first one has lost comes on top.
template <class Inner, class T = typename Inner::value_type>
AnyCompressor<T> any_with_feedback(const Inner& inner) {
  using Codec = wring::ErrorFeedback<Inner>;
  wring::FeedbackState<T> none;
  AnyCompressor<T> any = any_compressor(Codec(inner, none));
  any.sums_only = true;
  any.least_bound = 64 * wring::FloatTraits<T>::unit_roundoff;
  any.least_error = 64 * wring::FloatTraits<T>::least_subnormal;
  any.collect = [inner](const AnyAlgorithm& algorithm, const AnyCall<T>& call, const PerRank<T>& inputs) {
    std::deque<wring::FeedbackState<T>> states(inputs.size());
    const auto codec_of = [&](std::size_t r) { return Codec(inner, states[r]); };
    static_cast<void>(collect(algorithm, with(codec_of(0), call), inputs, codec_of));
    return collect(algorithm, with(codec_of(0), call), inputs, codec_of);
  };
  return any;
}

template <class T> std::vector<AnyCompressor<T>> define_all_compressors() {
  using Grid = wring::Grid<T>;
  using wring::half_t, wring::bhalf_t;
  std::vector<AnyCompressor<T>> all{
      any_compressor(wring::None<T>{}), any_compressor(wring::Lossless<T>{}), any_compressor(Grid{}),
      any_compressor(Grid(typename Grid::Options{.step = Grid::StepKind::power_of_two, .delta = true}))};
  all.push_back(any_compressor(wring::EntropyGrid<T>{}));
  all.push_back(any_compressor(wring::Threshold<T>{}));
  all.back().adds_values = true;  // one by one, though they are encoded
  all.push_back(any_compressor(wring::Gradient<T>({.rounding = wring::StochasticRounding{5}})));
  all.push_back(any_block_scaled<T, 8>({}));
  all.push_back(any_block_scaled<T, 4>({.rounding = wring::StochasticRounding{5}}));
  if constexpr (!std::is_same_v<T, half_t>) all.push_back(any_cast<half_t, T>());
  if constexpr (!std::is_same_v<T, bhalf_t>) all.push_back(any_cast<bhalf_t, T>());
  if constexpr (std::is_same_v<T, float>) {
    all.push_back(any_compressor(
        wring::EntropyGrid<T>({.grid = {}, .stage = wring::EntropyGrid<T>::Stage::distribution})));
    all.push_back(any_compressor(wring::Gradient<T>{}));
    all.push_back(any_block_scaled<T, 6>({}));
    all.push_back(any_block_scaled<T, 5>({.rounding = wring::StochasticRounding{5}}));
    all.push_back(any_block_scaled<T, 3>({}));
    all.push_back(any_block_scaled<T, 2>({}));
    all.push_back(any_block_scaled<T, 8>({.rounding = {}, .rotation = wring::RandomRotation{5}}));
    all.push_back(any_top_half<T>());
    all.push_back(any_packed_words<T>());
    all.push_back(any_with_feedback(Grid{}));
  }
  return all;
}

}  // namespace wring_test
