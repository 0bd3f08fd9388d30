// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Automatic: each of its ways obeys the laws; what it chooses is what the cost model says is fastest; the user's options stay.

#include <wring/algorithm/automatic.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include <wring/algorithm/cost.hpp>
#include <wring/testing/algorithm_laws.hpp>

using namespace wring;

namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// A network and a codec, described by two speeds.
Machine machine(double bandwidth, double codec) {
  Machine m = typical_node();
  m.bandwidth = bandwidth, m.encode = m.combine = m.decode = codec;
  return m;
}

/// An allreduce of a compressor that decodes to add, unless said otherwise.
Situation situation(std::size_t bytes, int ranks = 4) {
  Situation s;
  s.ranks = ranks, s.load.bytes = bytes, s.load.ratio = 4;
  return s;
}

Choice chosen(const Machine& m, const Situation& s) { return Automatic(m).choose(s); }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

constexpr double slow = 12.5e6, fast = 1e15;

static_assert(AdaptiveAlgorithm<Automatic> && !AdaptiveAlgorithm<Ring> && !AdaptiveAlgorithm<detail::Route>);

}  // namespace

TEST_CASE("every way that Automatic may go obeys the laws") {
  for (int number = 0; number < detail::Route::count; ++number) {
    INFO(number);
    CHECK(joined(testing::check_algorithm_laws(detail::Route(number), 20)) == "");
  }
  CHECK(joined(testing::check_algorithm_laws(Automatic{}, 20)) == "");
}

TEST_CASE("uncompressed ways have the steps of their algorithms, all of them raw") {
  for (int number = detail::Route::algorithms; number < detail::Route::count; ++number)
    for (const int p : {1, 3, 4, 6})
      for (int rank = 0; rank < p; ++rank) {
        const Plan raw = detail::Route(number).plan({}, rank, p),
                   coded = detail::Route(number - detail::Route::algorithms).plan({}, rank, p);
        REQUIRE(raw.steps.size() == coded.steps.size());
        for (std::size_t i = 0; i < raw.steps.size(); ++i) {
          Step step = coded.steps[i];
          step.wire = Wire::raw, step.budget = 0;
          CHECK(raw.steps[i] == step);
        }
      }
}

TEST_CASE("a slow link is worth compressing for, a fast one with a slow codec is not") {
  const std::size_t bytes = GENERATE(std::size_t(1) << 20, std::size_t(64) << 20);
  const int p = GENERATE(2, 3, 4, 16);
  for (const Collective c :
       {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast}) {
    Situation s = situation(bytes, p);
    s.task.collective = c;
    CAPTURE(bytes, p, name_of(c));
    CHECK(chosen(machine(slow, 4e9), s).compressed);
    CHECK_FALSE(chosen(machine(fast, 1e8), s).compressed);
    s.load.ratio = 1;  // it does not compress at all
    CHECK_FALSE(chosen(machine(slow, 4e9), s).compressed);
  }
}

TEST_CASE("nothing that Automatic may choose is predicted to be faster") {
  const std::size_t bytes = GENERATE(8u, 20000u, 1u << 20, 16u << 20);
  const double bandwidth = GENERATE(slow, 1.25e9, fast);
  const Machine m = machine(bandwidth, 3e9);
  const Situation s = situation(detail::rounded_bytes(bytes), 6);
  const Choice choice = Automatic(m).choose(s);
  for (int number = 0; number < detail::Route::count; ++number) {
    const double seconds = predict(detail::Route(number), s.task, s.ranks, s.load, m).seconds;
    CAPTURE(bytes, bandwidth, number, choice.reason);
    CHECK(choice.seconds <= seconds);
    if (number == choice.variant) {
      Load load = s.load;
      load.segment_bytes = choice.segment_bytes, load.depth = choice.depth;
      CHECK(predict(detail::Route(number), s.task, s.ranks, load, m).seconds == choice.seconds);
    }
  }
}

TEST_CASE("a few bytes ride along where they can, else they take the fewest messages") {
  Situation s = situation(8, 16);
  const Choice moved = chosen(machine(slow, 4e9), s);
  CHECK_FALSE(moved.rides_along);
  CHECK(detail::Route(moved.variant).name() == "recursive_doubling");
  s.load.combines = true;
  for (const RidesAlong how : {RidesAlong::summed, RidesAlong::gathered}) {
    s.ride = how;
    const Choice rode = chosen(machine(slow, 4e9), s);
    CHECK(rode.rides_along);
    CHECK(rode.seconds < moved.seconds);
    CHECK(contains(rode.ride_reason, "rode along: "));
    s.load.bytes = 16384;  // everybody's values to everybody, over a slow link
    if (how == RidesAlong::gathered) CHECK_FALSE(chosen(machine(slow, 4e9), s).rides_along);
    s.load.bytes = 8;
  }
}

TEST_CASE("what the user has given is not chosen") {
  Situation s = situation(64 << 20);
  const Choice free = chosen(machine(1.25e9, 4e9), s);
  CHECK((free.segment_bytes != 4096 && free.depth != 3));
  s.load.segment_bytes = 4096, s.segment_given = true;
  CHECK(chosen(machine(1.25e9, 4e9), s).segment_bytes == 4096);
  s.load.depth = 3, s.depth_given = true;
  CHECK(chosen(machine(1.25e9, 4e9), s).segment_bytes == 4096);
  CHECK(chosen(machine(1.25e9, 4e9), s).depth == 3);
  s.load.bytes = 8, s.ride = RidesAlong::summed;
  CHECK(chosen(machine(1.25e9, 4e9), s).rides_along);
  s.ride_given = true;
  CHECK_FALSE(chosen(machine(1.25e9, 4e9), s).rides_along);
  s.load.segment_bytes = std::size_t(1) << 40;
  CHECK_THROWS_AS(chosen(machine(1.25e9, 4e9), s), InvalidArgument);
}

TEST_CASE("pieces that are only moved, of a compressor that combines, are never unpacked") {
  Situation s = situation(1 << 20);
  s.load.combines = true, s.task.collective = Collective::broadcast;
  const Choice choice = chosen(machine(fast, 1e8), s);
  CHECK(choice.compressed);
  CHECK_FALSE(contains(choice.reason, "uncompressed"));
}

TEST_CASE("pieces of a compressor that combines, and has one form alone, are never said to be unpacked") {
  Situation s = situation(1 << 20);
  s.load.combines = true;
  const Machine m = machine(fast, 1e8);  // compression does not pay
  CHECK_FALSE(chosen(m, s).compressed);
  s.load.packs_always = true;
  const Choice choice = chosen(m, s);
  CHECK(choice.compressed);
  CHECK_FALSE(contains(choice.reason, "uncompressed"));
}

TEST_CASE("the reason has figures, and fits into a report") {
  const Choice compressed = chosen(machine(slow, 4e9), situation(64 << 20, 13));
  CHECK(compressed.reason.starts_with("compressed, "));
  CHECK(contains(compressed.reason, " s predicted; uncompressed ring "));
  CHECK(contains(compressed.reason, "(ratio 4 assumed; machine given, 0.1 Gb/s)"));
  const Choice plain = chosen(machine(fast, 1e8), situation(1000));
  CHECK(plain.reason.starts_with("uncompressed, "));
  CHECK(std::max(compressed.reason.size(), plain.reason.size()) + 20 < 192);
}

TEST_CASE("the reason says what it rests on") {
  Situation s = situation(1 << 20);
  Automatic automatic;
  CHECK(contains(automatic.choose(s).reason, "(ratio 4 assumed; machine assumed, 10 Gb/s)"));
  CHECK(contains(Automatic(typical_node()).choose(s).reason, "machine assumed"));
  s.ratio_source = RatioSource::seen;
  automatic.use(machine(slow, 4e9));
  CHECK(contains(automatic.choose(s).reason, "(ratio 4 seen; machine calibrated, 0.1 Gb/s)"));
  s.ratio_source = RatioSource::fixed, s.load.bytes = 8, s.load.combines = true, s.ride = RidesAlong::summed;
  CHECK(contains(automatic.choose(s).ride_reason, "(ratio 4 fixed; machine calibrated, 0.1 Gb/s)"));
}

TEST_CASE("a choice is made once, and its plan is the one that is followed") {
  Automatic automatic(machine(slow, 4e9));
  const Choice* first = &automatic.adapt(situation(1 << 20));
  const Plan plan = automatic.plan({}, 1, 4);
  CHECK(plan == detail::Route(first->variant).plan({}, 1, 4));
  CHECK(automatic.name() == "automatic: " + detail::Route(first->variant).name());
  CHECK(&automatic.adapt(situation((1 << 20) + 1000)) == first);  // nearly as long
  automatic.adapt(situation(8));
  CHECK(automatic.name() == "automatic: recursive_doubling");
  automatic.adapt(situation(1 << 20));
  CHECK(automatic.plan({}, 1, 4) == plan);
  for (std::size_t i = 1; i < 3 * Automatic::most_choices; ++i) {  // more than it keeps
    const Situation s = situation(4096 << (i % 4), static_cast<int>(i));
    CHECK(automatic.adapt(s).seconds == automatic.choose(s).seconds);
  }
}

TEST_CASE("another machine is another identity, and other choices") {
  Automatic automatic;
  CHECK(automatic.identity() == Automatic(typical_node()).identity());
  CHECK(automatic.identity() != Automatic(machine(slow, 4e9)).identity());
  automatic.use(machine(fast, 1e8));
  CHECK(automatic.identity() == Automatic(machine(fast, 1e8)).identity());
  CHECK_FALSE(automatic.adapt(situation(1 << 20)).compressed);
  automatic.use(machine(slow, 4e9));
  CHECK(automatic.adapt(situation(1 << 20)).compressed);
  CHECK_THROWS_AS(Automatic(machine(0, 4e9)), InvalidArgument);
}

TEST_CASE("sizes are rounded to three binary digits, the nearest") {
  CHECK(detail::rounded_bytes(0) == 0);
  CHECK(detail::rounded_bytes(7) == 7);
  CHECK(detail::rounded_bytes(9) == 10);
  CHECK(detail::rounded_bytes(1000) == 1024);
  CHECK(detail::rounded_bytes(1100) == 1024);
  CHECK(detail::rounded_bytes(1200) == 1280);
  CHECK(detail::rounded_bytes(~std::size_t(0)) == std::size_t(7) << 61);
}
