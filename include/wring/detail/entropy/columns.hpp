// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <wring/detail/entropy/block.hpp>
#include <wring/detail/entropy/level.hpp>
#include <wring/detail/entropy/model.hpp>
#include <wring/detail/entropy/scales.hpp>

/// Gradients of matrices have scales of rows and of columns. Where values that lie a row apart have like magnitudes, each value's model
/// follows from the scale of its block and from the magnitudes in its column so far.
namespace wring::inline v0::detail::entropy {

/// Lengths of rows that are found. The shortest is a block: then all that a block's models depend on is known before it.
inline constexpr std::size_t shortest_row = block_values, longest_row = 1024;

/// For each column the average of the magnitudes so far, the latest counting most, in 1024ths of the mean of their blocks.
class Columns {
 public:
  static constexpr int unit = 1024, greatest_learnt = 31;

  /// `row`: from shortest_row to longest_row.
  Columns(std::size_t row, const BlockCoder& coder) : coder_(coder), row_(row) {
    std::fill_n(averages_, row, std::uint16_t{unit});
  }

  /// The number of the model for each value of block b, whose scale is from 1 to `greatest_modelled`: half octaves of the mean of its
  /// block times the average, to the power of 0.8.
  void models(std::size_t b, int scale, std::uint16_t* which) const {
    coder_.own_models(averages_ + b * block_values, scale, which);
  }

  /// The 128 values of block b are known.
  void learn(std::size_t b, int scale, const std::int32_t* q) {
    const std::uint16_t* const before = averages_ + b * block_values;
    std::uint16_t* const after = averages_ + b * block_values + row_;
    if (scale == 0 || scale > greatest_learnt)
      std::copy_n(before, block_values, after);
    else
      coder_.learn(before, q, factor(scale), after);
  }

  /// 2^12 over the mean of a scale, from 1 to `greatest_learnt`.
  static std::int32_t factor(int scale) {
    return scale % 2 == 1 ? (1 << 19) >> (scale - 1) / 2 : 370728 >> (scale - 2) / 2;  // 2^18.5
  }

 private:
  const BlockCoder& coder_;
  std::size_t row_;
  std::uint16_t averages_[longest_row + chunk_values];  ///< one row before them, then those after each value
};

/// Finds the length of rows: where columns have scales, sums over columns differ by more than sums over random values would.
class RowFinder {
 public:
  /// Of values in blocks with these scales; 0 where no rows show. Looks at 4096 values in the middle.
  static std::size_t find(const std::int32_t* q, const std::int32_t* scales, std::size_t blocks,
                          const BlockCoder& coder) {
    if (blocks < window / block_values) return 0;
    const std::size_t first = (blocks - window / block_values) / 2;
    const RowFinder finder(q + first * block_values, scales + first, coder);
    std::size_t best = 0;
    double most = least_evidence;
    for (std::size_t row = shortest_row; row <= longest_row; ++row) {
      if (finder.evidence(row, most_rows / 2) < least_evidence / 2) continue;
      if (const double evidence = finder.evidence(row, most_rows); evidence > most)
        best = row, most = evidence;
    }
    for (const std::size_t part : {4, 3, 2})  // several rows repeat as one does; of parts of a row not all do
      if (best % part == 0 && best / part >= shortest_row &&
          finder.likeness(best / part, most_rows) > 0.7 * finder.likeness(best, most_rows))
        return best / part;
    return best;
  }

 private:
  static constexpr std::size_t window = 4096, most_rows = 8;
  static constexpr double least_evidence = 5;

  RowFinder(const std::int32_t* q, const std::int32_t* scales, const BlockCoder& coder) : coder_(coder) {
    std::int64_t sum = 0, squares = 0;
    for (std::size_t b = 0; b < window / block_values; ++b) {
      std::uint16_t magnitudes[block_values];
      if (scales[b] == 0 || scales[b] > Columns::greatest_learnt)
        std::fill_n(magnitudes, block_values, std::uint16_t{Columns::unit});
      else
        coder.relative(q + b * block_values, Columns::factor(scales[b]), magnitudes);
      for (std::size_t i = 0; i < block_values; ++i) {
        const int level = std::min(magnitudes[i] >> 8, 15);
        levels_[b * block_values + i] = static_cast<std::uint8_t>(level);
        sum += level, squares += level * level;
      }
    }
    variance_ = static_cast<double>(window * squares - sum * sum) / (double{window} * window);
  }

  static std::size_t rows_of(std::size_t row, std::size_t most) { return std::min(most, window / row); }
  static std::size_t columns_of(std::size_t row) { return row / 64 * 64; }

  /// The part that columns have in the variance of single values, as sums over some rows show it.
  double likeness(std::size_t row, std::size_t most) const {
    const std::size_t rows = rows_of(row, most), columns = columns_of(row);
    const Sums sums = coder_.fold(levels_, row, rows);
    const double random = static_cast<double>(columns * columns * rows) * variance_,
                 found = static_cast<double>(columns * sums.of_squares - sums.of_all * sums.of_all);
    return random > 0 ? (found / random - 1) / static_cast<double>(rows) : 0;
  }

  /// By how many standard deviations it exceeds that of random values.
  double evidence(std::size_t row, std::size_t most) const {
    return likeness(row, most) * static_cast<double>(rows_of(row, most)) *
           std::sqrt(static_cast<double>(columns_of(row)) / 2);
  }

  const BlockCoder& coder_;
  std::uint8_t levels_[window + 64] = {};
  double variance_ = 0;
};

}  // namespace wring::inline v0::detail::entropy
