// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include <wring/compressor/concept.hpp>
#include <wring/detail/block_scaled_kernels.hpp>
#include <wring/detail/sizes.hpp>
#include <wring/rounding.hpp>

namespace wring::inline v0 {

/// Rotates each group of 128 values before it is scaled, by random signs and the Hadamard matrix, and back afterwards: a value that
/// stands out is spread over its group, so that the others are not drowned. It helps where tails are heavy, and costs time for nothing
/// where values are nearly normal. The signs are the same on all ranks; they depend on this seed, Options::step and the place.
struct RandomRotation {
  std::uint64_t seed = 0;
  friend bool operator==(const RandomRotation&, const RandomRotation&) = default;
};

/// Numbers of bits that BlockScaled knows.
template <int Bits> inline constexpr bool is_block_scaled_width =
    Bits == 2 || Bits == 3 || Bits == 4 || Bits == 5 || Bits == 6 || Bits == 8;

/// Groups of 128 values with a common scale, each value a whole number of scales in 2, 3, 4, 5, 6 or 8 bits: for gradients. The size is
/// known beforehand: Bits + 1/8 bits per value, but for the last block of 512.
///
/// There are L = 2^(Bits-1) - 1 levels on either side of 0. The scale s is the least bfloat16 with L s >= max|x| of the group, so that
/// nothing is clipped: |decoded - x| <= s/2 with nearest rounding, < s and right on average (within 2^-17 s) with stochastic rounding;
/// for half types the rounding of the decoded value comes on top. A scale below 2^-116 (1.2e-35) counts as 0, and so do the values of
/// its group. A double beyond L times the greatest bfloat16 saturates there. -0 arrives as +0.
///
/// NaN (as the canonical quiet one) and infinities arrive as they are. In a group that has any, the two outermost levels stand for them: the
/// scale is the least one with (L - 1) s >= max|x| over the finite values, for which the same errors hold; with 2 bits there is no level
/// left but 0.
///
/// With a rotation a value's error has the root mean square of the others' as well: at most 5.7 s (nearest), s being the scale of
/// the rotated group, and usually far smaller than without where values differ much. Groups with special values, or with a value of 2^100
/// or more, are not rotated, and have one level less.
///
/// Promises no bound, since s depends on the data. Sums are decoded, added, and encoded again on each hop; with stochastic rounding they
/// stay right on average. The options must be equal on all ranks. Computes in float (double for doubles); needs no memory.
template <FloatElement T, int Bits> class BlockScaled {
  static_assert(is_block_scaled_width<Bits>, "wring: BlockScaled takes 2, 3, 4, 5, 6 or 8 bits for a value");

 public:
  using value_type = T;

  struct Options {
    Rounding rounding = NearestRounding{};
    std::optional<RandomRotation> rotation{};
    friend bool operator==(const Options&, const Options&) = default;
  };

  BlockScaled() = default;
  explicit BlockScaled(const Options& options) : options_(options) {}

  const Options& options() const noexcept { return options_; }

  /// 2 bytes for each group of 128, padded to 64, and 64 Bits bytes for each block of 512; of the last one no more than it fills.
  constexpr std::size_t compressed_bytes(std::size_t n) const { return layout(n).bytes(); }
  constexpr std::size_t max_compressed_bytes(std::size_t n) const { return compressed_bytes(n); }

  Identity identity() const {
    std::string options = std::string("element=") + FloatTraits<T>::name + " bits=" + std::to_string(Bits);
    if (const auto* stochastic = std::get_if<StochasticRounding>(&options_.rounding))
      options += " rounding=stochastic seed=" + std::to_string(stochastic->seed);
    else
      options += " rounding=nearest";
    options += options_.rotation ? " rotation=" + std::to_string(options_.rotation->seed) : " rotation=off";
    return {.name = "block_scaled", .version = 1, .options = options};
  }

  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context) const {
    const detail::block_scaled::Layout layout = this->layout(values.size());
    detail::expect_space("block_scaled", bytes.size(), layout.bytes());
    detail::block_scaled::encode<Bits>(exec, values, bytes.data(), coding(context), layout);
    return layout.bytes();
  }

  template <class Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context& context) const {
    decode<false>(exec, bytes, values, context);
  }

  template <class Exec>
  void decompress_add(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                      const Context& context) const {
    decode<true>(exec, bytes, values, context);
  }

 private:
  constexpr detail::block_scaled::Layout layout(std::size_t n) const {
    return {n, Bits, options_.rotation.has_value()};
  }

  detail::block_scaled::Coding coding(const Context& context) const {
    using detail::Purpose, detail::RandomStream;
    detail::block_scaled::Coding coding{.first = context.first};
    if (const auto* stochastic = std::get_if<StochasticRounding>(&options_.rounding)) {
      coding.draws = true;
      coding.rounding = RandomStream::of_encoding(stochastic->seed, Purpose::rounding, context);
    }
    if (options_.rotation) {
      coding.rotates = true;
      coding.rotation = RandomStream::shared(options_.rotation->seed, Purpose::rotation, context);
    }
    return coding;
  }

  template <bool Add, class Exec>
  void decode(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
              const Context& context) const {
    const detail::block_scaled::Layout layout = this->layout(values.size());
    detail::expect_encoded("block_scaled", bytes.size(), layout.bytes(), values.size());
    detail::block_scaled::decode<Bits, Add>(exec, bytes.data(), values, coding(context), layout);
  }

  Options options_{};
};

static_assert(AddingCompressor<BlockScaled<float, 4>> && FixedSizeCompressor<BlockScaled<float, 4>>);
static_assert(!BoundedCompressor<BlockScaled<float, 8>> && !CombiningCompressor<BlockScaled<float, 8>>);

}  // namespace wring::inline v0
