// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

#include <wring/compressor.hpp>

/// One byte per value and one scale per call: codes -125 to 125 are multiples of the scale, 126, -126 and 127 the infinities and
/// NaN. Four members and a value type make a compressor that works in every collective, with every algorithm and transport; `error` is
/// optional. Its loops are plain, so it is for execution spaces on the host; no exec.fence() is needed, since nothing is left running.
struct ByteScaled {
  using value_type = float;

  wring::Identity identity() const { return {.name = "byte_scaled", .version = 1, .options = ""}; }
  std::size_t max_compressed_bytes(std::size_t n) const { return sizeof(double) + n; }

  std::size_t compress(const auto&, std::span<const float> x, std::span<std::byte> bytes,
                       const wring::Context&) const {
    double largest = 0;
    for (const float v : x) largest = std::isfinite(v) ? std::max(largest, std::fabs(double{v})) : largest;
    const double scale = largest > 0 ? largest / 125 : 1;
    std::memcpy(bytes.data(), &scale, sizeof scale);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long code = std::isnan(x[i]) ? 127 : std::lround(std::clamp(x[i] / scale, -126.0, 126.0));
      bytes[sizeof scale + i] = static_cast<std::byte>(code);
    }
    return sizeof scale + x.size();
  }

  void decompress(const auto&, std::span<const std::byte> bytes, std::span<float> x, const auto&) const {
    const double scale = scale_of(bytes, x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = value(bytes[sizeof scale + i], scale);
  }

  static double scale_of(std::span<const std::byte> bytes, std::size_t n) {
    double scale = 1;
    if (bytes.size() != sizeof scale + n) throw wring::CodecError("byte_scaled: wrong size");
    std::memcpy(&scale, bytes.data(), sizeof scale);
    return scale;
  }
  static float value(std::byte byte, double scale) {
    const int code = static_cast<signed char>(byte);
    const float special = code == 127 ? NAN : std::copysign(INFINITY, static_cast<float>(code));
    return std::abs(code) > 125 ? special : static_cast<float>(code * scale);
  }

  /// Half a scale, and the rounding to float. Thus a bound on results can be asked for, and is kept.
  double error(double largest) const { return largest / 249 + 2e-45; }
};

static_assert(wring::BoundedCompressor<ByteScaled>);
