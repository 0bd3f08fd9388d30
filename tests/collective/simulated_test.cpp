// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The executor in virtual time: right results, the times that the cost model predicts, the same times again.

#include <wring/transport/simulated.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor.hpp>

#include "support/algorithms.hpp"

using namespace wring;
using Catch::Matchers::WithinRel;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Vector = Kokkos::View<float*, Kokkos::HostSpace>;

/// Small whole numbers: sums of them are exact. Rank r's element i.
float value(int r, std::size_t i) {
  return static_cast<float>((i * 2654435761u >> 7) % 251 + static_cast<std::size_t>(r) % 5) - 127;
}

struct Run {
  double seconds = 0;
  std::vector<Report> reports;
  double worst = 0;  ///< deviation of any element of any rank from the exact sum
};

/// An allreduce of `n` values on all ranks of a network.
template <class Codec> Run allreduce(SimulatedNetwork& network, const Codec& codec,
                                     const wring_test::AnyAlgorithm& algorithm, std::size_t n,
                                     const Options& options, std::optional<Bound> bound) {
  std::deque<Allreduce<Codec, SimulatedTransport, wring_test::AnyAlgorithm>> sums;
  std::vector<Vector> vectors;
  std::vector<double> exact(n, 0);
  for (int r = 0; r < network.size(); ++r) {
    vectors.emplace_back("values", n);
    for (std::size_t i = 0; i < n; ++i)
      vectors.back()(i) = value(r, i), exact[i] += static_cast<double>(value(r, i));
    sums.emplace_back(codec, network.link(r), algorithm, options);
  }
  Run run;
  struct Running {
    wring::Request request;
    std::vector<Report>& reports;
    bool test() {
      if (!request.test()) return false;
      reports.push_back(request.wait());
      return true;
    }
  };
  run.seconds = simulate(network, [&](SimulatedTransport& link) {
    const auto r = static_cast<std::size_t>(link.rank());
    return Running{sums[r].start(Exec{}, group(item(vectors[r], vectors[r], bound))), run.reports};
  });
  for (const Vector& v : vectors)
    for (std::size_t i = 0; i < n; ++i)
      run.worst = std::max(run.worst, std::abs(static_cast<double>(v(i)) - exact[i]));
  return run;
}

Options moderate() {
  Options options;
  options.segment_bytes = 65536, options.ride_along_bytes = 0;
  return options;
}

/// What `predict` needs to know of a run.
Load load_of(const Options& options, std::size_t n) {
  Load load;
  load.lossless = true;
  load.bytes = n * sizeof(float), load.segment_bytes = options.segment_bytes, load.depth = options.depth;
  return load;
}

}  // namespace

TEST_CASE("simulated collectives take the time that is predicted: values as they are") {
  const int p = GENERATE(1, 2, 3, 4, 8);
  Machine machine;
  machine.bandwidth = GENERATE(1e7, 1e9);
  machine.encode = machine.decode = 6e9;
  const std::size_t n = 786432;  // blocks are equal, and segments, too
  for (const auto& algorithm : wring_test::all_algorithms(p)) {
    if (algorithm.name().starts_with("hierarchical")) continue;  // raw steps are added at another speed
    SimulatedNetwork network(p, machine);
    const Run run = allreduce(network, None<float>{}, algorithm, n, moderate(), std::nullopt);
    CAPTURE(p, algorithm.name(), machine.bandwidth);
    CHECK(run.worst == 0);
    // Other numbers of ranks do not agree at the same time, and blocks of all ranks are not equal.
    CHECK_THAT(predict(algorithm, {}, p, load_of(moderate(), n), machine).seconds,
               WithinRel(run.seconds, detail::Fold(p).even() ? 0.03 : 0.16));
  }
}

TEST_CASE("simulated collectives take the time that is predicted: pieces that combine") {
  const int p = GENERATE(1, 2, 3, 4, 8);
  Machine machine;
  machine.bandwidth = GENERATE(1e7, 1e9);
  machine.ranks_per_node = GENERATE(1, 2);
  const std::size_t n = 786432;  // blocks are equal, and segments, too
  Load load = load_of(moderate(), n);
  load.lossless = false, load.combines = true, load.finishes = p > 4;
  for (const auto& algorithm : wring_test::all_algorithms(p)) {
    SimulatedNetwork network(p, machine);
    const Run run = allreduce(network, Grid<float>{}, algorithm, n, moderate(), absolute(2.0));
    CAPTURE(p, algorithm.name(), machine.bandwidth, machine.ranks_per_node);
    CHECK(run.worst <= 2.0);
    load.measured = p == 1, load.ahead = p > 1;
    if (algorithm.name() == "ring" && p > 1) load.ratio = run.reports[0].ratio();  // of the others, too
    const bool uneven =
        p == 3 && algorithm.name().starts_with("hierarchical");  // one rank has most of the work
    CHECK_THAT(predict(algorithm, {}, p, load, machine).seconds, WithinRel(run.seconds, uneven ? 0.2 : 0.15));
  }
}

TEST_CASE("simulated collectives: hundreds of ranks") {
  const int p = 256;
  const Machine machine;
  const std::size_t n = 65536;
  for (const wring_test::AnyAlgorithm& algorithm :
       {wring_test::AnyAlgorithm(Ring{}), wring_test::AnyAlgorithm(HalvingDoubling{}),
        wring_test::AnyAlgorithm(Hierarchical<>(16))}) {
    SimulatedNetwork network(p, machine);
    const Run run = allreduce(network, None<float>{}, algorithm, n, moderate(), std::nullopt);
    CAPTURE(algorithm.name());
    CHECK(run.worst == 0);
    CHECK_THAT(predict(algorithm, {}, p, load_of(moderate(), n), machine).seconds,
               WithinRel(run.seconds, 0.05));
  }
}

TEST_CASE("simulated collectives: the same run takes the same time, and reports add up to it") {
  const auto run = [] {
    SimulatedNetwork network(5);
    return allreduce(network, Cast<half_t>{}, HalvingDoubling{}, 50000, moderate(), std::nullopt);
  };
  const Run first = run(), second = run();
  CHECK(first.seconds == second.seconds);
  double longest = 0;
  for (const Report& report : first.reports) {
    CHECK(report.encode_seconds > 0);
    CHECK_THAT(report.encode_seconds + report.combine_seconds + report.decode_seconds +
                   report.measure_seconds + report.wire_seconds,
               WithinRel(report.seconds, 1e-12));
    longest = std::max(longest, report.seconds);
  }
  CHECK_THAT(first.seconds, WithinRel(longest, 1e-12));
}

TEST_CASE("simulated collectives: a computation hides an operation in flight") {
  SimulatedNetwork network(2);
  std::vector<Vector> vectors{Vector("a", 100000), Vector("b", 100000)};
  std::deque<Allreduce<None<float>, SimulatedTransport, Ring>> sums;
  for (int r = 0; r < 2; ++r) sums.emplace_back(None<float>{}, network.link(r), Ring{});
  struct Busy {  // computes in pieces, and looks after its operation in between
    wring::Request request;
    SimulatedTransport& link;
    double piece;
    int left;
    bool test() {
      if (left > 0) --left, link.pass(piece);
      return request.test() && left == 0;
    }
  };
  const auto seconds = [&](double computing, int pieces) {
    return simulate(network, [&](SimulatedTransport& link) {
      const auto r = static_cast<std::size_t>(link.rank());
      return Busy{sums[r].start(Exec{}, vectors[r]), link, computing / pieces, pieces};
    });
  };
  const double alone = seconds(0, 1);
  CHECK(seconds(alone / 2, 10) < 1.2 * alone);
  CHECK(seconds(10 * alone, 1) >= 10 * alone);
}

TEST_CASE("simulated collectives: prediction and simulation of the same thing") {
  wring::Machine machine;  // times in seconds, speeds in bytes per second
  machine.bandwidth = 125e6;
  machine.encode = 4e9, machine.combine = 2e9, machine.decode = 5e9;

  wring::Load load;
  load.bytes = std::size_t(1) << 22;
  load.ratio = 4.7, load.sum_ratio = 4.1, load.combines = true;
  const wring::Prediction predicted = wring::predict(wring::Ring{}, {}, 100000, load, machine);
  CHECK(predicted.seconds > 2 * 99999 * machine.latency);
  CHECK(predicted.wire_share() < 0.5);

  std::vector<Vector> vectors;
  std::deque<Allreduce<Grid<float>, SimulatedTransport, Ring>> operations;
  wring::SimulatedNetwork network(16, machine);
  for (int r = 0; r < network.size(); ++r) {
    vectors.emplace_back("values", 10000);
    operations.emplace_back(Grid<float>{}, network.link(r), Ring{});
  }
  const auto start = [&](SimulatedTransport& link) {
    const auto r = static_cast<std::size_t>(link.rank());
    return operations[r].start(Exec{}, vectors[r], absolute(1e-3));
  };
  const double seconds = wring::simulate(network, start);
  CHECK(seconds > 2 * 15 * machine.latency);
}

TEST_CASE("simulated collectives: ranks that wait for ever are named") {
  SimulatedNetwork network(3);
  std::vector<Vector> vectors;
  std::deque<Allreduce<None<float>, SimulatedTransport, Ring>> sums;
  for (int r = 0; r < 3; ++r)
    vectors.emplace_back("values", 10), sums.emplace_back(None<float>{}, network.link(r), Ring{});
  struct Idle {
    wring::Request request;
    bool test() { return !request.valid() || request.test(); }
  };
  CHECK_THROWS_AS(simulate(network,
                           [&](SimulatedTransport& link) {
                             const auto r = static_cast<std::size_t>(link.rank());
                             return r == 2 ? Idle{} : Idle{sums[r].start(Exec{}, vectors[r])};
                           }),
                  Error);
}
