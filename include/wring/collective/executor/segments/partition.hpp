// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <wring/algorithm/plan.hpp>
#include <wring/detail/pipeline.hpp>
#include <wring/error.hpp>

namespace wring::inline v0::detail {

/// A run of values of one tensor, encoded as a whole and never split or merged: a piece.
struct PieceRange {
  std::size_t item = 0, first = 0, count = 0;
};

/// How the tensors of an operation are cut: plan blocks, blocks into segments, segments into pieces. The tensors of a group are laid
/// one behind the other, each padded to whole units, so that many small ones share blocks and messages.
class Partition {
 public:
  /// One length per tensor: allreduce and broadcast. The units are dealt to the blocks in stripes, so that every block has a part of
  /// everything: data that compress unevenly from place to place still give all ranks nearly the same number of bytes to send. The
  /// stripes depend on lengths and blocks alone, so that no result depends on the segments.
  void cut_evenly(const Plan& plan, std::span<const std::size_t> lengths, std::size_t segment_values) {
    reset(plan.blocks);
    std::size_t units = 0;
    for (const std::size_t n : lengths) units += units_of(n);
    std::size_t item = 0, item_begin = 0;  // the tensor that `begin` lies in, and where that begins, in units
    const std::size_t stripe = stripe_units(units);
    for (std::size_t begin = 0; begin < units; begin += stripe) {
      const std::size_t length = std::min(stripe, units - begin);
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        std::size_t at = begin + share(length, b);
        for (const std::size_t end = begin + share(length, b + 1); at < end;) {
          const std::size_t item_end = item_begin + units_of(lengths[item]), to = std::min(end, item_end);
          append(b, item, (at - item_begin) * unit_values,
                 std::min((to - item_begin) * unit_values, lengths[item]));
          at = to;
          if (at == item_end) item_begin = item_end, ++item;
        }
      }
    }
    segment(segment_values);
  }

  /// One count per rank: reduce-scatter and allgather. `counts[i * ranks + r]` values of tensor i belong to rank r; the tensor
  /// holds them in the order of ranks, whatever the order of the plan's blocks.
  void cut_by_owner(const Plan& plan, std::span<const std::size_t> counts, std::size_t segment_values) {
    reset(plan.blocks);
    const auto ranks = static_cast<std::size_t>(plan.ranks);
    offsets_.resize(ranks + 1);
    for (std::size_t i = 0; i * ranks < counts.size(); ++i) {
      offsets_[0] = 0;
      for (std::size_t r = 0; r < ranks; ++r) offsets_[r + 1] = offsets_[r] + counts[i * ranks + r];
      for (std::size_t b = 0; b < blocks_.size(); ++b) {
        const auto owner = static_cast<std::size_t>(plan.owner[b]);
        append(b, i, offsets_[owner], offsets_[owner + 1]);
      }
    }
    segment(segment_values);
  }

  std::size_t segments() const { return segmentation_.segments; }
  /// Those in flight at once.
  std::size_t depth(int most) const { return segmentation_.in_flight(most); }

  /// Calls `visit(PieceRange)` for every piece of a block's segment, in order.
  template <class Visit> void pieces(int block, std::size_t segment, Visit visit) const {
    const Block& b = blocks_[static_cast<std::size_t>(block)];
    const std::size_t length = segmentation_.units * unit_values, begin = segment * length,
                      end = begin + length;
    for (std::size_t r = first_run(b, begin); r < b.runs.size() && b.runs[r].at < end; ++r) {
      const Run& run = b.runs[r];
      const std::size_t from = std::max(begin, run.at) - run.at, to = std::min(end - run.at, run.count);
      if (from < to) visit(PieceRange{run.item, run.first + from, to - from});
    }
  }

 private:
  struct Run {
    std::size_t item, first, count, at;  // `at`: where it begins within its block, padded
  };
  struct Block {
    std::vector<Run> runs;
    std::size_t padded = 0;
  };

  static std::size_t units_of(std::size_t n) { return (n + unit_values - 1) / unit_values; }

  /// 16 to 32 stripes, fewer where they would give a block less than 16 units each: few runs, and few pieces to encode.
  std::size_t stripe_units(std::size_t units) const {
    const std::size_t blocks = std::max<std::size_t>(1, blocks_.size());
    return blocks * std::max<std::size_t>(16, std::bit_floor(units / (16 * blocks)));
  }

  /// floor(units * b / blocks) without overflow.
  std::size_t share(std::size_t units, std::size_t b) const {
    const std::size_t n = blocks_.size();
    return units / n * b + units % n * b / n;
  }

  void reset(int blocks) {
    blocks_.resize(static_cast<std::size_t>(blocks));
    for (Block& block : blocks_) block.runs.clear(), block.padded = 0;
  }

  /// The longest block says how all of them are cut; a segment has `values` at most, or one unit.
  void segment(std::size_t values) {
    std::size_t longest = 0;
    for (const Block& block : blocks_) longest = std::max(longest, block.padded);
    segmentation_ = Segmentation(longest / unit_values, std::max<std::size_t>(1, values / unit_values));
  }

  void append(std::size_t block, std::size_t item, std::size_t first, std::size_t last) {
    if (first >= last) return;
    Block& b = blocks_[block];
    b.runs.push_back({item, first, last - first, b.padded});
    b.padded += units_of(last - first) * unit_values;
  }

  static std::size_t first_run(const Block& block, std::size_t begin) {
    const auto it = std::upper_bound(block.runs.begin(), block.runs.end(), begin,
                                     [](std::size_t at, const Run& run) { return at < run.at; });
    return it == block.runs.begin() ? 0 : static_cast<std::size_t>(it - block.runs.begin()) - 1;
  }

  std::vector<Block> blocks_;
  std::vector<std::size_t> offsets_;
  Segmentation segmentation_;
};

}  // namespace wring::inline v0::detail
