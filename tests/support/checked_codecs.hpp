// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include <wring/compressor/concept.hpp>

/// Compressors that do wrong what only a check of the result can find.
namespace wring_test {

/// Floats as they are, but for one element of one tensor.
struct Faulty {
  using value_type = float;
  static constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

  std::size_t element = nowhere, item = 0;
  int on_rank = -1;     ///< -1: on all
  bool encodes = true;  ///< wrongly, else decodes
  float by = 1;         ///< how much is added; NaN: specials are lost; 0: one bit is flipped

  std::size_t max_compressed_bytes(std::size_t n) const { return n * sizeof(float); }
  wring::Identity identity() const { return {.name = "faulty", .version = 1, .options = {}}; }

  std::size_t compress(const auto&, std::span<const float> values, std::span<std::byte> bytes,
                       const wring::Context& context) const {
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size_bytes());
    if (const std::size_t i = element - context.first; encodes && here(context)) {
      const float wrong = changed(values[i]);
      std::memcpy(bytes.data() + i * sizeof(float), &wrong, sizeof wrong);
    }
    return values.size_bytes();
  }
  void decompress(const auto&, std::span<const std::byte> bytes, std::span<float> values,
                  const wring::Context& context) const {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size_bytes());
    if (!encodes && here(context)) values[element - context.first] = changed(values[element - context.first]);
  }

 private:
  bool here(const wring::Context& c) const {
    const bool last = encodes ? c.phase == wring::Phase::own : c.phase != wring::Phase::hop;
    return last && c.item == item && element >= c.first && element - c.first < c.count &&
           (on_rank < 0 || c.rank == on_rank);
  }
  float changed(float x) const {
    if (std::isnan(by)) return std::isfinite(x) ? x : 0;
    return by == 0 ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) ^ 1u) : x + by;
  }
};

/// The same with a promise that it does not keep.
struct Lying : Faulty {
  double error(double) const { return 0; }
};
static_assert(wring::BoundedCompressor<Lying> && !wring::BoundedCompressor<Faulty>);

}  // namespace wring_test
