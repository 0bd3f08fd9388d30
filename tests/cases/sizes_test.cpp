// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nothing, very little, and just beside the sizes of blocks: every compressor, algorithm and collective.
#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/entropy_grid.hpp>
#include <wring/compressor/gradient.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/lossless.hpp>
#include <wring/compressor/packed_words.hpp>
#include <wring/compressor/threshold.hpp>
#include <wring/compressor/top_k.hpp>

#include "cases/compressors.hpp"

using namespace wring_test;
using wring::absolute;
using wring::Collective;
using wring::None;
using wring::relative_to_range;
using wring::relative_to_rms;

namespace {

const std::vector<Collective> all_collectives(std::begin(collectives), std::end(collectives));
const std::vector<wring::Operation> all_operations(std::begin(operations), std::end(operations));

template <class T> PerRank<T> reals(int ranks, std::size_t n) {
  PerRank<T> inputs;
  for (int r = 0; r < ranks; ++r) inputs.push_back(real_numbers<T>(n, static_cast<std::uint64_t>(r) + n));
  return inputs;
}

template <class Codec> void greatest_size_is_64_bit(const Codec& codec, std::size_t least_bytes) {
  std::size_t before = 0;
  for (const int power : {0, 10, 31, 32, 33, 40, 50, 58, 60, 61, 62, 63})
    for (const std::size_t more : {0, 1}) {
      const std::size_t n = (std::size_t{1} << power) + more;
      std::size_t size = 0;
      try {
        size = codec.max_compressed_bytes(n);
      } catch (const wring::InvalidArgument& error) {
        REQUIRE(n > std::numeric_limits<std::size_t>::max() /
                        least_bytes);  // refused, where 64 bits do not suffice
        REQUIRE(std::string(error.what()).find("64 bits") != std::string::npos);
        continue;
      }
      INFO(codec.identity().name << ": " << n << " values, " << size << " bytes");
      REQUIRE(size >= before);
      REQUIRE((n > std::numeric_limits<std::size_t>::max() / least_bytes || size >= n * least_bytes));
      before = size;
    }
}

}  // namespace

TEST_CASE("fewer elements than ranks, odd counts, any number of ranks: the values of a serial reference",
          "[cases][size]") {
  for (int ranks = 2; ranks <= 9; ++ranks)
    for (std::size_t n = 1; n <= 20; ++n)
      if (random_bits(1, static_cast<std::size_t>(ranks) * 100 + n) % 10 == 0 ||
          n + 1 == static_cast<std::size_t>(ranks))
        hold(Case<float>{.inputs = reals<float>(ranks, n),
                         .bound = absolute(1e-4),
                         .collectives = all_collectives,
                         .operations = {n % 3 == 0   ? wring::max
                                        : n % 3 == 1 ? wring::sum
                                                     : wring::mean}});
}

TEST_CASE("every compressor by every algorithm on one to eight ranks", "[cases][size]") {
  for (int ranks = 1; ranks <= 8; ++ranks)
    hold(Case<float>{.inputs = reals<float>(ranks, 1290),
                     .bound = absolute(1e-4),
                     .collectives = {Collective::allreduce, collectives[1 + ranks % 3]},
                     .operations = {ranks % 2 == 0 ? wring::sum : wring::mean}});
}

TEST_CASE("every length up to forty, on three and five ranks, in uneven parts", "[cases][size]") {
  for (const int ranks : {3, 5})
    for (std::size_t n = 1; n <= 40; ++n)
      hold(Case<float>{.inputs = reals<float>(ranks, n),
                       .bound = absolute(1e-4),
                       .collectives = {Collective::allreduce, Collective::reduce_scatter},
                       .algorithms = n % 4 == 0 ? all_algorithms(ranks)
                                                : std::vector<AnyAlgorithm>{all_algorithms(ranks)[n % 7]}});
}

TEST_CASE("less than a block, a block, and a little more, with tails", "[cases][size]") {
  for (const std::size_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 16 * 17, 17 * 17, 511, 512, 513, 1023, 1025})
    hold(
        Case<double>{.inputs = reals<double>(2, n), .bound = absolute(1e-5), .collectives = all_collectives});
  for (const std::size_t n : {31, 511, 513, 1025}) {
    hold(Case<wring::half_t>{
        .inputs = reals<wring::half_t>(2, n), .bound = absolute(0.1), .collectives = all_collectives});
    hold(Case<wring::bhalf_t>{
        .inputs = reals<wring::bhalf_t>(2, n), .bound = absolute(0.5), .collectives = all_collectives});
  }
  for (const std::size_t n : {16383, 16385})
    hold(Case<float>{.inputs = reals<float>(2, n),
                     .bound = absolute(1e-5),
                     .algorithms = {wring::Ring{}, wring::RecursiveDoubling{}}});
}

TEST_CASE("one value repeated, and a single value, are kept", "[cases][size]") {
  for (const double x : {0.0, 7.0, -1.0})
    for (const std::size_t n : {1, 2048}) {
      hold(Case<float>{.inputs = PerRank<float>(2, std::vector<float>(n, static_cast<float>(x))),
                       .bound = absolute(1e-5),
                       .collectives = all_collectives,
                       .algorithms = {wring::Ring{}, wring::HalvingDoubling{}}});
      for (const AnyAlgorithm& algorithm : all_algorithms(2)) {
        Call<None<std::int32_t>> call{.collective = Collective::allgather, .counts = {n, n}};
        const PerRank<std::int32_t> inputs(2, std::vector<std::int32_t>(n, static_cast<std::int32_t>(x)));
        REQUIRE(judge(call, inputs, collect(algorithm, call, inputs), 0) == "");
      }
    }
}

TEST_CASE("no elements at all, in views without memory: success, nothing is written", "[cases][size]") {
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const wring::Bound bound :
         {absolute(0), absolute(1e-3), relative_to_range(1e-3), relative_to_rms(1e-3)}) {
      hold(Case<float>{.inputs = PerRank<float>(static_cast<std::size_t>(ranks)),
                       .bound = bound,
                       .error = 0,
                       .collectives = all_collectives,
                       .operations = all_operations});
      if (ranks < 3)
        hold(Case<double>{.inputs = PerRank<double>(static_cast<std::size_t>(ranks)),
                          .bound = bound,
                          .error = 0,
                          .collectives = all_collectives,
                          .operations = all_operations});
    }
}

TEST_CASE("parts without elements spoil neither range nor mean square of the others", "[cases][size]") {
  const std::vector<float> x = elements<float>({-1, 3, 0.5, 2.75, -0.1});
  double squares = 0;
  for (const float v : x) squares += double(v) * v;
  for (const PerRank<float>& inputs : {PerRank<float>{x, {}}, PerRank<float>{{}, x},
                                       PerRank<float>{{}, x, {}, {}}, PerRank<float>{{}, {}, {}, {}, x}}) {
    hold(Case<float>{.inputs = inputs,
                     .bound = relative_to_range(1e-3),
                     .error = 4e-3 * (1 + 1e-9),
                     .collectives = {Collective::allgather}});
    const Case<float> rms{.inputs = inputs,
                          .bound = relative_to_rms(1e-3),
                          .error = 1e-3 * std::sqrt(squares / 5) * (1 + 1e-9),
                          .collectives = {Collective::allgather}};
    hold(rms);
    everywhere(
        rms, [&](const AnyCompressor<float>& compressor, const AnyCall<float>&, const Collected<float>& got) {
          for (const Outcome& o : got.outcomes)
            if (compressor.bounded) REQUIRE((*o.report.bound > 0.999 * rms.error || compressor.adds_values));
        });
  }
}

TEST_CASE("the greatest compressed size is counted in 64 bits, never decreases, never wraps",
          "[cases][size]") {
  greatest_size_is_64_bit(None<double>{}, 8);
  greatest_size_is_64_bit(None<std::uint8_t>{}, 1);
  greatest_size_is_64_bit(wring::Grid<double>{}, 8);
  greatest_size_is_64_bit(wring::Grid<float>{}, 4);
  greatest_size_is_64_bit(wring::Cast<wring::half_t, double>{}, 2);
  greatest_size_is_64_bit(wring::Cast<wring::bhalf_t>{}, 2);
  greatest_size_is_64_bit(wring::Lossless<double>{}, 8);
  greatest_size_is_64_bit(wring::TopK<float>({.ratio = 1}), 4);
  greatest_size_is_64_bit(wring::Threshold<float>{}, 4);
  greatest_size_is_64_bit(wring::BlockScaled<float, 8>{}, 1);
  greatest_size_is_64_bit(wring::PackedWords<double>{}, 8);
  greatest_size_is_64_bit(wring::EntropyGrid<float>{}, 4);
  greatest_size_is_64_bit(wring::Gradient<float>{}, 4);
}
