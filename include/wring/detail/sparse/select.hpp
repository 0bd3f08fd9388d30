// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <wring/detail/sparse/format.hpp>
#include <wring/detail/value_kernels.hpp>

/// The k values of the greatest magnitude, by the digits of their keys: how many values have each first digit says which digit the k-th has,
/// then only those with that digit count for the next one. Nothing depends on the number of threads. No call allocates.
namespace wring::inline v0::detail::sparse {

/// The digits found so far, those above `shift` bits, and how many of the values that begin with them are taken.
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

inline constexpr std::size_t all_ties = std::numeric_limits<std::size_t>::max();

// ---- hosts ---------------------------------------------------------------------------------------------------------------------

/// The values of a tensor in as many runs as there are threads to look at them.
struct ThreadRuns {
  static constexpr std::size_t most = 128, least_values = 32768;
  std::size_t n = 0, runs = 1;

  template <class Exec> static ThreadRuns of(const Exec& exec, std::size_t n) {
    const auto threads = std::min(most, static_cast<std::size_t>(exec.concurrency()));
    return {n, std::max<std::size_t>(1, std::min(threads, n / least_values))};
  }
  std::size_t begin(std::size_t run) const { return n / runs * run + std::min(run, n % runs); }

  /// Calls `functor(run)` for every run.
  template <class Exec, class Functor> void each(const char* label, const Exec& exec,
                                                 const Functor& functor) const {
    for_each_task(label, exec, runs * values_per_task, functor);
    exec.fence(label);
  }
};

inline constexpr int host_digit_bits = 11;

/// Adds to `counts` how many values of a run that begin with the digits of a cut have each next digit.
template <class T> struct CountDigits {
  using Key = typename Keys<T>::Key;
  const T* x;
  ThreadRuns runs;
  Cut<T> cut;
  int digit_bits;
  std::size_t* counts;

  void operator()(std::size_t run) const {
    std::size_t own[2][std::size_t{1} << host_digit_bits] = {};  // two, for equal digits follow one another
    const int shift = cut.shift - digit_bits;
    const Key mask = static_cast<Key>((Key{1} << digit_bits) - 1);
    const std::size_t end = runs.begin(run + 1);
    if (cut.shift == Keys<T>::bits) {
      for (std::size_t i = runs.begin(run); i < end; ++i) ++own[i % 2][key(i) >> shift];
    } else {
      for (std::size_t i = runs.begin(run); i < end; ++i)
        if (const Key k = key(i); cut.begins(k)) ++own[i % 2][(k >> shift) & mask];
    }
    for (std::size_t d = 0; d <= mask; ++d)
      if (const std::size_t count = own[0][d] + own[1][d]) Kokkos::atomic_add(counts + d, count);
  }
  Key key(std::size_t i) const { return Keys<T>::key(Keys<T>::pattern(x + i)); }
};

/// How many ties, values whose key is a complete cut, each run has.
template <class T> struct CountTies {
  const T* x;
  ThreadRuns runs;
  typename Keys<T>::Key key;
  std::size_t* counts;

  void operator()(std::size_t run) const {
    std::size_t count = 0;
    for (std::size_t i = runs.begin(run); i < runs.begin(run + 1); ++i) count += tie(i);
    counts[run] = count;
  }
  bool tie(std::size_t i) const { return Keys<T>::key(Keys<T>::pattern(x + i)) == key; }

  /// One after the index of the tie before which there are `before`.
  std::size_t end_of(std::size_t before) const {
    std::size_t run = 0;
    for (; counts[run] <= before; ++run) before -= counts[run];
    for (std::size_t i = runs.begin(run);; ++i)
      if (tie(i) && before-- == 0) return i + 1;
  }
};

/// The k values of greatest magnitude among x, ties in the order of their places: NaN before infinities before numbers, and no zeros.
/// `first`: the index of x[0] in its tensor. Reads x once for every 11 bits of a key, and once more for ties.
template <class T, class Exec>
Selection<T> select_greatest(const Exec& exec, std::span<const T> x, std::size_t k, std::size_t first) {
  if (k >= x.size()) return {};
  const ThreadRuns runs = ThreadRuns::of(exec, x.size());
  Cut<T> cut{.left = k};
  while (cut.shift > 0) {
    std::size_t counts[std::size_t{1} << host_digit_bits] = {};
    const int digit_bits = std::min(cut.shift, host_digit_bits);
    runs.each("wring::select", exec, CountDigits<T>{x.data(), runs, cut, digit_bits, counts});
    if (cut.descend(counts, digit_bits)) return cut.selection(all_ties);
  }
  if (cut.prefix == 0) return {};
  std::array<std::size_t, ThreadRuns::most> counts{};
  const CountTies<T> ties{x.data(), runs, cut.prefix, counts.data()};
  runs.each("wring::select", exec, ties);
  return cut.selection(first + ties.end_of(cut.left - 1));
}

// ---- devices -------------------------------------------------------------------------------------------------------------------

inline constexpr int team_digit_bits = 4;

struct DigitCounts {
  std::size_t of[std::size_t{1} << team_digit_bits];
};

/// The same by a reduction with 16 sums. Once the key is complete the digits go on with those of the index, the lowest counting as the
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

/// The same selection for devices. Reads x once for every 4 bits of a key, and once for every 4 bits of the index of a tie.
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
