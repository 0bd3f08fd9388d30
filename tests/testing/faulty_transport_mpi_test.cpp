// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A FaultyTransport around MPI: the faults of its plan reach other processes.
#include <wring/testing/faulty_transport.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <string>
#include <vector>

#include <mpi.h>

#include <wring/collective/allreduce.hpp>
#include <wring/compressor/none.hpp>
#include <wring/testing/transport_laws.hpp>
#include <wring/transport/mpi.hpp>

using namespace wring::testing;
using wring::MpiTransport;
using Faulty = FaultyTransport<MpiTransport>;
using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<double*, Kokkos::HostSpace>;

namespace {

int count_ranks(bool mine) {
  int one = mine ? 1 : 0, all = 0;
  MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

/// The sum of 1 to p, 3000 times: whether it is right, or the cause of its failure.
struct Summed {
  wring::Cause cause = wring::Cause::none;
  bool right = false;
};
template <class Sum> Summed sum_up(Sum& sum, int rank, int ranks, std::chrono::milliseconds limit) {
  View data("data", 3000);
  Kokkos::deep_copy(data, rank + 1.0);
  Summed result;
  try {
    sum(Exec{}, data, std::chrono::steady_clock::now() + limit);
    result.right = true;
    for (std::size_t i = 0; i < data.extent(0); ++i)
      result.right = result.right && data(i) == ranks * (ranks + 1) / 2;
  } catch (const wring::Error& error) {
    result.cause = error.cause();
  }
  return result;
}

constexpr std::chrono::seconds long_enough{60};
constexpr wring::Options in_segments{.segment_bytes = 4096, .depth = 2};

}  // namespace

TEST_CASE("faulty transport over MPI: the laws hold, also when messages are late", "[testing]") {
  for (const double rate : {0.0, 0.2}) {
    MpiTransport link(MPI_COMM_WORLD);
    Faulty faulty(link, {.random = {.rate = rate, .kinds = {FaultKind::delay, FaultKind::reorder}}});
    // What is longer than its receive is left out: MPI libraries differ in what they make of it.
    CHECK(check_transport_laws<Faulty>({&faulty}, {.longest_truncated = 1000}) == std::vector<std::string>{});
  }
}

TEST_CASE("faulty transport over MPI: damage is noticed, told, and over", "[testing]") {
  MpiTransport plain(MPI_COMM_WORLD);
  const int rank = plain.rank(), ranks = plain.size();
  for (const FaultKind kind :
       {FaultKind::delay, FaultKind::reorder, FaultKind::flip, FaultKind::truncate, FaultKind::noise})
    for (std::uint64_t number = 0; number < 4; ++number) {
      MpiTransport link(MPI_COMM_WORLD);
      Faulty faulty(
          link, {.faults = {{.kind = kind, .messages = MessageKind::data, .number = number, .amount = 100}}});
      wring::Allreduce sum(wring::None<double>{}, faulty, wring::Ring{}, in_segments);
      const Summed first = sum_up(sum, rank, ranks, long_enough);
      INFO(name_of(kind) << " at data message " << number);
      const bool harmful = damages(kind) && count_ranks(!faulty.injected().empty()) > 0;
      CHECK((first.right || first.cause == wring::Cause::transport));
      const int failed = count_ranks(!first.right);
      CHECK((failed > 0) == harmful);
      if (harmful) CHECK(sum_up(sum, rank, ranks, long_enough).cause == wring::Cause::abandoned);
      CHECK(sum_up(sum, rank, ranks, long_enough).right);
    }
}

TEST_CASE("faulty transport over MPI: who waits for a stopped rank meets a deadline", "[testing]") {
  MpiTransport link(MPI_COMM_WORLD);
  if (link.size() == 1) return;
  Faulty faulty(link, {.faults = {{.kind = FaultKind::stop, .messages = MessageKind::data, .number = 1}}});
  wring::Allreduce sum(wring::None<double>{}, faulty, wring::Ring{}, in_segments);
  CHECK(sum_up(sum, link.rank(), link.size(), std::chrono::milliseconds(300)).cause == wring::Cause::timeout);
  // A rank may have heard of another's deadline before its own had passed: its link is not retired then.
  const bool retired = link.session().retired();
  CHECK(count_ranks(retired) > 0);
  const wring::Cause next = sum_up(sum, link.rank(), link.size(), std::chrono::milliseconds(300)).cause;
  CHECK(next == (retired ? wring::Cause::abandoned : wring::Cause::timeout));
}
