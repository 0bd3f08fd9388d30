// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include <wring/detail/exact_sum.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// What a reduction gives without any rounding, and whether a result is right: as near to it as its bound says.
namespace wring::inline v0::detail {

/// What a right result is.
struct ExactRule {
  Operation operation = Operation::sum;
  std::optional<double> bound{};                         ///< without one, special values alone are checked
  double greatest = std::numeric_limits<double>::max();  ///< number of the element type

  int divisor(std::size_t terms) const { return operation == Operation::mean ? static_cast<int>(terms) : 1; }
};

/// The least or greatest term; a NaN wins.
inline double selected(Operation operation, std::span<const double> terms) {
  double best = terms.front();
  for (const double x : terms) {
    if (std::isnan(x)) return x;
    if (operation == Operation::min ? x < best : x > best) best = x;
  }
  return best;
}

/// What the terms that are not finite sum up to, as in IEEE arithmetic; 0 if there are none.
inline double sum_of_specials(std::span<const double> terms) {
  double sum = 0;
  for (const double x : terms)
    if (!std::isfinite(x)) sum += x;
  return sum;
}

/// Whether the sum of the terms lies beyond `most` in the direction of `sign`, exactly.
inline bool sum_beyond(std::span<const double> terms, double sign, double most, int divisor, int times = 1,
                       double further = 0) {
  ExactSum limit;
  limit.add(further).multiply(times).add(most).multiply(divisor);
  ExactSum sum;
  for (const double x : terms) sum.add(sign * x);
  return !sum.no_more_than(limit);
}

/// A finite exact sum. Beyond the greatest number the result is infinite, or saturates if that is no more than twice the bound away:
/// the sum that was rounded may have differed from the exact one by the bound.
inline bool right_finite_sum(double y, std::span<const double> terms, const ExactRule& rule) {
  const int divisor = rule.divisor(terms.size());
  if (std::isnan(y)) return false;
  if (std::isfinite(y) && sum_within(y, terms, *rule.bound, divisor)) return true;
  const double sign = y < 0 ? -1 : 1;
  if (std::fabs(y) < rule.greatest || !sum_beyond(terms, sign, rule.greatest, divisor)) return false;
  return std::isinf(y) || !sum_beyond(terms, sign, rule.greatest, divisor, 2, *rule.bound);
}

/// A sum with special values among its terms. Additions without a bound may overflow on their way, so that an infinity of the other
/// sign makes a NaN of them.
inline bool right_special_sum(double y, double special, std::span<const double> terms,
                              const ExactRule& rule) {
  if (std::isnan(special)) return std::isnan(y);
  if (y == special) return true;
  if (rule.bound || !std::isnan(y)) return false;
  const double against = special > 0 ? -1 : 1;
  double others = 0;
  for (const double x : terms)
    if (std::isfinite(x) && against * x > 0) others += against * x;
  return others >= rule.greatest;
}

/// Whether y is the reduction of the terms, as IEEE arithmetic has it where they are not finite.
inline bool right_result(double y, std::span<const double> terms, const ExactRule& rule) {
  if (adds(rule.operation)) {
    const double special = sum_of_specials(terms);
    if (special != 0) return right_special_sum(y, special, terms, rule);  // NaN is not 0 either
    return !rule.bound || right_finite_sum(y, terms, rule);
  }
  const double best = selected(rule.operation, terms);
  if (std::isnan(best)) return std::isnan(y);
  if (std::isinf(best)) return y == best;
  if (!rule.bound) return true;
  return y == best || (std::isfinite(y) && sum_within(y, std::span(&best, 1), *rule.bound));
}

/// The exact result, rounded to a double: for messages.
inline double exact_result(std::span<const double> terms, const ExactRule& rule) {
  if (!adds(rule.operation)) return selected(rule.operation, terms);
  const double special = sum_of_specials(terms);
  if (special != 0) return special;
  ExactSum sum;
  for (const double x : terms) sum.add(x);
  return sum.quotient(rule.divisor(terms.size()));
}

/// Checks many results at once: in double arithmetic whose own error is known, and exactly where that leaves a doubt.
template <FloatElement T> class ExactCheck {
 public:
  explicit ExactCheck(const ExactRule& rule) : rule_(rule) {}

  /// The index of the first result that is not right, or their number. `terms[r]` points to as many values of rank r.
  std::size_t first_wrong(std::span<const T* const> terms, std::span<const T> results) {
    for (std::size_t first = 0; first < results.size(); first += block) {
      const std::size_t n = std::min(block, results.size() - first);
      if (!rule_.bound)
        find_specials(terms, first, n);
      else if (adds(rule_.operation))
        find_doubtful_sums(terms, first, results.subspan(first, n));
      else
        find_doubtful_selections(terms, first, results.subspan(first, n));
      for (std::size_t i = 0; i < n; ++i)
        if (doubtful_[i] && !right(terms, first + i, results[first + i])) return first + i;
    }
    return results.size();
  }

  /// The largest |result - exact| / bound so far, or slightly less.
  double tightness() const { return tightness_; }

  /// The terms of one element.
  std::span<const double> terms_of(std::span<const T* const> terms, std::size_t i) {
    terms_.clear();
    for (const T* values : terms) terms_.push_back(static_cast<double>(widen(values[i])));
    return terms_;
  }

  bool right(std::span<const T* const> terms, std::size_t i, T result) {
    return right_result(static_cast<double>(widen(result)), terms_of(terms, i), rule_);
  }

 private:
  static constexpr std::size_t block = 512;
  using Lane = std::array<double, block>;

  void find_specials(std::span<const T* const> terms, std::size_t first, std::size_t n) {
    size_.fill(0);
    for (const T* values : terms)
      for (std::size_t i = 0; i < n; ++i) size_[i] += static_cast<double>(widen(values[first + i])) * 0;
    for (std::size_t i = 0; i < n; ++i) doubtful_[i] = size_[i] != 0;  // infinity * 0 is NaN
  }

  /// |divisor * result - sum of terms|, all of it additions that keep their rounding errors (the two-sum of D. Knuth): computed
  /// within 2^-50 of itself and the slack, which is for the rounding of the errors: n of them are added with an error below n^2 2^-105 of the terms. A NaN or an infinity ends in a doubt.
  void find_doubtful_sums(std::span<const T* const> terms, std::size_t first, std::span<const T> results) {
    const int divisor = rule_.divisor(terms.size());
    value_.fill(0), lost_.fill(0), size_.fill(0);
    for (const T* values : terms) add(values + first, results.size(), 1);
    for (int i = 0; i < divisor; ++i) add(results.data(), results.size(), -1);
    const auto additions = static_cast<double>(terms.size() + 2 * static_cast<std::size_t>(divisor));
    const double slack = additions * (64 + additions) * 0x1p-106;
    for (std::size_t i = 0; i < results.size(); ++i) {
      value_[i] = std::fabs(value_[i] + lost_[i]);
      size_[i] *= slack;
    }
    decide(results.size(), divisor * *rule_.bound * (1 - 0x1p-50));
  }

  void add(const T* values, std::size_t n, double sign) {
    for (std::size_t i = 0; i < n; ++i) {
      const double x = sign * static_cast<double>(widen(values[i])), sum = value_[i] + x,
                   there = sum - value_[i];
      lost_[i] += (value_[i] - (sum - there)) + (x - there);
      value_[i] = sum, size_[i] += std::fabs(x);
    }
  }

  void find_doubtful_selections(std::span<const T* const> terms, std::size_t first,
                                std::span<const T> results) {
    const std::size_t n = results.size();
    const double sign = rule_.operation == Operation::max ? -1 : 1;
    value_.fill(std::numeric_limits<double>::infinity()), size_.fill(0);
    for (const T* values : terms)
      for (std::size_t i = 0; i < n; ++i) {
        const double x = sign * static_cast<double>(widen(values[first + i]));
        value_[i] = x < value_[i] ? x : value_[i];
        size_[i] = x == x ? size_[i] : x;
      }
    for (std::size_t i = 0; i < n; ++i) {
      const double y = sign * static_cast<double>(widen(results[i]));
      value_[i] = y == value_[i] ? 0 : std::fabs(y - value_[i]);
    }
    decide(n, *rule_.bound * (1 - 0x1p-50));
  }

  /// What is not clearly within the limit is in doubt.
  void decide(std::size_t n, double limit) {
    double largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      doubtful_[i] = !(value_[i] * (1 + 0x1p-50) + size_[i] <= limit);
      const double least = value_[i] * (1 - 0x1p-50) - size_[i];
      largest = least > largest && least <= std::numeric_limits<double>::max() ? least : largest;
    }
    if (limit > 0) tightness_ = std::max(tightness_, largest / limit * (1 - 0x1p-49));
  }

  ExactRule rule_;
  double tightness_ = 0;
  Lane value_{}, lost_{}, size_{};
  std::array<bool, block> doubtful_{};
  std::vector<double> terms_;
};

}  // namespace wring::inline v0::detail
