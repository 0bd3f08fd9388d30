// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <utility>
#include <variant>

#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/entropy_grid.hpp>
#include <wring/compressor/gradient.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/lossless.hpp>
#include <wring/compressor/threshold.hpp>

#include "cases/compressors.hpp"

namespace wring_test {

template <class Codec, class T = typename Codec::value_type>
AnyCompressor<T> any_compressor(const Codec& codec) {
  const wring::Identity identity = codec.identity();
  AnyCompressor<T> any{.name = identity.name + " " + identity.options,
                       .bounded = wring::BoundedCompressor<Codec>,
                       .adds_values = !wring::CombiningCompressor<Codec>};
  any.collect = [codec](const AnyAlgorithm& algorithm, const AnyCall<T>& call, const PerRank<T>& inputs) {
    return collect(algorithm,
                   Call<Codec>{codec, call.collective, call.options, call.bound, call.root, call.in_place,
                               call.counts, call.world},
                   inputs);
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

/// Its error is relative to the greatest value of a group, in groups with special values the worst.
template <class T, int Bits>
AnyCompressor<T> any_block_scaled(const typename wring::BlockScaled<T, Bits>::Options& options) {
  AnyCompressor<T> any = any_compressor(wring::BlockScaled<T, Bits>(options));
  const int levels = (1 << (Bits - 1)) - 2;
  const bool nearest = std::holds_alternative<wring::NearestRounding>(options.rounding);
  const double scale = 1.01 / levels;
  any.by_itself = false;
  any.roundoff = (nearest ? scale / 2 : scale) + wring::FloatTraits<T>::unit_roundoff;
  any.greatest =
      std::min(wring::FloatTraits<T>::greatest, levels * wring::FloatTraits<wring::bhalf_t>::greatest);
  any.least_subnormal = levels * 0x1p-115;  // less counts as zero
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
  return all;
}

}  // namespace wring_test
