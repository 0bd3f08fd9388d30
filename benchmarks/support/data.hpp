// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Data to be compressed: from files, or made.
namespace wring_benchmark {

/// A file of little-endian binary32 (NAME.f32) or binary64 values (NAME.f64) without a header. What is not finite, or a fill value
/// beyond 1e30, becomes 0.
template <class T> std::vector<T> read_values(const std::string& path) {
  if constexpr (std::is_same_v<T, float>)
    if (path.ends_with(".f64")) {
      const auto wide = read_values<double>(path);
      return {wide.begin(), wide.end()};
    }
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<T> values(file ? static_cast<std::size_t>(file.tellg()) / sizeof(T) : 0);
  file.seekg(0).read(reinterpret_cast<char*>(values.data()),
                     static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!file || values.empty()) throw std::runtime_error("no values can be read from " + path);
  for (T& value : values)
    if (!(std::fabs(value) < T{1e30f})) value = 0;
  return values;
}

/// Heavy-tailed values whose scale changes from place to place, as in a gradient; different for every `seed`.
inline std::vector<float> made_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  std::uint64_t state = 0x9e3779b97f4a7c15u * (seed + 1);
  const auto uniform = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 11) * 0x1p-53;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const double sum = uniform() + uniform() + uniform() + uniform() - 2,
                 scale = std::exp(2 * std::sin(1e-4 * static_cast<double>(i)));
    values[i] = static_cast<float>(1e-3 * scale * sum * sum * sum);
  }
  return values;
}

/// Fills `to` with `from`, repeated or cut.
template <class T, class U> void fill(std::span<T> to, std::span<const U> from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = static_cast<T>(from[i % from.size()]);
}

}  // namespace wring_benchmark
