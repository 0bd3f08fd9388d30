// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A sum over MPI ranks with this compressor, verified against the exact one: mpirun -n 4 sum
#include <common_step/common_step.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <mpi.h>

#include <wring/collective/allreduce.hpp>
#include <wring/collective/checked.hpp>
#include <wring/transport/mpi.hpp>

void run() {
  const Kokkos::DefaultHostExecutionSpace exec;
  wring::MpiTransport link(MPI_COMM_WORLD);
  const Kokkos::View<float*, Kokkos::HostSpace> x("x", 100000);
  for (std::size_t i = 0; i < x.size(); ++i)
    x(i) = std::sin(0.01F * static_cast<float>(i) + static_cast<float>(link.rank()));

  wring::Checked sum(
      wring::Allreduce(common_step::CommonStep<float>{}, link));  // throws where the result is wrong
  const wring::Report report = sum(exec, x, wring::absolute(0.1));
  if (link.rank() == 0)
    std::printf("%d ranks: within %g, %.2f times fewer bytes\n", link.size(), *report.bound, report.ratio());
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int result = 0;
  {
    const Kokkos::ScopeGuard kokkos(count, arguments);
    try {
      run();
    } catch (const std::exception& error) {  // the same one on all ranks
      std::fprintf(stderr, "%s\n", error.what());
      result = 1;
    }
  }
  MPI_Finalize();
  return result;
}
