// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Starts MPI itself, as a single process.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mpi.h>
#include <optional>

#include <wring/transport/mpi.hpp>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("MPI: links before and after MPI's own life", "[transport]") {
  CHECK_THROWS_MATCHES(wring::MpiTransport(MPI_COMM_WORLD), wring::InvalidArgument,
                       MessageMatches(ContainsSubstring("not initialised")));
  MPI_Init(nullptr, nullptr);
  std::optional<wring::MpiTransport> survivor(MPI_COMM_WORLD);
  CHECK(survivor->size() == 1);
  MPI_Finalize();
  CHECK_THROWS_MATCHES(wring::MpiTransport(MPI_COMM_WORLD), wring::InvalidArgument,
                       MessageMatches(ContainsSubstring("finalised already")));
  survivor.reset();
}
