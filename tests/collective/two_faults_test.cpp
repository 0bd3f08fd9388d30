// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A head is lost on its way while the others refuse the operation: the rank that does not know waits for nobody.
#include <catch2/catch_test_macros.hpp>

#include <memory>

#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/testing/faulty_transport.hpp>

#include "support/collect.hpp"

using namespace wring_test;
using wring::Cause;
using wring::InProcess;
using wring::testing::FaultKind;
using wring::testing::MessageKind;
using FaultyLink = wring::testing::FaultyTransport<wring::InProcessTransport>;
using Faults = std::vector<wring::testing::Fault>;

namespace {

/// The n-th head of rank `mute` is damaged: a bit is flipped, or it is cut short.
wring::testing::Fault lost_head(int mute, int number, FaultKind kind = FaultKind::flip) {
  return {.kind = kind,
          .rank = mute,
          .messages = MessageKind::agreement,
          .number = static_cast<std::uint64_t>(number),
          .amount = kind == FaultKind::flip ? 20u * 8 + 2 : 253u};
}

/// Allreduce on every rank of a world.
template <class Codec> struct Ranks {
  using T = typename Codec::value_type;
  Ranks(int ranks, const Faults& faults, wring::Options options) : world(ranks, {.delay = 1, .seed = 5}) {
    for (int r = 0; r < ranks; ++r) {
      links.emplace_back(world.link(r), wring::testing::FaultPlan{.faults = faults});
      sums.emplace_back(Codec{}, links.back(), wring::Ring{}, options);
      data.emplace_back(40, T(1));
    }
  }

  std::vector<Outcome> run(std::optional<wring::Bound> bound, std::size_t odd_length = 40) {
    return on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const Values<T> view(data[r].data(), r == 1 ? odd_length : data[r].size());
      return sums[r].start(Exec{}, wring::group(wring::item(view, bound)));
    });
  }

  InProcess world;
  std::deque<FaultyLink> links;
  std::deque<wring::Allreduce<Codec, FaultyLink>> sums;
  std::vector<std::vector<T>> data;
};

bool nobody_hangs(const std::vector<Outcome>& outcomes) {
  for (const Outcome& o : outcomes)
    if (o.hangs) return false;
  return true;
}

bool all_in_error(const std::vector<Outcome>& outcomes) {
  for (const Outcome& o : outcomes)
    if (o.ok() || o.hangs) return false;
  return true;
}

/// After it: one operation that says what happened, at most, and then one that succeeds.
template <class Codec> void recovers(Ranks<Codec>& ranks, std::optional<wring::Bound> bound) {
  for (FaultyLink& link : ranks.links) link.heal();
  auto outcomes = ranks.run(bound);
  INFO("after it:" << describe(outcomes));
  REQUIRE(nobody_hangs(outcomes));
  if (!all_ok(outcomes)) {
    REQUIRE(all_failed(outcomes, Cause::abandoned));
    outcomes = ranks.run(bound);
  }
  INFO("at last:" << describe(outcomes));
  REQUIRE(all_ok(outcomes));
}

/// Refuses every send to one peer from the n-th message on.
struct Cut {
  using memory_space = Kokkos::HostSpace;
  using Request = wring::InProcessTransport::Request;
  static constexpr bool shares_thread = true;
  wring::InProcessTransport* link;
  int peer = -1, first = 0, sends = 0;
  int rank() const { return link->rank(); }
  int size() const { return link->size(); }
  wring::Session& session() { return link->session(); }
  wring::Progress progress() { return link->progress(); }
  Request send(int to, int channel, std::span<const std::byte> bytes) {
    if (sends++ >= first && to == peer) throw wring::TransportError("the cable is cut", rank());
    return link->send(to, channel, bytes);
  }
  Request receive(int from, int channel, std::span<std::byte> bytes) {
    return link->receive(from, channel, bytes);
  }
  std::optional<std::size_t> test(Request& request) { return link->test(request); }
  bool cancel(Request& request) { return link->cancel(request); }
};

/// The root of a broadcast sends everything to everybody itself.
struct Star {
  const char* name() const { return "star"; }
  wring::Plan plan(wring::Task task, int rank, int ranks) const {
    wring::Plan plan{rank, ranks};
    plan.one_block_per_rank(task);
    plan.budgets = 1, plan.widest = ranks;
    for (int r = 0; r < ranks && rank == task.root; ++r)
      if (r != rank) plan.send(r, 0, ranks, 0);
    if (rank != task.root) plan.store(task.root, 0, ranks, 0);
    return plan;
  }
};

}  // namespace

TEST_CASE("two faults: a lost head and ranks that disagree", "[collective][failure]") {
  for (const bool confirm : {false, true})
    for (const std::size_t ride : {std::size_t{0}, std::size_t{65536}})
      for (const int ranks : {2, 3, 4, 5, 8})
        for (int mute = 0; mute < ranks; ++mute)
          for (int number = 0; number < 4; ++number) {
            Ranks<wring::Grid<float>> run(ranks, {lost_head(mute, number)},
                                          {.ride_along_bytes = ride, .confirm = confirm});
            const auto outcomes = run.run(wring::absolute(1e-3), 39);
            INFO(ranks << " ranks, head " << number << " of rank " << mute << ", ride " << ride
                       << (confirm ? ", confirm" : "") << describe(outcomes));
            REQUIRE(nobody_hangs(outcomes));
            REQUIRE(all_in_error(outcomes));
            recovers(run, wring::absolute(1e-3));
          }
}

TEST_CASE("two faults: a lost head and a bound that cannot be held", "[collective][failure]") {
  for (const std::size_t ride : {std::size_t{0}, std::size_t{65536}})
    for (const int ranks : {2, 3, 4, 6})
      for (int mute = 0; mute < ranks; ++mute)
        for (int number = 0; number < 3; ++number) {
          Ranks<wring::Grid<float>> run(ranks, {lost_head(mute, number)}, {.ride_along_bytes = ride});
          run.data[0][3] = 1e9f;
          const auto outcomes = run.run(wring::absolute(1e-3));
          INFO(ranks << " ranks, head " << number << " of rank " << mute << describe(outcomes));
          REQUIRE(nobody_hangs(outcomes));
          REQUIRE(all_in_error(outcomes));
          run.data[0].assign(40, 1);
          recovers(run, wring::absolute(1e-3));
        }
}

TEST_CASE("two faults: two lost heads and ranks that disagree", "[collective][failure]") {
  for (const int ranks : {2, 3, 4})
    for (int number = 0; number < 2; ++number) {
      Ranks<wring::None<double>> run(ranks, {lost_head(0, number), lost_head(1, number, FaultKind::truncate)},
                                     {.ride_along_bytes = 0});
      const auto outcomes = run.run(std::nullopt, 1);
      INFO(ranks << " ranks, heads " << number << describe(outcomes));
      REQUIRE(nobody_hangs(outcomes));
      REQUIRE(all_in_error(outcomes));
      recovers(run, std::nullopt);
    }
}

TEST_CASE("faults: a rank that cannot reach one peer tells all others", "[collective][failure]") {
  constexpr std::size_t n = 9000;
  for (const int ranks : {3, 4, 6})
    for (int peer = 1; peer < ranks; ++peer)
      for (int first = 3; first < 11; ++first) {  // behind the heads, before the last
        InProcess world(ranks);
        std::deque<Cut> links;
        std::deque<wring::Broadcast<wring::None<double>, Cut, Star>> broadcasts;
        std::vector<std::vector<double>> data(static_cast<std::size_t>(ranks), std::vector<double>(n, 1));
        data[0].assign(n, 5);
        for (int r = 0; r < ranks; ++r) {
          links.push_back({&world.link(r), r == 0 ? peer : -1, first});
          broadcasts.emplace_back(wring::None<double>{}, links.back(), Star{},
                                  wring::Options{.segment_bytes = 4096, .depth = 2});
        }
        const auto outcomes = on_all_ranks(world, [&](int rank) {
          const auto r = static_cast<std::size_t>(rank);
          return broadcasts[r].start(Exec{}, Values<double>(data[r].data(), n), 0);
        });
        INFO(ranks << " ranks, cut to " << peer << " from message " << first << describe(outcomes));
        REQUIRE(outcomes[0] == Cause::transport);
        for (std::size_t r = 0; r < outcomes.size(); ++r) {
          if (static_cast<int>(r) != peer)
            REQUIRE_FALSE(outcomes[r].hangs);  // the one behind the cut needs a deadline
          if (outcomes[r].ok()) REQUIRE(data[r] == std::vector<double>(n, 5));
        }
      }
}

TEST_CASE("two faults: what never comes is given up before its channels are used again",
          "[collective][failure]") {
  Ranks<wring::None<double>> run(3, {lost_head(0, 0)}, {.ride_along_bytes = 0});
  REQUIRE(all_in_error(run.run(std::nullopt, 39)));
  recovers(run, std::nullopt);
  REQUIRE(run.links[1].session().in_flight() + run.links[2].session().in_flight() > 0);
  for (int i = 0; i < 2100; ++i) {
    for (auto& values : run.data) values.assign(40, 1);
    const auto outcomes = run.run(std::nullopt);
    INFO("operation " << i << describe(outcomes));
    REQUIRE(all_ok(outcomes));
    for (const auto& values : run.data) REQUIRE(values == std::vector<double>(40, 3));
  }
  for (FaultyLink& link : run.links) REQUIRE(link.session().in_flight() == 0);
}
