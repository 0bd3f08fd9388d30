// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The MPI code of before.cpp with its allreduce compressed. These lines changed: diff before.cpp after.cpp
//
// Gradient descent on data that are spread over the ranks: rank r holds b_r = A_r s, a signal s blurred in its own way, and all
// ranks together look for s. Every step needs the sum over the ranks of A_r (A_r x - b_r).
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <wring/wring.hpp>

using Vector = std::vector<double>;
constexpr int n = 50000;

/// A_r x: a symmetric blur of a width that differs from rank to rank; its eigenvalues lie between 0.2 and 1.
Vector blurred(const Vector& x, int rank) {
  const int width = 1 + rank;
  Vector y(n);
  for (int i = 0; i < n; ++i)
    y[i] = 0.6 * x[i] + 0.2 * (i >= width ? x[i - width] : 0) + 0.2 * (i + width < n ? x[i + width] : 0);
  return y;
}

bool solve(int rank, int ranks) {
  wring::MpiTransport link(MPI_COMM_WORLD);
  wring::Allreduce sum(wring::Grid<double>{}, link);
  Vector signal(n), x(n, 0.0);
  for (int i = 0; i < n; ++i) signal[i] = std::sin(0.001 * i) + (i % 977 == 0 ? 0.5 : 0.0);
  const Vector measured = blurred(signal, rank);
  double bytes = 0;
  for (int step = 0; step < 200; ++step) {
    Vector residual = blurred(x, rank);
    for (int i = 0; i < n; ++i) residual[i] -= measured[i];
    Vector gradient = blurred(residual, rank);
    const Kokkos::View<double*, Kokkos::HostSpace> view(gradient.data(), n);
    const wring::Report report = sum(Kokkos::DefaultHostExecutionSpace{}, view, wring::relative_to_rms(0.01));
    bytes += static_cast<double>(report.bytes_sent);
    for (int i = 0; i < n; ++i) x[i] -= gradient[i] / ranks;
  }
  double error = 0;
  for (int i = 0; i < n; ++i) error = std::max(error, std::fabs(x[i] - signal[i]));
  if (rank == 0)
    std::printf("largest error %.1e after 200 steps, %.1f MB sent by rank 0\n", error, 1e-6 * bytes);
  return error < 1e-3;
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Kokkos::initialize(count, arguments);
  const bool good = solve(rank, ranks);
  Kokkos::finalize();
  MPI_Finalize();
  return good ? 0 : 1;
}
