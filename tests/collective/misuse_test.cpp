// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What should not be done, and the clear error that it gets on all ranks: compressors that break in odd places, tensors that overlap,
// too many operations, requests that outlive their link.
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <deque>
#include <memory>
#include <optional>

#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>

#include "support/collect.hpp"
#include "support/executors.hpp"

using namespace wring_test;
using wring::Cause;
using wring::InProcess;
using wring::InProcessTransport;
using wring::None;

namespace {

template <class Codec> using Sum = wring::Allreduce<Codec, InProcessTransport, wring::Ring>;
using View = Kokkos::View<double*, Kokkos::HostSpace>;

/// Grid that counts its copies and lies about what it wrote, when told to.
struct Odd : wring::Grid<float> {
  struct Orders {
    int copies_left = 1 << 20;
    std::size_t combine_adds = 0, finish_adds = 0;
    bool combine_throws = false;
  };
  std::shared_ptr<Orders> orders = std::make_shared<Orders>();

  Odd() = default;
  Odd(const Odd& other) : wring::Grid<float>(other), orders(other.orders) {
    if (--orders->copies_left < 0) throw std::runtime_error("no more copies");
  }
  Odd& operator=(const Odd&) = default;

  template <class E> std::size_t combine(const E& exec, std::span<const std::byte> a,
                                         std::span<const std::byte> b, std::span<std::byte> out,
                                         const wring::Context& c) const {
    if (orders->combine_throws) throw std::length_error("no more sums");
    const std::size_t n = wring::Grid<float>::combine(exec, a, b, out, c);
    return orders->combine_adds ? out.size() + orders->combine_adds : n;
  }
  template <class E> std::size_t finish(const E& exec, std::span<const std::byte> sum,
                                        std::span<std::byte> out, const wring::Context& c) const {
    const std::size_t n = wring::Grid<float>::finish(exec, sum, out, c);
    return orders->finish_adds ? out.size() + orders->finish_adds : n;
  }
};

/// One allreduce of 2000 values on every rank; `spoil` is given rank 1's orders.
template <class Spoil> std::vector<Outcome> odd_allreduce(int ranks, std::size_t ride, Spoil spoil) {
  InProcess world(ranks);
  std::deque<Sum<Odd>> sums;
  std::deque<Odd> codecs(static_cast<std::size_t>(ranks));
  std::vector<std::vector<float>> data(codecs.size(), std::vector<float>(2000, 1));
  for (int r = 0; r < ranks; ++r)
    sums.emplace_back(codecs[static_cast<std::size_t>(r)], world.link(r), wring::Ring{},
                      wring::Options{.ride_along_bytes = ride});
  spoil(*codecs[1].orders);
  const auto run = [&] {
    return on_all_ranks(world, [&](int r) {
      auto& mine = data[static_cast<std::size_t>(r)];
      return sums[static_cast<std::size_t>(r)].start(Exec{}, Values<float>(mine.data(), mine.size()),
                                                     wring::absolute(0.1));
    });
  };
  const auto outcomes = run();
  *codecs[1].orders = {};
  auto again = run();
  if (!all_ok(again)) again = run();  // the first may still tell
  INFO("afterwards" << describe(again));
  CHECK(all_ok(again));
  for (int r = 0; r < ranks; ++r) CHECK_FALSE(world.link(r).session().retired());
  return outcomes;
}

}  // namespace

TEST_CASE("misuse: a compressor that cannot be copied any more", "[collective][misuse]") {
  for (const std::size_t ride : {std::size_t{0}, std::size_t{65536}})
    for (int copies = 0; copies < 3; ++copies) {
      const auto outcomes = odd_allreduce(3, ride, [&](Odd::Orders& o) { o.copies_left = copies; });
      INFO(copies << " copies" << describe(outcomes));
      for (const Outcome& o : outcomes) REQUIRE_FALSE(o.hangs);
      if (copies == 0) REQUIRE(all_failed(outcomes, Cause::codec, 1));
    }
}

TEST_CASE("misuse: a compressor that says it wrote more than it may", "[collective][misuse]") {
  for (const std::size_t ride : {std::size_t{0}, std::size_t{65536}})
    for (const bool finish : {false, true}) {  // finish: on more than four ranks
      const auto outcomes = odd_allreduce(
          finish ? 5 : 4, ride, [&](Odd::Orders& o) { (finish ? o.finish_adds : o.combine_adds) = 1; });
      INFO((finish ? "finish" : "combine") << describe(outcomes));
      REQUIRE_FALSE(all_ok(outcomes));
      for (const Outcome& o : outcomes) {
        REQUIRE_FALSE(o.hangs);
        if (!o.ok()) REQUIRE((o.rank == 1 && o == Cause::codec));
      }
    }
}

TEST_CASE("misuse: a compressor that throws what is no error of the library while it combines",
          "[collective][misuse]") {
  for (const std::size_t ride : {std::size_t{0}, std::size_t{65536}}) {
    const auto outcomes = odd_allreduce(4, ride, [&](Odd::Orders& o) { o.combine_throws = true; });
    INFO(describe(outcomes));
    REQUIRE(outcomes[1] == Cause::codec);
    for (const Outcome& o : outcomes) {
      REQUIRE_FALSE(o.hangs);
      if (!o.ok())
        REQUIRE((o.rank == 1 && o == Cause::codec && o.text.find("no more sums") != std::string::npos));
    }
  }
}

TEST_CASE("misuse: tensors of a group that overlap are refused on all ranks", "[collective][misuse]") {
  const auto run = [](auto tensors_of) {
    InProcess world(3);
    std::deque<Sum<None<double>>> sums;
    std::vector<View> data;
    for (int r = 0; r < 3; ++r)
      sums.emplace_back(None<double>{}, world.link(r)), data.emplace_back("data", 100);
    return on_all_ranks(world, [&](int r) {
      const auto i = static_cast<std::size_t>(r);
      return sums[i].start(Exec{}, tensors_of(data[i]));
    });
  };
  using Part = std::pair<std::size_t, std::size_t>;
  const auto part = [](const View& v, std::size_t a, std::size_t b) {
    return Kokkos::subview(v, Part{a, b});
  };
  using wring::group, wring::item;
  CHECK(all_ok(run([&](const View& v) { return group(item(part(v, 0, 50)), item(part(v, 50, 100))); })));
  CHECK(all_ok(run([&](const View& v) {
    return group(item(part(v, 50, 100)), item(part(v, 30, 30)), item(part(v, 0, 50)));
  })));
  CHECK(all_ok(run([&](const View& v) {  // one input twice
    return group(item(part(v, 0, 20), part(v, 20, 40)), item(part(v, 0, 20), part(v, 40, 60)));
  })));
  const auto outcomes =
      run([&](const View& v) { return group(item(part(v, 0, 51)), item(part(v, 50, 100))); });
  INFO(describe(outcomes));
  CHECK(all_failed(outcomes, Cause::argument));
  CHECK(outcomes[2].text.find("tensors 0 and 1 of the group overlap") != std::string::npos);
  CHECK(all_failed(run([&](const View& v) {  // one writes what the other reads
                     return group(item(part(v, 0, 20), part(v, 20, 40)),
                                  item(part(v, 30, 50), part(v, 60, 80)));
                   }),
                   Cause::argument));
  CHECK(all_failed(run([&](const View& v) {  // both write
                     return group(item(part(v, 0, 10), part(v, 20, 30)),
                                  item(part(v, 10, 20), part(v, 20, 30)));
                   }),
                   Cause::argument));
}

TEST_CASE("misuse: a thousand operations in flight on a link, and one more", "[collective][misuse]") {
  InProcess world(2, {.eager_limit = 0, .delay = 1, .seed = 0});
  std::deque<Sum<None<double>>> sums;
  std::deque<View> data;
  std::vector<wring::Request> requests;
  for (int k = 0; k < 1001; ++k)
    for (int r = 0; r < 2; ++r) {
      sums.emplace_back(None<double>{}, world.link(r)), data.emplace_back("data", 600);
      requests.push_back(sums.back().start(Exec{}, data.back()));
      if (r == 0 && k == 1000) REQUIRE(world.link(0).session().in_flight() == 1001);
    }
  const auto outcomes = complete(world, requests);
  for (std::size_t i = 0; i < 2000; ++i) REQUIRE(outcomes[i].ok());
  INFO(outcomes[2000].text);
  CHECK((outcomes[2000] == Cause::argument && outcomes[2001] == Cause::argument));
}

TEST_CASE("misuse: far more operations than there are channels", "[collective][misuse]") {
  InProcess world(2, {.eager_limit = 0, .delay = 1, .seed = 0});
  std::deque<Sum<None<double>>> sums;
  std::deque<View> data;
  std::vector<wring::Request> requests;
  int thrown[2] = {0, 0};
  for (int k = 0; k < 1100; ++k)
    for (int r = 0; r < 2; ++r) {
      sums.emplace_back(None<double>{}, world.link(r)), data.emplace_back("data", 600);
      const Outcome o =
          outcome_of([&](Outcome&) { requests.push_back(sums.back().start(Exec{}, data.back())); });
      if (!o.ok()) REQUIRE(o == Cause::argument);
      thrown[r] += o.ok() ? 0 : 1;
    }
  REQUIRE((thrown[0] > 0 && thrown[0] == thrown[1]));
  const auto outcomes = complete(world, requests);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    INFO("operation " << i / 2 << ": " << outcomes[i]);
    REQUIRE((i < 2000 ? outcomes[i].ok() : outcomes[i] == Cause::argument));
  }
}

TEST_CASE("misuse: a request that outlives its link", "[collective][misuse]") {
  std::optional<InProcess> world(2);
  std::optional<Sum<None<double>>> sum(std::in_place, None<double>{}, world->link(0));
  const View data("data", 3000);
  wring::Request tested = sum->start(Exec{}, data);
  Sum<None<double>> other(None<double>{}, world->link(0));
  wring::Request dropped = other.start(Exec{}, data);
  sum.reset(), world.reset();
  const Outcome o = outcome_of([&](Outcome&) { static_cast<void>(tested.wait()); });
  CHECK((o == Cause::abandoned && o.text.find("link was destroyed") != std::string::npos));
  CHECK_FALSE(tested.valid());
}
