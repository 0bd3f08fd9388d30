// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives with scaled groups on the wire: every encoding is off by no more than its scale allows, all ranks agree.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/block_scaled.hpp>

#include "collective/group_cases.hpp"

using namespace wring_test;
using wring::BlockScaled;

namespace {

/// What one encoding of values up to `greatest` may be off by, in scales of their group.
template <class Codec> double scales_off(const Codec& codec) {
  if (codec.options().rotation) return 5.7 * std::sqrt(128.0);  // the whole error of a group in one value
  return std::holds_alternative<wring::NearestRounding>(codec.options().rounding) ? 0.5 : 1;
}

/// Values up to 4 per rank: no partial sum exceeds 4 p by more than its error, and at most 2 p encodings change a value, of a minimum
/// as well: its group is another one on each hop.
template <int Bits> void groups_on_the_wire(const typename BlockScaled<float, Bits>::Options& options,
                                            unsigned every) {
  using Codec = BlockScaled<float, Bits>;
  const auto check = [](Call<Codec>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                        bool uneven) {
    const auto inputs = make_inputs<float>(call, ranks, n, uneven, [](std::size_t k, std::uint64_t seed) {
      return real_numbers<float>(k, seed);
    });
    const bool adds = wring::reduces(call.collective) && wring::adds(call.options.operation);
    const double encodings = wring::reduces(call.collective) ? 2 * ranks : 1;
    const double scale = 1.01 / ((1 << (Bits - 1)) - 1), off = scales_off(call.codec) * scale;
    const double bound =
        encodings * off * 1.2 * 4 * (adds && call.options.operation == wring::sum ? ranks : 1);
    const auto got = collect(algorithm, call, inputs);
    INFO(describe(call, ranks, algorithm, n));
    REQUIRE(judge(call, inputs, got, bound) == "");
    REQUIRE(!got.outcomes[0].report.bound.has_value());
  };
  for_each_case(Codec(options), 8, small_lengths, every, true, check);
}

}  // namespace

TEST_CASE("block scaled: 8 bits, nearest", "[collective]") { groups_on_the_wire<8>({}, 3); }
TEST_CASE("block scaled: 4 bits, stochastic", "[collective]") {
  groups_on_the_wire<4>({.rounding = wring::StochasticRounding{1}}, 3);
}
TEST_CASE("block scaled: 8 bits, rotated", "[collective]") {
  groups_on_the_wire<8>({.rounding = {}, .rotation = wring::RandomRotation{1}}, 3);
}

// Copies are encoded once, by who has the values: the bits do not depend on how they travel, nor on segments.
TEST_CASE("block scaled: a broadcast gives the same bits by every algorithm and in segments of any size",
          "[collective]") {
  using Codec = BlockScaled<float, 4>;
  const PerRank<float> inputs(5, real_numbers<float>(9000, 1));
  std::vector<float> first;
  for (const AnyAlgorithm& algorithm : all_algorithms(5))
    for (const std::size_t segment : {2048, 4096, 128 * 1024}) {
      Call<Codec> call{
          .codec = Codec({.rounding = wring::StochasticRounding{1}, .rotation = wring::RandomRotation{2}})};
      call.collective = wring::Collective::broadcast;
      call.options.ride_along_bytes = 0, call.options.segment_bytes = segment, call.options.step = 7;
      const auto got = collect(algorithm, call, inputs);
      INFO(describe(call, 5, algorithm, 9000));
      REQUIRE(all_ok(got.outcomes));
      if (first.empty()) first = got.results[0];
      for (const auto& result : got.results) REQUIRE(same_bits(result, first));
    }
}

TEST_CASE("block scaled: a sum over steps is right on average", "[collective]") {
  using Codec = BlockScaled<float, 2>;
  PerRank<float> inputs;
  for (std::uint64_t rank = 0; rank < 4; ++rank) inputs.push_back(real_numbers<float>(512, rank));
  constexpr int steps = 400;
  std::vector<double> mean(512), exact(512);
  for (const auto& input : inputs)
    for (std::size_t i = 0; i < 512; ++i) exact[i] += input[i];
  for (int step = 0; step < steps; ++step) {
    Call<Codec> call{.codec = Codec({.rounding = wring::StochasticRounding{1}})};
    call.options.step = static_cast<std::uint64_t>(step);
    const auto got = collect(wring::Ring{}, call, inputs);
    REQUIRE(all_ok(got.outcomes));
    for (std::size_t i = 0; i < 512; ++i) mean[i] += got.results[0][i] / static_cast<double>(steps);
  }
  // Four encodings of sums up to 16, each with a standard deviation of at most half a scale.
  const double deviation = 0.5 * 16 * 1.5 * std::sqrt(4.0 / steps);
  for (std::size_t i = 0; i < 512; ++i) REQUIRE(std::fabs(mean[i] - exact[i]) <= 5 * deviation);
}

// Ranks that drew alike would round equal values alike: their mean would be as far off as one of them.
TEST_CASE("block scaled: equal values on all ranks are rounded apart", "[collective]") {
  using Codec = BlockScaled<float, 3>;
  constexpr int ranks = 8;
  constexpr std::size_t n = 16384;
  const std::vector<float> x = real_numbers<float>(n, 3);
  const auto squares = [&](const std::vector<float>& y) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += (y[i] - x[i]) * static_cast<double>(y[i] - x[i]);
    return sum;
  };
  Call<Codec> call{.codec = Codec({.rounding = wring::StochasticRounding{1}})};
  call.options.ride_along_bytes = 0;
  call.collective = wring::Collective::broadcast;
  const auto alone = collect(wring::Direct{}, call, PerRank<float>(ranks, x));  // one encoding
  REQUIRE(all_ok(alone.outcomes));
  call.collective = wring::Collective::reduce_scatter,
  call.counts = std::vector<std::size_t>(ranks, n / ranks);
  call.options.operation = wring::mean;
  const auto got = collect(wring::Direct{}, call, PerRank<float>(ranks, x));
  REQUIRE(all_ok(got.outcomes));
  std::vector<float> mean;
  for (const auto& part : got.results) mean.insert(mean.end(), part.begin(), part.end());
  REQUIRE(mean.size() == n);
  // Seven errors of an eighth each: 7/64 of the squares where they are apart, 49/64 where they are alike.
  CHECK(squares(mean) < squares(alone.results[0]) / 4);
  CHECK(squares(mean) > 0);
}

TEST_CASE("block scaled: 4 bits are an eighth of the bytes and a little more", "[collective]") {
  Call<BlockScaled<float, 4>> call;
  call.options.ride_along_bytes = 0;
  const PerRank<float> inputs(2, real_numbers<float>(65536, 1));
  const auto got = collect(wring::Ring{}, call, inputs);
  REQUIRE(all_ok(got.outcomes));
  const wring::Report& report = got.outcomes[0].report;
  REQUIRE(report.bytes_raw == 65536 * 4);
  REQUIRE(report.bytes_sent <= 65536 / 2 + 65536 / 64 + report.messages * 192 + 1024);
}

namespace {

/// Scales of 1 for each term of a sum: multiples of them are kept, what lies between is rounded.
std::vector<float> far_below_a_scale(std::size_t n, std::uint64_t /*seed*/) {
  std::vector<float> x(n, 0.05f);
  for (std::size_t i = 0; i < n; i += 128) x[i] = 7;
  return x;
}

struct Rounded {
  double mean = 0;
  bool all_zero = true;
};
Rounded without_peaks(const std::vector<float>& x) {
  Rounded rounded;
  std::size_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] >= 7) continue;
    rounded.mean += x[i], ++count;
    rounded.all_zero = rounded.all_zero && x[i] == 0;
  }
  rounded.mean /= static_cast<double>(count);
  return rounded;
}

}  // namespace

TEST_CASE("block scaled: tensors of a group round in their own way, with their own seeds", "[collective]") {
  using Codec = BlockScaled<float, 4>;
  const Codec first({.rounding = wring::StochasticRounding{1}}),
      second({.rounding = wring::StochasticRounding{2}});
  unsigned number = 0;
  for (const int ranks : {2, 3, 4})
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
      for (const wring::Collective collective :
           {wring::Collective::allreduce,
            number++ % 2 ? wring::Collective::allgather : wring::Collective::broadcast}) {
        const std::size_t n = 4096;
        const auto result = collect_group<Codec>(algorithm,
                                                 {.collective = collective,
                                                  .options = {.segment_bytes = 2048, .step = 3},
                                                  .lengths = Lengths(4, n * static_cast<std::size_t>(ranks)),
                                                  .own = {first, std::nullopt, second, first}},
                                                 ranks, far_below_a_scale);
        INFO(name_of(collective) << ", " << ranks << " ranks, " << algorithm.name()
                                 << describe(result.outcomes));
        REQUIRE(all_ok(result.outcomes));
        const auto of = [&](std::size_t item) { return result.tensors[item].got.results[0]; };
        if (result.outcomes[0].report.encodings == 0) continue;  // all ranks are on one node
        REQUIRE(without_peaks(of(1)).all_zero);  // the operation's compressor takes the nearest
        for (const std::size_t item : {0, 2, 3}) REQUIRE(!without_peaks(of(item)).all_zero);
        REQUIRE(!same_bits(of(0), of(2)));
        REQUIRE(!same_bits(of(0), of(3)));  // its place in the group is another one
        if (wring::reduces(collective)) continue;
        for (const std::size_t item : {0, 2, 3})  // one encoding: right on average
          REQUIRE(std::fabs(without_peaks(of(item)).mean - 0.05) <= 5 * std::sqrt(0.05 * 0.95 / n));
        if (collective == wring::Collective::broadcast)
          REQUIRE(same_bits(of(0),
                            collect(algorithm, result.tensors[0].call, result.tensors[0].inputs).results[0]));
      }
}
