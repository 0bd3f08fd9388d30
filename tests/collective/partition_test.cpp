// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How tensors are cut into blocks, segments and pieces: everything once, evenly, and the blocks whatever the segments are.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <wring/algorithm/ring.hpp>
#include <wring/collective/executor/segments/partition.hpp>

using wring::Collective;
using wring::detail::Partition;
using wring::detail::PieceRange;
using wring::detail::unit_values;

namespace {

wring::Plan plan_of(int ranks) { return wring::Ring{}.plan({Collective::allreduce, 0}, 0, ranks); }

/// For each value of each tensor the block it lies in, -1 where no piece has it. No value lies in two pieces, and a block has no
/// more values in a segment than that holds.
std::vector<std::vector<int>> blocks_of(const Partition& partition, int blocks,
                                        const std::vector<std::size_t>& lengths, std::size_t segment_values) {
  std::vector<std::vector<int>> owner;
  for (const std::size_t n : lengths) owner.emplace_back(n, -1);
  for (std::size_t segment = 0; segment < partition.segments(); ++segment)
    for (int block = 0; block < blocks; ++block) {
      std::size_t values = 0;
      partition.pieces(block, segment, [&](const PieceRange& piece) {
        REQUIRE((piece.count > 0 && piece.first + piece.count <= lengths[piece.item]));
        const auto begin = owner[piece.item].begin() + static_cast<std::ptrdiff_t>(piece.first);
        const auto end = begin + static_cast<std::ptrdiff_t>(piece.count);
        REQUIRE(std::all_of(begin, end, [](int before) { return before == -1; }));
        std::fill(begin, end, block);
        values += piece.count;
      });
      REQUIRE(values <= std::max(segment_values, unit_values));
    }
  return owner;
}

std::vector<std::size_t> sizes_of(const std::vector<std::vector<int>>& owner, int blocks) {
  std::vector<std::size_t> sizes(static_cast<std::size_t>(blocks));
  for (const auto& tensor : owner)
    for (const int block : tensor)
      ++sizes.at(static_cast<std::size_t>(block));  // throws for a value in no piece
  return sizes;
}

}  // namespace

TEST_CASE("Partition: every value is in one piece, blocks are equal to a unit", "[collective][partition]") {
  const std::vector<std::vector<std::size_t>> cases = {{},
                                                       {0},
                                                       {1},
                                                       {511},
                                                       {512},
                                                       {513},
                                                       {7, 0, 600},
                                                       {16384},
                                                       {100'000},
                                                       {512 * 1000 + 1},
                                                       {3, 50'000, 512, 70'001, 1}};
  for (const auto& lengths : cases)
    for (const int ranks : {1, 2, 3, 4, 7})
      for (const std::size_t segment_values : {1, 512, 1536, 8192, 1 << 20}) {
        Partition partition;
        partition.cut_evenly(plan_of(ranks), lengths, segment_values);
        const auto sizes = sizes_of(blocks_of(partition, ranks, lengths, segment_values), ranks);
        const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
        REQUIRE(*most - *least <=
                unit_values * (1 + lengths.size()));  // a tensor's last unit may be nearly empty
      }
}

TEST_CASE("Partition: the segments do not decide which block a value is in", "[collective][partition]") {
  const std::vector<std::size_t> lengths = {300'000, 5, 40'000};
  Partition partition;
  partition.cut_evenly(plan_of(3), lengths, 512);
  const auto small = blocks_of(partition, 3, lengths, 512);
  for (const std::size_t segment_values : {1024, 7 * 512, 32768, 1 << 20}) {
    partition.cut_evenly(plan_of(3), lengths, segment_values);
    REQUIRE(blocks_of(partition, 3, lengths, segment_values) == small);
  }
}

TEST_CASE("Partition: a part of the data that costs more is shared by all blocks",
          "[collective][partition]") {
  const int ranks = 4;
  for (const std::size_t n : {std::size_t{1} << 18, std::size_t{1} << 20, std::size_t{3'000'000}}) {
    Partition partition;
    partition.cut_evenly(plan_of(ranks), std::vector<std::size_t>{n}, 32768);
    const auto owner = blocks_of(partition, ranks, {n}, 32768).front();
    for (std::size_t quarter = 0; quarter < 4; ++quarter)
      for (int block = 0; block < ranks; ++block) {
        const auto begin = owner.begin() + static_cast<std::ptrdiff_t>(quarter * n / 4);
        const auto values = std::count(begin, begin + static_cast<std::ptrdiff_t>(n / 4), block);
        REQUIRE(static_cast<double>(values) >= 0.2 * static_cast<double>(n) / 4);
      }
  }
}

TEST_CASE("Partition: blocks of given lengths stay in one part", "[collective][partition]") {
  const std::vector<std::size_t> counts = {5000, 0, 700, 1};
  const wring::Plan plan = wring::Ring{}.plan({Collective::reduce_scatter, 0}, 0, 4);
  Partition partition;
  partition.cut_by_owner(plan, counts, 1024);
  const auto owner =
      blocks_of(partition, 4, {std::accumulate(counts.begin(), counts.end(), std::size_t{0})}, 1024);
  REQUIRE(std::is_sorted(owner.front().begin(), owner.front().end()));
}
