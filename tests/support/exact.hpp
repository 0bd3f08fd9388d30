// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// What a reduction should give, without any rounding.
namespace wring_test {

/// A sum of doubles as a cascade of two-sums: the value is the exact sum of all parts, the last of which that is not zero has its sign.
class Cascade {
 public:
  void add(double x) {
    for (std::size_t i = 0; i < used_; ++i) {
      const double sum = x + part_[i], there = sum - x;
      const double lost = (x - (sum - there)) + (part_[i] - there);
      part_[i] = lost, x = sum;
    }
    if (used_ == part_.size()) throw std::length_error("too many terms for one cascade");
    part_[used_++] = x;
  }
  /// The product of two doubles, exactly (no underflow of its low half is expected).
  void add_product(double a, double b) {
    const double high = a * b;
    add(high), add(std::fma(a, b, -high));
  }
  int sign() const {
    for (std::size_t i = used_; i-- > 0;)
      if (part_[i] != 0) return part_[i] < 0 ? -1 : 1;
    return 0;
  }

 private:
  std::array<double, 96> part_{};
  std::size_t used_ = 0;
};

template <class T> double as_double(T x) {
  if constexpr (wring::FloatElement<T>)
    return static_cast<double>(wring::detail::widen(x));
  else
    return static_cast<double>(x);
}

/// The double that an uncompressed sum of special values gives, or a finite number if all are finite.
template <class T> double special_sum(const std::vector<T>& terms) {
  double sum = 0;
  for (const T& x : terms)
    if (!std::isfinite(as_double(x))) sum += as_double(x);
  return sum;
}

/// Whether y is the exact reduction of the terms within `bound`, as IEEE arithmetic has it where terms are not finite.
template <class T> bool reduced_within(wring::Operation operation, const std::vector<T>& terms, T result,
                                       double bound) {
  const double y = as_double(result);
  if (wring::adds(operation)) {
    const double special = special_sum(terms);
    if (!std::isfinite(special)) return std::isnan(special) ? std::isnan(y) : y == special;
    if (!std::isfinite(y)) return false;
    const double divisor = operation == wring::Operation::mean ? static_cast<double>(terms.size()) : 1;
    double most = std::max(std::abs(y), bound);
    for (const T& x : terms) most = std::max(most, std::abs(as_double(x)));
    const double scale = most < 0x1p-500 ? 0x1p500 : 0x1p-20;  // keeps clear of underflow, of overflow
    for (const double direction : {1.0, -1.0}) {
      Cascade excess;
      excess.add_product(direction * divisor * scale, y), excess.add_product(-bound, divisor * scale);
      for (const T& x : terms) excess.add(-direction * as_double(x) * scale);
      if (excess.sign() > 0) return false;
    }
    return true;
  }
  double best = as_double(terms.front());
  for (const T& x : terms) {
    const double v = as_double(x);
    if (std::isnan(v) || std::isnan(best))
      best = std::numeric_limits<double>::quiet_NaN();
    else if (operation == wring::Operation::min ? v < best : v > best)
      best = v;
  }
  if (std::isnan(best)) return std::isnan(y);
  if (!std::isfinite(best)) return y == best;
  if (!std::isfinite(y)) return false;
  Cascade above, below;  // y - best - bound, best - y - bound
  above.add(y), above.add(-best), above.add(-bound);
  below.add(best), below.add(-y), below.add(-bound);
  return above.sign() <= 0 && below.sign() <= 0;
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace wring_test
