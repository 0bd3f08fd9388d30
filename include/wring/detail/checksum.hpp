// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <wring/config.hpp>
#include <wring/detail/mix.hpp>

namespace wring::inline v0::detail {

/// Two rows of eight 64-bit lanes. A row takes in 64 bytes, a word for each lane: x := lane + word, lane := x ^ rotl(x, 17) ^ rotl(x, 42), a
/// bijection of lane and of word (an odd number of rotations added up in GF(2)) in which every bit reaches three. Few processors
/// multiply vectors of 64-bit integers.
/// `Word`: an integer or a vector of them.
template <class Word> class ChecksumRows {
 public:
  WRING_ALWAYS_INLINE explicit ChecksumRows(const std::uint64_t* lanes) { std::memcpy(state_, lanes, 128); }
  WRING_ALWAYS_INLINE void leave(std::uint64_t* lanes) const { std::memcpy(lanes, state_, 128); }

  /// Takes in pairs of rows.
  WRING_ALWAYS_INLINE void take(const std::byte* from, std::size_t pairs) {
    for (const std::byte* const end = from + 128 * pairs; from != end; from += 128) take<2 * parts>(from);
  }
  /// One more row, into the first.
  WRING_ALWAYS_INLINE void take_row(const std::byte* from) { take<parts>(from); }

 private:
  static constexpr int parts = 64 / static_cast<int>(sizeof(Word));

  template <int count> WRING_ALWAYS_INLINE void take(const std::byte* from) {
#if defined(__GNUC__) || defined(__clang__)
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

template <class Word> WRING_ALWAYS_INLINE void take_pairs(std::uint64_t* lanes, const std::byte* from,
                                                          std::size_t pairs) {
  ChecksumRows<Word> rows(lanes);
  rows.take(from, pairs);
  rows.leave(lanes);
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDACC__) &&              \
    !defined(__HIPCC__)
typedef std::uint64_t Words16 __attribute__((vector_size(16)));
typedef std::uint64_t Words32 __attribute__((vector_size(32)));
typedef std::uint64_t Words64 __attribute__((vector_size(64)));
__attribute__((noinline)) inline void take_pairs_16(std::uint64_t* lanes, const std::byte* from,
                                                    std::size_t pairs) {
  take_pairs<Words16>(lanes, from, pairs);
}
__attribute__((noinline, target("avx2"))) inline void
take_pairs_32(std::uint64_t* lanes, const std::byte* from, std::size_t pairs) {
  take_pairs<Words32>(lanes, from, pairs);
}
__attribute__((noinline, target("avx512f"))) inline void
take_pairs_64(std::uint64_t* lanes, const std::byte* from, std::size_t pairs) {
  take_pairs<Words64>(lanes, from, pairs);
}
inline void take_pairs_of_rows(std::uint64_t* lanes, const std::byte* from, std::size_t pairs) {
  if (__builtin_cpu_supports("avx512f")) return take_pairs_64(lanes, from, pairs);
  if (__builtin_cpu_supports("avx2")) return take_pairs_32(lanes, from, pairs);
  take_pairs_16(lanes, from, pairs);
}
#else
inline void take_pairs_of_rows(std::uint64_t* lanes, const std::byte* from, std::size_t pairs) {
  take_pairs<std::uint64_t>(lanes, from, pairs);
}
#endif

/// The checksum of a message. Damage to a single word of 8 bytes always changes it; other damage goes unnoticed with a probability of
/// about 2^-64. As fast as the second-level cache is read.
inline std::uint64_t checksum(std::span<const std::byte> bytes) {
  std::uint64_t lanes[16];
  for (std::uint64_t l = 0; l < 16; ++l) lanes[l] = (l + 1) * 0x9e3779b97f4a7c15u;
  std::size_t at = bytes.size() / 128 * 128;
  if (at > 0) take_pairs_of_rows(lanes, bytes.data(), at / 128);
  ChecksumRows<std::uint64_t> rows(lanes);
  for (; at + 64 <= bytes.size(); at += 64) rows.take_row(bytes.data() + at);
  if (at < bytes.size()) {
    std::byte rest[64] = {};
    std::memcpy(rest, bytes.data() + at, bytes.size() - at);
    rows.take_row(rest);
  }
  rows.leave(lanes);
  rows.take_row(reinterpret_cast<const std::byte*>(lanes + 8));
  rows.leave(lanes);
  std::uint64_t sum = bytes.size();
  for (int l = 0; l < 8; ++l)
    sum += mix(lanes[l] ^ mix(lanes[l + 8]));  // mix is a bijection: one lane's change shows
  return mix(sum);
}

}  // namespace wring::inline v0::detail
