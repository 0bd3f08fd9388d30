// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the verifier says of plans written by hand, each broken in one way. The message names rank, step and block.

#include <chrono>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <wring/algorithm.hpp>

using namespace wring;

namespace {

constexpr Task allreduce{Collective::allreduce}, reduce_scatter{Collective::reduce_scatter},
    allgather{Collective::allgather}, broadcast{Collective::broadcast};

using Plans = std::vector<Plan>;

/// Plans of `ranks` ranks with no steps yet.
Plans empty_plans(int ranks, int blocks, int budgets = 4) {
  Plans plans;
  for (int r = 0; r < ranks; ++r)
    plans.push_back({.rank = r, .ranks = ranks, .blocks = blocks, .budgets = budgets, .widest = blocks});
  return plans;
}

/// Two ranks exchange the one block and add.
Plans exchange() {
  Plans plans = empty_plans(2, 1);
  for (int r : {0, 1}) {
    plans[r].send(1 - r, 0, 1);
    plans[r].combine(1 - r, 0, 1);
    plans[r].finish(0, 1);
  }
  return plans;
}

std::string error_of(const Plans& plans, Task task) { return verify(plans, task).error; }

}  // namespace

TEST_CASE("right plans are right, and counted") {
  const Verdict verdict = verify(exchange(), allreduce);
  CHECK(verdict.ok());
  CHECK(verdict.steps == 6);
  CHECK(verdict.messages == 2);
  CHECK(verdict.max_outstanding == 1);
  CHECK(verdict.edges.per_budget == std::vector<int>{2, 0, 0, 0});  // both halves of the merge are encoded
  CHECK(verdict.edges.moved == std::vector<double>{1, 0, 0, 0});
  CHECK(verify(Direct{}, allreduce, 9).max_outstanding >= 1);
}

TEST_CASE("what must be equal on all ranks") {
  const auto with = [](auto change) {
    Plans plans = exchange();
    change(plans[1]);
    return error_of(plans, allreduce);
  };
  CHECK(error_of({}, allreduce) == "there are no plans");
  CHECK(with([](Plan& p) { p.rank = 0; }) == "rank 1: its plan says rank 0 of 2, not of 2");
  CHECK(with([](Plan& p) { p.ranks = 3; }) == "rank 1: its plan says rank 1 of 3, not of 2");
  CHECK(with([](Plan& p) { p.blocks = 2; }) == "rank 1: blocks differ from rank 0");
  CHECK(with([](Plan& p) { p.budgets = 2; }) == "rank 1: budgets differ from rank 0");
  CHECK(with([](Plan& p) { p.widest = 2; }) == "rank 1: widest differs from rank 0");
  CHECK(with([](Plan& p) { p.owner = {0}; }) == "rank 1: owner differs from rank 0");
}

TEST_CASE("what must be right by itself") {
  const auto with = [](auto change) {
    Plans plans = exchange();
    for (Plan& plan : plans) change(plan);
    return error_of(plans, allreduce);
  };
  CHECK(with([](Plan& p) { p.blocks = 0; }) == "a plan has at least one block, not 0");
  CHECK(with([](Plan& p) { p.blocks = 2'000'000'000; }) == "the plans are too large to be verified");
  CHECK(with([](Plan& p) { p.widest = 2; }) == "widest is 2");
  CHECK(with([](Plan& p) { p.widest = 0; }) ==
        "rank 0, step 0 (send coded blocks [0, 1) to rank 1): it has more blocks than widest says");
  CHECK(with([](Plan& p) { p.budgets = 0; }) ==
        "rank 0, step 0 (send coded blocks [0, 1) to rank 1): its budget 0 is not below budgets");
  CHECK(with([](Plan& p) { p.owner = {2}; }) == "block 0: its owner 2 is not a rank");
  CHECK(with([](Plan& p) { p.owner = {0, 1}; }) == "owner must have one entry for each block");
  CHECK(with([](Plan& p) { p.steps[1].kind = static_cast<Kind>(9); }) ==
        "rank 0, step 1 (unknown step coded blocks [0, 1)): unknown kind or wire");
  CHECK(with([](Plan& p) { p.steps[0].peer = p.rank; }) ==
        "rank 0, step 0 (send coded blocks [0, 1) to rank 0): its peer is not another rank");
  CHECK(with([](Plan& p) { p.steps[0].first = -1; }) ==
        "rank 0, step 0 (send coded blocks [-1, 1) to rank 1): its blocks are not a range within [0, 1)");
  CHECK(with([](Plan& p) { p.steps[2].peer = 1; }) ==
        "rank 0, step 2 (finish raw blocks [0, 1)): the peer of finish must be -1");
}

TEST_CASE("owners") {
  Plans plans = plans_of(Ring{}, reduce_scatter, 3);
  for (Plan& plan : plans) plan.owner = {0, 1, 1};
  CHECK(error_of(plans, reduce_scatter) == "rank 2 owns no block");
  for (Plan& plan : plans) plan.owner = {};
  CHECK(error_of(plans, reduce_scatter) == "owner must have one entry for each block");
  for (Plan& plan : plans) plan.owner = {1, 0, 2};
  CHECK(error_of(plans, reduce_scatter) ==
        "at the end, rank 1: block 0 holds 1 contribution, where each of 3 is wanted once");
}

TEST_CASE("messages must fit") {
  Plans plans = exchange();
  plans[1].steps.erase(plans[1].steps.begin());
  CHECK(error_of(plans, allreduce) ==
        "rank 0, step 1 (combine coded blocks [0, 1) from rank 1): no step sends this message");
  plans = exchange();
  plans[1].steps.erase(plans[1].steps.begin() + 1);
  CHECK(error_of(plans, allreduce) ==
        "rank 0, step 0 (send coded blocks [0, 1) to rank 1): no step receives this message");
  const std::string unequal =
      "rank 1, step 0 (send coded blocks [0, 1) to rank 0): it meets rank 0, step 1 (combine ";
  plans = exchange();
  plans[0].steps[1].wire = Wire::raw;
  CHECK(error_of(plans, allreduce) ==
        unequal + "raw blocks [0, 1) from rank 1), which differs in blocks, wire or budget");
  plans = exchange();
  plans[0].steps[1].budget = 1;
  CHECK(error_of(plans, allreduce) ==
        unequal + "coded blocks [0, 1) from rank 1), which differs in blocks, wire or budget");
}

TEST_CASE("plans that wait for each other") {
  Plans plans = exchange();
  for (Plan& plan : plans) std::swap(plan.steps[0], plan.steps[1]);
  CHECK(error_of(plans, allreduce) ==
        "rank 0, step 0 (combine coded blocks [0, 1) from rank 1): deadlock: this step is "
        "never possible with one outstanding message per rank");
  // two sends before the first receive need a buffer in the transport: refused, though a lucky run would end
  plans = empty_plans(2, 2);
  for (int r : {0, 1}) {
    for (int b : {0, 1}) plans[r].send(1 - r, b, b + 1);
    for (int b : {0, 1}) plans[r].combine(1 - r, b, b + 1);
    plans[r].finish(0, 2);
  }
  CHECK(error_of(plans, allreduce).find("deadlock") != std::string::npos);
}

TEST_CASE("contributions must be complete, once") {
  Plans plans = exchange();
  for (Plan& plan : plans) std::swap(plan.steps[1], plan.steps[2]);
  CHECK(error_of(plans, allreduce) == "rank 0, step 1 (finish raw blocks [0, 1)): block 0 holds 1 "
                                      "contribution, where each of 2 is wanted once");
  plans = empty_plans(3, 1);  // rank 1 is added twice, rank 2 never: the number of terms is right
  for (int twice : {0, 1}) {
    (void)twice;
    plans[1].send(0, 0, 1);
    plans[0].combine(1, 0, 1);
  }
  plans[0].finish(0, 1);
  CHECK(error_of(plans, allreduce) == "rank 0, step 2 (finish raw blocks [0, 1)): block 0 holds 3 "
                                      "contributions, where each of 3 is wanted once");
}

TEST_CASE("sums must be finished, once") {
  Plans plans = exchange();
  for (Plan& plan : plans) plan.steps.pop_back();
  CHECK(error_of(plans, allreduce) == "at the end, rank 0: block 0 is complete but not finished");
  plans = exchange();
  plans[1].finish(0, 1);
  CHECK(error_of(plans, allreduce) ==
        "rank 1, step 3 (finish raw blocks [0, 1)): block 0 is already finished");
  CHECK(error_of(empty_plans(1, 1), allreduce) == "at the end, rank 0: block 0 is complete but not finished");
  CHECK(error_of(empty_plans(1, 1), broadcast) == "");
  plans = exchange();
  for (int r : {0, 1}) {
    plans[r].send(1 - r, 0, 1);
    plans[r].combine(1 - r, 0, 1);
  }
  CHECK(error_of(plans, allreduce).find("block 0 is already finished") != std::string::npos);
}

TEST_CASE("all ranks must hold the same bits") {
  Plans plans =
      empty_plans(3, 1);  // rank 0 finishes; rank 1 gets the result encoded, rank 2 got it raw before
  for (int r : {1, 2}) plans[r].send(0, 0, 1), plans[0].combine(r, 0, 1);
  plans[0].finish(0, 1);
  plans[0].send(2, 0, 1, 0, Wire::raw), plans[2].store(0, 0, 1, 0, Wire::raw);
  plans[0].send(1, 0, 1, 1), plans[1].store(0, 0, 1, 1);
  CHECK(error_of(plans, allreduce) == "at the end, rank 2: block 0 has other bits than on rank 1");
  std::swap(plans[0].steps[3],
            plans[0].steps[4]);  // encoded first: then the raw message carries the decoded value
  CHECK(error_of(plans, allreduce) == "");
  // a value received raw has no bytes: to forward it coded is another encoding
  Plans chain = empty_plans(3, 1);
  chain[0].send(1, 0, 1, 0, Wire::raw), chain[1].store(0, 0, 1, 0, Wire::raw);
  chain[1].send(2, 0, 1), chain[2].store(1, 0, 1);
  CHECK(error_of(chain, broadcast) == "at the end, rank 1: block 0 has other bits than on rank 0");
}

TEST_CASE("the order of additions is part of the bits") {
  Plans plans = empty_plans(3, 1);  // each rank adds the others' raw values in the order of its ring
  for (int r : {0, 1, 2}) {
    plans[r].send((r + 1) % 3, 0, 1, 0, Wire::raw);
    plans[r].send((r + 2) % 3, 0, 1, 0, Wire::raw);
    plans[r].combine((r + 2) % 3, 0, 1, 0, Wire::raw);
    plans[r].combine((r + 1) % 3, 0, 1, 0, Wire::raw);
    plans[r].finish(0, 1);
  }
  CHECK_FALSE(verify(plans, allreduce).ok());
}

TEST_CASE("nothing is added where nothing is to be added") {
  Plans plans = plans_of(Ring{}, allgather, 2);
  plans[0].finish(0, 1);
  CHECK(error_of(plans, allgather) ==
        "rank 0, step 2 (finish raw blocks [0, 1)): there is nothing to add in allgather");
  plans = plans_of(Ring{}, broadcast, 2);
  CHECK(error_of(plans, {Collective::broadcast, 1}) ==
        "rank 0, step 0 (send coded blocks [0, 1) to rank 1): block 0 holds nothing yet");
  CHECK(error_of(plans, {Collective::broadcast, 2}) == "the root 2 is not a rank");
}

TEST_CASE("counting the edges of broken plans throws") {
  CHECK_THROWS_AS(count_edges(empty_plans(2, 1), allreduce), InvalidArgument);
}

TEST_CASE("plans of 64 ranks are verified in milliseconds") {
  const auto start = std::chrono::steady_clock::now();
  CHECK(verify(Ring{}, allreduce, 64).ok());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  CHECK(taken.count() < 1);  // about 1.5 ms; the limit is for slow machines, sanitizers and loaded ones
}
