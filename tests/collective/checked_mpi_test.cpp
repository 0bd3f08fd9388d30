// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checked collectives on MPI ranks, blocking, as docs/accuracy.md shows them.
#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstddef>
#include <string>

#include <wring/wring.hpp>

#include "support/checked_codecs.hpp"

TEST_CASE("checked: blocking calls over MPI", "[collective][checked]") {
  using namespace std::chrono_literals;
  const Kokkos::DefaultHostExecutionSpace exec;
  wring::MpiTransport link(MPI_COMM_WORLD);
  const Kokkos::View<float*, Kokkos::HostSpace> gradient("gradient", 100000), result("result", 100000);
  for (std::size_t i = 0; i < gradient.size(); ++i)
    gradient(i) = static_cast<float>(link.rank() + 1) * static_cast<float>(i % 1000) * 0.01F;

  wring::Checked mean(
      wring::Allreduce(wring::Grid<float>{}, link, wring::Ring{}, {.operation = wring::mean}));
  wring::Report report;
  std::string wrong;
  try {
    report = mean(exec, gradient, result, wring::relative_to_rms(0.01));
  } catch (const wring::VerificationError& error) {  // on every rank, of the same element
    wrong =
        error.what();  // "allreduce mean by grid over ring: element 17 of tensor 0 is 3 on rank 2 and ..."
  }
  REQUIRE(wrong.empty());
  REQUIRE(report.bound.has_value());
  mean(exec, gradient, wring::absolute(1e-3), std::chrono::steady_clock::now() + 60s);

  wring_test::Lying codec;
  codec.element = 54321;
  wring::Checked spread(wring::Broadcast(codec, link));
  if (link.size() == 1) return;  // nothing is encoded
  try {
    spread(exec, gradient, 0, wring::absolute(1e-3));
    FAIL("a wrong result was not found");
  } catch (const wring::VerificationError& error) {
    REQUIRE((error.element.index == 54321 && error.rank() == 0));
  }
  mean(exec, gradient, wring::absolute(1e-3));  // the link is as good as before
}
