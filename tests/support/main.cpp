// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The main function of every test that runs in one process.
#include <Kokkos_Core.hpp>
#include <catch2/catch_session.hpp>

int main(int count, char* arguments[]) {
  Kokkos::ScopeGuard kokkos(count, arguments);
  return Catch::Session().run(count, arguments);
}
