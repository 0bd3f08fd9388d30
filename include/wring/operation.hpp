// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace wring::inline v0 {

/// The collectives of this library, with the meaning that MPI gives them.
enum class Collective { allreduce, reduce_scatter, allgather, broadcast };

constexpr bool reduces(Collective c) { return c == Collective::allreduce || c == Collective::reduce_scatter; }

/// What a reduction does with the ranks' values. `mean` is the sum divided by the number of ranks.
enum class Operation { sum, mean, min, max };

inline constexpr Operation sum = Operation::sum;
inline constexpr Operation mean = Operation::mean;
inline constexpr Operation min = Operation::min;
inline constexpr Operation max = Operation::max;

constexpr bool adds(Operation operation) {
  return operation == Operation::sum || operation == Operation::mean;
}

constexpr const char* name_of(Collective c) {
  switch (c) {
  case Collective::allreduce: return "allreduce";
  case Collective::reduce_scatter: return "reduce_scatter";
  case Collective::allgather: return "allgather";
  default: return "broadcast";
  }
}

constexpr const char* name_of(Operation operation) {
  switch (operation) {
  case Operation::sum: return "sum";
  case Operation::mean: return "mean";
  case Operation::min: return "min";
  default: return "max";
  }
}

}  // namespace wring::inline v0
