// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include <wring/config.hpp>

namespace wring::inline v0::detail {

/// A sum of finite doubles without rounding: a fixed-point number with room for 2^30 terms of any size, times 2^31 (the long
/// accumulator of U. Kulisch). Digits of 32 bits, kept in 64, so that carries can wait.
class ExactSum {
 public:
  ExactSum& add(double x) { return put(x, 1); }
  ExactSum& subtract(double x) { return put(x, -1); }

  ExactSum& multiply(int factor) {
    carry();
    for (std::int64_t& digit : digits_) digit *= factor;
    carry();
    return *this;
  }

  /// -1, 0 or 1.
  int sign() {
    carry();
    if (digits_.back() < 0) return -1;
    for (const std::int64_t digit : digits_)
      if (digit != 0) return 1;
    return 0;
  }

  /// Whether this is no greater than another sum.
  bool no_more_than(const ExactSum& other) const {
    ExactSum difference = *this;
    for (std::size_t k = 0; k < digits; ++k) difference.digits_[k] -= other.digits_[k];
    return difference.sign() <= 0;
  }

  /// The sum divided by `divisor` > 0, within two units in the last place: for messages.
  double quotient(int divisor = 1) const {
    ExactSum rest = *this;
    const bool negative = rest.sign() < 0;
    if (negative) rest.multiply(-1);
    double value = 0;
    std::int64_t remainder = 0;
    for (std::size_t k = digits; k-- > 0;) {
      const std::int64_t part = (remainder << 32) + rest.digits_[k];
      value += std::ldexp(static_cast<double>(part / divisor), 32 * static_cast<int>(k) - lowest);
      remainder = part % divisor;
    }
    return negative ? -value : value;
  }

 private:
  static constexpr std::size_t digits = 70;
  static constexpr int lowest =
      34 * 32;  ///< the last digit counts units of 2^-lowest; doubles have none below 2^-1074
  static constexpr std::int64_t mask = 0xffffffff;

  ExactSum& put(double x, std::int64_t factor) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const int biased = static_cast<int>(bits >> 52 & 0x7ff);
    const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
    const std::uint64_t mantissa = biased == 0 ? fraction : fraction | std::uint64_t{1} << 52;
    const int position = (biased == 0 ? 1 : biased) - 1075 + lowest, shift = position % 32;
    if (bits >> 63) factor = -factor;
    const auto k = static_cast<std::size_t>(position / 32);
    const std::uint64_t above = mantissa >> (32 - shift);
    digits_[k] += factor * static_cast<std::int64_t>(mantissa << shift & std::uint64_t{mask});
    digits_[k + 1] += factor * static_cast<std::int64_t>(above & std::uint64_t{mask});
    digits_[k + 2] += factor * static_cast<std::int64_t>(above >> 32);
    return *this;
  }

  /// Leaves 0 <= digit < 2^32 in all digits but the first, which has the sign.
  void carry() {
    std::int64_t rest = 0;
    for (std::size_t k = 0; k + 1 < digits; ++k) {
      rest += digits_[k];
      digits_[k] = rest & mask;
      rest >>= 32;
    }
    digits_.back() += rest;
  }

  std::array<std::int64_t, digits> digits_{};
};

/// Whether |divisor * y - (sum of terms)| <= divisor * bound, exactly; all are finite.
inline bool sum_within(double y, std::span<const double> terms, double bound, int divisor = 1) {
  ExactSum error;
  error.add(y);
  if (divisor != 1) error.multiply(divisor);
  for (const double x : terms) error.subtract(x);
  if (error.sign() < 0) error.multiply(-1);
  ExactSum most;
  most.add(bound);
  if (divisor != 1) most.multiply(divisor);
  return error.no_more_than(most);
}

}  // namespace wring::inline v0::detail
