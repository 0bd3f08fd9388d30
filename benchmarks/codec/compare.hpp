// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "codec/copies.hpp"
#include "support/statistics.hpp"

namespace wring_benchmark {

/// Seconds that `work`, repeated, takes.
template <class Work> double seconds_of(int repeats, const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The median and the quartiles of what was measured in each iteration.
inline void count_spread(benchmark::State& state, const std::string& name,
                         const std::vector<double>& values) {
  state.counters[name] = median(values);
  state.counters[name + "_quarter"] = quantile(values, 0.25);
  state.counters[name + "_three_quarters"] = quantile(values, 0.75);
}

/// Times `work`, memcpy of the uncompressed values and a streaming copy of them in turn, so that what the machine does meanwhile
/// meets all three alike. An iteration does as many of them as 4 MiB hold; `microseconds` is the time of one. `of_memcpy` and
/// `of_streaming` are the medians of the quotients: 2 is twice as fast as the copy.
template <class T, class Work>
void compare_with_copies(benchmark::State& state, const T* from, T* to, std::size_t count, const Work& work) {
  const std::size_t bytes = count * sizeof(T);
  const int repeats = std::max(1, static_cast<int>((std::size_t{4} << 20) / std::max<std::size_t>(1, bytes)));
  std::vector<double> microseconds, of_memcpy, of_streaming;
  for (auto _ : state) {
    const double worked = seconds_of(repeats, work);
    const double copied = seconds_of(repeats, [&] {
      std::memcpy(static_cast<void*>(to), from, bytes);
      benchmark::ClobberMemory();
    });
    const double streamed = seconds_of(repeats, [&] {
      streaming_copy(to, from, bytes);
      benchmark::ClobberMemory();
    });
    state.SetIterationTime(worked);
    microseconds.push_back(1e6 * worked / repeats);
    of_memcpy.push_back(copied / worked), of_streaming.push_back(streamed / worked);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * repeats *
                          static_cast<std::int64_t>(state.iterations()));
  state.counters["microseconds"] = median(microseconds);
  count_spread(state, "of_memcpy", of_memcpy);
  count_spread(state, "of_streaming", of_streaming);
}

}  // namespace wring_benchmark
