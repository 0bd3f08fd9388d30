// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <wring/detail/sparse/format.hpp>

/// The k values of the greatest magnitude, on a device: the key of the k-th is found digit by digit. No call allocates; each synchronises
/// `exec`.
namespace wring::inline v0::detail::sparse {

/// The digits of the k-th key found so far, those above `shift` bits, and how many of the values that begin with them are taken: how many
/// values have each next digit says which one the k-th has.
template <class T> struct Cut {
  using Key = typename Keys<T>::Key;
  Key prefix = 0;
  int shift = Keys<T>::bits;
  std::size_t left = 0;

  KOKKOS_INLINE_FUNCTION bool begins(Key key) const { return (key >> shift) == prefix; }

  /// Takes the next digit, of `digit_bits`: `counts[d]` values have d. True if all values that begin so are taken.
  bool descend(const std::size_t* counts, int digit_bits) {
    std::size_t digit = (std::size_t{1} << digit_bits) - 1;
    for (; counts[digit] < left; --digit) left -= counts[digit];
    shift -= digit_bits;
    prefix = static_cast<Key>(prefix << digit_bits | digit);
    return counts[digit] == left;
  }

  /// Where all that begin so are taken, or the key is complete and ties end at an index.
  Selection<T> selection(std::size_t ties_end) const {
    const Key cut = static_cast<Key>(prefix << shift);
    return cut == 0 ? Selection<T>{} : Selection<T>{cut, ties_end};
  }
};

inline constexpr int team_digit_bits = 4;

struct DigitCounts {
  std::size_t of[std::size_t{1} << team_digit_bits];
};

/// Counts digits by a reduction with 16 sums. Once the key is complete the digits go on with those of the index, the lowest counting as the
/// greatest.
template <class Exec, class T> struct ReduceDigits {
  using execution_space = Exec;
  using value_type = DigitCounts;
  using Key = typename Keys<T>::Key;

  const T* x;
  Cut<T> cut;  ///< of keys; complete where `of_index` counts
  bool of_index;
  std::size_t prefix;     ///< of the index
  int shift, digit_bits;  ///< of what the digit is taken from

  KOKKOS_FUNCTION void operator()(std::size_t i, DigitCounts& counts) const {
    const Key key = Keys<T>::key(Keys<T>::pattern(x + i));
    if (!cut.begins(key)) return;
    const std::size_t rest = of_index ? ~i : static_cast<std::size_t>(key);
    if (of_index && shift + digit_bits < 64 && rest >> (shift + digit_bits) != prefix) return;
    ++counts.of[rest >> shift & ((std::size_t{1} << digit_bits) - 1)];
  }
  KOKKOS_FUNCTION void init(DigitCounts& counts) const {
    for (std::size_t& c : counts.of) c = 0;
  }
  KOKKOS_FUNCTION void join(DigitCounts& into, const DigitCounts& from) const {
    for (int d = 0; d < (1 << team_digit_bits); ++d) into.of[d] += from.of[d];
  }
};

/// The selection of `select_greatest`, for devices. Reads x once for every 4 bits of a key, and once for every 4 bits of the index of a tie.
template <class T, class Exec>
Selection<T> team_select_greatest(const Exec& exec, std::span<const T> x, std::size_t k, std::size_t first) {
  using Reduce = ReduceDigits<Exec, T>;
  if (k >= x.size()) return {};
  const Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>> policy(exec, 0, x.size());
  Cut<T> cut{.left = k};
  const auto count = [&](bool of_index, std::size_t prefix, int shift, int digit_bits) {
    DigitCounts counts;
    Kokkos::parallel_reduce("wring::select", policy,
                            Reduce{x.data(), cut, of_index, prefix, shift, digit_bits}, counts);
    return counts;
  };
  while (cut.shift > 0) {
    const int digit_bits = std::min(cut.shift, team_digit_bits);
    if (cut.descend(count(false, 0, cut.shift - digit_bits, digit_bits).of, digit_bits))
      return cut.selection(all_ties);
  }
  if (cut.prefix == 0) return {};
  int shift = 0;
  while (shift < 64 && (x.size() - 1) >> shift != 0) shift += team_digit_bits;
  // The bits above are ones in the complement of every index.
  std::size_t prefix = shift < 64 ? ~std::size_t{0} >> shift : 0, left = cut.left;
  while (shift > 0) {
    shift -= team_digit_bits;
    const DigitCounts counts = count(true, prefix, shift, team_digit_bits);
    std::size_t digit = (std::size_t{1} << team_digit_bits) - 1;
    for (; counts.of[digit] < left; --digit) left -= counts.of[digit];
    prefix = prefix << team_digit_bits | digit;
  }
  return cut.selection(first + ~prefix + 1);
}

}  // namespace wring::inline v0::detail::sparse
