// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program of all clients: a compressed sum over the ranks of MPI_COMM_WORLD (one rank, when started without mpirun).
#include <wring/wring.hpp>

#include <Kokkos_Core.hpp>
#include <cmath>
#include <cstdio>
#include <mpi.h>

int second_file();  // the headers are in two translation units

int run() {
  wring::MpiTransport link(MPI_COMM_WORLD);
  wring::Allreduce sum(wring::Grid<float>{}, link, wring::Ring{});
  Kokkos::View<float*, Kokkos::HostSpace> values("client values", 3);
  for (int i = 0; i < 3; ++i) values(i) = 0.3f * i;
  const Kokkos::DefaultHostExecutionSpace exec;
  sum(exec, values, wring::absolute(1e-3));
  for (int i = 0; i < 3; ++i)
    if (!(std::fabs(double(values(i)) - double(link.size()) * double(0.3f * i)) <= 1e-3)) return 1;
  std::printf("wring %d: the sum is right\n", WRING_VERSION);
  return second_file();
}

int main(int count, char* arguments[]) {
  MPI_Init(&count, &arguments);
  int result = 0;
  {
    Kokkos::ScopeGuard kokkos(count, arguments);
    result = run();
  }
  MPI_Finalize();
  return result;
}
