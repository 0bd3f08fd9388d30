// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Thousands of operations over MPI: memory, threads, files and communicators stay as many as they were.
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <optional>
#include <type_traits>
#include <vector>

#include <mpi.h>

#include <wring/collective.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/transport/mpi.hpp>

#include "cases/resources.hpp"

using namespace wring_test;
using wring::MpiTransport;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<float*, Kokkos::HostSpace>;

/// Sums with one compressor, blocking and nonblocking in turn.
template <class Codec> class Summer {
 public:
  Summer(MpiTransport& link, std::size_t n) : sum_(Codec{}, link), x_("x", n) {}
  void run(int calls) {
    for (int i = 0; i < calls; ++i) {
      Kokkos::deep_copy(x_, 1);
      std::optional<wring::Bound> bound;
      if (wring::BoundedCompressor<Codec>) bound = wring::absolute(0.1);
      wring::Request request = sum_.start(Exec{}, wring::group(wring::item(x_, bound)));
      if (i % 2 == 1)
        while (!request.test()) {
        }
      static_cast<void>(request.wait());
    }
  }
  bool right(int ranks) const {
    return std::abs(x_(0) - static_cast<float>(ranks)) <= 0.1f && x_(x_.extent(0) - 1) == x_(0);
  }

 private:
  wring::Allreduce<Codec, MpiTransport> sum_;
  View x_;
};

}  // namespace

TEST_CASE("a hundred operations change neither binding nor number of threads", "[cases][resources]") {
  MpiTransport warm(MPI_COMM_WORLD);
  Summer<wring::None<float>>(warm, 1000).run(2);
  const auto before = binding();
  const std::size_t threads = threads_running();
  MpiTransport link(MPI_COMM_WORLD);
  Summer<wring::None<float>>(link, 5000).run(100);
  Summer<wring::Grid<float>>(link, 5000).run(100);
  Summer<wring::Cast<wring::half_t>>(link, 5000).run(100);
  REQUIRE(binding() == before);
  REQUIRE(threads_running() == threads);
}

TEST_CASE("memory, threads and files are flat over two thousand operations", "[cases][resources]") {
  constexpr std::size_t large = 262144, small = 3000;
  MpiTransport link(MPI_COMM_WORLD);
  Summer<wring::None<float>> none(link, small), none_large(link, large);
  Summer<wring::Grid<float>> grid(link, small), grid_large(link, large), tiny(link, 10);
  Summer<wring::Cast<wring::half_t>> cast(link, small), cast_large(link, large);
  const auto all = [&](int calls) {
    none.run(calls), grid.run(calls), cast.run(calls), tiny.run(calls);
    none_large.run(calls / 20), grid_large.run(calls / 20), cast_large.run(calls / 20);
  };
  all(100);
  const std::size_t threads = threads_running(), files = files_open();
  // 5 rounds of 415 operations. MPICH keeps a few dozen bytes of its own for each on more than two ranks; the least that an operation
  // of the library could lose is a buffer of 64 bytes with what belongs to it (tests/collective/steady_state_test.cpp counts).
  REQUIRE(least_growth([&] { all(100); }) < 415 * 128);
  REQUIRE((threads_running() == threads && files_open() == files));
  REQUIRE((none.right(link.size()) && grid_large.right(link.size()) && cast.right(link.size())));
}

TEST_CASE("operations and links come and go without a trace", "[cases][resources]") {
  const auto once = [](std::size_t n) {
    MpiTransport link(MPI_COMM_WORLD);
    Summer<wring::Grid<float>>(link, n).run(1);
  };
  const auto many = [&] {
    for (int i = 0; i < 430; ++i) once(100);
  };
  once(100);
  const std::size_t files = files_open();
  REQUIRE(least_growth(many) <=
          430 * 256);  // far below what a link and its operation hold; 2150 links: MPICH has 2048 at a time
  REQUIRE(files_open() == files);
}
