// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include <wring/compressor.hpp>

/// One byte per value and one scale per call: codes -125 to 125 are multiples of the scale, 126, -126 and 127 the infinities and
/// NaN. Four members and a value type make a compressor that works in every collective, with every algorithm and transport.
/// Its loops are plain, so it is for execution spaces on the host; exec.fence() is not needed, since nothing is left running.
struct ByteScaled {
  using value_type = float;

  std::size_t max_compressed_bytes(std::size_t n) const { return sizeof(double) + n; }

  std::size_t compress(const auto&, std::span<const float> x, std::span<std::byte> bytes,
                       const wring::Context&) const {
    double largest = 0;
    for (const float v : x) largest = std::isfinite(v) ? std::max(largest, std::fabs(double{v})) : largest;
    const double scale = largest > 0 ? largest / 125 : 1;
    std::memcpy(bytes.data(), &scale, sizeof scale);
    for (std::size_t i = 0; i < x.size(); ++i) {
      long code = std::isnan(x[i]) ? 127 : x[i] > 0 ? 126 : -126;
      if (std::isfinite(x[i])) code = std::lround(x[i] / scale);
      bytes[sizeof scale + i] = static_cast<std::byte>(code);
    }
    return sizeof scale + x.size();
  }

  void decompress(const auto&, std::span<const std::byte> bytes, std::span<float> x,
                  const wring::Context&) const {
    double scale = 1;
    if (bytes.size() != sizeof scale + x.size())
      throw wring::CodecError("byte_scaled: a wrong number of bytes");
    std::memcpy(&scale, bytes.data(), sizeof scale);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const int code = static_cast<signed char>(bytes[sizeof scale + i]);
      x[i] = static_cast<float>(code * scale);
      if (code == 127) x[i] = NAN;
      if (code == 126 || code == -126) x[i] = code > 0 ? INFINITY : -INFINITY;
    }
  }

  wring::Identity identity() const { return {.name = "byte_scaled", .version = 1, .options = ""}; }

  /// Optional: the error that one encoding may make (half a scale, and the rounding to float). With it, a bound on the
  /// result can be asked for, and is kept.
  double error(double largest) const { return largest / 249 + 2e-45; }
};

static_assert(wring::BoundedCompressor<ByteScaled>);
