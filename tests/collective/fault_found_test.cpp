// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the campaign has found once, each with one of its smallest cases.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/none.hpp>

#include "collective/fault_campaign.hpp"

using namespace wring_test;

namespace {

std::string verdict_on(const Exercise& e, const std::vector<Fault>& faults) {
  Verdicts verdicts;
  Judge<wring::None<float>> judge(e, verdicts);
  for (const Fault& fault : faults) judge.judge(fault);
  return verdicts.none() ? std::string() : verdicts.text();
}

Exercise exercise(int ranks, bool confirm = false, Lengths lengths = {40}) {
  Exercise e{.ranks = ranks, .lengths = std::move(lengths)};
  e.options.ride_along_bytes = 0;
  e.options.confirm = confirm;
  return e;
}

}  // namespace

TEST_CASE("faults found: a link that fails for good", "[collective][faults]") {
  CHECK(verdict_on(exercise(2), {{.kind = FaultKind::die, .messages = MessageKind::data}}) == "");
}

TEST_CASE("faults found: a head that cannot be sent or received at all", "[collective][faults]") {
  for (const int ranks : {2, 3, 5})
    for (int rank = 0; rank < ranks; ++rank)
      for (const Side side : {Side::send, Side::receive})
        CHECK(verdict_on(exercise(ranks), {{.kind = FaultKind::throw_at_start,
                                            .rank = rank,
                                            .messages = MessageKind::agreement,
                                            .side = side}}) == "");
}

TEST_CASE("faults found: a damaged head gives errors that name a rank", "[collective][faults]") {
  CHECK(verdict_on(exercise(3), {{.kind = FaultKind::flip, .rank = 2, .messages = MessageKind::agreement}}) ==
        "");
}

TEST_CASE("faults found: with confirm, a damaged head gives the same error everywhere",
          "[collective][faults]") {
  CHECK(verdict_on(exercise(3, true),
                   {{.kind = FaultKind::flip, .rank = 2, .messages = MessageKind::agreement}}) == "");
}

TEST_CASE("faults found: a damaged confirmation is told by the next operation", "[collective][faults]") {
  CHECK(verdict_on(exercise(2, true),
                   {{.kind = FaultKind::flip, .rank = 1, .messages = MessageKind::agreement, .number = 1}}) ==
        "");
}

TEST_CASE("faults found: with confirm, a failure to agree is told once", "[collective][faults]") {
  CHECK(verdict_on(exercise(2, true),
                   {{.kind = FaultKind::flip, .rank = 1, .messages = MessageKind::agreement}}) == "");
}
