// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>

#include <wring/compressor/concept.hpp>
#include <wring/detail/bytes_kernels.hpp>
#include <wring/detail/sizes.hpp>

namespace wring::inline v0 {

/// No compression: the bytes of the values as they lie in memory. Takes every element type, keeps every bit (NaN payloads and
/// signs of zero included) and promises the bound 0; what a reduction adds to that is the rounding of its own additions.
/// Cost: one copy for each encoding and decoding; what is added is not decoded before. The size is sizeof(T) bytes per value, known beforehand.
template <ElementType T = float> class None {
 public:
  using value_type = T;
  static constexpr bool lossless = true;
  static constexpr bool plain = true;

  static constexpr std::size_t compressed_bytes(std::size_t n) { return detail::checked_bytes(n, sizeof(T)); }
  static constexpr std::size_t max_compressed_bytes(std::size_t n) { return compressed_bytes(n); }
  static constexpr double error(double /*max_abs*/) noexcept { return 0; }
  static Identity identity() { return {.name = "none", .version = 1, .options = {}}; }

  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context&) const {
    detail::expect_space("none", bytes.size(), values.size_bytes());
    detail::copy_bytes(exec, values.data(), bytes.data(), values.size_bytes());
    return values.size_bytes();
  }

  template <class Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context&) const {
    detail::expect_encoded("none", bytes.size(), values.size_bytes(), values.size());
    detail::copy_bytes(exec, bytes.data(), values.data(), bytes.size());
  }
};

static_assert(LosslessCompressor<None<float>> && FixedSizeCompressor<None<float>>);
static_assert(BoundedCompressor<None<half_t>> && BoundedCompressor<None<int>> &&
              BoundedCompressor<None<Kokkos::complex<double>>>);
static_assert(PlainCompressor<None<float>> && !CombiningCompressor<None<float>>);

}  // namespace wring::inline v0
