// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <vector>

#include "support/collect.hpp"
#include "support/values.hpp"

/// The product of ranks, algorithms, collectives, operations, lengths and ways to run them.
namespace wring_test {

inline constexpr wring::Collective collectives[] = {
    wring::Collective::allreduce, wring::Collective::reduce_scatter, wring::Collective::allgather,
    wring::Collective::broadcast};
inline constexpr wring::Operation operations[] = {wring::sum, wring::mean, wring::min, wring::max};

/// Lengths around what matters: none, fewer than ranks, as many, one unit of 512, several segments.
inline Lengths small_lengths(int ranks) {
  const auto p = static_cast<std::size_t>(ranks);
  return {0, 1, p - 1, p, p + 1, 511, 512, 513};
}

/// Inputs of all ranks for a collective over `n` elements in all; fills in the counts of the call.
template <class T, class Make, class Codec>
PerRank<T> make_inputs(Call<Codec>& call, int ranks, std::size_t n, bool uneven, Make make) {
  PerRank<T> inputs;
  const bool by_rank =
      call.collective == wring::Collective::allgather || call.collective == wring::Collective::reduce_scatter;
  call.counts = by_rank ? uneven ? uneven_counts(n, ranks) : even_counts(n, ranks) : Lengths();
  for (int r = 0; r < ranks; ++r) {
    const std::size_t length =
        call.collective == wring::Collective::allgather ? call.counts[static_cast<std::size_t>(r)] : n;
    inputs.push_back(make(length, static_cast<std::uint64_t>(r + 1)));
  }
  return inputs;
}

/// Ways to run an operation that must not matter; the further ones are cheap combinations of all of them.
template <class Codec> void vary(Call<Codec>& call, unsigned variant, int ranks) {
  using T = typename Codec::value_type;
  call.in_place = variant % 2 == 1;
  call.options.ride_along_bytes = variant / 2 % 2 == 1 ? 65536 : 0;
  call.options.segment_bytes = variant / 4 % 3 == 0 ? 128 * 1024 : variant / 4 % 3 * 512 * sizeof(T);
  call.options.depth = 1 + static_cast<int>(variant / 3 % 4);
  call.options.confirm = variant % 7 == 3;
  call.root = static_cast<int>(variant) % ranks;
  call.world = {
      .eager_limit = variant % 3 == 0 ? 4096u : 0u, .delay = variant % 4 == 2 ? 5 : 0, .seed = variant % 5};
}

template <class Codec> std::string describe(const Call<Codec>& call, int ranks, const AnyAlgorithm& algorithm,
                                            std::size_t n) {
  return std::string(wring::name_of(call.collective)) + " " + wring::name_of(call.options.operation) + ", " +
         std::to_string(ranks) + " ranks, " + algorithm.name() + ", " + std::to_string(n) +
         " elements, ride along " + std::to_string(call.options.ride_along_bytes) + ", segments " +
         std::to_string(call.options.segment_bytes) + ", depth " + std::to_string(call.options.depth) +
         (call.in_place ? ", in place" : "") + (call.options.confirm ? ", confirmed" : "") + ", root " +
         std::to_string(call.root) + ", seed " + std::to_string(call.world.seed);
}

/// Calls `check(call, ranks, algorithm, length, uneven)` for all combinations of ranks, algorithms, collectives and lengths; operations
/// and variants take turns. `every` > 1 leaves most of them out, evenly.
template <class Codec, class Check>
void for_each_case(const Codec& codec, int most_ranks, auto lengths_of, unsigned every, bool orders,
                   Check check) {
  unsigned number = 0;
  for (int ranks = 1; ranks <= most_ranks; ++ranks) {
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
      for (const wring::Collective collective : collectives) {
        for (const std::size_t n : lengths_of(ranks)) {
          const unsigned variant = number++;
          if (random_bits(3, variant) % every != 0) continue;
          Call<Codec> call{.codec = codec};
          call.collective = collective;
          call.options.operation = operations[(variant / 8 + variant) % (orders ? 4 : 1)];
          vary(call, static_cast<unsigned>(random_bits(9, variant) % 1024), ranks);
          check(call, ranks, algorithm, n, variant % 3 == 1);
        }
      }
    }
  }
}

}  // namespace wring_test
