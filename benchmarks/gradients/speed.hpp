// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "gradients/curve.hpp"
#include "gradients/tensors.hpp"
#include "gradients/trial.hpp"
#include "support/statistics.hpp"

namespace wring_benchmark {

/// In bytes of the original values per second: medians.
struct Speed {
  double encode, decode, copy;
};

/// Times encoding, decoding and memcpy of the same values in turn.
inline Speed speed_of(Trial& trial, std::span<const float> values, int repetitions) {
  std::vector<float> copy(values.size());
  std::vector<double> encode, decode, copied;
  const auto timed = [&](std::vector<double>& seconds, const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  };
  trial.encode(), trial.decode();
  for (int i = 0; i < repetitions; ++i) {
    timed(encode, [&] { trial.encode(); });
    timed(decode, [&] { trial.decode(); });
    timed(copied, [&] { std::memcpy(copy.data(), values.data(), values.size_bytes()); });
  }
  const auto rate = [&](const std::vector<double>& seconds) {
    return static_cast<double>(values.size_bytes()) / median(seconds);
  };
  return {rate(encode), rate(decode), rate(copied)};
}

/// The values, repeated to `count`.
inline Values repeated(std::span<const float> values, std::size_t count) {
  Values result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = values[i % values.size()];
  return result;
}

}  // namespace wring_benchmark
