// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>

#include <wring/algorithm/load.hpp>
#include <wring/detail/pipeline.hpp>

namespace wring::inline v0::detail {

/// How long the segments of an operation are: `Partition`, with all blocks taken as equal. Where there are very many segments, only some of
/// them are followed, and the others take as long.
class Cut {
 public:
  /// Of how many segments at least, in multiples of the depth, the course is followed.
  static constexpr std::size_t rounds = 4;

  Cut(const Load& load, int blocks, bool follow_all = false) {
    const std::size_t unit = unit_values * load.value_bytes,
                      n = static_cast<std::size_t>(std::max(1, blocks));
    const std::size_t units = divided(load.bytes, unit), longest = divided(units, n);
    const std::size_t step = std::max<std::size_t>(1, load.segment_bytes / unit);
    const Segmentation cut(longest, step);
    all_ = cut.segments;
    depth_ = cut.in_flight(load.depth);
    followed_ = follow_all ? all_ : std::min(all_, rounds * depth_);
    filled_ = units < n ? static_cast<double>(units) / static_cast<double>(n) : 1;
    if (longest == 0) return;
    const double block = static_cast<double>(load.bytes) / static_cast<double>(std::min(n, units)),
                 of_unit = block / static_cast<double>(longest);
    full_ = of_unit * static_cast<double>(cut.units);
    last_ = of_unit * static_cast<double>(longest - (all_ - 1) * cut.units);
  }

  std::size_t depth() const { return depth_; }
  std::size_t followed() const { return followed_; }
  std::size_t left_out() const { return all_ - followed_; }
  /// Bytes of one block in the k-th segment that is followed, if it is not empty.
  double bytes(std::size_t k) const { return k + 1 == followed_ ? last_ : full_; }
  /// For how many segments it stands.
  double weight(std::size_t k) const {
    return left_out() == 0 || k + 1 == followed_
               ? 1
               : 1 + static_cast<double>(left_out()) / static_cast<double>(followed_ - 1);
  }
  /// How many of `blocks` neighbouring blocks are not empty, as a share. Of a few it is the most that can be: somebody has to wait for them.
  double filled(double blocks) const {
    if (filled_ == 1 || blocks == 0) return filled_;
    const auto below = static_cast<double>(static_cast<std::size_t>(blocks * filled_));
    return (below < blocks * filled_ ? below + 1 : below) / blocks;
  }

 private:
  /// Rounded up, without overflow.
  static std::size_t divided(std::size_t n, std::size_t by) { return n / by + (n % by != 0); }

  std::size_t all_ = 1, depth_ = 1, followed_ = 1;
  double
      full_ = 0,
      last_ = 0,
      filled_ =
          0;  ///< bytes of a block in a segment, and in the last one; the share of blocks that are not empty
};

}  // namespace wring::inline v0::detail
