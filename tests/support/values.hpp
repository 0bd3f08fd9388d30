// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <wring/narrow.hpp>

/// Made-up data, the same on every machine.
namespace wring_test {

/// 64 random bits that depend on the arguments alone (splitmix64).
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = (seed * 0x9e3779b97f4a7c15u) ^ (index + 1) * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

template <class T> T to_element(double x) {
  if constexpr (wring::FloatElement<T> && sizeof(T) == 2)
    return T(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

/// Small whole numbers: sums of up to 15 of them are exact in every element type.
template <class T> std::vector<T> whole_numbers(std::size_t n, std::uint64_t seed) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = to_element<T>(static_cast<double>(random_bits(seed, i) % 17) - 8);
  return x;
}

/// Numbers of several magnitudes up to `greatest`, of either sign, with all their bits in use.
template <class T> std::vector<T> real_numbers(std::size_t n, std::uint64_t seed, double greatest = 4) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = random_bits(seed, i);
    const double unit = static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-63;
    x[i] =
        to_element<T>(greatest * unit * std::ldexp(1.0, -static_cast<int>(random_bits(seed + 1000, i) % 6)));
  }
  return x;
}

}  // namespace wring_test
