// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <benchmark/benchmark.h>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <wring/bound.hpp>
#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/entropy_grid.hpp>
#include <wring/compressor/gradient.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/lossless.hpp>
#include <wring/compressor/none.hpp>
#include <wring/compressor/packed_words.hpp>
#include <wring/compressor/threshold.hpp>
#include <wring/compressor/top_k.hpp>
#include <wring/error.hpp>

#include "codec/case.hpp"
#include "codec/compare.hpp"
#include "codec/registry.hpp"
#include "support/arguments.hpp"
#include "support/bound.hpp"

/// The benchmarks of one element type. Each is compiled in a file of its own, since the kernels are slow to compile.
namespace wring_benchmark {

/// The benchmarks of one compressor on one data set, size and bound. They share one case, made when the first of them runs.
template <class Codec> class CodecBenchmarks {
 public:
  using T = typename Codec::value_type;

  CodecBenchmarks(std::string codec_name, Codec codec, Registry& registry)
      : name_(std::move(codec_name)), codec_(codec), registry_(registry) {}

  void add(const std::shared_ptr<const DataSet>& set, std::size_t bytes, wring::Bound bound) const {
    constexpr bool bounded = Case<Codec>::bounded;
    const std::string which =
        fmt::format("{}/{}/{}/{}", name_, wring::FloatTraits<T>::name, size_text(bytes), set->name) +
        (bounded ? "/" + text_of(bound) : "");
    const std::function<std::shared_ptr<Case<Codec>>()> make = [set, bytes, bound, codec = codec_] {
      return std::make_shared<Case<Codec>>(*set, bytes, bound, codec);
    };
    add_one("encode/" + which, which, make, [](Case<Codec>& c) { c.encode(); });
    add_one("decode/" + which, which, make, [](Case<Codec>& c) { c.decode(); });
    if constexpr (Case<Codec>::combines || Case<Codec>::adds)
      add_one("combine/" + which, which, make, [](Case<Codec>& c) { c.combine(); });
  }

 private:
  template <class Work> void add_one(const std::string& name, const std::string& which,
                                     const std::function<std::shared_ptr<Case<Codec>>()>& make,
                                     Work work) const {
    const bool delta = name_.ends_with("delta");
    benchmark::RegisterBenchmark(name.c_str(),
                                 [which, make, work, delta, &registry = registry_](benchmark::State& state) {
                                   try {
                                     Case<Codec>& c = registry.template current<Case<Codec>>(which, make);
                                     compare_with_copies(state, c.mine.data(), c.copy.data(), c.count(),
                                                         [&] { work(c); });
                                     count(state, c, delta, registry);
                                   } catch (const wring::BoundUnattainable&) {
                                     state.SkipWithMessage("this element type cannot keep the bound");
                                   }
                                 })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }

  static void count(benchmark::State& state, Case<Codec>& c, bool delta, Registry& registry) {
    state.counters["bits"] = c.bits();
    state.counters["error_of_rms"] = c.error();
    if (const auto entropy = c.entropy(delta)) state.counters["entropy"] = *entropy;
    if constexpr (Case<Codec>::bounded) {
      const double error = c.error_of_bound();
      state.counters["error_of_bound"] = error;
      if (!(error <= 1)) registry.wrong = true, state.SkipWithError("the error exceeds the bound");
    }
  }

  std::string name_;
  Codec codec_;
  Registry& registry_;
};

template <class Codec> void register_codec(const std::string& name, Codec codec, Registry& registry) {
  const CodecBenchmarks<Codec> benchmarks(name, codec, registry);
  for (const auto& set : registry.data)
    for (const std::size_t bytes : registry.sizes)
      for (const wring::Bound& bound : registry.bounds.empty() ? set->bounds : registry.bounds) {
        benchmarks.add(set, bytes, bound);
        if (!Case<Codec>::bounded) break;  // the others know of no bound
      }
}

template <wring::FloatElement T> void register_block_scaled(Registry& registry) {
  const wring::StochasticRounding stochastic{1};
  register_codec("block_scaled_8", wring::BlockScaled<T, 8>(), registry);
  register_codec("block_scaled_4", wring::BlockScaled<T, 4>(), registry);
  register_codec("block_scaled_4_stochastic", wring::BlockScaled<T, 4>({.rounding = stochastic}), registry);
  register_codec("block_scaled_4_rotated",
                 wring::BlockScaled<T, 4>({.rounding = {}, .rotation = wring::RandomRotation{1}}), registry);
}

template <wring::FloatElement T> void register_element(Registry& registry) {
  using Grid = wring::Grid<T>;
  using StepKind = typename Grid::StepKind;
  register_codec("none", wring::None<T>(), registry);
  register_codec("lossless", wring::Lossless<T>(), registry);
  if constexpr (!std::same_as<T, wring::half_t>)
    register_codec("cast_fp16", wring::Cast<wring::half_t, T>(), registry);
  register_codec("cast_bf16", wring::Cast<wring::bhalf_t, T>(), registry);
  register_block_scaled<T>(registry);
  register_codec("grid", Grid(), registry);
  register_codec("grid_power_of_two", Grid({StepKind::power_of_two, false}), registry);
  register_codec("grid_delta", Grid({StepKind::short_step, true}), registry);
  register_codec("packed_words", wring::PackedWords<T>(), registry);
  register_codec("entropy_grid", wring::EntropyGrid<T>(), registry);
  register_codec("gradient", wring::Gradient<T>(), registry);
  register_codec("gradient_stochastic", wring::Gradient<T>({.rounding = wring::StochasticRounding{1}}),
                 registry);
  register_codec("entropy_grid_delta", wring::EntropyGrid<T>({.grid = {StepKind::short_step, true}}),
                 registry);
  register_codec("top_k_1_percent", wring::TopK<T>({.ratio = 0.01}), registry);
  register_codec("top_k_10_percent", wring::TopK<T>({.ratio = 0.1}), registry);
  register_codec("threshold", wring::Threshold<T>(), registry);
}

}  // namespace wring_benchmark
