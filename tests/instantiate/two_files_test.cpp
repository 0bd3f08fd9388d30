// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program whose collectives are instantiated in another file: collectives.cpp.
#include "instantiate/collectives.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstddef>
#include <vector>

namespace {

/// Moves the operations of all ranks, in turn, to their end.
void finish(std::vector<wring::Request>& requests) {
  for (bool done = false; !done;) {
    done = true;
    for (wring::Request& request : requests) done = request.test() && done;
  }
  for (wring::Request& request : requests) request.wait();
}

float value(int rank, std::size_t i) {
  return std::sin(0.01f * static_cast<float>(i) + static_cast<float>(rank));
}

}  // namespace

TEST_CASE("Collectives of two kinds of views are instantiated in another file") {
  constexpr int ranks = 3;
  constexpr std::size_t rows = 40, columns = 30, n = rows * columns;
  using Flat = Kokkos::View<float*, Kokkos::HostSpace>;
  using Columns = Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace>;
  wring::InProcess world(ranks);
  std::vector<wring::Allreduce<wring::Grid<float>, wring::InProcessTransport>> sums;
  std::vector<Flat> flat;
  std::vector<Columns> by_columns;
  for (int r = 0; r < ranks; ++r) {
    sums.emplace_back(wring::Grid<float>{}, world.link(r));
    flat.emplace_back("flat", n);
    by_columns.emplace_back("by columns", rows, columns);
    for (std::size_t i = 0; i < n; ++i)
      flat.back()(i) = by_columns.back()(i / columns, i % columns) = value(r, i);
  }
  const Exec exec;
  std::vector<wring::Request> requests(ranks);
  for (std::size_t r = 0; r < ranks; ++r) requests[r] = sums[r].start(exec, flat[r], wring::absolute(1e-3));
  finish(requests);
  for (std::size_t r = 0; r < ranks; ++r)
    requests[r] = sums[r].start(exec, by_columns[r], wring::absolute(1e-3));
  finish(requests);
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t i = 0; i < n; ++i) {
      double exact = 0;
      for (int rank = 0; rank < ranks; ++rank) exact += static_cast<double>(value(rank, i));
      REQUIRE(std::fabs(static_cast<double>(flat[r](i)) - exact) <= 1e-3);
      REQUIRE(by_columns[r](i / columns, i % columns) == flat[r](i));
    }
}

TEST_CASE("All collectives are instantiated, with two algorithms, and others beside them") {
  constexpr int ranks = 2;
  using View = Kokkos::View<double*, Kokkos::HostSpace>;
  wring::InProcess world(ranks);
  const Exec exec;
  std::vector<View> given, everywhere;
  std::vector<wring::Request> requests(ranks);
  std::vector<wring::Broadcast<wring::None<double>, wring::InProcessTransport, wring::Direct>> broadcasts;
  std::vector<wring::Allgather<wring::None<double>, wring::InProcessTransport, wring::Direct>> gathers;
  std::vector<wring::Allreduce<wring::None<double>, wring::InProcessTransport, wring::Ring>> sums;
  for (int r = 0; r < ranks; ++r) {
    broadcasts.emplace_back(wring::None<double>{}, world.link(r));
    gathers.emplace_back(wring::None<double>{}, world.link(r));
    sums.emplace_back(wring::None<double>{}, world.link(r));
    given.emplace_back("given", 5), everywhere.emplace_back("everywhere", 10);
    Kokkos::deep_copy(given.back(), 1.0 + r);
  }
  const auto run = [&](auto start) {
    for (std::size_t r = 0; r < ranks; ++r) requests[r] = start(r);
    finish(requests);
  };
  run([&](std::size_t r) { return gathers[r].start(exec, given[r], everywhere[r]); });
  for (std::size_t i = 0; i < 10; ++i) CHECK(everywhere[0](i) == (i < 5 ? 1.0 : 2.0));
  run([&](std::size_t r) { return sums[r].start(exec, everywhere[r]); });
  for (std::size_t i = 0; i < 10; ++i) CHECK(everywhere[1](i) == (i < 5 ? 2.0 : 4.0));
  run([&](std::size_t r) { return broadcasts[r].start(exec, given[r], 1); });
  CHECK(given[0](0) == 2.0);

  std::vector<wring::Allreduce<wring::None<double>, wring::InProcessTransport, wring::RecursiveDoubling>>
      least;
  for (int r = 0; r < ranks; ++r)
    least.emplace_back(wring::None<double>{}, world.link(r), wring::RecursiveDoubling{},
                       wring::Options{.operation = wring::Operation::min});
  for (std::size_t r = 0; r < ranks; ++r) Kokkos::deep_copy(given[r], 3.0 - static_cast<double>(r));
  run([&](std::size_t r) { return least[r].start(exec, given[r]); });
  CHECK(given[0](4) == 2.0);
}
