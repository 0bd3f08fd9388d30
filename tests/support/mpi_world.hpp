// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

namespace wring_test {

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// A communicator that is freed at the end.
struct Communicator {
  MPI_Comm handle = MPI_COMM_NULL;

  Communicator() = default;
  /// A part of the world.
  Communicator(int colour, int key) { MPI_Comm_split(MPI_COMM_WORLD, colour, key, &handle); }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  ~Communicator() {
    if (handle != MPI_COMM_NULL) MPI_Comm_free(&handle);
  }
};

}  // namespace wring_test
