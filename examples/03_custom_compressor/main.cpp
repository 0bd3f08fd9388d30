// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compressor of one's own (byte_scaled.hpp): first the laws that every compressor keeps, then all four collectives with a bound
// on their results. Any number of ranks: mpirun -n 4 custom_compressor (up to about 70: see `bound`)
#include "byte_scaled.hpp"

#include <cstdio>
#include <vector>

#include <wring/testing/compressor_laws.hpp>
#include <wring/wring.hpp>

using Exec = Kokkos::DefaultHostExecutionSpace;
using Vector = Kokkos::View<float*, Kokkos::HostSpace>;

constexpr std::size_t part = 25000;  // values per rank

float input(int rank, std::size_t i) { return std::sin(0.01F * float(i) + float(rank)); }

double sum(int ranks, std::size_t i) {
  double total = 0;
  for (int r = 0; r < ranks; ++r) total += input(r, i);
  return total;
}

Vector filled(int rank, std::size_t count) {
  Vector x("x", count);
  for (std::size_t i = 0; i < count; ++i) x(i) = input(rank, i);
  return x;
}

/// Compares a result with what it should be, within the bound that the operation's report guarantees.
template <class Expected> bool within(const char* what, int rank, const Vector& x,
                                      const wring::Report& report, Expected expected) {
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) error = std::max(error, std::fabs(double{x(i)} - expected(i)));
  if (rank == 0)
    std::printf("%-15s largest error %.4f, bound %.4f, %.2f times fewer bytes\n", what, error, *report.bound,
                report.ratio());
  return error <= *report.bound;
}

bool run() {
  wring::MpiTransport link(MPI_COMM_WORLD);
  const int rank = link.rank(), ranks = link.size();
  const std::size_t all = part * static_cast<std::size_t>(ranks),
                    mine = part * static_cast<std::size_t>(rank);
  const wring::Bound bound =
      wring::absolute(0.02 * ranks * ranks);  // each of about 2p encodings may be wrong by p/249
  bool good = true;

  for (const std::string& broken : wring::testing::check_compressor_laws(ByteScaled{})) {
    std::printf("broken law: %s\n", broken.c_str());
    good = false;
  }

  wring::Allreduce allreduce(ByteScaled{}, link);
  const Vector total = filled(rank, all);
  wring::Report report = allreduce(Exec{}, total, bound);
  good = within("allreduce", rank, total, report, [&](std::size_t i) { return sum(ranks, i); }) && good;

  wring::ReduceScatter reduce_scatter(ByteScaled{}, link, wring::Direct{});
  const Vector shard("shard", part);
  report = reduce_scatter(Exec{}, filled(rank, all), shard, bound);
  good = within("reduce_scatter", rank, shard, report, [&](std::size_t i) { return sum(ranks, mine + i); }) &&
         good;

  wring::Allgather allgather(ByteScaled{}, link, wring::RecursiveDoubling{});
  const Vector gathered("gathered", all);
  report = allgather(Exec{}, filled(rank, part), gathered, bound);
  good = within("allgather", rank, gathered, report,
                [](std::size_t i) { return input(int(i / part), i % part); }) &&
         good;

  wring::Broadcast broadcast(ByteScaled{}, link, wring::Hierarchical(2));
  const Vector copy = filled(rank, all);
  report = broadcast(Exec{}, copy, 0, bound);
  good = within("broadcast", rank, copy, report, [](std::size_t i) { return input(0, i); }) && good;
  return good;
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  bool good = false;
  {
    const Kokkos::ScopeGuard kokkos(count, arguments);
    try {
      good = run();
    } catch (const wring::Error& error) {  // the same one on all ranks
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
  MPI_Finalize();
  return good ? 0 : 1;
}
