// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include <wring/detail/entropy/model.hpp>
#include <wring/error.hpp>

/// Models that are made for the values of a chunk and travel with it: for what no scale describes, as multiples of a coarser step.
namespace wring::inline v0::detail::entropy {

/// A model as the stream has it: low bits left aside, lowest symbol, the value that has no low bits, and how often each occurs, in
/// eighths of an octave.
struct Table {
  static constexpr std::size_t most_symbols = Model::most_symbols - 2, head_bytes = 10,
                               most_bytes = head_bytes + most_symbols + 2;

  std::uint8_t shift = 0, count = 0;  ///< of symbols
  std::int32_t lowest = 0, common = 0;
  std::array<std::uint8_t, Model::most_symbols>
      weights{};  ///< of each symbol, the escape, the common value; 0: never

  std::size_t entries() const { return count + std::size_t{2}; }
  std::size_t bytes() const { return head_bytes + entries(); }

  std::byte* write(std::byte* to) const {
    to[0] = static_cast<std::byte>(shift), to[1] = static_cast<std::byte>(count);
    std::memcpy(to + 2, &lowest, sizeof lowest);
    std::memcpy(to + 6, &common, sizeof common);
    std::memcpy(to + head_bytes, weights.data(), entries());
    return to + bytes();
  }

  /// Reads what `write` wrote, and makes sure that it is a table.
  static Table read(std::span<const std::byte> from) {
    Table t;
    const auto expect = [](bool holds) {
      if (!holds) throw CodecError("the table of entropy-coded values is damaged");
    };
    expect(from.size() >= head_bytes);
    t.shift = static_cast<std::uint8_t>(from[0]), t.count = static_cast<std::uint8_t>(from[1]);
    std::memcpy(&t.lowest, from.data() + 2, sizeof t.lowest);
    std::memcpy(&t.common, from.data() + 6, sizeof t.common);
    expect(t.shift < 32 && t.count <= most_symbols && from.size() >= t.bytes());
    std::memcpy(t.weights.data(), from.data() + head_bytes, t.entries());
    expect(std::all_of(t.weights.begin(), t.weights.end(), [](unsigned w) { return w <= greatest_weight; }));
    return t;
  }

  /// 1 + 8 log2(count), rounded.
  static std::uint8_t weight_of(std::uint32_t count) {
    if (count == 0) return 0;
    const int octave = static_cast<int>(std::bit_width(count)) - 1;
    const std::uint32_t mantissa = count << (31 - octave);
    int eighth = 0;
    while (eighth < 8 && mantissa >= thresholds[static_cast<std::size_t>(eighth)]) ++eighth;
    return static_cast<std::uint8_t>(1 + 8 * octave + eighth);
  }

  /// The frequencies: 1 for what occurs and for the escape, the rest in proportion to the weights. What rounding leaves over goes to
  /// the most frequent.
  Model model() const {
    std::array<std::uint64_t, Model::most_symbols> expected{};
    std::uint64_t sum = 1;
    std::uint32_t occur = 0;
    for (std::size_t s = 0; s < entries(); ++s) {
      sum += expected[s] = count_of(weights[s]);
      occur += expected[s] != 0 || s == count;
    }
    std::array<std::uint16_t, Model::most_symbols> frequencies{};
    std::uint32_t used = 0;
    std::size_t most = 0;
    for (std::size_t s = 0; s < entries(); ++s) {
      const std::uint64_t share = expected[s] * (total_frequency - occur) / sum;
      frequencies[s] = static_cast<std::uint16_t>(share + (expected[s] != 0 || s == count ? 1 : 0));
      used += frequencies[s];
      if (frequencies[s] > frequencies[most]) most = s;
    }
    frequencies[most] = static_cast<std::uint16_t>(frequencies[most] + total_frequency - used);
    const std::span<const std::uint16_t> all(frequencies.data(), entries());
    if (weights[count + 1u] == 0) return Model(lowest, all.first(count + 1u));
    return Model(lowest, all, common);
  }

 private:
  static constexpr unsigned greatest_weight = 1 + 8 * 20;
  /// 2^(31 + (k + 1/2) / 8), and 2^(16 + k / 8).
  static constexpr std::array<std::uint32_t, 8> thresholds{
      2242560872u, 2445529972u, 2666869345u, 2908241642u, 3171459999u, 3458501653u, 3771522796u, 4112874773u};
  static constexpr std::array<std::uint32_t, 8> octave{65536, 71468,  77936,  84990,
                                                       92682, 101070, 110218, 120194};

  static std::uint64_t count_of(unsigned weight) {
    if (weight == 0) return 0;
    return std::uint64_t{octave[(weight - 1) % 8]} << ((weight - 1) / 8);
  }
};

/// Counts the values of a chunk and makes a table of them.
class TableMaker {
 public:
  /// A table and the number of bits that the values take with it, its own included, in eighths and nearly.
  struct Made {
    Table table;
    std::uint64_t eighths;
  };

  /// The best one for q[0..n), n > 0; or for `parts` times as many values, of which these are a sample: the bits are the sample's, with
  /// its share of the table and what a table fits its sample better than the rest, 1/(2 ln 2) bits for each symbol.
  Made make(const std::int32_t* q, std::size_t n, std::size_t parts = 1) {
    parts_ = parts;
    look_over(q, n);
    shift_ = least_shift();
    common_ = most_common(q, n);
    const std::uint32_t commons = count(q, n);
    Made best = table_of(n);
    set_aside(commons);
    while (range_ >> shift_ > 1 && shift_ < 31) {
      halve();
      const Made coarser = table_of(n);
      if (coarser.eighths >= best.eighths) break;
      best = coarser;
    }
    return best;
  }

  /// One with as many low bits and the same common value as one that was the best for some of these values.
  Made make_like(const Table& best, const std::int32_t* q, std::size_t n) {
    look_over(q, n);
    parts_ = 1;
    shift_ = std::max(least_shift(), static_cast<int>(best.shift));
    common_ = best.common;
    const std::uint32_t commons = count(q, n);
    if (best.weights[best.count + 1u] != 0) set_aside(commons);
    return table_of(n);
  }

 private:
  static constexpr int bin_bits = 12;
  static constexpr std::size_t bins = (std::size_t{1} << bin_bits) + 1;

  /// Least and range.
  void look_over(const std::int32_t* q, std::size_t n) {
    constexpr std::size_t lanes = 16;  // compilers make vectors of them
    std::int32_t least[lanes], most[lanes];
    std::fill_n(least, lanes, q[0]), std::fill_n(most, lanes, q[0]);
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (std::size_t l = 0; l < lanes; ++l) {
        least[l] = q[i + l] < least[l] ? q[i + l] : least[l];
        most[l] = q[i + l] > most[l] ? q[i + l] : most[l];
      }
    for (; i < n; ++i) least[0] = std::min(least[0], q[i]), most[0] = std::max(most[0], q[i]);
    least_ = *std::min_element(least, least + lanes);
    range_ = static_cast<std::uint32_t>(*std::max_element(most, most + lanes)) -
             static_cast<std::uint32_t>(least_);
  }
  int least_shift() const { return std::max(0, static_cast<int>(std::bit_width(range_)) - bin_bits); }

  std::size_t bin_of(std::int32_t q) const {
    return static_cast<std::uint32_t>(q >> shift_) - static_cast<std::uint32_t>(first_);
  }

  /// Counts what is in each bin; returns how often the common value occurs. Neighbours are counted apart: like ones would wait for one
  /// another.
  std::uint32_t count(const std::int32_t* q, std::size_t n) {
    first_ = least_ >> shift_, commons_ = 0;
    const std::size_t end = used();
    std::fill_n(counts_.data(), end, 0u);
    for (auto& others : others_) std::fill_n(others.data(), end, 0u);
    std::uint32_t commons = 0;
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
      ++counts_[bin_of(q[i])], ++others_[0][bin_of(q[i + 1])];
      ++others_[1][bin_of(q[i + 2])], ++others_[2][bin_of(q[i + 3])];
      for (std::size_t k = 0; k < 4; ++k) commons += q[i + k] == common_;
    }
    for (; i < n; ++i) ++counts_[bin_of(q[i])], commons += q[i] == common_;
    for (const auto& others : others_)
      for (std::size_t k = 0; k < end; ++k) counts_[k] += others[k];
    return commons;
  }

  /// What may be the most common value, as a sample shows it.
  static std::int32_t most_common(const std::int32_t* q, std::size_t n) {
    std::array<std::int32_t, 64> sample;
    for (std::size_t k = 0; k < sample.size(); ++k) sample[k] = q[n * k / sample.size()];
    std::sort(sample.begin(), sample.end());
    std::size_t run = 0, longest = 0;
    std::int32_t common = 0;
    for (std::size_t k = 0; k < sample.size(); ++k) {
      run = k != 0 && sample[k] == sample[k - 1] ? run + 1 : 1;
      if (run > longest) longest = run, common = sample[k];
    }
    return common;
  }

  /// Takes the common value out of its bin.
  void set_aside(std::uint32_t commons) {
    commons_ = commons;
    if (commons != 0) counts_[bin_of(common_)] -= commons;
  }

  /// Puts pairs of bins together.
  void halve() {
    const std::int32_t next = first_ >> 1;
    for (std::size_t k = 0, end = used(); k < end; ++k) {
      const std::uint32_t count = std::exchange(counts_[k], 0);
      counts_[static_cast<std::size_t>(((first_ + static_cast<std::int64_t>(k)) >> 1) - next)] += count;
    }
    first_ = next, ++shift_;
  }

  /// That of the window of bins in which most values lie.
  Made table_of(std::size_t n) const {
    std::size_t inside = 0, most = 0, last = 0;
    for (std::size_t k = 0, end = used(); k < end; ++k) {
      inside += counts_[k];
      if (k >= Table::most_symbols) inside -= counts_[k - Table::most_symbols];
      if (inside > most) most = inside, last = k;
    }
    std::size_t first = last + 1 < Table::most_symbols ? 0 : last + 1 - Table::most_symbols;
    while (first < last && counts_[first] == 0) ++first;
    Made made{};
    Table& t = made.table;
    t.shift = static_cast<std::uint8_t>(shift_), t.count = static_cast<std::uint8_t>(last + 1 - first);
    t.lowest = first_ + static_cast<std::int32_t>(first);
    const auto outside = static_cast<std::uint32_t>(n - most - commons_);
    t.common = common_;
    const std::uint64_t whole = Table::weight_of(static_cast<std::uint32_t>(n));
    made.eighths = 64 * t.bytes() / parts_ + (parts_ == 1 ? 0 : 6u * t.count) +
                   8 * (static_cast<std::uint64_t>(n - commons_) * t.shift + 32ull * outside);
    const auto weigh = [&](std::uint32_t c) {
      const std::uint8_t weight = Table::weight_of(c);
      if (c != 0) made.eighths += c * (whole - weight);
      return weight;
    };
    for (std::size_t k = first; k <= last; ++k) t.weights[k - first] = weigh(counts_[k]);
    t.weights[t.count] = weigh(outside);
    t.weights[t.count + 1u] = weigh(commons_);
    return made;
  }

  /// Bins that values may be in.
  std::size_t used() const { return (range_ >> shift_) + std::size_t{2}; }

  std::array<std::uint32_t, bins> counts_;
  std::array<std::array<std::uint32_t, bins>, 3> others_;
  std::uint32_t range_ = 0;
  std::size_t parts_ = 1;
  std::int32_t least_ = 0, first_ = 0, common_ = 0;
  std::uint32_t commons_ = 0;  ///< how often the common value occurs, where it is set aside
  int shift_ = 0;
};

}  // namespace wring::inline v0::detail::entropy
