// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/bound.hpp>
#include <wring/operation.hpp>

#include "support/data.hpp"

namespace wring_benchmark {

inline int rank_of(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}
inline int size_of(MPI_Comm communicator) {
  int size = 0;
  MPI_Comm_size(communicator, &size);
  return size;
}
inline double over_ranks(double value, MPI_Op operation) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, operation, MPI_COMM_WORLD);
  return value;
}

/// One collective on one size: the ranks' values, and where the result goes. Values are summed; the root is rank 0.
///
/// The size is that of the whole vector: what allreduce reduces, what reduce-scatter takes in, what allgather puts out, what
/// broadcast sends. For reduce-scatter and allgather it is rounded up so that all ranks have equal parts.
struct Problem {
  using View = Kokkos::View<float*, Kokkos::HostSpace>;

  wring::Collective collective;
  int rank = rank_of(MPI_COMM_WORLD), ranks = size_of(MPI_COMM_WORLD);
  std::size_t elements, part;  ///< of the whole, of a rank
  View in, out;

  Problem(wring::Collective which, std::size_t bytes, std::span<const float> data) : collective(which) {
    const auto r = static_cast<std::size_t>(ranks);
    part = (std::max<std::size_t>(1, bytes / sizeof(float)) + r - 1) / r;
    elements = by_rank() ? part * r : std::max<std::size_t>(1, bytes / sizeof(float));
    in = View("in", which == wring::Collective::allgather ? part : elements);
    out = View("out", which == wring::Collective::reduce_scatter ? part : elements);
    fill(std::span(in.data(), in.size()), data);
  }

  bool by_rank() const {
    return collective == wring::Collective::reduce_scatter || collective == wring::Collective::allgather;
  }
  std::size_t bytes() const { return elements * sizeof(float); }

  /// Before each operation: the root's vector, which a broadcast replaces.
  void restore() const {
    if (collective == wring::Collective::broadcast && rank == 0) Kokkos::deep_copy(out, in);
  }
  /// Forgets the results of earlier operations.
  void wipe() const {
    Kokkos::deep_copy(out, std::numeric_limits<float>::quiet_NaN());
    restore();
  }

  /// The error that the bound allows, in the units of the data.
  double allowed_error(wring::Bound bound) const {
    const bool speaks = collective != wring::Collective::broadcast || rank == 0;
    double squares = 0, count = 0, most = -std::numeric_limits<double>::infinity(), least = -most;
    for (std::size_t i = 0; speaks && i < in.size(); ++i) {
      const double x = in(i);
      squares += x * x, count += 1, most = std::max(most, x), least = std::min(least, x);
    }
    squares = over_ranks(squares, MPI_SUM), count = over_ranks(count, MPI_SUM);
    most = over_ranks(most, MPI_MAX), least = over_ranks(least, MPI_MIN);
    if (bound.kind == wring::Bound::Kind::absolute) return bound.value;
    if (bound.kind == wring::Bound::Kind::range) return bound.value * (most - least);
    return bound.value * std::sqrt(squares / count) * (wring::reduces(collective) ? ranks : 1);
  }
};

}  // namespace wring_benchmark
