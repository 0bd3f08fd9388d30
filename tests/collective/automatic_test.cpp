// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Automatic in the executor: results do not depend on what it chooses, all ranks choose alike, the ratio that was seen counts, and ranks
// that disagree hear of it as with any algorithm.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cstddef>
#include <cstring>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/compressor/threshold.hpp>
#include <wring/testing/faulty_transport.hpp>
#include <wring/transport/in_process.hpp>
#include <wring/transport/simulated.hpp>

#include "support/exact.hpp"
#include "support/executors.hpp"
#include "support/ranks.hpp"
#include "support/values.hpp"

using namespace wring;
using namespace wring_test;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<float*, Kokkos::HostSpace>;

View view_of(const std::vector<float>& values) {
  View view("values", values.size());
  std::copy(values.begin(), values.end(), view.data());
  return view;
}
std::vector<float> copy_of(const View& view) { return {view.data(), view.data() + view.size()}; }

Machine machine(double bandwidth, double codec, double latency = 1e-5) {
  Machine m = typical_node();
  m.bandwidth = bandwidth, m.latency = latency, m.encode = m.combine = m.decode = codec;
  return m;
}

/// Values that are all the same take a flag and one value, others a flag and all of them. A compressor of values, lossless.
struct Repeated {
  using value_type = float;
  static constexpr bool lossless = true;
  static std::size_t max_compressed_bytes(std::size_t n) { return 4 * (n + 1); }
  static double error(double) { return 0; }
  static Identity identity() { return {.name = "repeated", .version = 1, .options = {}}; }
  std::size_t compress(const Exec&, std::span<const float> values, std::span<std::byte> bytes,
                       const Context&) const {
    bool same = true;
    for (const float x : values) same = same && x == values[0];
    const std::size_t count = same ? std::min<std::size_t>(1, values.size()) : values.size();
    const float flag = same ? 1 : 0;
    std::memcpy(bytes.data(), &flag, 4);
    if (count > 0) std::memcpy(bytes.data() + 4, values.data(), 4 * count);
    return 4 + 4 * count;
  }
  void decompress(const Exec&, std::span<const std::byte> bytes, std::span<float> values,
                  const Context&) const {
    float flag = 0;
    if (bytes.size() < 4) throw CodecError("repeated: cut short");
    std::memcpy(&flag, bytes.data(), 4);
    const std::size_t count = flag == 1 ? std::min<std::size_t>(1, values.size()) : values.size();
    if (bytes.size() != 4 + 4 * count) throw CodecError("repeated: wrong size");
    for (std::size_t i = 0; i < values.size(); ++i)
      std::memcpy(&values[i], bytes.data() + 4 + (flag == 1 ? 0 : 4 * i), 4);
  }
};
static_assert(LosslessCompressor<Repeated> && !FixedSizeCompressor<Repeated>);

/// Allreduce objects on all ranks of a world in one thread, all of them alike unless told otherwise.
template <class Codec, class Schedule = Automatic, class Link = InProcessTransport> struct Sums {
  std::deque<Allreduce<Codec, Link, Schedule>> objects;

  template <class World>
  Sums(World& world, int ranks, const Schedule& schedule, Options options = {}) {
    for (int r = 0; r < ranks; ++r) objects.emplace_back(Codec{}, world.link(r), schedule, options);
  }
  auto& operator[](int rank) { return objects[static_cast<std::size_t>(rank)]; }
};

std::vector<View> inputs_of(int ranks, std::size_t n, double greatest = 4) {
  std::vector<View> views;
  for (int r = 0; r < ranks; ++r)
    views.push_back(view_of(real_numbers<float>(n, static_cast<std::uint64_t>(r), greatest)));
  return views;
}

/// Runs an allreduce on all ranks; what all of them report.
template <class S> std::vector<Outcome> run(InProcess& world, S& sums, const std::vector<View>& data,
                                            std::optional<Bound> bound) {
  return on_all_ranks(world, [&](int r) {
    const View& view = data[static_cast<std::size_t>(r)];
    return sums[r].start(Exec{}, group(item(view, bound)));
  });
}

bool alike(const std::vector<Outcome>& outcomes) {
  for (const Outcome& o : outcomes)
    if (!o.ok() || o.report.algorithm.str() != outcomes[0].report.algorithm.str() ||
        o.report.reason.str() != outcomes[0].report.reason.str() ||
        o.report.rode_along != outcomes[0].report.rode_along ||
        o.report.segments != outcomes[0].report.segments)
      return false;
  return true;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("automatic: with Grid, the bits are those of the ring, whatever is chosen",
          "[collective][automatic]") {
  const int p = GENERATE(1, 2, 3, 4, 6);
  const bool absolutely = GENERATE(true, false);
  const Bound bound = absolutely ? absolute(1e-3) : relative_to_rms(1e-2);
  std::set<std::string> chosen;
  for (const std::size_t n : {0u, 1u, 100u, 3000u, 70000u})
    for (const Machine& m :
         {machine(1e6, 1e9), machine(1e9, 1e9, 1e-3), machine(1e9, 1e9, 1e-7), machine(1e14, 1e8)}) {
      InProcess world(p);
      Sums<Grid<float>> sums(world, p, Automatic(m));
      Sums<Grid<float>, Ring> rings(world, p, Ring{});
      const std::vector<View> got = inputs_of(p, n), expected = inputs_of(p, n);
      const auto outcomes = run(world, sums, got, bound);
      CAPTURE(p, n, absolutely, outcomes[0].report.reason.str());
      REQUIRE(alike(outcomes));
      REQUIRE(all_ok(run(world, rings, expected, bound)));
      for (std::size_t r = 0; r < got.size(); ++r) REQUIRE(same_bits(copy_of(got[r]), copy_of(expected[r])));
      chosen.insert(outcomes[0].report.algorithm.str());
    }
  if (p == 4) CHECK(chosen.size() >= 2);
}

TEST_CASE("automatic: with Grid, every way that may be chosen gives the bits of the ring",
          "[collective][automatic]") {
  const int p = GENERATE(2, 3, 4, 6);
  const Bound bound = GENERATE(absolute(1e-3), relative_to_rms(1e-2));
  const std::size_t n = GENERATE(100u, 30000u);
  InProcess world(p);
  Sums<Grid<float>, Ring> rings(world, p, Ring{}, {.ride_along_bytes = 0});
  const std::vector<View> expected = inputs_of(p, n);
  REQUIRE(all_ok(run(world, rings, expected, bound)));
  for (int number = 0; number < detail::Route::count; ++number) {
    Sums<Grid<float>, detail::Route> sums(world, p, detail::Route(number),
                                          {.segment_bytes = 32768, .ride_along_bytes = 0});
    const std::vector<View> got = inputs_of(p, n);
    REQUIRE(all_ok(run(world, sums, got, bound)));
    for (std::size_t r = 0; r < got.size(); ++r) REQUIRE(same_bits(copy_of(got[r]), copy_of(expected[r])));
  }
}

TEST_CASE("automatic: every collective, compressed or not", "[collective][automatic]") {
  const int p = 4;
  const std::size_t n = GENERATE(10u, 5000u, 60000u);
  for (const Machine& m : {machine(1e6, 1e9), machine(1e14, 1e8)}) {
    InProcess world(p);
    std::deque<ReduceScatter<Repeated, InProcessTransport, Automatic>> scatterers;
    std::deque<Allgather<Repeated, InProcessTransport, Automatic>> gatherers;
    std::deque<Broadcast<Repeated, InProcessTransport, Automatic>> broadcasts;
    std::vector<View> whole, part, all;
    for (int r = 0; r < p; ++r) {
      scatterers.emplace_back(Repeated{}, world.link(r)),
          scatterers.back() = {Repeated{}, world.link(r), Automatic(m)};
      gatherers.emplace_back(Repeated{}, world.link(r), Automatic(m));
      broadcasts.emplace_back(Repeated{}, world.link(r), Automatic(m));
      whole.push_back(view_of(whole_numbers<float>(n * p, static_cast<std::uint64_t>(r))));
      part.emplace_back("part", n), all.emplace_back("all", n * p);
    }
    const auto at = [](auto& objects, int r) -> auto& { return objects[static_cast<std::size_t>(r)]; };
    const auto scattered = on_all_ranks(
        world, [&](int r) { return at(scatterers, r).start(Exec{}, at(whole, r), at(part, r)); });
    REQUIRE(alike(scattered));
    const auto gathered =
        on_all_ranks(world, [&](int r) { return at(gatherers, r).start(Exec{}, at(part, r), at(all, r)); });
    REQUIRE(alike(gathered));
    for (std::size_t i = 0; i < n * p; ++i) {
      float sum = 0;
      for (const View& v : whole) sum += v(i);
      for (const View& v : all) REQUIRE(v(i) == sum);
    }
    const auto cast =
        on_all_ranks(world, [&](int r) { return at(broadcasts, r).start(Exec{}, at(whole, r), 2); });
    REQUIRE(alike(cast));
    for (const View& v : whole) REQUIRE(copy_of(v) == whole_numbers<float>(n * p, 2));
    if (n > 5000)
      for (const auto& outcomes : {scattered, gathered, cast})
        CHECK(outcomes[0].report.reason.str().starts_with(m.bandwidth < 1e9 ? "compressed" : "uncompressed"));
  }
}

TEST_CASE("automatic: the least ratio of all ranks counts, on all of them", "[collective][automatic]") {
  const int p = 4;
  const std::size_t n = 40000;
  InProcess world(p);
  Sums<Repeated> sums(world, p, Automatic(machine(1e7, 5e7)));
  std::vector<View> constant(p), mixed(p);
  for (int r = 0; r < p; ++r) {
    constant[static_cast<std::size_t>(r)] = view_of(std::vector<float>(n, 1));
    mixed[static_cast<std::size_t>(r)] =
        view_of(r == 2 ? whole_numbers<float>(n, 7) : std::vector<float>(n, 0));
  }
  const auto reason = [](const std::vector<Outcome>& outcomes) {
    REQUIRE(alike(outcomes));
    return outcomes[0].report.reason.str();
  };
  CHECK(contains(reason(run(world, sums, constant, std::nullopt)), "(ratio 4 assumed; machine given"));
  CHECK(contains(reason(run(world, sums, constant, std::nullopt)),
                 "(ratio 4 assumed;"));  // carries what was seen
  CHECK(contains(reason(run(world, sums, mixed, std::nullopt)), "(ratio 16 seen;"));
  run(world, sums, mixed, std::nullopt);
  const std::string poor = reason(run(world, sums, mixed, std::nullopt));
  CHECK(poor.starts_with("uncompressed"));
  CHECK(contains(poor, "(ratio 1 seen;"));
  for (int i = 0; i < detail::Experience::memory; ++i)
    REQUIRE(contains(reason(run(world, sums, constant, std::nullopt)), "(ratio 1 seen;"));
  for (int i = 0; i < 2; ++i)  // unknown again
    CHECK(reason(run(world, sums, constant, std::nullopt)).starts_with("compressed"));
  CHECK(contains(reason(run(world, sums, constant, std::nullopt)), "(ratio 16 seen;"));
}

// Its pieces have one form: whatever is chosen, they travel as they are.
TEST_CASE("automatic: sparse pieces are compressed, and the report says so", "[collective][automatic]") {
  static_assert(WideFormCompressor<Grid<float>> && !WideFormCompressor<Threshold<float>>);
  InProcess world(2);
  Sums<Threshold<float>> sums(world, 2, Automatic(machine(1e14, 1e8)));  // compression does not pay
  for (int i = 0; i < 2; ++i) {
    const auto outcomes = run(world, sums, inputs_of(2, 30000), std::nullopt);
    REQUIRE(all_ok(outcomes));
    CHECK(outcomes[1].report.reason.str().starts_with("compressed"));
    CHECK_FALSE(contains(outcomes[1].report.reason.str(), "uncompressed"));
  }
}

TEST_CASE("automatic: a size known beforehand is no matter of experience", "[collective][automatic]") {
  InProcess world(2);
  Sums<None<float>> nones(world, 2, Automatic(machine(1e7, 1e9)));
  Sums<Cast<half_t>> casts(world, 2, Automatic(machine(1e7, 1e9)));
  for (int i = 0; i < 3; ++i) {
    const auto none = run(world, nones, inputs_of(2, 30000), std::nullopt),
               cast = run(world, casts, inputs_of(2, 30000), std::nullopt);
    CHECK(contains(none[1].report.reason.str(), "(ratio 1 fixed;"));
    CHECK(none[1].report.reason.str().starts_with("uncompressed"));
    CHECK(contains(cast[1].report.reason.str(), "(ratio 2 fixed;"));
    CHECK(cast[1].report.reason.str().starts_with("compressed"));
  }
}

TEST_CASE("automatic: what the user's options say is not chosen", "[collective][automatic]") {
  InProcess world(4);
  const Machine m = machine(1e8, 4e9);
  Sums<Grid<float>> free(world, 4, Automatic(m)), bounded(world, 4, Automatic(m), {.ride_along_bytes = 0}),
      cut(world, 4, Automatic(m), {.segment_bytes = 4096, .depth = 3});
  CHECK(run(world, free, inputs_of(4, 10), absolute(0.1))[0].report.rode_along);
  CHECK_FALSE(run(world, bounded, inputs_of(4, 10), absolute(0.1))[0].report.rode_along);
  const auto outcomes = run(world, cut, inputs_of(4, 100000), absolute(0.1));
  REQUIRE(alike(outcomes));
  CHECK(contains(outcomes[0].report.reason.str(), "4 KiB segments, depth 3"));
}

TEST_CASE("automatic: ranks that disagree hear of it as with any algorithm", "[collective][automatic]") {
  struct Case {
    std::string field;
    std::size_t length = 50000;
    Options options{};
    Machine m = typical_node();
    Bound bound = absolute(1e-3);
  };
  const std::vector<Case> cases{{.field = "length", .length = 10},
                                {.field = "length", .length = 50001},
                                {.field = "length", .length = 10000000},
                                {.field = "options", .options = {.segment_bytes = 8192}},
                                {.field = "options", .options = {.depth = 7}},
                                {.field = "options", .options = {.confirm = true}},
                                {.field = "operation", .options = {.operation = wring::max}},
                                {.field = "error bound", .bound = relative_to_rms(1e-3)},
                                {.field = "node layout, or machine of Automatic", .m = machine(1e6, 1e8)}};
  for (const Case& odd : cases)
    for (const int ranks : {2, 3, 4}) {
      InProcess world(ranks);
      const Case usual;
      std::deque<Allreduce<Grid<float>, InProcessTransport, Automatic>> sums;
      std::deque<Allreduce<Grid<float>, InProcessTransport, Ring>> rings;
      std::vector<View> data;
      for (int r = 0; r < ranks; ++r) {
        const Case& mine = r == 1 ? odd : usual;
        sums.emplace_back(Grid<float>{}, world.link(r), Automatic(mine.m), mine.options);
        rings.emplace_back(Grid<float>{}, world.link(r), Ring{}, mine.options);
        data.emplace_back("data", mine.length);
      }
      const auto start = [&](auto& objects) {
        return on_all_ranks(world, [&](int r) {
          const auto i = static_cast<std::size_t>(r);
          return objects[i].start(Exec{}, data[i], r == 1 ? odd.bound : usual.bound);
        });
      };
      const auto outcomes = start(sums);
      INFO(odd.field << describe(outcomes));
      REQUIRE(all_failed(outcomes, Cause::mismatch));
      CHECK(contains(outcomes[0].text, "disagree on the " + odd.field));
      if (odd.field == "length") {
        const auto ring = start(rings);
        for (std::size_t r = 0; r < ring.size(); ++r) CHECK(ring[r].text == outcomes[r].text);
      }
    }
}

TEST_CASE("automatic: after a failure that not all ranks saw, they still choose alike",
          "[collective][automatic]") {
  using Faulty = wring::testing::FaultyTransport<InProcessTransport>;
  using wring::testing::FaultKind;
  using wring::testing::MessageKind;
  const int p = 3;
  for (const MessageKind kind : {MessageKind::data, MessageKind::agreement})
    for (std::uint64_t number = 2; number < 14; ++number) {
      InProcess world(p);
      const wring::testing::FaultPlan plan{
          .faults = {
              {.kind = FaultKind::flip, .rank = 1, .messages = kind, .number = number, .amount = 999}}};
      std::deque<Faulty> links;
      std::deque<Allreduce<Repeated, Faulty, Automatic>> sums;
      for (int r = 0; r < p; ++r) {
        links.emplace_back(world.link(r), plan);
        sums.emplace_back(Repeated{}, links.back(), Automatic(machine(1e7, 5e7)));
      }
      bool failed = false;
      for (int i = 0; i < 20; ++i) {
        const auto outcomes = on_all_ranks(world, [&](int r) {
          const auto values = i % 2 ? whole_numbers<float>(9000, 3) : std::vector<float>(9000, 1);
          return sums[static_cast<std::size_t>(r)].start(Exec{}, view_of(values));
        });
        for (const Outcome& o : outcomes) {
          INFO("operation " << i << ", message " << number << describe(outcomes));
          REQUIRE_FALSE(o.hangs);
          REQUIRE_FALSE(o.cause == Cause::mismatch);
          failed = failed || !o.ok();
        }
        if (i > 16) REQUIRE(alike(outcomes));
      }
      CHECK(failed);
    }
}

TEST_CASE("automatic: a copy learns for itself", "[collective][automatic]") {
  InProcess world(2);
  Sums<Repeated> sums(world, 2, Automatic(machine(1e7, 5e7)));
  const std::vector<View> constant{view_of(std::vector<float>(40000, 1)),
                                   view_of(std::vector<float>(40000, 1))};
  for (int i = 0; i < 2; ++i) run(world, sums, constant, std::nullopt);
  auto copies = sums;
  for (int i = 0; i < 3; ++i) run(world, sums, inputs_of(2, 40000), std::nullopt);
  CHECK(contains(run(world, sums, constant, std::nullopt)[0].report.reason.str(), "(ratio 1 seen;"));
  CHECK(contains(run(world, copies, constant, std::nullopt)[0].report.reason.str(), "(ratio 16 seen;"));
}

TEST_CASE("automatic: ratios travel as the greatest threshold that no rank is below",
          "[collective][automatic]") {
  using detail::RatioMarks;
  CHECK_FALSE(RatioMarks::least(detail::Head::disagree | detail::Head::damaged));
  CHECK((RatioMarks::of(0.5) & (detail::Head::disagree | detail::Head::damaged)) == 0);
  for (const double ratio : RatioMarks::thresholds) {
    CHECK(RatioMarks::least(RatioMarks::of(ratio)) == ratio);
    CHECK(RatioMarks::least(RatioMarks::of(1.05 * ratio) | RatioMarks::of(1000)) == ratio);
    CHECK(RatioMarks::least(RatioMarks::of(ratio) | RatioMarks::of(1)) == 1);
  }
}

TEST_CASE("automatic: in virtual time it is no slower than the ring with the default options",
          "[collective][automatic]") {
  const int p = GENERATE(2, 4, 7);
  const double bandwidth = GENERATE(1e7, 1e9);
  const std::size_t n = GENERATE(100u, 20000u, 500000u);
  const Machine m = machine(bandwidth, 2e9);
  const auto seconds = [&](const auto& schedule) {
    SimulatedNetwork network(p, m);
    Sums<Grid<float>, std::remove_cvref_t<decltype(schedule)>, SimulatedTransport> sums(network, p, schedule);
    const std::vector<View> data = inputs_of(p, n);
    double last = 0;
    for (int i = 0; i < 3; ++i)
      last = simulate(network, [&](SimulatedTransport& link) {
        const auto r = static_cast<std::size_t>(link.rank());
        return sums[link.rank()].start(Exec{}, data[r], relative_to_rms(0.02));
      });
    return last;
  };
  CAPTURE(p, bandwidth, n);
  CHECK(seconds(Automatic(m)) <= 1.06 * seconds(Ring{}));
}
