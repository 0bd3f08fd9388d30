// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Encode, decode and combine of Grid against memcpy of the same bytes in the same run.
//
//     grid [Google Benchmark's options] [FILE of float32 ...]
//
// Without files it makes a signal with the spread of a gradient. The bound is 1 % of the range, for two
// ranks, or what the environment variable WRING_BENCHMARK_BOUND says as a fraction of the range.

#include <benchmark/benchmark.h>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <wring/compressor/grid.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using Exec = Kokkos::DefaultHostExecutionSpace;

double seconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct Signal {
  std::string name;
  std::vector<float> values;
};

Signal read_signal(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  Signal s{std::filesystem::path(path).filename().string(), {}};
  s.values.resize(file ? static_cast<std::size_t>(file.tellg()) / sizeof(float) : 0);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(s.values.data()),
            static_cast<std::streamsize>(s.values.size() * sizeof(float)));
  std::erase_if(s.values, [](float v) { return !std::isfinite(v); });
  if (s.values.empty()) throw std::runtime_error("no float32 values in " + path);
  return s;
}

/// Heavy-tailed values whose scale changes from place to place.
Signal made_signal() {
  Signal s{"made", std::vector<float>(1 << 20)};
  std::uint64_t state = 1;
  const auto uniform = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 11) * 0x1p-53;
  };
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    const double sum = uniform() + uniform() + uniform() + uniform() - 2,
                 scale = std::exp(2 * std::sin(1e-4 * static_cast<double>(i)));
    s.values[i] = static_cast<float>(1e-3 * scale * sum * sum * sum);
  }
  return s;
}

/// A vector of the wanted size, its encoding, and a codec prepared for it.
struct Case {
  std::vector<float> values, decoded, copy;
  std::vector<std::byte> encoded, combined;
  std::size_t size = 0;
  wring::Grid<float> codec;
  wring::Context context;

  Case(const Signal& signal, std::size_t bytes, wring::Grid<float>::Options options)
      : values(bytes / sizeof(float)), decoded(values.size()), copy(values.size()), codec(options) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = signal.values[i % signal.values.size()];
    const auto [least, most] = std::ranges::minmax(values);
    const char* fraction = std::getenv("WRING_BENCHMARK_BOUND");
    wring::Agreed agreed;
    agreed.ranks = 2;
    agreed.total = values.size();
    agreed.max_abs = std::max(std::fabs(least), std::fabs(most));
    agreed.allowed_error = (fraction ? std::atof(fraction) : 0.01) * (most - least);
    agreed.measured = true;
    codec.prepare(agreed);
    context.ranks = 2;
    context.count = context.total = values.size();
    encoded.resize(codec.max_compressed_bytes(values.size()));
    combined.resize(codec.max_combined_bytes(values.size(), 2));
    encode();
  }
  void encode() { size = codec.compress(Exec(), std::span<const float>(values), encoded, context); }
  void decode() { codec.decompress(Exec(), piece(), std::span(decoded), context); }
  void combine() { codec.combine(Exec(), piece(), piece(), combined, context); }
  std::span<const std::byte> piece() const { return {encoded.data(), size}; }
  void copy_values() {
    std::memcpy(copy.data(), values.data(), values.size() * sizeof(float));
    benchmark::ClobberMemory();
  }
};

/// Times `work` and memcpy in turn; `of_memcpy` is their quotient.
template <class Work> void compare(benchmark::State& state, Case& c, const Work& work) {
  const std::size_t bytes = c.values.size() * sizeof(float);
  const int repeats = std::max<int>(1, static_cast<int>((std::size_t{4} << 20) / bytes));
  std::vector<double> quotients;
  for (auto _ : state) {
    const auto start = Clock::now();
    for (int i = 0; i < repeats; ++i) work(c);
    const auto middle = Clock::now();
    for (int i = 0; i < repeats; ++i) c.copy_values();
    const auto end = Clock::now();
    state.SetIterationTime(seconds(start, middle));
    quotients.push_back(seconds(middle, end) / seconds(start, middle));
  }
  std::ranges::nth_element(quotients, quotients.begin() + static_cast<std::ptrdiff_t>(quotients.size() / 2));
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * repeats *
                          static_cast<std::int64_t>(state.iterations()));
  state.counters["of_memcpy"] = quotients[quotients.size() / 2];
  state.counters["bits"] = 8.0 * static_cast<double>(c.size) / static_cast<double>(c.values.size());
}

void register_signal(const std::shared_ptr<const Signal>& signal) {
  using Grid = wring::Grid<float>;
  struct Variant {
    const char* name;
    Grid::Options options;
  };
  const Variant variants[] = {{"short", {}},
                              {"power_of_two", {Grid::StepKind::power_of_two, false}},
                              {"short_delta", {Grid::StepKind::short_step, true}}};
  const auto add = [&](const std::string& name, auto work, const Variant& v, std::size_t kib) {
    benchmark::RegisterBenchmark(
        (name + "/" + v.name + "/" + std::to_string(kib) + "KiB/" + signal->name).c_str(),
        [signal, work, options = v.options, kib](benchmark::State& state) {
          Case c(*signal, kib * 1024, options);
          compare(state, c, work);
        })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  };
  for (const Variant& v : variants)
    for (const std::size_t kib : {std::size_t{256}, std::size_t{65536}}) {
      add("encode", [](Case& c) { c.encode(); }, v, kib);
      add("decode", [](Case& c) { c.decode(); }, v, kib);
      add("combine", [](Case& c) { c.combine(); }, v, kib);
    }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const Kokkos::ScopeGuard kokkos(argc, argv);
  try {
    if (argc < 2) register_signal(std::make_shared<Signal>(made_signal()));
    for (int i = 1; i < argc; ++i) register_signal(std::make_shared<Signal>(read_signal(argv[i])));
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
