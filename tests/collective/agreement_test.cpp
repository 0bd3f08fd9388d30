// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranks that disagree: the same error on every rank, which names the field and the ranks, before anything is written.
#include <catch2/catch_test_macros.hpp>

#include <functional>
#include <variant>

#include <wring/compressor/cast.hpp>
#include <wring/compressor/none.hpp>

#include "support/collect.hpp"
#include "support/executors.hpp"

using namespace wring_test;
using wring::Cause;
using wring::InProcess;
using wring::InProcessTransport;
using wring::None;

namespace {

template <class Codec> using Sum = wring::Allreduce<Codec, InProcessTransport, AnyAlgorithm>;

/// How one rank calls an allreduce (or broadcast); everything a user can get wrong.
struct Spec {
  std::size_t length = 20;
  AnyAlgorithm algorithm = wring::Ring{};
  wring::Options options{};
  std::optional<wring::Bound> bound{};
  int root = -1;  ///< a broadcast if not negative
};

template <class T> struct Rank {
  Kokkos::View<T*, Kokkos::HostSpace> data;
  bool untouched() const {
    for (std::size_t i = 0; i < data.extent(0); ++i)
      if (data(i) != T(3)) return false;
    return true;
  }
};

template <class T> wring::Request start(const Spec& spec, InProcessTransport& link, Rank<T>& rank) {
  rank.data = Kokkos::View<T*, Kokkos::HostSpace>("data", spec.length);
  Kokkos::deep_copy(rank.data, T(3));
  auto tensors = wring::group(wring::item(rank.data, spec.bound));
  if (spec.root >= 0) {
    wring::Broadcast<None<T>, InProcessTransport, AnyAlgorithm> broadcast(None<T>{}, link, spec.algorithm,
                                                                          spec.options);
    return broadcast.start(Exec{}, tensors, spec.root);
  }
  return Sum<None<T>>(None<T>{}, link, spec.algorithm, spec.options).start(Exec{}, tensors);
}

/// Rank `odd` of `ranks` calls it differently.
void disagree(const char* field, const Spec& others, const Spec& different) {
  for (const int ranks : {2, 3, 4, 7})
    for (const int odd : {0, ranks - 1}) {
      InProcess world(ranks, {.eager_limit = 0, .delay = 1, .seed = 2});
      std::vector<Rank<double>> data(static_cast<std::size_t>(ranks));
      const auto outcomes = on_all_ranks(world, [&](int r) {
        return start(r == odd ? different : others, world.link(r), data[static_cast<std::size_t>(r)]);
      });
      INFO(field << ", rank " << odd << " of " << ranks << describe(outcomes));
      REQUIRE(all_failed(outcomes, Cause::mismatch));
      for (std::size_t r = 0; r < data.size(); ++r) {
        REQUIRE(data[r].untouched());
        REQUIRE(outcomes[r].text == outcomes[0].text);
        REQUIRE(outcomes[r].text.find(field) != std::string::npos);
        REQUIRE(outcomes[r].text.find("rank " + std::to_string(odd)) != std::string::npos);
      }
      const auto again = on_all_ranks(
          world, [&](int r) { return start(others, world.link(r), data[static_cast<std::size_t>(r)]); });
      REQUIRE(all_ok(again));
    }
}

}  // namespace

TEST_CASE("agreement: length", "[collective][agreement]") {
  disagree("length", {.length = 20}, {.length = 21});
  disagree("length", {.length = 20}, {.length = 0});
  disagree("length", {.length = 20}, {.length = 50000});
  disagree("length", {.length = 50000}, {.length = 10});
}

TEST_CASE("agreement: operation, root, collective", "[collective][agreement]") {
  disagree("operation", {}, {.options = {.operation = wring::max}});
  disagree("root", {.root = 0}, {.root = 1});
  disagree("collective", {.root = 0}, {});
}

TEST_CASE("agreement: error bound", "[collective][agreement]") {
  disagree("bound", {.bound = wring::absolute(1e-3)}, {.bound = wring::absolute(1e-4)});
  disagree("bound", {.bound = wring::absolute(1e-3)}, {});
  disagree("bound", {.bound = wring::absolute(1e-3)}, {.bound = wring::relative_to_rms(1e-3)});
}

TEST_CASE("agreement: algorithm and node layout", "[collective][agreement]") {
  disagree("algorithm", {}, {.algorithm = wring::Direct{}});
  disagree("algorithm", {.length = 9000}, {.length = 9000, .algorithm = wring::RecursiveDoubling{}});
  struct SameName : wring::RecursiveDoubling {  // another plan under the same name
    const char* name() const { return "ring"; }
  };
  disagree("algorithm", {}, {.algorithm = SameName{}});
  struct OtherNodes : wring::Ring {
    std::uint64_t layout() const { return 7; }
  };
  disagree("node layout", {}, {.algorithm = OtherNodes{}});
}

TEST_CASE("agreement: options", "[collective][agreement]") {
  disagree("options", {}, {.options = {.segment_bytes = 4096}});
  disagree("options", {}, {.options = {.depth = 2}});
  disagree("options", {}, {.options = {.ride_along_bytes = 0}});
  disagree("options", {}, {.options = {.confirm = true}});
  disagree("options", {},
           {.options = {.step = 1}});  // ranks would draw, and undo a rotation, unlike each other
}

TEST_CASE("agreement: element type", "[collective][agreement]") {
  const auto differ = [](auto one, auto other) {
    InProcess world(2);
    Rank<decltype(one)> a;
    Rank<decltype(other)> b;
    const auto outcomes = on_all_ranks(world, [&](int r) {
      return r == 0 ? start(Spec{}, world.link(0), a) : start(Spec{}, world.link(1), b);
    });
    INFO(describe(outcomes));
    REQUIRE(all_failed(outcomes, Cause::mismatch));
    REQUIRE(outcomes[0].text.find("element type") != std::string::npos);
    REQUIRE((a.untouched() && b.untouched()));
  };
  differ(double{}, std::int64_t{});
  differ(double{}, float{});
  differ(std::int32_t{}, std::uint32_t{});
  differ(std::int64_t{}, Kokkos::complex<float>{});
}

TEST_CASE("agreement: compressor and its options", "[collective][agreement]") {
  using wring::Cast, wring::Overflow, wring::half_t, wring::bhalf_t;
  const auto differ = [](auto one, auto other) {
    InProcess world(3);
    std::vector<Rank<float>> data(3);
    const auto outcomes = on_all_ranks(world, [&](int rank) {
      auto& view = data[static_cast<std::size_t>(rank)].data;
      view = Kokkos::View<float*, Kokkos::HostSpace>("data", 5000);
      Kokkos::deep_copy(view, 3);
      if (rank == 1) return Sum<decltype(other)>(other, world.link(rank), wring::Ring{}).start(Exec{}, view);
      return Sum<decltype(one)>(one, world.link(rank), wring::Ring{}).start(Exec{}, view);
    });
    INFO(describe(outcomes));
    REQUIRE(all_failed(outcomes, Cause::mismatch));
    REQUIRE(outcomes[0].text.find("compressor (its options") != std::string::npos);
    for (const auto& rank : data) REQUIRE(rank.untouched());
  };
  differ(None<float>{}, Cast<half_t>{});
  differ(Cast<half_t>{}, Cast<bhalf_t>{});
  differ(Cast<half_t>{}, Cast<half_t>(Overflow::infinity));
}

TEST_CASE("agreement: operations started in another order", "[collective][agreement]") {
  InProcess world(2);
  std::vector<Rank<double>> a(2), b(2);
  std::vector<wring::Request> first(2), second(2);
  const Spec small{.length = 10}, large{.length = 3000};
  first[0] = start(small, world.link(0), a[0]), second[0] = start(large, world.link(0), b[0]);
  second[1] = start(large, world.link(1), b[1]), first[1] = start(small, world.link(1), a[1]);
  for (const auto& outcomes : {complete(world, first), complete(world, second)})
    for (const Outcome& o : outcomes) REQUIRE(o == Cause::mismatch);
  for (std::size_t r = 0; r < 2; ++r) REQUIRE((a[r].untouched() && b[r].untouched()));
}

TEST_CASE("agreement: a fault of one rank's call is told to all, in full", "[collective][agreement]") {
  const auto faulty = [](const Spec& good, const Spec& bad, const char* words) {
    for (const int ranks : {1, 2, 3, 5}) {
      InProcess world(ranks);
      std::vector<Rank<double>> data(static_cast<std::size_t>(ranks));
      const int culprit = ranks - 1;
      const auto outcomes = on_all_ranks(world, [&](int r) {
        return start(r == culprit ? bad : good, world.link(r), data[static_cast<std::size_t>(r)]);
      });
      INFO(words << describe(outcomes));
      REQUIRE(all_failed(outcomes, Cause::argument, culprit));
      for (const Outcome& o : outcomes) REQUIRE(o.text.find(words) != std::string::npos);
      for (const auto& rank : data) REQUIRE(rank.untouched());
    }
  };
  faulty({}, {.options = {.depth = 0}}, "depth is 0, not 1..30");
  faulty({}, {.options = {.depth = 31}}, "depth is 31, not 1..30");
  faulty({}, {.options = {.segment_bytes = 0}}, "segment_bytes is 0");
  faulty({}, {.options = {.segment_bytes = std::size_t{1} << 40}}, "exceed 1 GiB");
  faulty({.root = 0}, {.root = 9}, "root 9 is no rank of 0..");
  faulty({.bound = wring::absolute(1)}, {.bound = wring::absolute(-1)}, "the bound is -1");
  faulty({}, {.algorithm = wring::Hierarchical<>(std::vector<int>{40, 2})}, "42");
  struct Broken : wring::Ring {
    wring::Plan plan(wring::Task, int rank, int ranks) const {
      wring::Plan plan{rank, ranks, 2};
      plan.send(ranks, 0, 1);
      return plan;
    }
  };
  faulty({}, {.algorithm = Broken{}}, "impossible step");
}

TEST_CASE("agreement: of several faults, the lowest rank's is told", "[collective][agreement]") {
  InProcess world(4);
  std::vector<Rank<double>> data(4);
  const auto outcomes = on_all_ranks(world, [&](int r) {
    return start(Spec{.options = {.depth = r == 0 || r == 2 ? 4 : -r}}, world.link(r),
                 data[static_cast<std::size_t>(r)]);
  });
  INFO(describe(outcomes));
  REQUIRE(all_failed(outcomes, Cause::argument, 1));
}

TEST_CASE("agreement: a bound that no compressor could promise is refused on every rank",
          "[collective][agreement]") {
  InProcess world(2);
  std::vector<Kokkos::View<float*, Kokkos::HostSpace>> data;
  for (int r = 0; r < 2; ++r) data.emplace_back("data", 3), Kokkos::deep_copy(data.back(), 3);
  using Codec = wring::Cast<wring::half_t>;
  const auto outcomes = on_all_ranks(world, [&](int r) {
    const auto tensor = wring::item(data[static_cast<std::size_t>(r)], wring::absolute(1));
    return Sum<Codec>(Codec{}, world.link(r), wring::Ring{}).start(Exec{}, wring::group(tensor));
  });
  INFO(describe(outcomes));
  REQUIRE(all_failed(outcomes, Cause::argument));
  REQUIRE(outcomes[1].text.find("promises no bound") != std::string::npos);
}
