// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include <wring/compressor/threshold.hpp>
#include <wring/compressor/top_k.hpp>
#include <wring/testing/detail/samples.hpp>

/// What the tests of sparse pieces share: data, calls on vectors, and plain references.
namespace sparse_test {

using namespace wring;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Bytes = std::vector<std::byte>;
using testing::Sample;
template <class T> using Selection = detail::sparse::Selection<T>;

template <class T> T from_pattern(std::uint64_t bits) {
  T x;
  std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
  return x;
}
template <class T> std::uint64_t pattern_of(T x) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}

template <class T> double as_double(T x) { return static_cast<double>(detail::widen(x)); }

/// Random patterns, NaN with payloads and negative zeros among them, at about `density` of the places; zeros elsewhere.
template <class T> std::vector<T> scattered(std::size_t n, double density, std::uint64_t seed = 1) {
  std::vector<T> x(n, from_pattern<T>(0));
  for (std::size_t i = 0; i < n; ++i)
    if (static_cast<double>(testing::random_bits(seed, i) >> 11) * 0x1p-53 < density)
      x[i] = from_pattern<T>(i % 50 == 7 ? std::uint64_t{1} << (8 * sizeof(T) - 1)
                                         : testing::random_bits(seed + 1, i));
  return x;
}

/// What arrives of a value that is sent: zeros are positive, NaN is the canonical quiet one.
template <class T> T as_sent(T x) {
  const double v = as_double(x);
  if (std::isnan(v)) {
    constexpr std::uint64_t nan = sizeof(T) == 8               ? 0x7ff8000000000000u
                                  : sizeof(T) == 4             ? 0x7fc00000u
                                  : std::is_same_v<T, bhalf_t> ? 0x7fc0u
                                                               : 0x7e00u;
    return from_pattern<T>(nan);
  }
  return v == 0 ? from_pattern<T>(0) : x;
}

/// The k values of greatest magnitude by sorting, the others replaced by zeros.
template <class T> std::vector<T> greatest_of(const std::vector<T>& x, std::size_t k) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto size = [&](std::size_t i) {
    const double v = std::fabs(as_double(x[i]));
    return std::isnan(v) ? std::pair(1, 0.0) : std::pair(0, v);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  std::vector<T> sent(x.size(), from_pattern<T>(0));
  for (std::size_t j = 0; j < std::min(k, x.size()); ++j) sent[order[j]] = as_sent(x[order[j]]);
  return sent;
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T> Bytes
encoded(const std::vector<T>& x, const Selection<T>& selection = {}, std::size_t first = 0,
        const detail::sparse::Kernels<T>& kernels = detail::sparse::best_kernels<T>()) {
  Bytes bytes(detail::sparse::largest_piece<T>(x.size()), std::byte{0xa5});
  bytes.resize(
      detail::sparse_encode<T>(Exec{}, std::span<const T>(x), std::span(bytes), selection, first, kernels));
  return bytes;
}

template <class T> std::vector<T>
decoded(const Bytes& bytes, std::size_t n, int divisor = 1,
        const detail::sparse::Kernels<T>& kernels = detail::sparse::best_kernels<T>()) {
  std::vector<T> y(n, from_pattern<T>(0x5a5a5a5a5a5a5a5au));
  detail::sparse_decode<false, T>(Exec{}, std::span<const std::byte>(bytes), std::span(y), divisor, kernels);
  return y;
}

template <class T> Bytes
combined(const Bytes& a, const Bytes& b, std::size_t n, Operation operation,
         const detail::sparse::Kernels<T>& kernels = detail::sparse::best_kernels<T>()) {
  Bytes out(detail::sparse::largest_piece<T>(n), std::byte{0xa5});
  out.resize(detail::sparse_combine<T>(Exec{}, a, b, n, out, operation, kernels));
  return out;
}

template <class T> Bytes team_encoded(const std::vector<T>& x, const Selection<T>& selection = {},
                                      std::size_t first = 0) {
  Bytes bytes(detail::sparse::largest_piece<T>(x.size()), std::byte{0xa5});
  bytes.resize(
      detail::team_sparse_encode<T>(Exec{}, std::span<const T>(x), std::span(bytes), selection, first));
  return bytes;
}

template <class T> std::vector<T> team_decoded(const Bytes& bytes, std::size_t n, int divisor = 1) {
  std::vector<T> y(n, from_pattern<T>(0x5a5a5a5a5a5a5a5au));
  detail::team_sparse_decode<T>(Exec{}, std::span<const std::byte>(bytes), std::span(y), divisor);
  return y;
}

template <class T> Bytes team_combined(const Bytes& a, const Bytes& b, std::size_t n, Operation operation) {
  Bytes out(detail::sparse::largest_piece<T>(n), std::byte{0xa5});
  out.resize(detail::team_sparse_combine<T>(Exec{}, a, b, n, out, operation));
  return out;
}

/// From hardly anything to everything: blocks of all forms.
inline constexpr double densities[] = {0, 0.002, 0.05, 0.125, 0.5, 0.9, 0.97, 1};
inline constexpr std::size_t lengths[] = {0, 1, 2, 3, 255, 256, 257, 511, 512, 513, 1031, 16385};

}  // namespace sparse_test
