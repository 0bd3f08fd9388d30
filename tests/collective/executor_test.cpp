// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The executor's own promises: segments that overtake one another, faults that one rank alone meets, what is left behind.
#include <catch2/catch_test_macros.hpp>

#include <Kokkos_Core.hpp>

#include <memory>
#include <new>
#include <vector>

#include <wring/algorithm/ring.hpp>
#include <wring/collective.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/transport/in_process.hpp>

#include "support/ranks.hpp"

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<double*, Kokkos::HostSpace>;
using wring::InProcess;
using wring::InProcessTransport;
using wring_test::on_all_ranks;
using wring_test::Outcome;

/// None with faults: `prepare` or the count of fallbacks throws on one rank.
struct Faulty : wring::None<double> {
  enum class Where { nowhere, prepare, end } where = Where::nowhere;
  static wring::Identity identity() { return {"faulty", 1, ""}; }
  void prepare(const wring::Agreed&) {
    if (where == Where::prepare) throw std::bad_alloc();
  }
  std::uint64_t fallback_blocks() const {
    if (where == Where::end) throw std::bad_alloc();
    return 0;
  }
};

template <class Codec> struct Ranks {
  using Sum = wring::Allreduce<Codec, InProcessTransport, wring::Ring>;
  Ranks(InProcess& world, std::size_t n, wring::Options options) {
    for (int r = 0; r < world.size(); ++r) {
      sums.push_back(std::make_unique<Sum>(Codec{}, world.link(r), wring::Ring{}, options));
      data.emplace_back("data", n);
      Kokkos::deep_copy(data.back(), r + 1.0);
    }
  }
  std::vector<Outcome> run(InProcess& world) {
    return on_all_ranks(world, [&](int r) {
      return sums[static_cast<std::size_t>(r)]->start(Exec{}, data[static_cast<std::size_t>(r)]);
    });
  }
  bool hold(double value) const {
    for (const View& view : data)
      for (std::size_t i = 0; i < view.extent(0); ++i)
        if (view(i) != value) return false;
    return true;
  }
  std::vector<std::unique_ptr<Sum>> sums;
  std::vector<View> data;
};

}  // namespace

TEST_CASE("executor: a segment that lags behind many others keeps its channel", "[collective][executor]") {
  for (const int delay : {50, 400})
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      InProcess world(3, {.delay = delay, .seed = seed});
      Ranks<wring::None<double>> ranks(world, 300000, {.segment_bytes = 4096, .depth = 30});
      for (const Outcome& o : ranks.run(world)) {
        INFO(o);
        REQUIRE(o.ok());
      }
      REQUIRE(ranks.hold(6));
    }
}

TEST_CASE("executor: an abandoned operation of many uneven segments drains message by message",
          "[collective][executor]") {
  InProcess world(5);
  const std::vector<std::size_t> counts{1, 1, 51200, 1, 1};
  std::vector<std::unique_ptr<wring::Allgather<wring::None<double>, InProcessTransport>>> gathers;
  std::vector<View> in, out;
  std::vector<wring::Request> requests;
  const auto start = [&](int r) {
    const auto i = static_cast<std::size_t>(r);
    requests.push_back(gathers[i]->start(Exec{}, in[i], out[i], counts));
  };
  for (int r = 0; r < 5; ++r) {
    gathers.push_back(std::make_unique<wring::Allgather<wring::None<double>, InProcessTransport>>(
        wring::None<double>{}, world.link(r), wring::Ring{},
        wring::Options{.segment_bytes = 4096, .ride_along_bytes = 0}));
    in.emplace_back("in", counts[static_cast<std::size_t>(r)]);
    out.emplace_back("out", 51204);
  }
  for (int r = 0; r < 4; ++r) start(r);
  const Outcome first =
      wring_test::outcome_of([&](Outcome&) { requests[0].wait(wring::Deadline::clock::now()); });
  REQUIRE(first == wring::Cause::timeout);
  start(4);
  std::vector<wring::Request> others;
  for (std::size_t r = 1; r < 5; ++r) others.push_back(std::move(requests[r]));
  for (const Outcome& o : wring_test::complete(world, others)) {
    INFO(o);
    REQUIRE(o == wring::Cause::timeout);
    REQUIRE(o.rank == 0);
    REQUIRE(o.text.find("bytes given") == std::string::npos);  // no message met a receive too short for it
  }
}

TEST_CASE("executor: what one rank alone meets is an error, and no peer waits for ever",
          "[collective][executor]") {
  for (const auto where : {Faulty::Where::prepare, Faulty::Where::end})
    for (const std::size_t ride : {0, 2048}) {
      InProcess world(3);
      Ranks<Faulty> ranks(world, 10, {.ride_along_bytes = ride});
      Faulty faulty;
      faulty.where = where;
      ranks.sums[1] = std::make_unique<Ranks<Faulty>::Sum>(faulty, world.link(1), wring::Ring{},
                                                           wring::Options{.ride_along_bytes = ride});
      const auto outcomes = ranks.run(world);
      for (const Outcome& o : outcomes) {
        INFO(o);
        REQUIRE_FALSE(o.hangs);
        REQUIRE((o.ok() || o.rank == 1));
      }
      REQUIRE_FALSE(outcomes[1].ok());
    }
}

TEST_CASE("executor: views are the user's again once an operation has ended", "[collective][executor]") {
  for (const std::size_t n : {10, 5000}) {
    InProcess world(2);
    Ranks<wring::None<double>> ranks(world, n, {});
    for (const Outcome& o : ranks.run(world)) REQUIRE(o.ok());
    for (const View& view : ranks.data) REQUIRE(view.use_count() == 1);
  }
}

TEST_CASE("executor: the report of a group promises what holds for each tensor", "[collective][executor]") {
  InProcess world(1);
  wring::Allreduce sum(wring::Grid<double>{}, world.link(0));
  const View a("a", 600), b("b", 600);
  Kokkos::deep_copy(a, 1.0), Kokkos::deep_copy(b, 1.0);
  const wring::Report both =
      sum(Exec{}, wring::group(wring::item(a, wring::absolute(1e-3)), wring::item(b, wring::absolute(0.1))));
  REQUIRE(both.bound == 0.1);
  REQUIRE(both.reproducible);
  wring::Allreduce plain(wring::None<double>{}, world.link(0));
  const wring::Report half =
      plain(Exec{}, wring::group(wring::item(a, wring::absolute(1e-3)), wring::item(b)));
  REQUIRE_FALSE(half.bound);
  REQUIRE_FALSE(half.reproducible);
}
