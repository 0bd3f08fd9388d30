// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// End to end over MPI: every collective, algorithm and kind of communicator; errors and deadlines between processes.
#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include <mpi.h>

#include <wring/collective.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/compressor/packed_words.hpp>
#include <wring/transport/mpi.hpp>

#include "support/algorithms.hpp"
#include "support/exact.hpp"
#include "support/mpi_world.hpp"
#include "support/values.hpp"

using namespace wring_test;
using wring::Collective;
using wring::Grid;
using wring::MpiTransport;
using wring::None;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<double*, Kokkos::HostSpace>;

View view_of(const std::vector<double>& values) {
  View view("view", values.size());
  std::copy(values.begin(), values.end(), view.data());
  return view;
}
std::vector<double> copy_of(const View& view) { return {view.data(), view.data() + view.extent(0)}; }

std::vector<std::vector<double>> inputs_of(int ranks, std::size_t n) {
  std::vector<std::vector<double>> inputs;
  for (int r = 0; r < ranks; ++r) inputs.push_back(real_numbers<double>(n, static_cast<std::uint64_t>(r)));
  return inputs;
}

/// Every rank checks its own result against the exact one, of which it knows all inputs.
bool within(const View& got, std::size_t first, const std::vector<std::vector<double>>& inputs,
            wring::Operation operation, double bound) {
  for (std::size_t i = 0; i < got.extent(0); ++i) {
    std::vector<double> terms;
    for (const auto& input : inputs) terms.push_back(input[first + i]);
    if (!reduced_within(operation, terms, got(i), bound)) return false;
  }
  return true;
}

bool same_on_all_ranks(const View& view, MPI_Comm communicator) {
  std::vector<double> first = copy_of(view);
  MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_DOUBLE, 0, communicator);
  const int mine = same_bits(first, copy_of(view));
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, communicator);
  return all == 1;
}

template <class Codec> void all_collectives(MPI_Comm communicator, const Codec& codec, double bound) {
  MpiTransport link(communicator);
  const int p = link.size(), me = link.rank();
  const auto rank = static_cast<std::size_t>(me);
  const Exec exec{};
  for (const AnyAlgorithm& algorithm : all_algorithms(p))
    for (const std::size_t n : {0, 1, 7, 600, 20000}) {
      const wring::Operation operation = n % 2 ? wring::mean : wring::sum;
      INFO(algorithm.name() << ", " << n << " elements");
      const wring::Options options{
          .operation = operation, .segment_bytes = 16384, .ride_along_bytes = n == 7 ? 0u : 2048u};
      const auto inputs = inputs_of(p, n);
      std::vector<std::size_t> counts(static_cast<std::size_t>(p), 0);
      for (std::size_t r = 0, left = n; r < counts.size(); ++r)
        counts[r] = r + 1 == counts.size() ? left : left / 2, left -= counts[r];
      std::size_t first = 0;
      for (std::size_t r = 0; r < rank; ++r) first += counts[r];

      const View sum = view_of(inputs[rank]);
      wring::Allreduce(codec, link, algorithm, options)(exec, sum, wring::absolute(bound));
      REQUIRE(within(sum, 0, inputs, operation, bound));
      REQUIRE(same_on_all_ranks(sum, communicator));

      const View part("part", counts[rank]), whole("whole", n), spread = view_of(inputs[rank]);
      wring::ReduceScatter(codec, link, algorithm, options)(exec, view_of(inputs[rank]), part, counts,
                                                            wring::absolute(bound));
      REQUIRE(within(part, first, inputs, operation, bound));

      const View mine("mine", counts[rank]);
      for (std::size_t i = 0; i < counts[rank]; ++i) mine(i) = inputs[0][first + i];
      wring::Allgather(codec, link, algorithm, options)(exec, mine, whole, counts, wring::absolute(bound));
      REQUIRE(within(whole, 0, {inputs[0]}, wring::sum, bound));
      REQUIRE(same_on_all_ranks(whole, communicator));

      wring::Broadcast(codec, link, algorithm, options)(exec, spread, p - 1, wring::absolute(bound));
      REQUIRE(within(spread, 0, {inputs.back()}, wring::sum, bound));
      REQUIRE(same_on_all_ranks(spread, communicator));
    }
}

template <class E, class Action> std::string message_of(Action action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const wring::Error& error) {
    return std::string("another class: ") + error.what();
  }
  return "nothing was thrown";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("MPI: all collectives within their bound, with and without compression", "[collective][mpi]") {
  all_collectives(MPI_COMM_WORLD, Grid<double>{}, 1e-6);
  all_collectives(MPI_COMM_WORLD, None<double>{}, 1e-12);
}

TEST_CASE("MPI: reordered, split and single communicators", "[collective][mpi]") {
  {
    const Communicator reversed(0, -world_rank());
    all_collectives(reversed.handle, None<double>{}, 1e-12);
  }
  {
    const Communicator halves(world_rank() % 2, world_rank());
    all_collectives(halves.handle, None<double>{}, 1e-12);
  }
  all_collectives(MPI_COMM_SELF, Grid<double>{}, 1e-6);
}

TEST_CASE("MPI: gathered parts lie in the order of the communicator's ranks", "[collective][mpi]") {
  const Communicator reversed(0, -world_rank());
  MpiTransport link(reversed.handle);
  const View mine("mine", 5), all("all", 5 * static_cast<std::size_t>(link.size()));
  for (std::size_t i = 0; i < 5; ++i) mine(i) = 100 * link.rank() + static_cast<double>(i);
  wring::Allgather(None<double>{}, link)(Exec{}, mine, all);
  for (std::size_t i = 0; i < all.extent(0); ++i)
    REQUIRE(all(i) == static_cast<double>(100 * (i / 5) + i % 5));
}

TEST_CASE("MPI: several operations in flight, waited for in reverse order; two links", "[collective][mpi]") {
  MpiTransport link(MPI_COMM_WORLD), other(MPI_COMM_WORLD);
  const double p = link.size();
  wring::Allreduce a(None<double>{}, link), b(None<double>{}, link), c(None<double>{}, other);
  const View x("x", 1000), y("y", 10), z("z", 100000);
  for (int turn = 0; turn < 20; ++turn) {
    Kokkos::deep_copy(x, 1), Kokkos::deep_copy(y, 2), Kokkos::deep_copy(z, 3);
    auto first = a.start(Exec{}, x), second = b.start(Exec{}, y), third = c.start(Exec{}, z);
    third.wait(), second.wait(), first.wait();
    REQUIRE((x(999) == p && y(9) == 2 * p && z(99999) == 3 * p));
  }
}

TEST_CASE("MPI: words summed by MPI_Iallreduce give the bits of Grid by a ring",
          "[collective][mpi][native]") {
  const Communicator halves(world_rank() % 2, -world_rank());
  for (const MPI_Comm communicator : {MPI_COMM_WORLD, halves.handle}) {
    MpiTransport link(communicator);
    const auto rank = static_cast<std::size_t>(link.rank());
    const wring::Options options{.segment_bytes = 4096, .ride_along_bytes = 0};
    wring::Allreduce native(wring::PackedWords<double>{}, link, wring::Native{}, options),
        second(wring::PackedWords<double>{}, link, wring::Native{}, options);
    wring::Allreduce ring(Grid<double>{}, link, wring::Ring{}, options);
    for (const std::size_t n : {0, 1, 600, 100000})
      for (const double bound : {1.0, 1e-2, 1e-8}) {
        auto inputs = inputs_of(link.size(), n);
        if (n == 600 && rank == 0)
          inputs[0][5] = std::numeric_limits<double>::infinity(), inputs[0][6] = std::nan("");
        const View one = view_of(inputs[rank]), two = view_of(inputs[rank]), three = view_of(inputs[rank]);
        auto first = native.start(Exec{}, one, wring::absolute(bound)),
             other = second.start(Exec{}, two, wring::absolute(2 * bound));
        other.wait(), first.wait();
        ring(Exec{}, three, wring::absolute(bound));
        REQUIRE(same_bits(copy_of(one), copy_of(three)));
        REQUIRE(same_on_all_ranks(two, communicator));
      }
  }
}

TEST_CASE("MPI: the library's messages do not meet the user's own", "[collective][mpi]") {
  double received = 0;
  MPI_Request pending;
  MPI_Irecv(&received, 1, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &pending);
  MpiTransport link(MPI_COMM_WORLD);
  const View x("x", 5000);
  Kokkos::deep_copy(x, 1);
  wring::allreduce(Exec{}, x, wring::absolute(0.01), link);
  REQUIRE(std::abs(x(17) - link.size()) <= 0.01);
  const double mine = 42;
  MPI_Send(&mine, 1, MPI_DOUBLE, world_rank(), 3, MPI_COMM_WORLD);
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  REQUIRE(received == 42);
}

TEST_CASE("MPI: the free functions", "[collective][mpi]") {
  MpiTransport link(MPI_COMM_WORLD);
  const auto p = static_cast<std::size_t>(link.size());
  const std::vector<std::size_t> counts(p, 3);
  const View whole("whole", 3 * p), part("part", 3);
  Kokkos::deep_copy(whole, 1);
  wring::reduce_scatter(Exec{}, whole, part, counts, wring::absolute(1e-3), link);
  REQUIRE(std::abs(part(2) - static_cast<double>(p)) <= 1e-3);
  wring::allgather(Exec{}, part, whole, counts, wring::absolute(1e-3), link);
  REQUIRE(std::abs(whole(0) - static_cast<double>(p)) <= 2e-3);
  Kokkos::deep_copy(whole, link.rank());
  wring::broadcast(Exec{}, whole, static_cast<int>(p) - 1, wring::absolute(1e-3), link);
  REQUIRE(std::abs(whole(1) - static_cast<double>(p - 1)) <= 1e-3);
}

TEST_CASE("MPI: ranks that disagree all get the same error, and go on", "[collective][mpi]") {
  MpiTransport link(MPI_COMM_WORLD);
  if (link.size() == 1) return;
  const bool odd = link.rank() == link.size() - 1;
  wring::Allreduce sum(None<double>{}, link);
  const View x("x", odd ? 21 : 20);
  Kokkos::deep_copy(x, 3);
  REQUIRE(contains(message_of<wring::MismatchError>([&] { sum(Exec{}, x); }), "length"));
  REQUIRE(x(0) == 3);
  wring::Allreduce other(None<double>{}, link, wring::Ring{}, {.operation = odd ? wring::max : wring::sum});
  const View y("y", 20);
  REQUIRE(contains(message_of<wring::MismatchError>([&] { other(Exec{}, y); }), "operation"));
  const View small("small", 8), large("large", odd ? 9 : 8);
  REQUIRE(contains(message_of<wring::InvalidArgument>([&] { sum(Exec{}, small, large); }),
                   "rank " + std::to_string(link.size() - 1)));
  REQUIRE(message_of<wring::BoundUnattainable>([&] {
            Kokkos::deep_copy(y, 1e300);
            wring::Allreduce(Grid<double>{}, link)(Exec{}, y, wring::absolute(1));
          }) != "nothing was thrown");
  Kokkos::deep_copy(y, 1);
  sum(Exec{}, y);
  REQUIRE(y(19) == link.size());
}

namespace {

template <class Codec, class Schedule, class... Bound>
void one_comes_late(const Codec& codec, const Schedule& algorithm, Bound... bound) {
  for (const std::size_t n : {10, 50000}) {
    MpiTransport link(MPI_COMM_WORLD);
    if (link.size() == 1) return;
    const View x("x", n);
    wring::Allreduce sum(codec, link, algorithm);
    const int late = link.size() - 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (link.rank() == late) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      // Its own part succeeds, or it hears of the failure: it never hangs and never throws anything else.
      const std::string text = message_of<wring::TimeoutError>([&] { sum(Exec{}, x, bound...); });
      REQUIRE((text == "nothing was thrown" || contains(text, "deadline")));
    } else {
      const auto deadline = wring::Deadline::clock::now() + std::chrono::milliseconds(30);
      const std::string text = message_of<wring::TimeoutError>([&] { sum(Exec{}, x, bound..., deadline); });
      INFO(text);
      REQUIRE((contains(text, "deadline") || contains(text, "rank")));
      REQUIRE(contains(message_of<wring::AbandonedError>([&] { sum(Exec{}, x, bound...); }), "retired"));
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace

TEST_CASE("MPI: a rank that comes too late is named, whoever waited is told", "[collective][mpi]") {
  one_comes_late(None<double>{}, wring::Ring{});
  one_comes_late(wring::PackedWords<double>{}, wring::Native{}, wring::absolute(0.1));
}
