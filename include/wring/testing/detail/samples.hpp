// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <wring/narrow.hpp>

/// Data of every kind that has broken compressors, the same on every machine: integer hashes and exact arithmetic alone.
namespace wring::inline v0::testing {

enum class Sample { zeros, constant, ramp, alternating, normal, mixed, huge, tiny, subnormal, specials };

constexpr const char* name_of(Sample kind) {
  constexpr const char* names[] = {"zeros",         "a constant",        "a ramp",      "alternating signs",
                                   "normal values", "mixed magnitudes",  "huge values", "tiny values",
                                   "subnormals",    "NaN and infinities"};
  return names[static_cast<int>(kind)];
}

/// The scalar of which an element consists once, or twice if it is complex.
template <class T> struct ScalarOf {
  using type = T;
};
template <class T> struct ScalarOf<std::complex<T>> {
  using type = T;
};
template <class T> struct ScalarOf<Kokkos::complex<T>> {
  using type = T;
};
template <class T> using scalar_t = typename ScalarOf<T>::type;

template <class T> std::vector<Sample> samples_of() {
  std::vector<Sample> kinds{Sample::zeros,  Sample::constant, Sample::ramp, Sample::alternating,
                            Sample::normal, Sample::mixed,    Sample::huge};
  if constexpr (FloatElement<scalar_t<T>>)
    kinds.insert(kinds.end(), {Sample::tiny, Sample::subnormal, Sample::specials});
  return kinds;
}

/// 64 random bits that depend on the arguments alone.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = (seed + 1) * 0xd1342543de82ef95u + index * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Nearly normal, mean 0, variance 1: eight uniform bytes, centred.
constexpr double random_normal(std::uint64_t seed, std::uint64_t index) {
  double sum = 0;
  for (std::uint64_t bits = random_bits(seed, index), i = 0; i < 8; ++i, bits >>= 8)
    sum += static_cast<double>(bits & 255u);
  return (sum - 1020) / 256 * 1.225 + static_cast<double>(random_bits(seed ^ 77, index) >> 44) * 0x1p-24;
}

template <class S> S float_sample(Sample kind, std::size_t i, std::size_t n, std::uint64_t seed) {
  using Traits = FloatTraits<S>;
  constexpr double least_normal = Traits::least_subnormal / Traits::unit_roundoff / 2;
  constexpr int span = Traits::greatest < 1e5 ? 10 : 60;
  const double sign = random_bits(seed, i) & 1 ? -1 : 1, position = static_cast<double>(i);
  switch (kind) {
  case Sample::zeros: return S(0.0f);
  case Sample::constant: return S(1.5f);
  case Sample::ramp: return wring::detail::narrow<S>((position - static_cast<double>(n / 2)) / 8);
  case Sample::alternating:
    return wring::detail::narrow<S>((i % 2 ? -1 : 1) * (1.0 + static_cast<double>((i + seed) % 7)));
  case Sample::mixed: {
    const int exponent = static_cast<int>(random_bits(seed ^ 5, i) % (2 * span)) - span;
    return wring::detail::narrow<S>(std::ldexp(random_normal(seed, i), exponent));
  }
  case Sample::huge:
    return wring::detail::narrow<S>(sign * Traits::greatest *
                                    (0.5 + 0.499 * static_cast<double>((i + seed) % 5) / 4));
  case Sample::tiny: return wring::detail::narrow<S>(random_normal(seed, i) * 4 * least_normal);
  case Sample::subnormal:
    return wring::detail::narrow<S>((static_cast<double>((i + seed) % 64) - 32) * Traits::least_subnormal);
  case Sample::specials: {
    const std::uint64_t which = random_bits(seed ^ 9, i) % 97;
    if (which == 0) return S(std::numeric_limits<float>::quiet_NaN());
    if (which == 1 || which == 2)
      return S(which == 1 ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity());
    if (which == 3) return S(-0.0f);
    return wring::detail::narrow<S>(random_normal(seed, i));
  }
  default: return wring::detail::narrow<S>(random_normal(seed, i));
  }
}

template <std::integral S> S integer_sample(Sample kind, std::size_t i, std::uint64_t seed) {
  using Limits = std::numeric_limits<S>;
  switch (kind) {
  case Sample::zeros: return S{0};
  case Sample::constant: return S{7};
  case Sample::ramp: return static_cast<S>(i);
  case Sample::alternating:
    return static_cast<S>(Limits::max() / 2 + (i % 2));  // 127, 128, 127, ... of 8 bits
  case Sample::huge: return i % 2 ? Limits::max() : Limits::min();
  case Sample::normal: return static_cast<S>(static_cast<int>(16 * random_normal(seed, i)));
  default: return static_cast<S>(random_bits(seed, i));
  }
}

template <class T> T sample_value(Sample kind, std::size_t i, std::size_t n, std::uint64_t seed) {
  using S = scalar_t<T>;
  if constexpr (is_complex_v<T>)
    return T(sample_value<S>(kind, i, n, seed), sample_value<S>(kind, i, n, seed + 1000));
  else if constexpr (FloatElement<S>)
    return float_sample<S>(kind, i, n, seed);
  else
    return integer_sample<S>(kind, i, seed);
}

template <class T> std::vector<T> sample_values(Sample kind, std::size_t n, std::uint64_t seed = 1) {
  std::vector<T> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = sample_value<T>(kind, i, n, seed);
  return values;
}

template <class S> bool finite_scalar(S x) {
  if constexpr (FloatElement<S>)
    return std::isfinite(wring::detail::widen(x));
  else
    return true;
}

/// |x| of the greatest finite scalar, as a double no smaller than it.
template <class T> double greatest_magnitude(std::span<const T> values) {
  double greatest = 0;
  const auto see = [&](auto x) {
    if (!finite_scalar(x)) return;
    if constexpr (FloatElement<decltype(x)>)
      greatest = std::max(greatest, std::fabs(static_cast<double>(wring::detail::widen(x))));
    else
      greatest = std::max(greatest, std::nextafter(std::fabs(static_cast<double>(x)),
                                                   std::numeric_limits<double>::infinity()));
  };
  for (const T& x : values) {
    if constexpr (is_complex_v<T>)
      see(x.real()), see(x.imag());
    else
      see(x);
  }
  return greatest;
}

}  // namespace wring::inline v0::testing
