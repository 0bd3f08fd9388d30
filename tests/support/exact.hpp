// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstring>
#include <vector>

#include <wring/detail/exact_reduction.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// What a reduction should give, without any rounding.
namespace wring_test {

template <class T> double as_double(T x) {
  if constexpr (wring::FloatElement<T>)
    return static_cast<double>(wring::detail::widen(x));
  else
    return static_cast<double>(x);
}

/// Whether y is the exact reduction of the terms within `bound`, as IEEE arithmetic has it where terms are not finite.
template <class T> bool reduced_within(wring::Operation operation, const std::vector<T>& terms, T result,
                                       double bound) {
  wring::detail::ExactRule rule{operation, bound};
  if constexpr (wring::FloatElement<T>) rule.greatest = wring::FloatTraits<T>::greatest;
  std::vector<double> numbers;
  for (const T& x : terms) numbers.push_back(as_double(x));
  return wring::detail::right_result(as_double(result), numbers, rule);
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace wring_test
