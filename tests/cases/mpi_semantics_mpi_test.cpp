// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The user's communicator, the user's messages, kinds of communicators, in place and nonblocking: over MPI.
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <mpi.h>

#include <wring/collective.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/transport/mpi.hpp>

#include "support/algorithms.hpp"
#include "support/mpi_world.hpp"

using namespace wring_test;
using wring::MpiTransport;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<double*, Kokkos::HostSpace>;

constexpr double error = 1e-3;

template <class Codec> std::optional<wring::Bound> bound_for() {
  return wring::BoundedCompressor<Codec> ? std::optional(wring::absolute(error)) : std::nullopt;
}

/// Whether a result is right: values here are whole and small enough for bfloat16 to keep.
bool near(double y, double exact) { return std::abs(y - exact) <= error; }

template <class Visit> void for_each_codec(Visit visit) {
  visit(wring::None<double>{});
  visit(wring::Grid<double>{});
  visit(wring::Cast<wring::half_t, double>{});
}

template <class Codec> bool sums_up(MpiTransport& link, const Codec& codec, const AnyAlgorithm& algorithm,
                                    std::size_t n) {
  const View x("x", n);
  Kokkos::deep_copy(x, link.rank() + 1);
  wring::Allreduce sum(codec, link, algorithm);
  static_cast<void>(sum.start(Exec{}, wring::group(wring::item(x, bound_for<Codec>()))).wait());
  const double p = link.size();
  for (std::size_t i = 0; i < n; ++i)
    if (!near(x(i), p * (p + 1) / 2)) return false;
  return true;
}

/// Nothing of the library's waits on the user's communicator.
bool nothing_waits(MPI_Comm communicator) {
  int flag = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator, &flag, MPI_STATUS_IGNORE);
  return flag == 0;
}

}  // namespace

TEST_CASE("a communicator split with reversed keys: every part is in the slot of its rank there",
          "[cases][mpi]") {
  Communicator reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed.handle);
  MpiTransport link(reversed.handle);
  REQUIRE(link.rank() == world_size() - 1 - world_rank());
  const auto p = static_cast<std::size_t>(link.size()), me = static_cast<std::size_t>(link.rank());
  for_each_codec([&](const auto& codec) {
    using Codec = std::decay_t<decltype(codec)>;
    for (const AnyAlgorithm& algorithm : all_algorithms(link.size()))
      for (const std::size_t each : {3, 300}) {
        INFO(codec.identity().name << ", " << algorithm.name() << ", " << each);
        const auto value = [](std::size_t rank, std::size_t i) {
          return static_cast<double>(100 * rank + i % 64);
        };
        std::vector<std::size_t> counts(p, each);
        counts[0] += 2;
        const std::size_t first = me * each + (me > 0 ? 2 : 0);
        const View mine("mine", counts[me]), all("all", p * each + 2), part("part", counts[me]);
        for (std::size_t i = 0; i < counts[me]; ++i) mine(i) = value(me, i);
        wring::Allgather gather(codec, link, algorithm);
        static_cast<void>(
            gather.start(Exec{}, wring::group(wring::item(mine, all, bound_for<Codec>(), counts))).wait());
        std::size_t at = 0;
        for (std::size_t r = 0; r < p; ++r)
          for (std::size_t i = 0; i < counts[r]; ++i) REQUIRE(near(all(at++), value(r, i)));
        for (std::size_t i = 0; i < all.extent(0); ++i) all(i) = static_cast<double>(i % 100 + me);
        wring::ReduceScatter scatter(codec, link, algorithm);
        static_cast<void>(
            scatter.start(Exec{}, wring::group(wring::item(all, part, bound_for<Codec>(), counts))).wait());
        for (std::size_t i = 0; i < counts[me]; ++i)
          REQUIRE(near(part(i), static_cast<double>(p * ((first + i) % 100) + p * (p - 1) / 2)));
      }
  });
}

TEST_CASE("a receive of the user's for anything from anyone gets the user's message only", "[cases][mpi]") {
  std::vector<double> received(4, 0);
  MPI_Request pending;
  MPI_Irecv(received.data(), 4, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &pending);
  MpiTransport link(MPI_COMM_WORLD);
  for_each_codec([&](const auto& codec) {
    for (const AnyAlgorithm& algorithm : all_algorithms(link.size()))
      for (const std::size_t n : {1, 3000}) REQUIRE(sums_up(link, codec, algorithm, n));
  });
  int completed = 0;
  MPI_Test(&pending, &completed, MPI_STATUS_IGNORE);
  REQUIRE(completed == 0);
  REQUIRE(nothing_waits(MPI_COMM_WORLD));
  const double mine = 42;
  MPI_Send(&mine, 1, MPI_DOUBLE, world_rank(), 0, MPI_COMM_WORLD);
  MPI_Status status;
  MPI_Wait(&pending, &status);
  int count = 0;
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  REQUIRE((count == 1 && received[0] == 42 && received[1] == 0 && status.MPI_SOURCE == world_rank()));
}

TEST_CASE("the user's messages and collectives in flight are not disturbed, nor do they disturb",
          "[cases][mpi]") {
  const int p = world_size(), next = (world_rank() + 1) % p, previous = (world_rank() + p - 1) % p;
  MpiTransport link(MPI_COMM_WORLD);
  for (int tag = 0; tag < 40; tag += 13) {  // tags that the library uses on its own communicator
    std::vector<double> out(5000, world_rank()), in(5000, -1);
    double mine = world_rank() + 1, sum = 0;
    MPI_Request requests[3];
    MPI_Isend(out.data(), 5000, MPI_DOUBLE, next, tag, MPI_COMM_WORLD, &requests[0]);
    MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[1]);
    REQUIRE(sums_up(link, wring::Grid<double>{}, wring::Ring{}, 5000));
    REQUIRE(sums_up(link, wring::None<double>{}, wring::Direct{}, 7));
    MPI_Irecv(in.data(), 5000, MPI_DOUBLE, previous, tag, MPI_COMM_WORLD, &requests[2]);
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    REQUIRE((in.front() == previous && in.back() == previous && sum == p * (p + 1) / 2));
  }
}

TEST_CASE("the user's communicator keeps its error handler and may be freed before the link",
          "[cases][mpi]") {
  MPI_Comm user = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &user);
  MPI_Errhandler before, after;
  MPI_Comm_get_errhandler(user, &before);
  MpiTransport link(user);
  MPI_Comm_get_errhandler(user, &after);
  REQUIRE(before == after);
  MPI_Errhandler_free(&before), MPI_Errhandler_free(&after);
  MPI_Comm_free(&user);
  REQUIRE(sums_up(link, wring::Grid<double>{}, wring::Ring{}, 1000));
}

TEST_CASE("null and intercommunicators are refused on all ranks without a hang; a communicator of one rank "
          "is the identity",
          "[cases][mpi]") {
  REQUIRE_THROWS_AS(MpiTransport(MPI_COMM_NULL), wring::InvalidArgument);
  if (world_size() >= 2) {
    const int half = world_rank() * 2 / world_size(), leader = half == 0 ? (world_size() + 1) / 2 : 0;
    Communicator local, inter;
    MPI_Comm_split(MPI_COMM_WORLD, half, world_rank(), &local.handle);
    MPI_Intercomm_create(local.handle, 0, MPI_COMM_WORLD, leader, 5, &inter.handle);
    REQUIRE_THROWS_AS(MpiTransport(inter.handle), wring::InvalidArgument);
    REQUIRE(nothing_waits(MPI_COMM_WORLD));
  }
  MpiTransport alone(MPI_COMM_SELF);
  for_each_codec([&](const auto& codec) {
    using Codec = std::decay_t<decltype(codec)>;
    for (const wring::Operation operation : {wring::sum, wring::mean, wring::min, wring::max}) {
      const View x("x", 700), y("y", 700);
      for (std::size_t i = 0; i < 700; ++i) x(i) = static_cast<double>(i % 100) - 50 + world_rank();
      wring::Allreduce reduce(codec, alone, AnyAlgorithm(wring::Ring{}), {.operation = operation});
      static_cast<void>(reduce.start(Exec{}, wring::group(wring::item(x, y, bound_for<Codec>()))).wait());
      for (std::size_t i = 0; i < 700; ++i) REQUIRE(near(y(i), x(i)));
    }
  });
}

TEST_CASE("in place: minimum and sum, blocking and nonblocking, the same on all ranks", "[cases][mpi]") {
  MpiTransport link(MPI_COMM_WORLD);
  const double values[] = {10, -300, -150, 0};
  double least = 1000, sum = 0;
  for (int r = 0; r < link.size(); ++r) least = std::min(least, values[r % 4]), sum += values[r % 4];
  for_each_codec([&](const auto& codec) {
    using Codec = std::decay_t<decltype(codec)>;
    for (const AnyAlgorithm& algorithm : all_algorithms(link.size()))
      for (const std::size_t n : {1, 2000})
        for (const wring::Operation operation : {wring::min, wring::sum}) {
          wring::Allreduce reduce(codec, link, algorithm, {.operation = operation});
          const View x("x", n), y("y", n);
          Kokkos::deep_copy(x, values[link.rank() % 4]), Kokkos::deep_copy(y, values[link.rank() % 4]);
          if constexpr (wring::BoundedCompressor<Codec>)
            static_cast<void>(reduce(Exec{}, x, wring::absolute(error)));
          else
            static_cast<void>(reduce(Exec{}, x));
          wring::Request request = reduce.start(Exec{}, wring::group(wring::item(y, bound_for<Codec>())));
          while (!request.test()) {
          }
          static_cast<void>(request.wait());
          const double exact = operation == wring::sum ? sum : least;
          for (std::size_t i = 0; i < n; ++i) REQUIRE((near(x(i), exact) && x(i) == y(i)));
        }
  });
}

TEST_CASE("two operations in flight on one link, waited for in reverse", "[cases][mpi]") {
  MpiTransport link(MPI_COMM_WORLD);
  const double p = link.size();
  for_each_codec([&](const auto& codec) {
    using Codec = std::decay_t<decltype(codec)>;
    wring::Allreduce a(codec, link), b(codec, link);
    const View x("x", 1000), y("y", 10);
    Kokkos::deep_copy(x, 1), Kokkos::deep_copy(y, 2);
    auto first = a.start(Exec{}, wring::group(wring::item(x, bound_for<Codec>())));
    auto second = b.start(Exec{}, wring::group(wring::item(y, bound_for<Codec>())));
    static_cast<void>(second.wait()), static_cast<void>(first.wait());
    for (std::size_t i = 0; i < 1000; ++i) REQUIRE(near(x(i), p));
    for (std::size_t i = 0; i < 10; ++i) REQUIRE(near(y(i), 2 * p));
  });
}

TEST_CASE("a reduction to one rank completes on every rank, inputs stay", "[cases][mpi]") {
  MpiTransport link(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(link.size()), me = static_cast<std::size_t>(link.rank());
  for (std::size_t root = 0; root < p; ++root) {
    std::vector<std::size_t> counts(p, 0);
    counts[root] = 5000;
    const View in("in", 5000), out("out", counts[me]);
    Kokkos::deep_copy(in, static_cast<double>(me + 1));
    wring::ReduceScatter reduce(wring::Grid<double>{}, link);
    auto request = reduce.start(Exec{}, in, out, counts, wring::absolute(error));
    if (me != root) static_cast<void>(request.test());
    static_cast<void>(request.wait());
    for (std::size_t i = 0; i < counts[me]; ++i) REQUIRE(near(out(i), static_cast<double>(p * (p + 1) / 2)));
    for (std::size_t i = 0; i < 5000; ++i) REQUIRE(in(i) == static_cast<double>(me + 1));
  }
}
