// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Calibration: it finds the machine that a simulation is made of, all ranks hold identical figures, and faults leave nobody waiting.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/testing/faulty_transport.hpp>
#include <wring/transport/in_process.hpp>
#include <wring/transport/simulated.hpp>

#include "support/executors.hpp"
#include "support/ranks.hpp"

using namespace wring;
using namespace wring_test;
using Catch::Matchers::WithinRel;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<float*, Kokkos::HostSpace>;
using Faulty = wring::testing::FaultyTransport<InProcessTransport>;
using wring::testing::FaultKind;
using wring::testing::FaultPlan;
using wring::testing::MessageKind;
using wring::testing::Side;

template <class Codec, class Link> using Sum = Allreduce<Codec, Link, Automatic>;

/// Starts a calibration on all ranks and completes it.
template <class Sums> std::vector<Outcome> calibrate_all(InProcess& world, Sums& sums) {
  return on_all_ranks(world,
                      [&](int r) { return sums[static_cast<std::size_t>(r)].start_calibration(Exec{}); });
}

template <class Sums> std::vector<Outcome> run(InProcess& world, Sums& sums, std::size_t n) {
  return on_all_ranks(world, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, View("values", n), absolute(0.1));
  });
}

/// Those that have taken part agree on what the algorithm goes by.
template <class Sums> bool same_machines(const Sums& sums) {
  for (const auto& sum : sums)
    if (!(sum.algorithm().machine() == sums[0].algorithm().machine())) return false;
  return true;
}

/// Fails on one rank.
struct Unwilling : Grid<float> {
  bool* refuses = nullptr;
  template <class... Args> std::size_t compress(const Args&... args) {
    if (*refuses) throw CodecError("no");
    return Grid<float>::compress(args...);
  }
};

}  // namespace

TEST_CASE("calibration: in virtual time it finds the machine of the simulation",
          "[collective][calibration]") {
  const int p = GENERATE(2, 4, 8);
  Machine m;
  m.bandwidth = GENERATE(12.5e6, 1e9), m.latency = 40e-6, m.overhead = 4e-6;
  m.encode = 3e9, m.combine = 2e9, m.decode = 4e9, m.measure = 7e9, m.copy = 5e9, m.launch = 2e-6;
  SimulatedNetwork network(p, m);
  std::deque<Sum<Grid<float>, SimulatedTransport>> sums;
  for (int r = 0; r < p; ++r) sums.emplace_back(Grid<float>{}, network.link(r));
  simulate(network, [&](SimulatedTransport& link) {
    return sums[static_cast<std::size_t>(link.rank())].start_calibration(Exec{});
  });
  const std::vector<View> data(static_cast<std::size_t>(p), View("data", 10));
  simulate(network, [&](SimulatedTransport& link) {
    const auto r = static_cast<std::size_t>(link.rank());
    return sums[r].start(Exec{}, View("data", 10), absolute(1));
  });
  REQUIRE(same_machines(sums));
  const Machine found = sums[0].algorithm().machine();
  CHECK_THAT(found.encode, WithinRel(m.encode, 0.01));
  CHECK_THAT(found.combine, WithinRel(m.combine, 0.01));
  CHECK_THAT(found.decode, WithinRel(m.decode, 0.01));
  CHECK_THAT(found.measure, WithinRel(m.measure, 0.01));
  CHECK_THAT(found.copy, WithinRel(m.copy, 0.01));
  CHECK_THAT(found.cached_encode, WithinRel(m.encode, 0.01));  // the simulation knows of no caches
  CHECK_THAT(found.cached_decode, WithinRel(m.decode, 0.01));
  CHECK_THAT(found.launch, WithinRel(m.launch, 0.1));
  CHECK_THAT(found.bandwidth, WithinRel(m.bandwidth, 0.1));
  CHECK_THAT(found.latency + 2 * found.overhead, WithinRel(m.latency + 2 * m.overhead, 0.1));
}

TEST_CASE("calibration: a link has settled when it gets no faster, or enough time has passed",
          "[collective][calibration]") {
  const auto rounds = [](auto seconds_of) {
    detail::Settling settling;
    int n = 0;
    while (!settling.settled()) settling.add(seconds_of(n++));
    return n;
  };
  CHECK(rounds([](int) { return 20e-3; }) == 2);  // a slow link has nothing to warm up
  CHECK(rounds([](int) { return 4e-3; }) == 3);
  const int steady = rounds([](int) { return 1e-6; });
  CHECK(steady > 5);
  CHECK(rounds([](int n) { return n < 10 ? 1e-4 / (n + 1) : 1e-5; }) == 9 + steady);  // warming up
  CHECK(rounds([](int n) { return n == 1 ? 1e-3 : 1e-6; }) == steady);                // disturbed once
  CHECK(rounds([](int n) { return 1e-6 * (1 - 0.01 * n); }) <= detail::Settling::most_rounds);
  CHECK(rounds([](int) { return 0; }) == steady);  // a clock that stands still
}

TEST_CASE("calibration: any compressor, any number of ranks, the same figures everywhere",
          "[collective][calibration]") {
  const int p = GENERATE(1, 3, 4);
  const auto check = [&](const auto& codec) {
    using Codec = std::remove_cvref_t<decltype(codec)>;
    InProcess world(p);
    std::deque<Sum<Codec, InProcessTransport>> sums;
    for (int r = 0; r < p; ++r) sums.emplace_back(codec, world.link(r));
    const auto outcomes = calibrate_all(world, sums);
    INFO(p << describe(outcomes));
    REQUIRE(all_ok(outcomes));
    using T = typename Codec::value_type;
    REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
              return sums[static_cast<std::size_t>(r)].start(Exec{},
                                                             Kokkos::View<T*, Kokkos::HostSpace>("v", 5));
            })) == !CombiningCompressor<Codec>);  // Grid wants a bound
    CHECK(same_machines(sums));
    CHECK_NOTHROW(expect_possible(sums[0].algorithm().machine()));
    CHECK_FALSE(sums[0].algorithm().machine() == typical_node());
    const Machine& m = sums[0].algorithm().machine();
    for (const auto& [from_memory, cached] : detail::cached_speeds) CHECK(m.*cached >= m.*from_memory);
  };
  check(Grid<float>{}), check(Grid<double>{}), check(Grid<half_t>{}), check(Grid<bhalf_t>{});
  check(None<float>{}), check(None<int>{}), check(None<Kokkos::complex<double>>{});
  check(Cast<half_t>{}), check(Cast<bhalf_t, half_t>{});
}

TEST_CASE(
    "calibration: the object is busy meanwhile, and a request given up is an error for the next operation",
    "[collective][calibration]") {
  InProcess world(2);
  std::deque<Sum<Grid<float>, InProcessTransport>> sums;
  for (int r = 0; r < 2; ++r) sums.emplace_back(Grid<float>{}, world.link(r));
  {
    Request first = sums[0].start_calibration(Exec{});
    CHECK_FALSE(sums[0].ready());
    CHECK_THROWS_AS(sums[0].start(Exec{}, View("values", 5), absolute(1)), InvalidArgument);
    CHECK_THROWS_AS(sums[0].start_calibration(Exec{}), InvalidArgument);
  }
  Request second = sums[1].start_calibration(Exec{});
  static_cast<void>(second.wait());
  CHECK(all_failed(run(world, sums, 5), Cause::abandoned));
  CHECK(all_ok(run(world, sums, 5)));
  CHECK(same_machines(sums));
  CHECK(sums[0].algorithm().machine() == typical_node());
}

TEST_CASE("calibration: it waits for nobody after a deadline", "[collective][calibration]") {
  InProcess world(2);
  Sum<Grid<float>, InProcessTransport> sum(Grid<float>{}, world.link(0));
  CHECK_THROWS_AS(sum.calibrate(Exec{}, Deadline::clock::now()), TimeoutError);
  CHECK(world.link(0).session().retired());
  Sum<Grid<float>, InProcessTransport> other(Grid<float>{}, world.link(1));
  CHECK_THROWS_AS(other.start_calibration(Exec{}).wait(), TimeoutError);
  CHECK_THROWS_AS(sum.start_calibration(Exec{}).wait(), AbandonedError);
}

TEST_CASE("calibration: ranks that do something else hear of it", "[collective][calibration]") {
  InProcess world(3);
  std::deque<Sum<Grid<float>, InProcessTransport>> sums;
  for (int r = 0; r < 3; ++r) sums.emplace_back(Grid<float>{}, world.link(r));
  const auto outcomes = on_all_ranks(world, [&](int r) {
    auto& sum = sums[static_cast<std::size_t>(r)];
    return r == 1 ? sum.start(Exec{}, View("values", 100), absolute(1)) : sum.start_calibration(Exec{});
  });
  CHECK(all_failed(outcomes, Cause::mismatch));
  CHECK(outcomes[0].text.find("collective") != std::string::npos);
  CHECK(all_ok(run(world, sums, 5)));
}

TEST_CASE("calibration: a compressor that fails on one rank is an error on all",
          "[collective][calibration]") {
  InProcess world(3);
  bool refuses = true, never = false;
  std::deque<Sum<Unwilling, InProcessTransport>> sums;
  for (int r = 0; r < 3; ++r) {
    Unwilling codec;
    codec.refuses = r == 2 ? &refuses : &never;
    sums.emplace_back(codec, world.link(r));
  }
  CHECK(all_failed(calibrate_all(world, sums), Cause::codec, 2));
  refuses = false;
  CHECK(all_ok(calibrate_all(world, sums)));
  CHECK(all_ok(run(world, sums, 5)));
}

TEST_CASE(
    "calibration: a fault at any message ends it on all ranks, and they go by the same figures after it",
    "[collective][calibration]") {
  const int p = GENERATE(2, 3, 4);
  const FaultKind kind = GENERATE(FaultKind::flip, FaultKind::truncate, FaultKind::throw_at_test);
  const Side side = kind == FaultKind::throw_at_test ? Side::receive : Side::send;
  bool any_failed = false;
  for (int rank = 0; rank < p; ++rank)
    for (std::uint64_t number = 0; number < 28; number += number < 12 ? 1 : 3) {
      InProcess world(p);
      const FaultPlan plan{.faults = {{.kind = kind,
                                       .rank = rank,
                                       .messages = MessageKind::any,
                                       .number = number,
                                       .amount = 100,
                                       .side = side}}};
      std::deque<Faulty> links;
      std::deque<Sum<None<float>, Faulty>> sums;
      for (int r = 0; r < p; ++r)
        links.emplace_back(world.link(r), plan), sums.emplace_back(None<float>{}, links.back());
      const auto outcomes = calibrate_all(world, sums);
      INFO(p << " ranks, fault at message " << number << " of rank " << rank << describe(outcomes));
      bool retired = false;
      for (const Outcome& o : outcomes) {
        REQUIRE_FALSE(o.hangs);
        any_failed = any_failed || !o.ok();
      }
      for (Faulty& link : links) retired = retired || link.session().retired();
      if (retired) continue;
      for (int i = 0; i < 30; ++i) {
        const auto later = run(world, sums, 100);
        INFO("operation " << i << describe(later));
        for (const Outcome& o : later) REQUIRE_FALSE((o.hangs || o.cause == Cause::mismatch));
        if (i == 29) REQUIRE(all_ok(later));
      }
      REQUIRE(same_machines(sums));
    }
  CHECK(any_failed);
}
