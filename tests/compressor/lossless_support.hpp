// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <wring/compressor/lossless.hpp>

/// What the tests of Lossless share: data of many kinds, and calls on vectors.
namespace lossless_test {

using namespace wring;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Bytes = std::vector<std::byte>;

/// An element of any type with the nearest value.
template <class T> T element(double value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(std::llrint(value));
  else if constexpr (sizeof(T) == 2)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

enum class Data {
  zeros,
  constant,
  patterns,
  normal,
  tails,
  sparse,
  ramp,
  alternating,
  outliers,
  specials,
  count
};

inline std::string name_of(Data data) {
  static constexpr const char* names[] = {"zeros",  "constant", "patterns",    "normal",   "tails",
                                          "sparse", "ramp",     "alternating", "outliers", "specials"};
  return names[static_cast<int>(data)];
}

template <class T> T from_pattern(std::uint64_t bits) {
  T x;
  std::memcpy(static_cast<void*>(&x), &bits, sizeof x);
  return x;
}

/// n elements. The numbers come from the engine's bits alone, so that they are the same with every standard library.
template <class T> std::vector<T> make(Data data, std::size_t n, std::uint64_t seed = 1) {
  std::mt19937_64 engine(seed);
  const auto uniform = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  const auto normal = [&] {
    double sum = -6;
    for (int k = 0; k < 12; ++k) sum += uniform();
    return sum;
  };
  const double scale = std::is_integral_v<T> ? 16 : 0.0625;
  const std::uint64_t special[] = {0x7ff0000000000000u, 0xfff0000000000001u, 0x8000000000000000u, 1u};
  std::vector<T> x;
  for (std::size_t i = 0; i < n; ++i) {
    switch (data) {
    case Data::zeros: x.push_back(element<T>(0)); break;
    case Data::constant: x.push_back(element<T>(7)); break;
    case Data::patterns: x.push_back(from_pattern<T>(engine())); break;
    case Data::normal: x.push_back(element<T>(std::abs(scale * normal()))); break;
    case Data::tails: x.push_back(element<T>(scale / (0.3 + 9 * uniform()))); break;
    case Data::sparse: x.push_back(element<T>(engine() % 16 ? 0 : scale * (1 + uniform()))); break;
    case Data::ramp: x.push_back(element<T>(static_cast<double>(i % 100))); break;
    case Data::alternating: x.push_back(element<T>(i % 2 ? 127 : 126)); break;
    case Data::outliers: x.push_back(element<T>(i % 61 == 3 ? 100 : 1 + uniform())); break;
    default:
      x.push_back(i % 7 ? element<T>(1 + uniform())
                        : from_pattern<T>(special[i / 7 % 4] >> (64 - 8 * sizeof(T))));
      break;
    }
  }
  return x;
}

template <class T> Bytes room_for(std::size_t n) {
  return Bytes(Lossless<T>::max_compressed_bytes(n), std::byte{0xa5});
}

template <class T> Bytes
encoded(const std::vector<T>& x,
        const detail::lossless::Kernels<T>& kernels = detail::lossless::best_kernels<T>()) {
  Bytes bytes = room_for<T>(x.size());
  bytes.resize(detail::lossless_encode<T>(Exec{}, std::span<const T>(x), std::span(bytes), kernels).out);
  return bytes;
}

template <class T> std::vector<T>
decoded(const Bytes& bytes, std::size_t n,
        const detail::lossless::Kernels<T>& kernels = detail::lossless::best_kernels<T>()) {
  std::vector<T> y(n, from_pattern<T>(0x5a5a5a5a5a5a5a5au));
  detail::lossless_decode<false, T>(Exec{}, std::span<const std::byte>(bytes), std::span(y), kernels);
  return y;
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

inline constexpr std::size_t lengths[] = {0,   1,   2,    15,    16,    17,    100,  511,
                                          512, 513, 1031, 16383, 16384, 16385, 40000};

}  // namespace lossless_test
