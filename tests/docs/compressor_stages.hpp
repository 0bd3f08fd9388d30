// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <byte_scaled.hpp>
#include <wring/compressor.hpp>
#include <wring/random.hpp>

/// The compressors of docs/writing_a_compressor.md between its first, example 03, and its last, that of examples/compressor_template.
namespace stages {

/// The size is known beforehand, and what arrives is added in one pass.
struct ByteAdded : ByteScaled {
  std::size_t compressed_bytes(std::size_t n) const { return max_compressed_bytes(n); }

  void decompress_add(const auto&, std::span<const std::byte> bytes, std::span<float> x,
                      const wring::Context&) const {
    const double scale = scale_of(bytes, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += value(bytes[sizeof scale + i], scale);
  }
};

static_assert(wring::FixedSizeCompressor<ByteAdded> && wring::AddingCompressor<ByteAdded>);

/// Rounds up or down at random, right on average.
struct ByteRounded : ByteAdded {
  explicit ByteRounded(std::uint64_t random_seed) : seed(random_seed) {}

  wring::Identity identity() const { return {"byte_rounded", 1, "seed=" + std::to_string(seed)}; }

  std::size_t compress(const auto&, std::span<const float> x, std::span<std::byte> bytes,
                       const wring::Context& context) const {
    const wring::RandomDraws draws = wring::RandomDraws::of_encoding(seed, 0, context);
    double largest = 0;
    for (const float v : x) largest = std::isfinite(v) ? std::max(largest, std::fabs(double{v})) : largest;
    const double scale = largest > 0 ? largest / 125 : 1;
    std::memcpy(bytes.data(), &scale, sizeof scale);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double rounded = std::floor(std::clamp(x[i] / scale, -126.0, 126.0) + draws.uniform(i));
      const double code = std::isnan(x[i]) ? 127 : std::isinf(x[i]) ? std::copysign(126, x[i]) : rounded;
      bytes[sizeof scale + i] = static_cast<std::byte>(static_cast<int>(code));
    }
    return sizeof scale + x.size();
  }

  double error(double largest) const { return largest / 124 + 2e-45; }  // a whole scale

  std::uint64_t seed;
};

/// Forgets that the scale needs room, too.
struct Forgetful : ByteScaled {
  std::size_t max_compressed_bytes(std::size_t n) const { return n; }
};

}  // namespace stages
