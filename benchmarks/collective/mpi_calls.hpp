// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <wring/operation.hpp>

namespace wring_benchmark {

/// The collective as MPI has it, on values of `type`: `whole` and `part` are counts of values, as in Problem. A broadcast is in
/// place at `out`.
inline void call_mpi(wring::Collective collective, const void* in, void* out, int whole, int part,
                     MPI_Datatype type, MPI_Op sum, MPI_Comm communicator) {
  using enum wring::Collective;
  switch (collective) {
  case allreduce: MPI_Allreduce(in, out, whole, type, sum, communicator); break;
  case reduce_scatter: MPI_Reduce_scatter_block(in, out, part, type, sum, communicator); break;
  case allgather: MPI_Allgather(in, part, type, out, part, type, communicator); break;
  case broadcast: MPI_Bcast(out, whole, type, 0, communicator); break;
  }
}

inline const char* mpi_name(wring::Collective collective) {
  using enum wring::Collective;
  switch (collective) {
  case allreduce: return "MPI_Allreduce";
  case reduce_scatter: return "MPI_Reduce_scatter_block";
  case allgather: return "MPI_Allgather";
  default: return "MPI_Bcast";
  }
}

}  // namespace wring_benchmark
