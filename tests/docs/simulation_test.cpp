// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program that docs/performance.md shows for simulations, and where the ratios of a prediction come from.
#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <deque>
#include <vector>

#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <wring/wring.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Vector = Kokkos::View<float*, Kokkos::HostSpace>;

/// Values of both signs and several magnitudes.
Vector some_values(int rank) {
  Vector values("values", 16384);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<int>((i * 2654435761u + static_cast<std::size_t>(rank) * 40503u) % 2001);
    values(i) = static_cast<float>(place - 1000) / 1000;
  }
  return values;
}

template <class Schedule> double seconds_of(const wring::Machine& machine) {
  wring::SimulatedNetwork network(64, machine);
  std::deque<wring::Allreduce<wring::Grid<float>, wring::SimulatedTransport, Schedule>> sums;  // one a rank
  std::vector<Vector> values;
  for (int rank = 0; rank < network.size(); ++rank) {
    sums.emplace_back(wring::Grid<float>{}, network.link(rank));
    values.push_back(some_values(rank));  // here come yours
  }
  return wring::simulate(network, [&](wring::SimulatedTransport& link) {
    const auto rank = static_cast<std::size_t>(link.rank());
    return sums[rank].start(Exec{}, values[rank], wring::relative_to_rms(0.1));
  });
}

/// The ratio that the ranks of one process report on the average.
template <class Operation, class Start> double ratio_of(int ranks, Start start) {
  wring::InProcess world(ranks);
  std::deque<Operation> operations;
  std::vector<Vector> values;
  std::vector<wring::Request> requests;
  for (int rank = 0; rank < ranks; ++rank) {
    operations.emplace_back(wring::Grid<float>{}, world.link(rank));
    values.push_back(some_values(rank));
    requests.push_back(start(operations.back(), values.back()));
  }
  double raw = 0, sent = 0;
  for (wring::Request& request : requests) {
    const wring::Report report = request.wait();
    raw += static_cast<double>(report.bytes_raw), sent += static_cast<double>(report.bytes_sent);
  }
  return raw / sent;
}

}  // namespace

TEST_CASE("the program of docs/performance.md compares two algorithms on 64 ranks") {
  wring::Machine machine;
  machine.bandwidth = 1.25e9, machine.latency = 10e-6;  // 10 Gb/s
  const double ring = seconds_of<wring::Ring>(machine), halving = seconds_of<wring::HalvingDoubling>(machine);
  fmt::print("ring {:.3g} ms, halving_doubling {:.3g} ms\n", 1e3 * ring, 1e3 * halving);
  CHECK(halving < ring);  // 12 messages one after the other, not 126
  CHECK(ring > 126 * machine.latency);
  CHECK(seconds_of<wring::Ring>(machine) == ring);
}

TEST_CASE("the ratios of a prediction are those of operations by Direct") {
  using Link = wring::InProcessTransport;
  const int ranks = 4;
  const std::vector<std::size_t> counts(ranks, 16384 / ranks);
  const double ratio = ratio_of<wring::ReduceScatter<wring::Grid<float>, Link, wring::Direct>>(
      ranks, [&](auto& scatter, const Vector& values) {
        return scatter.start(Exec{}, values, Vector("part", 16384 / ranks), counts, wring::absolute(1e-3));
      });
  const double both = ratio_of<wring::Allreduce<wring::Grid<float>, Link, wring::Direct>>(
      ranks,
      [](auto& sum, const Vector& values) { return sum.start(Exec{}, values, wring::absolute(1e-3)); });
  const double sum_ratio = 1 / (2 / both - 1 / ratio);
  CHECK((ratio > 2 && ratio < 4));
  CHECK((sum_ratio > 1.5 && sum_ratio < ratio));  // sums need more bits
}
