// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Predictions against formulas where one thing alone takes time, and against themselves where fewer ranks or segments are followed.

#include <wring/algorithm/cost.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <wring/algorithm.hpp>
#include <wring/collective/executor/agreement/head.hpp>
#include <wring/collective/executor/segments/message.hpp>
#include <wring/testing/algorithm_laws.hpp>

using namespace wring;
using Catch::Matchers::WithinRel;

namespace {

constexpr double nothing = 1e-30, unlimited = 1e30;

/// A machine on which nothing takes time.
Machine ideal() {
  Machine m;
  m.latency = m.overhead = m.inside_latency = nothing;
  m.bandwidth = m.inside_bandwidth = unlimited;
  m.measure = m.encode = m.combine = m.decode = m.add = m.copy = unlimited;
  return m;
}

/// One segment of `bytes`.
Load whole(std::size_t bytes) {
  Load load;
  load.bytes = bytes, load.segment_bytes = bytes + 1;
  return load;
}

int doublings(int p) { return detail::Fold(p).doublings; }

/// Rounds of the agreement.
int rounds(int p) { return doublings(p) + (detail::Fold(p).even() ? 0 : 2); }

/// Bytes of a message of one piece.
double message(double bytes) {
  return static_cast<double>(detail::header_bytes) + detail::Walk::piece_bytes + bytes;
}

template <class F> void for_each_algorithm(F f) {
  f(Ring{}), f(Direct{}), f(RecursiveDoubling{}), f(HalvingDoubling{});
}

template <Algorithm A> double seconds(const A& a, Task task, int ranks, const Load& load,
                                      const Machine& machine) {
  return predict(a, task, ranks, load, machine).seconds;
}

}  // namespace

static_assert(detail::head_bytes == sizeof(detail::Head));
static_assert(SymmetricAlgorithm<Ring> && !SymmetricAlgorithm<Hierarchical<>>);

TEST_CASE("cost: where only the latency takes time, messages that wait for one another are counted") {
  const int p = GENERATE(1, 2, 4, 16);
  Machine m = ideal();
  m.latency = 1;
  const auto steps = [&](const auto& algorithm) {
    return std::lround(seconds(algorithm, {}, p, whole(4096 * 16), m)) - rounds(p);
  };
  CHECK(steps(Ring{}) == 2 * (p - 1));
  CHECK(steps(Direct{}) == 2 * (p - 1));  // each send comes after the receive before it in the plan
  CHECK(steps(RecursiveDoubling{}) == doublings(p));
  CHECK(steps(HalvingDoubling{}) == 2 * doublings(p));
}

TEST_CASE("cost: where only the wire takes time, its bytes are counted") {
  const int p = GENERATE(2, 4, 8);
  const double ratio = GENERATE(1.0, 4.0), n = 1 << 20;
  Machine m = ideal();
  m.bandwidth = 1e6;
  Load load = whole(1 << 20);
  load.ratio = ratio, load.combines = ratio > 1;
  const double agreement = doublings(p) * 256 / 1e6, block = n / p / ratio;
  CHECK_THAT(seconds(Ring{}, {}, p, load, m),
             WithinRel(agreement + 2 * (p - 1) * message(block) / 1e6, 1e-12));
  CHECK_THAT(seconds(Direct{}, {}, p, load, m),
             WithinRel(agreement + 2 * (p - 1) * message(block) / 1e6, 1e-12));
  CHECK_THAT(seconds(RecursiveDoubling{}, {}, p, load, m),
             WithinRel(agreement + doublings(p) * message(n / ratio) / 1e6, 1e-12));
  const double pieces = (p - 1) * detail::Walk::piece_bytes,
               headers = doublings(p) * static_cast<double>(detail::header_bytes);
  CHECK_THAT(seconds(HalvingDoubling{}, {}, p, load, m),
             WithinRel(agreement + 2 * ((p - 1) * block + pieces + headers) / 1e6, 1e-12));
  const Prediction ring = predict(Ring{}, {}, p, load, m);
  CHECK_THAT(ring.wire_bytes, WithinRel(doublings(p) * 256 + 2 * (p - 1) * message(block), 1e-12));
  CHECK_THAT(ring.wire_share(), WithinRel(1.0, 1e-12));
}

TEST_CASE("cost: where only the codec takes time, its calls are counted") {
  const int p = GENERATE(2, 4, 8);
  Machine m = ideal();
  m.encode = 3e6, m.combine = 2e6, m.decode = 5e6, m.measure = 11e6;
  Load load = whole(1 << 20);
  load.measured = true, load.ratio = 4;
  const double n = 1 << 20, c = n / m.encode, h = n / m.combine, d = n / m.decode, measure = n / m.measure;
  const int log = doublings(p);

  SECTION("pieces that combine are encoded once and decoded once") {
    load.combines = true;
    const double each = measure + c + h * (p - 1) / p + d;
    CHECK_THAT(seconds(Ring{}, {}, p, load, m), WithinRel(each, 1e-12));
    CHECK_THAT(seconds(Direct{}, {}, p, load, m), WithinRel(each, 1e-12));
    CHECK_THAT(seconds(HalvingDoubling{}, {}, p, load, m), WithinRel(each, 1e-12));
    CHECK_THAT(seconds(RecursiveDoubling{}, {}, p, load, m), WithinRel(measure + c + log * h + d, 1e-12));
    load.finishes = true;
    CHECK_THAT(seconds(Ring{}, {}, p, load, m), WithinRel(each + h / p, 1e-12));
  }
  SECTION("values are encoded for every message of the reduction") {
    const double reduce = (c + h) * (p - 1) / p, result = (h + c + d) / p + d * (p - 1) / p;
    CHECK_THAT(seconds(Ring{}, {}, p, load, m), WithinRel(measure + reduce + result, 1e-12));
    CHECK_THAT(seconds(Direct{}, {}, p, load, m), WithinRel(measure + reduce + result, 1e-12));
    CHECK_THAT(seconds(RecursiveDoubling{}, {}, p, load, m),
               WithinRel(measure + log * (c + d + h) + h, 1e-12));
  }
  SECTION("values as they are need no codec") {
    load.coded = false;
    m.add = 7e6;
    CHECK_THAT(seconds(Ring{}, {}, p, load, m), WithinRel(measure + n / m.add, 1e-12));
    CHECK_THAT(predict(Ring{}, {}, p, load, m).wire_bytes,
               WithinRel(log * 256 + 2 * (p - 1) * message(n / p), 1e-12));
  }
  SECTION("launches are counted, too") {
    load.combines = true;
    m = ideal();
    m.launch = 1;
    CHECK(std::lround(seconds(Ring{}, {}, p, load, m)) == p + (p - 1) + p);
  }
}

TEST_CASE("cost: a chain of segments is as long as its ranks and its segments") {
  const int p = GENERATE(2, 3, 7), segments = GENERATE(1, 2, 5, 40);
  Machine m = ideal();
  m.bandwidth = 1e6;
  Load load;
  load.segment_bytes = 65536, load.bytes = 65536 * static_cast<std::size_t>(segments);
  const double expected = rounds(p) * 256 / 1e6 + (p - 1 + segments - 1) * message(65536) / 1e6;
  CHECK_THAT(seconds(Ring{}, {Collective::broadcast, 1}, p, load, m), WithinRel(expected, 1e-9));
}

TEST_CASE("cost: many segments hide the codec behind the wire, or the wire behind the codec") {
  const double wire = GENERATE(1e8, 1e10);
  Machine m = ideal();
  m.bandwidth = wire, m.encode = m.combine = m.decode = 2e9;
  Load load;
  load.bytes = 1 << 28, load.segment_bytes = 1 << 16, load.ratio = 4;
  for_each_algorithm([&](const auto& algorithm) {
    const Prediction many = predict(algorithm, {}, 4, load, m);
    const Prediction one = predict(algorithm, {}, 4, whole(1 << 28), m);
    CAPTURE(algorithm.name(), wire);
    CHECK(many.seconds >= std::max(many.wire_seconds, many.busy_seconds) * (1 - 1e-9));
    CHECK(many.seconds < 1.02 * std::max(many.wire_seconds, many.busy_seconds));
    CHECK(one.seconds > many.seconds);
  });
}

TEST_CASE("cost: one rank tells what all ranks do, where the algorithm says so") {
  const int p = GENERATE(Catch::Generators::range(2, 10)), depth = GENERATE(1, 4);
  Machine m;
  m.bandwidth = GENERATE(1e7, 3e9);
  Load load;
  load.bytes = 1 << 20, load.segment_bytes = 1 << 14, load.depth = depth, load.ratio = 4.7,
  load.sum_ratio = 4.1;
  load.combines = GENERATE(false, true);
  for_each_algorithm([&](const auto& algorithm) {
    for (const Collective c : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather}) {
      if (!is_symmetric(algorithm, {c}, p)) continue;
      CAPTURE(algorithm.name(), name_of(c), p);
      const Prediction one = detail::follow_plans(algorithm, {c}, p, load, m, false, false),
                       all = detail::follow_plans(algorithm, {c}, p, load, m, true, false);
      CHECK_THAT(one.seconds, WithinRel(all.seconds, 1e-9));
      CHECK_THAT(one.wire_bytes, WithinRel(all.wire_bytes, 1e-9));
      CHECK_THAT(one.busy_seconds, WithinRel(all.busy_seconds, 1e-9));
    }
  });
}

TEST_CASE("cost: some segments tell how long all take") {
  const int depth = GENERATE(1, 4, 9), p = GENERATE(3, 4);
  Machine m;
  m.bandwidth = GENERATE(1e7, 1e9, 2e10);
  Load load;
  load.bytes = 100 << 20, load.segment_bytes = 1 << 16, load.depth = depth, load.ratio = 4.7;
  for_each_algorithm([&](const auto& algorithm) {
    CAPTURE(algorithm.name(), depth, p, m.bandwidth);
    const Prediction some = detail::follow_plans(algorithm, {}, p, load, m, false, false),
                     all = detail::follow_plans(algorithm, {}, p, load, m, false, true);
    // Where codec and link take about as long, segments do not come in an order that repeats.
    CHECK_THAT(some.seconds, WithinRel(all.seconds, m.bandwidth == 1e9 ? 0.12 : 0.01));
    CHECK_THAT(some.wire_bytes, WithinRel(all.wire_bytes, 0.005));
    CHECK_THAT(some.busy_seconds, WithinRel(all.busy_seconds, 0.005));
  });
}

TEST_CASE("cost: the ranks of a node share its link") {
  Machine m = ideal();
  m.bandwidth = 1e6, m.ranks_per_node = 2;
  const double n = 1 << 20;
  // Each rank of a node sends a block to both ranks of the other node, twice; within the node all is free.
  CHECK_THAT(seconds(Direct{}, {}, 4, whole(1 << 20), m), WithinRel(2 * 4 * n / 4 / 1e6, 0.01));
  // Added up in the node first, each node sends its half of the blocks, twice.
  CHECK_THAT(seconds(Hierarchical<>(2), {}, 4, whole(1 << 20), m), WithinRel(2 * n / 2 / 1e6, 0.01));
  // Encoded pieces that combine are added up in full size within a node; what leaves it, and the result, is packed.
  Load load = whole(1 << 20);
  load.ratio = 4, load.combines = true;
  CHECK_THAT(seconds(Hierarchical<>(2), {}, 4, load, m), WithinRel(2 * n / 2 / 4 / 1e6, 0.01));
  m.inside_bandwidth = 1e6, m.bandwidth = unlimited;
  CHECK_THAT(seconds(Hierarchical<>(2), {}, 4, load, m), WithinRel((n / 2 + n / 2 / 4) / 1e6, 0.01));
  m.ranks_per_node = 4, m.inside_bandwidth = unlimited;
  CHECK(seconds(Direct{}, {}, 4, whole(1 << 20), m) < 1e-9);
}

TEST_CASE("cost: compression pays where the wire is slower than the codec") {
  Machine m = ideal();
  m.encode = m.decode = m.combine = 2e9, m.add = 1e10, m.copy = 1e10;
  Load coded = whole(1 << 24), plain = coded;
  coded.ratio = 4, coded.combines = true, plain.coded = false;
  for_each_algorithm([&](const auto& algorithm) {
    CAPTURE(algorithm.name());
    m.bandwidth = 1e8;
    CHECK(seconds(algorithm, {}, 4, coded, m) < 0.4 * seconds(algorithm, {}, 4, plain, m));
    m.bandwidth = 2e10;
    CHECK(seconds(algorithm, {}, 4, coded, m) > seconds(algorithm, {}, 4, plain, m));
  });
}

TEST_CASE("cost: sums that are wider than inputs take longer, and only where sums travel") {
  Machine m;
  Load load = whole(1 << 24), wider = load;
  load.ratio = wider.ratio = 4, wider.sum_ratio = 3, load.combines = wider.combines = true;
  // Direct sends inputs first, then results.
  const double narrow = predict(Direct{}, {}, 4, load, m).wire_bytes,
               wide = predict(Direct{}, {}, 4, wider, m).wire_bytes;
  CHECK_THAT(wide - narrow, WithinRel(3 * (1 << 22) * (1.0 / 3 - 1.0 / 4), 1e-9));
  const Task gather{Collective::allgather};
  CHECK(predict(Direct{}, gather, 4, load, m).wire_bytes ==
        predict(Direct{}, gather, 4, wider, m).wire_bytes);
}

TEST_CASE("cost: a hundred thousand ranks") {
  Machine m = ideal();
  m.latency = 1e-6;
  const Load load = whole(1 << 26);
  CHECK_THAT(seconds(Ring{}, {}, 100000, load, m), WithinRel(18e-6 + 2 * 99999 * 1e-6, 1e-9));
  CHECK_THAT(seconds(Direct{}, {}, 100000, load, m), WithinRel(18e-6 + 2 * 99999 * 1e-6, 1e-9));
  CHECK_THAT(seconds(HalvingDoubling{}, {}, 131072, load, m), WithinRel(17e-6 + 34e-6, 1e-9));
}

TEST_CASE("cost: a hundred thousand ranks that are no power of two", "[nightly]") {
  Machine m = ideal();
  m.latency = 1e-6;
  CHECK_THAT(seconds(HalvingDoubling{}, {}, 100000, whole(1 << 26), m), WithinRel(18e-6 + 34e-6, 1e-9));
}

TEST_CASE("cost: data that travel with the agreement") {
  const int p = GENERATE(1, 2, 6, 8);
  Machine m = ideal();
  Load load = whole(1024);
  load.ratio = 4;
  m.latency = 1;
  for (const RidesAlong how : {RidesAlong::summed, RidesAlong::gathered})
    CHECK(std::lround(predict_riding_along(how, {}, p, load, m).seconds) == rounds(p));
  load.confirm = true;
  CHECK(std::lround(predict_riding_along(RidesAlong::summed, {}, p, load, m).seconds) == 2 * rounds(p));
  m = ideal(), load.confirm = false;
  m.bandwidth = 1e6;
  const double gathered = p == 6 ? 1 + 1.5 + 3 + 6 : p - 1;  // inputs known by then, in each round
  CHECK_THAT(predict_riding_along(RidesAlong::summed, {}, p, load, m).seconds * 1e6 + 1,
             WithinRel(rounds(p) * (256 + 256.0) + 1, 1e-9));
  CHECK_THAT(predict_riding_along(RidesAlong::gathered, {}, p, load, m).seconds * 1e6 + 1,
             WithinRel(rounds(p) * 256.0 + gathered * 1024 + 1, 1e-9));
}

TEST_CASE("cost: equal arguments give equal doubles") {
  Load load;
  load.bytes = 12345678, load.ratio = 4.7;
  for_each_algorithm([&](const auto& algorithm) {
    for (const int p : {3, 4, 7})
      CHECK(seconds(algorithm, {}, p, load, Machine{}) == seconds(algorithm, {}, p, load, Machine{}));
  });
}

TEST_CASE("cost: no data, one rank, more blocks than values") {
  for_each_algorithm([&](const auto& algorithm) {
    for (const std::size_t bytes : {0, 4, 5000})
      for (const int p : {1, 2, 3, 12}) {
        const double s = seconds(algorithm, {}, p, whole(bytes), Machine{});
        CHECK((p == 1 ? s >= 0 : s > rounds(p) * 50e-6));
        CHECK(s < 0.1);
      }
  });
}

TEST_CASE("cost: impossible machines and loads are refused") {
  Machine m;
  m.decode = 0;
  CHECK_THROWS_AS(predict(Ring{}, {}, 2, whole(1), m), InvalidArgument);
  Load load;
  load.ratio = 0;
  CHECK_THROWS_AS(predict(Ring{}, {}, 2, load, Machine{}), InvalidArgument);
  load = {}, load.depth = 0;
  CHECK_THROWS_AS(predict_riding_along(RidesAlong::summed, {}, 2, load, Machine{}), InvalidArgument);
  load = {}, load.depth = 31;
  CHECK_THROWS_AS(predict(Ring{}, {}, 2, load, Machine{}), InvalidArgument);
  for (const int ranks : {0, -1}) {
    CHECK_THROWS_AS(predict(Ring{}, {}, ranks, whole(1), Machine{}), InvalidArgument);
    CHECK_THROWS_AS(predict_riding_along(RidesAlong::summed, {}, ranks, whole(1), Machine{}),
                    InvalidArgument);
  }
}

TEST_CASE("cost: figures that no arithmetic can take are refused, whichever they are") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double Machine::* const all[] = {&Machine::latency, &Machine::overhead,       &Machine::bandwidth,
                                   &Machine::measure, &Machine::encode,         &Machine::combine,
                                   &Machine::decode,  &Machine::launch,         &Machine::add,
                                   &Machine::copy,    &Machine::inside_latency, &Machine::inside_bandwidth};
  for (double Machine::* const figure : all)
    for (const double value : {-1.0, infinity, std::nan(""), 1e-320, 1e308}) {
      if (figure == &Machine::launch && value == 1e-320) continue;  // as good as none
      Machine m;
      m.*figure = value;
      CAPTURE(value);
      CHECK_THROWS_AS(expect_possible(m), InvalidArgument);
    }
  for (double Machine::* const figure : all)
    for (const double value : {1e-100, 1e100}) {
      Machine m;
      m.*figure = value;
      CHECK(std::isfinite(seconds(Ring{}, {}, 5, whole(1 << 20), m)));
    }
}

TEST_CASE("cost: the longest vector, and more ranks to a node than there are") {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  Load load;
  load.bytes = most / 2;
  const double half = seconds(Ring{}, {}, 4, load, Machine{});
  load.bytes = most;
  CHECK_THAT(seconds(Ring{}, {}, 4, load, Machine{}), WithinRel(2 * half, 1e-6));
  Machine together, more;
  together.ranks_per_node = 6, more.ranks_per_node = std::numeric_limits<int>::max();
  CHECK(seconds(Ring{}, {}, 6, whole(1 << 20), more) == seconds(Ring{}, {}, 6, whole(1 << 20), together));
}

namespace {

/// Says of everything that it is symmetric.
template <class A> struct Boasting : A {
  bool symmetric(Task, int) const { return true; }
};

}  // namespace

TEST_CASE("cost: an algorithm that is not as symmetric as it says is found out") {
  CHECK_FALSE(testing::check_algorithm_laws(Boasting<HalvingDoubling>{}, Task{}, 3).empty());
  CHECK_FALSE(testing::check_algorithm_laws(Boasting<Ring>{}, {Collective::broadcast}, 3).empty());
  CHECK(testing::check_algorithm_laws(Boasting<Ring>{}, Task{}, 3).empty());
  CHECK_THROWS_AS(predict(Boasting<Ring>{}, {Collective::broadcast, 1}, 3, whole(1), Machine{}),
                  InvalidArgument);
}

TEST_CASE("cost: short vectors are worked on at the speeds in the caches, long ones at those from memory") {
  Machine slow = ideal(), fast = ideal(), both = ideal();
  slow.measure = 1e9, slow.encode = 2e9, slow.combine = 3e9, slow.decode = 4e9, slow.add = 5e9;
  fast.measure = 2e9, fast.encode = 5e9, fast.combine = 9e9, fast.decode = 8e9, fast.add = 6e9;
  both = slow;
  both.cached_measure = fast.measure, both.cached_encode = fast.encode, both.cached_combine = fast.combine;
  both.cached_decode = fast.decode, both.cached_add = fast.add;
  const bool combines = GENERATE(false, true);
  const auto time_of = [&](std::size_t bytes, const Machine& m) {
    Load load = whole(bytes);
    load.ratio = 4, load.combines = combines, load.measured = true;
    return predict(Ring{}, {}, 4, load, m).seconds;
  };
  for (const std::size_t bytes : {1000, 256 * 1024})
    CHECK_THAT(time_of(bytes, both), WithinRel(time_of(bytes, fast)));
  for (const std::size_t bytes : {8 << 20, 64 << 20})
    CHECK_THAT(time_of(bytes, both), WithinRel(time_of(bytes, slow)));
  const std::size_t middle = (256 * 1024 + (8 << 20)) / 2;
  CHECK_THAT(time_of(middle, both), WithinRel((time_of(middle, fast) + time_of(middle, slow)) / 2, 1e-9));
  Load load = whole(1000);
  for (const RidesAlong how : {RidesAlong::summed, RidesAlong::gathered})
    CHECK_THAT(predict_riding_along(how, {}, 4, load, both).seconds,
               WithinRel(predict_riding_along(how, {}, 4, load, fast).seconds));
}
