// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

#include <wring/compressor/concept.hpp>
#include <wring/config.hpp>

/// Random numbers that are a function of where they are needed, not of who asked before: no state, any order.
namespace wring::inline v0::detail {

/// Four words, a counter or what becomes of it.
struct Words4 {
  std::uint32_t word[4];
  friend bool operator==(const Words4&, const Words4&) = default;
};

struct RandomKey {
  std::uint32_t low, high;
};

/// The constants of Philox4x32: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3"
/// (SC 2011). Seven rounds are as many as it needs to pass all of BigCrush (table 2 there). Ten are usual, for a margin; for roundings and
/// signs it is not worth its time, which is a large part of a stochastic encoder's.
struct Philox {
  static constexpr int rounds = 7;
  static constexpr std::uint32_t multiplier0 = 0xD2511F53u, multiplier1 = 0xCD9E8D57u, raise0 = 0x9E3779B9u,
                                 raise1 = 0xBB67AE85u;
};

/// Philox4x32-7: a bijection of the counter for each key.
KOKKOS_INLINE_FUNCTION constexpr Words4 philox(Words4 counter, RandomKey key) {
  auto& w = counter.word;
  for (int round = 0; round < Philox::rounds; ++round) {
    const std::uint64_t p = std::uint64_t{Philox::multiplier0} * w[0],
                        q = std::uint64_t{Philox::multiplier1} * w[2];
    w[0] = static_cast<std::uint32_t>(q >> 32) ^ w[1] ^ key.low;
    w[2] = static_cast<std::uint32_t>(p >> 32) ^ w[3] ^ key.high;
    w[1] = static_cast<std::uint32_t>(q), w[3] = static_cast<std::uint32_t>(p);
    key.low += Philox::raise0, key.high += Philox::raise1;
  }
  return counter;
}

/// The low and the high word of a 64-bit number.
KOKKOS_INLINE_FUNCTION constexpr std::uint32_t low_word(std::uint64_t x) {
  return static_cast<std::uint32_t>(x);
}
KOKKOS_INLINE_FUNCTION constexpr std::uint32_t high_word(std::uint64_t x) {
  return static_cast<std::uint32_t>(x >> 32);
}

/// What random numbers are for: numbers for one purpose have nothing to do with those for another.
enum class Purpose : std::uint32_t { rounding, rotation, residuals };

/// Where in an operation random numbers are needed: a key of one encoding, made by Philox itself, and the tensor's place in its group.
class RandomStream {
 public:
  RandomStream() = default;

  /// Numbers that belong to one encoding: of a rank's own values, or of a sum of so many terms, whoever holds it. Ranks that hold the
  /// same sum must send the same bytes.
  static RandomStream of_encoding(std::uint64_t seed, Purpose purpose, const Context& context) {
    const bool own = context.phase == Phase::own;
    const auto phase = static_cast<std::uint32_t>(context.phase);
    return RandomStream(seed, purpose, context, own ? static_cast<std::uint32_t>(context.rank) : 0,
                        phase << 30 | static_cast<std::uint32_t>(context.terms));
  }
  /// Numbers that all ranks share.
  static RandomStream shared(std::uint64_t seed, Purpose purpose, const Context& context) {
    return RandomStream(seed, purpose, context, ~std::uint32_t{0}, ~std::uint32_t{0});
  }

  RandomKey key() const { return key_; }
  std::uint32_t item() const { return item_; }

  /// The numbers with an index below 2^20 that belong to the values from `first` on.
  KOKKOS_INLINE_FUNCTION Words4 words(std::uint64_t first, std::uint32_t index) const {
    return philox({{low_word(first), high_word(first), index, item_}}, key_);
  }

 private:
  RandomStream(std::uint64_t seed, Purpose purpose, const Context& context, std::uint32_t rank,
               std::uint32_t encoding)
      : item_(static_cast<std::uint32_t>(context.item)) {
    const Words4 outer = philox({{low_word(context.step), high_word(context.step), rank, encoding}},
                                {low_word(seed), high_word(seed)});
    const Words4 inner = philox({{outer.word[0], outer.word[1], static_cast<std::uint32_t>(purpose), 0}},
                                {outer.word[2], outer.word[3]});
    key_ = {inner.word[0], inner.word[1]};
  }

  RandomKey key_{};
  std::uint32_t item_ = 0;
};

}  // namespace wring::inline v0::detail
