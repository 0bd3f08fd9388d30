// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <wring/config.hpp>
#include <wring/detail/mix.hpp>
#include <wring/detail/processor.hpp>

namespace wring::inline v0::detail {

/// Two rows of eight 64-bit lanes. A row takes in 64 bytes, a word for each lane: x := lane + word, lane := x ^ rotl(x, 17) ^ rotl(x, 42), a
/// bijection of lane and of word (an odd number of rotations added up in GF(2)) in which every bit reaches three. Few processors
/// multiply vectors of 64-bit integers.
/// `Word`: an integer or a vector of them.
template <class Word> class ChecksumRows {
 public:
  WRING_ALWAYS_INLINE ChecksumRows() { std::memcpy(state_, initial, sizeof state_); }

  WRING_ALWAYS_INLINE std::uint64_t sum(std::span<const std::byte> bytes) {
    const std::byte* from = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 128; left -= 128, from += 128) take<2 * parts>(from);
    if (left >= 64) take<parts>(from), left -= 64, from += 64;
    if (left > 0) {
      std::byte rest[64] = {};
      std::memcpy(rest, from, left);
      take<parts>(rest);
    }
    std::uint64_t lanes[16], sum = bytes.size();
    std::memcpy(lanes, state_, 128);
    for (int l = 0; l < 8; ++l)
      sum += mix(lanes[l] + mix(lanes[l + 8]));  // bijections: the change of one lane shows
    return mix(sum);
  }

 private:
  static constexpr int parts = 64 / static_cast<int>(sizeof(Word));
  static constexpr std::uint64_t initial[16] = {
      0x9e3779b97f4a7c15, 0x3c6ef372fe94f82a, 0xdaa66d2c7ddf743f, 0x78dde6e5fd29f054, 0x1715609f7c746c69,
      0xb54cda58fbbee87e, 0x538454127b096493, 0xf1bbcdcbfa53e0a8, 0x8ff34785799e5cbd, 0x2e2ac13ef8e8d8d2,
      0xcc623af8783354e7, 0x6a99b4b1f77dd0fc, 0x08d12e6b76c84d11, 0xa708a824f612c926, 0x454021de755d453b,
      0xe3779b97f4a7c150};  // multiples of the golden ratio

  template <int count> WRING_ALWAYS_INLINE void take(const std::byte* from) {
#if WRING_NATIVE_VECTORS
#pragma GCC unroll 16
#endif
    for (int k = 0; k < count; ++k) {
      Word word, lane = state_[k];
      std::memcpy(&word, from + k * sizeof(Word), sizeof(Word));
      lane = lane + word;
      state_[k] = lane ^ ((lane << 17) | (lane >> 47)) ^ ((lane << 42) | (lane >> 22));
    }
  }

  Word state_[2 * parts];
};

template <class Word> WRING_ALWAYS_INLINE std::uint64_t checksum_by(std::span<const std::byte> bytes) {
  return ChecksumRows<Word>().sum(bytes);
}

template <Level level> std::uint64_t checksum_at(std::span<const std::byte> bytes) {
  using Word = typename NativeOf<std::uint64_t, level == Level::scalar ? 8 : register_bytes<level>>::type;
  return compiled<level, checksum_by<Word>>(bytes);
}

/// The checksum of a message. Damage to a single word of 8 bytes always changes it; other damage goes unnoticed with a probability of
/// about 2^-64. About 65 GB/s on one core with AVX-512, in cache.
inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  return with_best_level([&]<Level level>() { return checksum_at<level>(bytes); });
}

}  // namespace wring::inline v0::detail
