// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

/// Data to be compressed: from files, or made.
namespace wring_benchmark {

/// A file of little-endian binary32 (NAME.f32) or binary64 values (NAME.f64) without a header. What is not finite, or a fill value
/// beyond 1e30, becomes 0. Throws std::runtime_error if the file cannot be read, or is no array of such values.
template <class T> std::vector<T> read_values(const std::string& path) {
  if constexpr (std::is_same_v<T, float>)
    if (path.ends_with(".f64")) {
      const auto wide = read_values<double>(path);
      return {wide.begin(), wide.end()};
    }
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) throw std::runtime_error("cannot read " + path + ": " + error.message());
  if (bytes == 0 || bytes % sizeof(T) != 0)
    throw std::runtime_error(path + " has " + std::to_string(bytes) + " bytes: no array of values of " +
                             std::to_string(sizeof(T)) + " bytes");
  std::vector<T> values(bytes / sizeof(T));
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(bytes)))
    throw std::runtime_error("cannot read " + path);
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
