// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Several threads of a rank, each with a link of its own, at the same time: needs MPI_THREAD_MULTIPLE.
#include <catch2/catch_test_macros.hpp>

#include <mpi.h>

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include <wring/collective.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/transport/mpi.hpp>

int thread_level();
int thread_level() { return MPI_THREAD_MULTIPLE; }

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<float*, Kokkos::HostSpace>;
constexpr int threads = 3;

bool multiple() {
  int level = 0;
  MPI_Query_thread(&level);
  return level == MPI_THREAD_MULTIPLE;
}

/// Sums of small whole numbers, which the bound leaves exact; blocking and several in flight. Empty if all are right.
std::string sums(wring::MpiTransport& link, int thread) {
  wring::Allreduce one(wring::Grid<float>{}, link, wring::Ring{}, {.segment_bytes = 4096});
  wring::Allreduce other(wring::Grid<float>{}, link, wring::RecursiveDoubling{}, {.segment_bytes = 4096});
  const int ranks = link.size();
  for (int i = 0; i < 60; ++i) {
    const auto n = static_cast<std::size_t>(1 + 97 * ((i * 7 + thread) % 40));
    const View a("a", n), b("b", n);
    for (std::size_t k = 0; k < n; ++k)
      a(k) = static_cast<float>((static_cast<int>(k) + i + thread) % 19), b(k) = a(k) + 1;
    wring::Request first = one.start(Exec{}, a, wring::absolute(0.25)),
                   second = other.start(Exec{}, b, wring::absolute(0.25));
    second.wait();
    first.wait();
    for (std::size_t k = 0; k < n; ++k) {
      const auto x = static_cast<float>((static_cast<int>(k) + i + thread) % 19 * ranks);
      if (std::abs(a(k) - x) > 0.25f || std::abs(b(k) - x - static_cast<float>(ranks)) > 0.25f)
        return "thread " + std::to_string(thread) + ", operation " + std::to_string(i) + ", element " +
               std::to_string(k) + ": " + std::to_string(a(k)) + " for " + std::to_string(x);
    }
  }
  return {};
}

}  // namespace

TEST_CASE("threads: each with its own link, all at once", "[collective][threads]") {
  std::deque<wring::MpiTransport> links;  // made by one thread: duplicating a communicator is collective
  for (int t = 0; t < threads; ++t) links.emplace_back(MPI_COMM_WORLD);
  std::vector<std::string> wrong(threads);
  const auto run = [&](int t) {
    const auto i = static_cast<std::size_t>(t);
    try {
      wrong[i] = sums(links[i], t);
    } catch (const wring::Error& error) {
      wrong[i] = error.what();
    }
  };
  if (!multiple()) {  // every second thread is told so, before it has sent anything
    std::thread second(run, 1);
    second.join();
    CHECK(wrong[1].find("MPI_THREAD_SERIALIZED") != std::string::npos);
    return;
  }
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) running.emplace_back(run, t);
  for (std::thread& thread : running) thread.join();
  for (const std::string& what : wrong) CHECK(what.empty());
}

TEST_CASE("threads: a link goes from one thread to another between operations", "[collective][threads]") {
  wring::MpiTransport link(MPI_COMM_WORLD);
  if (!multiple()) return;
  for (int i = 0; i < 3; ++i) {
    std::string wrong;
    std::thread thread([&] { wrong = sums(link, i); });
    thread.join();
    CHECK(wrong.empty());
  }
}
