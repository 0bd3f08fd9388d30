// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

#include <wring/compressor/concept.hpp>
#include <wring/detail/random/philox.hpp>

namespace wring::inline v0 {

/// Random numbers for a compressor's call: a function (Philox4x32-7) of where they are needed, not of who asked before. They have no
/// state, can be drawn in any order by any number of threads, and are the same on every backend and for every segmentation.
///
///     const RandomDraws draws = RandomDraws::of_encoding(seed, 0, context);
///     const float u = draws.uniform(i);  // for the i-th value of this call, in a kernel too
///
/// `seed` is an option of the compressor: it belongs into its identity, and is the same on all ranks. `purpose` (0 to 65535) keeps apart
/// what one compressor needs several of; the compressors of this library use other ones. Give every call its own Options::step, or calls
/// draw alike. Cost: seven rounds of two multiplications for each number; four neighbours from a place that four divides share them
/// (`four`).
class RandomDraws {
 public:
  RandomDraws() = default;

  /// Numbers of one encoding: of a rank's own values, or of a sum of so many terms, whichever rank holds it. Ranks that hold the
  /// same sum must send the same bytes, so the rank has no part in these.
  static RandomDraws of_encoding(std::uint64_t seed, std::uint32_t purpose, const Context& context) {
    return {detail::RandomStream::of_encoding(seed, users(purpose), context), context.first};
  }

  /// Numbers that all ranks share, in every phase: signs of a rotation, a choice of elements. What encodes with them can decode with
  /// them.
  static RandomDraws shared(std::uint64_t seed, std::uint32_t purpose, const Context& context) {
    return {detail::RandomStream::shared(seed, users(purpose), context), context.first};
  }

  /// 32 random bits for the i-th value of the call.
  KOKKOS_INLINE_FUNCTION std::uint32_t bits(std::uint64_t i) const {
    const std::uint64_t place = first_ + i;
    return stream_.words(place / 4, 0).word[place % 4];
  }

  /// A multiple of 2^-24 from 0 to below 1, all of them equally likely.
  KOKKOS_INLINE_FUNCTION float uniform(std::uint64_t i) const {
    return static_cast<float>(bits(i) >> 8) * 0x1p-24f;
  }

  /// Four numbers at once: `bits` of the values at the places 4 k to 4 k + 3 of the tensor, counted from its first value.
  struct Four {
    std::uint32_t bits[4];
  };
  KOKKOS_INLINE_FUNCTION Four four(std::uint64_t k) const {
    const detail::Words4 w = stream_.words(k, 0);
    return {{w.word[0], w.word[1], w.word[2], w.word[3]}};
  }

 private:
  RandomDraws(const detail::RandomStream& stream, std::uint64_t first) : stream_(stream), first_(first) {}

  static constexpr detail::Purpose users(std::uint32_t purpose) {
    return static_cast<detail::Purpose>(0x10000u + purpose);
  }

  detail::RandomStream stream_;
  std::uint64_t first_ = 0;  ///< place in the tensor of the call's first value
};

}  // namespace wring::inline v0
