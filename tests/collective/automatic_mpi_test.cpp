// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Automatic and its calibration over MPI: the same figures and the same choices on all ranks, the bits of the ring.
#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <mpi.h>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/transport/mpi.hpp>

#include "support/exact.hpp"
#include "support/mpi_world.hpp"
#include "support/values.hpp"

using namespace wring;
using namespace wring_test;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<float*, Kokkos::HostSpace>;

View input(const MpiTransport& link, std::size_t n) {
  const auto values = real_numbers<float>(n, static_cast<std::uint64_t>(link.rank()));
  View view("values", n);
  std::copy(values.begin(), values.end(), view.data());
  return view;
}

/// Whether these bytes are the same on all ranks.
bool same_everywhere(const void* bytes, std::size_t count) {
  std::vector<char> first(count);
  std::memcpy(first.data(), bytes, count);
  MPI_Bcast(first.data(), static_cast<int>(count), MPI_CHAR, 0, MPI_COMM_WORLD);
  const int mine = std::memcmp(first.data(), bytes, count) == 0;
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all == 1;
}

}  // namespace

TEST_CASE("automatic over MPI: calibrated, all ranks choose alike, and the bits are those of the ring",
          "[mpi]") {
  MpiTransport link(MPI_COMM_WORLD);
  const Exec exec{};
  Allreduce sum(Grid<float>{}, link, Automatic{});
  Allreduce ring(Grid<float>{}, link, Ring{});
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(100);
  const Machine machine = sum.calibrate(exec, limit);
  REQUIRE_NOTHROW(expect_possible(machine));
  std::string figures = to_string(machine);
  figures.resize(1000);
  CHECK(same_everywhere(figures.data(), figures.size()));
  for (const std::size_t n : {3, 3000, 300000})
    for (int i = 0; i < 3; ++i) {
      const View got = input(link, n), expected = input(link, n);
      const Report report = sum(exec, got, absolute(1e-3), limit);
      ring(exec, expected, absolute(1e-3), limit);
      INFO(n << " values: " << report.reason);
      REQUIRE(std::memcmp(got.data(), expected.data(), n * sizeof(float)) == 0);
      CHECK(report.algorithm.str().starts_with("automatic: "));
      std::string reason = report.reason.str();
      reason.resize(192);
      CHECK(same_everywhere(reason.data(), reason.size()));
    }
  CHECK(sum.algorithm().machine() == machine);
}

TEST_CASE("a machine for several objects, and for calls without one", "[mpi]") {
  MpiTransport link(MPI_COMM_WORLD);
  const Exec exec{};
  const Machine machine = calibrate(exec, Grid<float>{}, link);
  const View got = input(link, 50000), expected = input(link, 50000);
  const Report report = allreduce(exec, got, absolute(1e-3), link, {}, machine);
  Allreduce(Grid<float>{}, link, Ring{})(exec, expected, absolute(1e-3));
  CHECK(std::memcmp(got.data(), expected.data(), 50000 * sizeof(float)) == 0);
  CHECK(report.algorithm.str().starts_with("automatic: "));
}

// IST-DASLab/torch_cgx#5
TEST_CASE("an exact call beside a lossy one, and a lossy one too small to pay, give what MPI gives",
          "[cases][mpi]") {
  const Communicator pair(world_rank() / 2, world_rank());  // a sum of two has one order
  MpiTransport link(pair.handle);
  const Exec exec{};
  Machine slow = typical_node();
  slow.bandwidth = 2e8;
  Allreduce lossy(Cast<bhalf_t>{}, link, Automatic(slow), {.ride_along_bytes = 0});
  Allreduce exact(None<float>{}, link, Ring{});
  for (const std::size_t n : {3, 50, 400000}) {
    const View x = input(link, n), y = input(link, n);
    View expected("expected", n);
    MPI_Allreduce(x.data(), expected.data(), static_cast<int>(n), MPI_FLOAT, MPI_SUM, pair.handle);
    const auto same = [&](const View& z) { return std::memcmp(z.data(), expected.data(), 4 * n) == 0; };
    const Report report = lossy(exec, x);
    exact(exec, y);
    INFO(n << " values: " << report.reason);
    CHECK(same(y));
    if (link.size() == 1) continue;
    const bool small = n < 1000;
    CHECK(same(x) == small);
    CHECK(report.reason.str().starts_with(small ? "uncompressed" : "compressed"));
  }
}
