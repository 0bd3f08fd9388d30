// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <wring/detail/exact_reduction.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

namespace wring::inline v0::detail {

/// As ExactCheck, for integers: sums wrap. Only what loses nothing can be checked.
template <std::integral T, bool lossless> class IntegerCheck {
 public:
  explicit IntegerCheck(const ExactRule& rule) : operation_(rule.operation) {}

  std::size_t first_wrong(std::span<const T* const> terms, std::span<const T> results) const {
    std::size_t i = 0;
    while (i < results.size() && right(terms, i, results[i])) ++i;
    return i;
  }
  bool right(std::span<const T* const> terms, std::size_t i, T result) const {
    return !lossless || result == exact(terms, i);
  }
  T exact(std::span<const T* const> terms, std::size_t i) const {
    T value = terms.front()[i];
    for (const T* values : terms.subspan(1))
      value = operation_ == Operation::min   ? select_value<false>(value, values[i])
              : operation_ == Operation::max ? select_value<true>(value, values[i])
                                             : add_values(value, values[i]);
    return value;
  }

 private:
  Operation operation_;
};

template <class S, bool lossless> struct CheckFor {
  using type = ExactCheck<S>;
};
template <std::integral S, bool lossless> struct CheckFor<S, lossless> {
  using type = IntegerCheck<S, lossless>;
};

/// The numbers of which an element consists: itself, or its two parts.
template <class T> struct PartOf {
  using type = T;
};
template <class T>
  requires is_complex_v<T>
struct PartOf<T> {
  using type = typename T::value_type;
};

/// The values of one range of elements on all ranks that have them: inputs and results.
template <class S> struct Evidence {
  std::vector<const S*> terms;
  std::vector<std::pair<int, const S*>> holders;  ///< rank and its results
  std::size_t count = 0;

  /// The first index at which not all results have the same bits, or `count`.
  std::size_t first_difference() const {
    std::size_t first = count;
    for (const auto& [rank, values] : holders) {
      const S* reference = holders.front().second;
      if (first == 0 || std::memcmp(values, reference, first * sizeof(S)) == 0) continue;
      std::size_t i = 0;
      while (same_at(i, values, reference)) ++i;
      first = i;
    }
    return first;
  }
  static bool same_at(std::size_t i, const S* a, const S* b) {
    return std::memcmp(a + i, b + i, sizeof(S)) == 0;
  }
};

/// What is wrong with an element, and on which rank.
struct Finding {
  std::size_t index = 0;
  int rank = 0;
  double value = 0, exact = 0;
  std::string text;
};

/// Finds the first wrong result among the ranks' values.
template <class S, bool lossless> class Judge {
 public:
  explicit Judge(const ExactRule& rule) : rule_(rule), check_(rule) {}

  std::optional<Finding> first_wrong(const Evidence<S>& e) {
    const std::size_t differ = e.first_difference();
    const auto& [rank, values] = e.holders.front();
    const std::size_t wrong = check_.first_wrong(e.terms, std::span(values, differ));
    if (wrong < differ)
      return unlike_exact(e, wrong, e.holders.front(), e.holders.size() > 1 ? "all ranks" : "");
    if (differ == e.count) return std::nullopt;
    for (const auto& holder : e.holders)
      if (!check_.right(e.terms, differ, holder.second[differ])) return unlike_exact(e, differ, holder, "");
    return unlike_others(e, differ);
  }

 private:
  using Check = typename CheckFor<S, lossless>::type;
  using Holder = std::pair<int, const S*>;

  static double number(S x) {
    if constexpr (FloatElement<S>)
      return static_cast<double>(widen(x));
    else
      return static_cast<double>(x);
  }
  static std::string words(S x) {
    if constexpr (std::integral<S>)
      return std::to_string(x);
    else
      return fmt::format("{}", static_cast<typename FloatTraits<S>::Wide>(x));
  }
  static std::string pattern(S x) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &x, sizeof x);
    return fmt::format("{} (bits {:#x})", words(x), bits);
  }

  double exact_number(const Evidence<S>& e, std::size_t i) {
    if constexpr (std::integral<S>)
      return number(check_.exact(e.terms, i));
    else
      return exact_result(check_.terms_of(e.terms, i), rule_);
  }

  Finding unlike_exact(const Evidence<S>& e, std::size_t i, const Holder& holder, std::string where) {
    const S value = holder.second[i];
    if (where.empty()) where = "rank " + std::to_string(holder.first);
    Finding f{i, holder.first, number(value), exact_number(e, i), {}};
    f.text = fmt::format("is {} on {} and {} exactly", words(value), where, f.exact);
    if (rule_.bound) f.text += fmt::format(", the bound is {}", *rule_.bound);
    return f;
  }

  /// All are near enough, but not all the same: the first of the fewest is named.
  Finding unlike_others(const Evidence<S>& e, std::size_t i) {
    const auto holds_same = [&](const Holder& a) {
      return std::count_if(e.holders.begin(), e.holders.end(),
                           [&](const Holder& b) { return Evidence<S>::same_at(i, a.second, b.second); });
    };
    const auto odd =
        std::min_element(e.holders.begin(), e.holders.end(),
                         [&](const Holder& a, const Holder& b) { return holds_same(a) < holds_same(b); });
    const auto other = std::find_if(e.holders.begin(), e.holders.end(), [&](const Holder& h) {
      return !Evidence<S>::same_at(i, h.second, odd->second);
    });
    Finding f{i, odd->first, number(odd->second[i]), exact_number(e, i), {}};
    f.text = fmt::format("is {} on rank {} but {} on rank {}: the ranks hold different bits",
                         pattern(odd->second[i]), odd->first, pattern(other->second[i]), other->first);
    return f;
  }

  ExactRule rule_;
  Check check_;
};

}  // namespace wring::inline v0::detail
