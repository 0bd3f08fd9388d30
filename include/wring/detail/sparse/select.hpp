// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>

#include <wring/detail/sparse/level.hpp>
#include <wring/detail/value_kernels.hpp>

/// The k values of the greatest magnitude, on a host: the key of the k-th is narrowed down by counting, exactly, so that nothing depends on the
/// number of threads. No call allocates.
namespace wring::inline v0::detail::sparse {

/// The blocks of a tensor in as many runs as there are threads to look at them.
struct ThreadRuns {
  static constexpr std::size_t most = 128, least_blocks = 64;
  std::size_t blocks = 0, runs = 1;

  template <class Exec> static ThreadRuns of(const Exec& exec, std::size_t n) {
    const auto threads = std::min(most, static_cast<std::size_t>(exec.concurrency()));
    return {blocks_of(n), std::max<std::size_t>(1, std::min(threads, blocks_of(n) / least_blocks))};
  }
  std::size_t begin(std::size_t run) const { return blocks / runs * run + std::min(run, blocks % runs); }

  /// Calls `functor(run)` for every run.
  template <class Exec, class Functor>
  void each(const char* label, const Exec& exec, const Functor& functor) const {
    for_each_task(label, exec, runs * values_per_task, functor);
    exec.fence(label);
  }
};

/// Keys from `low`, which is not 0, up to before `end`.
template <class T> struct Interval {
  using Key = typename Keys<T>::Key;
  static constexpr int most_bins = 2048;
  static constexpr Key all = static_cast<Key>(Keys<T>::nan + 1);
  Key low = 1, end = all;

  /// It is cut into as many bins as there may be, each 2^shift wide.
  int shift() const {
    const int bits = std::bit_width(static_cast<Key>(end - low - 1));
    return bits > 11 ? bits - 11 : 0;
  }
  Interval bin(std::size_t number) const {
    const Key from = static_cast<Key>(low + (static_cast<Key>(number) << shift()));
    const Key width = static_cast<Key>(Key{1} << shift());
    return {from, end - from < width ? end : static_cast<Key>(from + width)};
  }
};

/// The values of a tensor whose keys lie in an interval.
template <class T> struct Members {
  using Key = typename Keys<T>::Key;
  const Kernels<T>& kernels;
  std::span<const T> x;
  Interval<T> interval;

  /// Calls `use(index, key)` for those of a block, in ascending order; returns how many values lie above.
  template <class Use> std::size_t each(std::size_t block, const Use& use) const {
    const std::size_t first = block * block_values;
    const int m = values_in(x.size(), block);
    const T* from = x.data() + first;
    T own[block_values];
    if (m < block_values) {
      std::memset(static_cast<void*>(own), 0, sizeof own);
      std::memcpy(static_cast<void*>(own), from, static_cast<std::size_t>(m) * sizeof(T));
      from = own;
    }
    std::uint64_t members[bitmap_words], above[bitmap_words];
    const int not_below = kernels.mark(from, interval.low, members).count;
    if (not_below == 0) return 0;
    const int count = interval.end == interval.all ? 0 : kernels.mark(from, interval.end, above).count;
    if (count > 0)
      for (int w = 0; w < bitmap_words; ++w) members[w] &= ~above[w];
    if (count < not_below)
      for_each_mark(members, [&](int i) {
        use(first + static_cast<std::size_t>(i), Keys<T>::key(Keys<T>::pattern(from + i)));
      });
    return static_cast<std::size_t>(count);
  }
};

/// How many values lie in each bin of an interval, and above it.
struct BinCounts {
  std::size_t above = 0;
  std::size_t of[Interval<float>::most_bins] = {};
};

template <class T> struct CountBins {
  Members<T> members;
  ThreadRuns runs;
  BinCounts* counts;

  void operator()(std::size_t run) const {
    BinCounts own;
    const int shift = members.interval.shift();
    for (std::size_t b = runs.begin(run); b < runs.begin(run + 1); ++b)
      own.above +=
          members.each(b, [&](std::size_t, auto key) { ++own.of[(key - members.interval.low) >> shift]; });
    Kokkos::atomic_add(&counts->above, own.above);
    for (int bin = 0; bin < Interval<T>::most_bins; ++bin)
      if (own.of[bin] != 0) Kokkos::atomic_add(counts->of + bin, own.of[bin]);
  }
};

/// How many values each run has in an interval.
template <class T> struct CountMembers {
  Members<T> members;
  ThreadRuns runs;
  std::size_t* counts;

  void operator()(std::size_t run) const {
    std::size_t count = 0;
    for (std::size_t b = runs.begin(run); b < runs.begin(run + 1); ++b)
      members.each(b, [&](std::size_t, auto) { ++count; });
    counts[run] = count;
  }
  /// The index of the one before which there are `before`.
  std::size_t index_of(std::size_t before) const {
    std::size_t run = 0, index = 0;
    for (; counts[run] <= before; ++run) before -= counts[run];
    for (std::size_t b = runs.begin(run);; ++b) {
      std::size_t in_block = 0;
      members.each(b, [&](std::size_t i, auto) {
        if (in_block++ == before) index = i;
      });
      if (in_block > before) return index;
      before -= in_block;
    }
  }
};

/// An interval in which the k-th key lies, in all likelihood: from a thousand of the values. All keys, where there are not many values.
template <class T> Interval<T> likely_interval(std::span<const T> x, std::size_t k) {
  using Key = typename Keys<T>::Key;
  constexpr std::size_t samples = 1024, few = 32 * samples;
  if (x.size() < few) return {};
  Key keys[samples];
  for (std::size_t i = 0; i < samples; ++i)
    keys[i] = Keys<T>::key(Keys<T>::pattern(x.data() + x.size() / samples * i));
  const double rank = static_cast<double>(k) / static_cast<double>(x.size()) * samples;
  const double margin = 4 * std::sqrt(rank * (1 - rank / samples)) + 2;
  const auto nth = [&](double place) {  // from the greatest
    Key* const at = keys + static_cast<std::size_t>(place);
    std::nth_element(keys, at, keys + samples, std::greater<Key>());
    return *at;
  };
  Interval<T> likely;
  if (rank + margin < samples) likely.low = std::max(Key{1}, nth(rank + margin));
  if (rank - margin >= 0) likely.end = static_cast<Key>(nth(rank - margin) + 1);
  return likely.low < likely.end ? likely : Interval<T>{};
}

/// The k values of greatest magnitude among x, ties in the order of their places: NaN before infinities before numbers, and no zeros.
/// `first`: the index of x[0] in its tensor. Reads x two or three times as a rule, and once more for ties.
template <class T, class Exec>
Selection<T> select_greatest(const Exec& exec, std::span<const T> x, std::size_t k, std::size_t first,
                             const Kernels<T>& kernels) {
  if (k >= x.size()) return {};
  const ThreadRuns runs = ThreadRuns::of(exec, x.size());
  Interval<T> interval = likely_interval(x, k);
  for (;;) {
    BinCounts counts;
    runs.each("wring::select", exec, CountBins<T>{{kernels, x, interval}, runs, &counts});
    if (counts.above >= k) {  // unlikely
      interval = {interval.end, interval.all};
      continue;
    }
    std::size_t left = k - counts.above, bin = Interval<T>::most_bins;
    while (bin > 0 && counts.of[bin - 1] < left) left -= counts.of[--bin];
    if (bin == 0) {  // unlikely, but where most values are zeros
      if (interval.low == 1) return {};
      interval = {1, interval.low};
      continue;
    }
    const bool all = counts.of[bin - 1] == left, single = interval.shift() == 0;
    interval = interval.bin(bin - 1);
    if (all) return {interval.low, all_ties};
    if (!single) continue;
    std::array<std::size_t, ThreadRuns::most> ties{};
    const CountMembers<T> count{{kernels, x, interval}, runs, ties.data()};
    runs.each("wring::select", exec, count);
    return {interval.low, first + count.index_of(left - 1) + 1};
  }
}

}  // namespace wring::inline v0::detail::sparse
