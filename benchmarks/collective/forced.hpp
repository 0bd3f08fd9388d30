// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <optional>
#include <string>
#include <vector>

#include <wring/operation.hpp>

#include "collective/control_variable.hpp"

namespace wring_benchmark {

/// MPI's algorithms for one collective, each of which can be forced within one program, so that they can be timed in turn. The MPI
/// library is told through its control variables:
/// - Open MPI's component `tuned` reads them whenever a communicator is made: there is one communicator for each algorithm.
/// - MPICH reads them in every call: `select` before it, `release` after it. Where an algorithm cannot serve, it takes its own choice.
/// There are none with other MPI libraries. Left out are the linear algorithms and MPICH's nonblocking ones.
class ForcedAlgorithms {
 public:
  struct Forced {
    std::string name;
    int value;
    MPI_Comm communicator;
  };

  explicit ForcedAlgorithms(wring::Collective collective) {
    int level = 0;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    make_communicators(open_mpi_variable(collective));
    if (!forced_.empty()) return;
    in_calls_.emplace(mpich_variable(collective));
    for (const auto& [value, name] : in_calls_->choices())
      if (name != "auto" && name != "nb") forced_.push_back({name, value, MPI_COMM_WORLD});
  }
  ForcedAlgorithms(const ForcedAlgorithms&) = delete;
  ForcedAlgorithms& operator=(const ForcedAlgorithms&) = delete;
  ~ForcedAlgorithms() {
    for (Forced& f : forced_)
      if (f.communicator != MPI_COMM_WORLD) MPI_Comm_free(&f.communicator);
    in_calls_.reset();
    MPI_T_finalize();
  }

  const std::vector<Forced>& all() const { return forced_; }

  void select(const Forced& forced) {
    if (in_calls_) in_calls_->write(forced.value);
  }
  void release() {
    if (in_calls_) in_calls_->restore();
  }

 private:
  void make_communicators(const std::string& variable) {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    ControlVariable dynamic("coll_tuned_use_dynamic_rules"), algorithm(variable);
    ControlVariable other("coll_han_priority");  // a component that goes before `tuned` on several nodes
    for (const auto& [value, name] : algorithm.choices()) {
      const bool slow = name == "ignore" || name.ends_with("linear"), pairs_only = name == "two_proc";
      if (slow || (pairs_only && ranks != 2) || !dynamic.write(1) || !algorithm.write(value)) continue;
      other.write(0);
      MPI_Comm_dup(MPI_COMM_WORLD, &forced_.emplace_back(name, value, MPI_COMM_NULL).communicator);
    }
  }

  static std::string open_mpi_variable(wring::Collective collective) {
    using enum wring::Collective;
    switch (collective) {
    case allreduce: return "coll_tuned_allreduce_algorithm";
    case reduce_scatter: return "coll_tuned_reduce_scatter_block_algorithm";
    case allgather: return "coll_tuned_allgather_algorithm";
    default: return "coll_tuned_bcast_algorithm";
    }
  }
  static std::string mpich_variable(wring::Collective collective) {
    using enum wring::Collective;
    switch (collective) {
    case allreduce: return "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM";
    case reduce_scatter: return "MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM";
    case allgather: return "MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM";
    default: return "MPIR_CVAR_BCAST_INTRA_ALGORITHM";
    }
  }

  std::vector<Forced> forced_;
  std::optional<ControlVariable> in_calls_;
};

}  // namespace wring_benchmark
