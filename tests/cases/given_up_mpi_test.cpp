// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one rank gave up is told to all at the next operation, once, though it may still drain then.
#include <catch2/catch_test_macros.hpp>

#include <mpi.h>

#include <wring/collective.hpp>
#include <wring/compressor/none.hpp>
#include <wring/transport/mpi.hpp>

using View = Kokkos::View<double*, Kokkos::HostSpace>;

TEST_CASE("an operation that one rank destroys without a wait is told to all ranks once, then the link works",
          "[cases][mpi]") {
  const Kokkos::DefaultHostExecutionSpace exec{};
  wring::MpiTransport link(MPI_COMM_WORLD);
  const double p = link.size();
  for (int turn = 0; turn < 4; ++turn) {
    wring::Allreduce sum(wring::None<double>{}, link);
    const View x("x", 30000);
    bool told = false;
    {
      wring::Request request = sum.start(exec, x);
      try {
        if (link.rank() == link.size() - 1)
          request = {};
        else
          static_cast<void>(request.wait());
      } catch (const wring::AbandonedError&) {
        told = true;
      }
    }
    REQUIRE(told == (link.rank() != link.size() - 1));  // all depend on the last rank's data
    for (int later = 0; later < 4; ++later) {
      Kokkos::deep_copy(x, 3);
      INFO("turn " << turn << ", operation " << later);
      try {
        static_cast<void>(sum(exec, x));
        REQUIRE((later > 0 || p == 1));
        REQUIRE((x(0) == 3 * p && x(29999) == 3 * p));
      } catch (const wring::AbandonedError& error) {
        INFO(error.what());
        REQUIRE((later == 0 && p > 1));
      }
    }
  }
}
