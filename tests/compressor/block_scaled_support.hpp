// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <wring/compressor/block_scaled.hpp>
#include <wring/testing/detail/samples.hpp>

/// BlockScaled as its description has it: a reader of its stream, and the level that a value must get, written without its kernels.
namespace block_scaled_test {

using namespace wring;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Bytes = std::vector<std::byte>;

/// 64 bits of mantissa: products of levels and scales, and what values differ from them by, are exact.
using Exact = long double;
static_assert(std::numeric_limits<Exact>::digits >= 64);

template <class T> Exact exact(T x) { return static_cast<Exact>(wring::detail::widen(x)); }

constexpr int most_levels(int bits) { return (1 << (bits - 1)) - 1; }

/// A bfloat16.
inline Exact scale_value(unsigned pattern) {
  return static_cast<Exact>(std::bit_cast<float>(std::uint32_t{pattern} << 16));
}

/// A piece read bit by bit.
struct Piece {
  std::vector<unsigned> scales;  ///< one for each group, without its mark
  std::vector<bool> marked;      ///< for each group
  std::vector<int> codes;

  Piece(const Bytes& bytes, std::size_t n, int bits, bool rotates) {
    const std::size_t groups = (n + 127) / 128, head = (2 * groups + 63) / 64 * 64;
    for (std::size_t g = 0; g < groups; ++g) {
      const unsigned pattern = static_cast<unsigned>(bytes[2 * g]) | static_cast<unsigned>(bytes[2 * g + 1])
                                                                         << 8;
      scales.push_back(pattern & 0x7fff), marked.push_back(pattern >> 15);
    }
    for (std::size_t i = 2 * groups; i < head; ++i) CHECK(bytes[i] == std::byte{0});
    const std::size_t coded = rotates ? groups * 128 : n;
    for (std::size_t i = 0; i < coded; ++i) codes.push_back(field(bytes, head, i, bits));
    const std::size_t rest = coded % 512, rows = (rest + 15) / 16;
    CHECK(bytes.size() == head + coded / 512 * 64 * static_cast<std::size_t>(bits) +
                              (rows * static_cast<std::size_t>(bits) + 31) / 32 * 64);
  }

 private:
  static int field(const Bytes& bytes, std::size_t head, std::size_t i, int bits) {
    const std::size_t block = i / 512, row = i % 512 / 16, lane = i % 16;
    int code = 0;
    for (int k = 0; k < bits; ++k) {
      const std::size_t bit = row * static_cast<std::size_t>(bits) + static_cast<std::size_t>(k),
                        word = bit / 32 * 16 + lane;
      const std::size_t at = head + block * 64 * static_cast<std::size_t>(bits) + 4 * word + bit % 32 / 8;
      code |= (static_cast<int>(bytes[at]) >> (bit % 8) & 1) << k;
    }
    return code >> (bits - 1) & 1 ? code - (1 << bits) : code;
  }
};

/// The scale that a group must have: the least bfloat16 of which so many reach its greatest magnitude; 0 where that is too small.
inline unsigned right_scale(Exact greatest, int levels) {
  if (levels == 0) return 0;
  unsigned least = 0,
           most = 0x7f7f;  // bisection: patterns of positive numbers are ordered as the numbers are
  while (least < most) {
    const unsigned middle = (least + most) / 2;
    if (scale_value(middle) * levels >= greatest)
      most = middle;
    else
      least = middle + 1;
  }
  return scale_value(least) < 0x1p-116L ? 0 : least;
}

/// The level nearest to x, ties to even.
inline int right_level(Exact x, Exact scale, int levels) {
  if (scale == 0) return 0;
  if (std::fabs(x) >= levels * scale) return x > 0 ? levels : -levels;
  int best = 0;
  for (int q = -levels; q <= levels; ++q) {
    const Exact now = std::fabs(x - q * scale), before = std::fabs(x - best * scale);
    if (now < before || (now == before && q % 2 == 0)) best = q;
  }
  return best;
}

template <class Codec> Bytes encoded(const Codec& codec, const std::vector<typename Codec::value_type>& x,
                                     const Context& context = {}) {
  Bytes bytes(codec.compressed_bytes(x.size()), std::byte{0x5a});
  CHECK(codec.compress(Exec{}, std::span(x), std::span(bytes), context) == bytes.size());
  Exec{}.fence();
  return bytes;
}

template <class Codec> std::vector<typename Codec::value_type>
decoded(const Codec& codec, const Bytes& bytes, std::size_t n, const Context& context = {}) {
  std::vector<typename Codec::value_type> y(n);
  codec.decompress(Exec{}, std::span(bytes), std::span(y), context);
  Exec{}.fence();
  return y;
}

/// Of data that have broken compressors, and multiples of half a scale, so that half of the values are ties.
template <class T> std::vector<std::vector<T>> data(std::size_t n, int bits) {
  std::vector<std::vector<T>> all;
  for (const testing::Sample kind : testing::samples_of<T>())
    all.push_back(testing::sample_values<T>(kind, n));
  std::vector<T> ties(n);
  const int limit = 2 * most_levels(bits);
  for (std::size_t i = 0; i < n; ++i) {
    const int halves =
        i % 128 == 5
            ? limit
            : static_cast<int>(testing::random_bits(3, i) % (2 * static_cast<unsigned>(limit) + 1)) - limit;
    ties[i] = wring::detail::narrow<T>(halves * 0.4375);
  }
  all.push_back(ties);
  return all;
}

inline constexpr std::size_t lengths[] = {0,   1,   2,   15,  16,  17,   127,  128,
                                          129, 400, 511, 512, 513, 1000, 4096, 4097};

}  // namespace block_scaled_test
