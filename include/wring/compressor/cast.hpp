// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include <wring/compressor/concept.hpp>
#include <wring/detail/cast_kernels.hpp>
#include <wring/detail/sizes.hpp>

namespace wring::inline v0 {

/// What becomes of a finite value beyond the greatest finite value of a narrower type: that greatest value with its sign, or an
/// infinity where the user asks for one. Infinities stay infinities and NaN stays NaN in either case.
enum class Overflow { saturate, infinity };

template <class To>
concept CastTarget = std::same_as<To, half_t> || std::same_as<To, bhalf_t>;

/// Sends each value as `half_t` (IEEE binary16, "fp16") or `bhalf_t` (bfloat16, "bf16"), nearest, ties to even: 2 bytes per value,
/// known beforehand. Subnormals and the sign of zero are kept as the format has them; every NaN arrives as the canonical quiet
/// NaN. A double is rounded to float first. Sums are accumulated in the computation type of T, float or double.
/// Promises no bound: a value beyond the range saturates, a partial sum too; MEAN divides the complete sum, so that a mean within the
/// range may saturate with it. Use Grid, or None, where a bound matters.
/// The choice of `Overflow` must be equal on all ranks.
template <class To, FloatElement T = float> class Cast {
  static_assert(CastTarget<To>, "wring: a Cast is to wring::half_t or wring::bhalf_t, 2 bytes on every "
                                "backend; Kokkos' own half_t and bhalf_t are plain floats on CPUs");
  static_assert(!CastTarget<To> || !std::same_as<To, T>,
                "wring: a Cast to the type that the values already have; use None");

 public:
  using value_type = T;

  constexpr explicit Cast(Overflow overflow = Overflow::saturate) noexcept : overflow_(overflow) {}

  constexpr Overflow overflow() const noexcept { return overflow_; }

  static constexpr std::size_t compressed_bytes(std::size_t n) {
    return detail::checked_bytes(n, sizeof(To));
  }
  static constexpr std::size_t max_compressed_bytes(std::size_t n) { return compressed_bytes(n); }

  Identity identity() const {
    return {.name = Format::name,
            .version = 1,
            .options = saturates() ? "overflow=saturate" : "overflow=infinity"};
  }

  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context&) const {
    const std::size_t size = compressed_bytes(values.size());
    detail::expect_space(Format::name, bytes.size(), size);
    const detail::CastEncode<To, T> element{saturates() ? Format::greatest : Format::infinity};
    auto* out = reinterpret_cast<detail::Packed16*>(bytes.data());
    detail::convert("wring::encode", exec, element, values.data(), out, values.size());
    return size;
  }

  template <class Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context&) const {
    const detail::CastDecode<To, T> element{saturates()};
    detail::convert("wring::decode", exec, element, codes(bytes, values), values.data(), values.size());
  }

  template <class Exec>
  void decompress_add(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                      const Context&) const {
    const detail::CastDecodeAdd<To, T> element{saturates()};
    detail::convert("wring::add", exec, element, codes(bytes, values), values.data(), values.size());
  }

 private:
  using Format = detail::Format16<To>;

  constexpr bool saturates() const noexcept { return overflow_ == Overflow::saturate; }

  static const detail::Packed16* codes(std::span<const std::byte> bytes, std::span<T> values) {
    detail::expect_encoded(Format::name, bytes.size(), compressed_bytes(values.size()), values.size());
    return reinterpret_cast<const detail::Packed16*>(bytes.data());
  }

  Overflow overflow_;
};

static_assert(AddingCompressor<Cast<half_t>> && FixedSizeCompressor<Cast<half_t>>);
static_assert(AddingCompressor<Cast<bhalf_t, double>> && AddingCompressor<Cast<half_t, bhalf_t>>);
static_assert(!BoundedCompressor<Cast<bhalf_t>> && !CombiningCompressor<Cast<bhalf_t>>);

}  // namespace wring::inline v0
