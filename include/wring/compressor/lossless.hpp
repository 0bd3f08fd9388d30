// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

#include <wring/compressor/concept.hpp>
#include <wring/detail/lossless/piece.hpp>
#include <wring/detail/lossless/team.hpp>
#include <wring/detail/sizes.hpp>
#include <wring/detail/spaces.hpp>

namespace wring::inline v0 {

/// Fewer bytes and every bit: NaN payloads, the sign of zero and subnormals arrive as they were. The bound is 0; what a reduction adds to
/// that is the rounding of its own additions, as with `None`.
///
/// Floating-point elements: in blocks of 512 the exponents, which lie close together, are written as codes of 0 to 4 bits, rare ones
/// apart; sign and mantissa are sent as they are. So 16-bit elements of gradients shrink by 1.4 in bfloat16, float by 1.14 to 1.22, double by 1.13.
/// Integers: the distances to the least value of the block in as few bits as the greatest one needs; sorted
/// or random numbers over the whole range do not shrink. A block of equal elements takes one of them, a block that
/// would not shrink stays as it is: a piece is never larger than its elements but for 4 bytes per block and what fills up 64 bytes.
///
/// The bytes are the same on every backend and for every number of threads. Memory: none of its own.
template <ElementType T = float>
  requires(!is_complex_v<T>)
class Lossless {
 public:
  using value_type = T;
  static constexpr bool lossless = true;

  static constexpr std::size_t max_compressed_bytes(std::size_t n) {
    return detail::lossless::largest_piece<T>(n);
  }
  static constexpr double error(double /*max_abs*/) noexcept { return 0; }
  static Identity identity() { return {.name = "lossless", .version = 1, .options = {}}; }

  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context&) {
    detail::expect_space("lossless", bytes.size(), max_compressed_bytes(values.size()));
    if constexpr (detail::RunsOnHost<Exec>) {
      const auto total = detail::lossless_encode<T>(exec, values, bytes, detail::lossless::best_kernels<T>());
      fallback_blocks_ += total.a;
      return total.out;
    } else {
      return detail::team_lossless_encode<T>(exec, values, bytes);
    }
  }

  template <class Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context&) const {
    if constexpr (detail::RunsOnHost<Exec>)
      detail::lossless_decode<false, T>(exec, bytes, values, detail::lossless::best_kernels<T>());
    else
      detail::team_lossless_decode<T>(exec, bytes, values);
  }

  /// Hosts only.
  template <class Exec>
    requires detail::RunsOnHost<Exec>
  void decompress_add(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                      const Context&) const {
    detail::lossless_decode<true, T>(exec, bytes, values, detail::lossless::best_kernels<T>());
  }

  /// Blocks stored as they were, on the host, since the object was made.
  std::uint64_t fallback_blocks() const { return fallback_blocks_; }

 private:
  std::uint64_t fallback_blocks_ = 0;
};

static_assert(LosslessCompressor<Lossless<float>> && AddingCompressor<Lossless<double>>);
static_assert(LosslessCompressor<Lossless<bhalf_t>> && CountsFallbacks<Lossless<half_t>>);
static_assert(LosslessCompressor<Lossless<int>> && !PlainCompressor<Lossless<float>>);

}  // namespace wring::inline v0
