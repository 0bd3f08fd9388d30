// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <wring/operation.hpp>

namespace wring_benchmark {

/// A control variable of the MPI library; nothing happens where the library has none of that name.
class ControlVariable {
 public:
  explicit ControlVariable(const std::string& name) {
    int index = 0, objects = 0;
    if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS) return;
    int name_length = 0, description_length = 0, verbosity = 0, binding = 0, scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_cvar_get_info(index, nullptr, &name_length, &verbosity, &type, &enumeration_, nullptr,
                        &description_length, &binding, &scope);
    if (MPI_T_cvar_handle_alloc(index, nullptr, &handle_, &objects) != MPI_SUCCESS) return;
    there_ = objects == 1;
    read(before_);
  }
  ControlVariable(const ControlVariable&) = delete;
  ControlVariable& operator=(const ControlVariable&) = delete;
  ~ControlVariable() {
    if (there_) MPI_T_cvar_write(handle_, before_);
    if (there_) MPI_T_cvar_handle_free(&handle_);
  }

  bool write(int value) {
    alignas(int) char bytes[size] = {};
    std::memcpy(bytes, &value, sizeof value);  // a little-endian int serves for a bool
    return there_ && MPI_T_cvar_write(handle_, bytes) == MPI_SUCCESS;
  }

  /// What it may be, where the library enumerates that.
  std::vector<std::pair<int, std::string>> choices() const {
    std::vector<std::pair<int, std::string>> all;
    if (!there_ || enumeration_ == MPI_T_ENUM_NULL) return all;
    int count = 0, length = 0;
    MPI_T_enum_get_info(enumeration_, &count, nullptr, &length);
    for (int i = 0; i < count; ++i) {
      char name[128] = {};
      int value = 0, room = sizeof name;
      if (MPI_T_enum_get_item(enumeration_, i, &value, name, &room) == MPI_SUCCESS)
        all.emplace_back(value, name);
    }
    return all;
  }

 private:
  static constexpr int size = 64;
  void read(char* bytes) {
    if (there_) there_ = MPI_T_cvar_read(handle_, bytes) == MPI_SUCCESS;
  }

  MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
  MPI_T_enum enumeration_ = MPI_T_ENUM_NULL;
  alignas(int) char before_[size] = {};
  bool there_ = false;
};

/// Communicators on which Open MPI carries out one collective by one algorithm of its component `tuned`, which reads its settings
/// whenever a communicator is made. None with other MPI libraries: benchmarks/collective/run forces those from outside.
class ForcedAlgorithms {
 public:
  struct Forced {
    std::string name;
    MPI_Comm communicator;
  };

  explicit ForcedAlgorithms(wring::Collective collective) {
    int level = 0, ranks = 1;
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    {
      ControlVariable dynamic("coll_tuned_use_dynamic_rules"), other("coll_han_priority"),
          algorithm(variable(collective));
      for (const auto& [value, name] : algorithm.choices()) {
        const bool slow = name == "ignore" || name.ends_with("linear"), pairs_only = name == "two_proc";
        if (slow || (pairs_only && ranks != 2)) continue;
        if (!dynamic.write(1) || !algorithm.write(value)) continue;
        other.write(0);
        MPI_Comm_dup(MPI_COMM_WORLD, &forced_.emplace_back(name, MPI_COMM_NULL).communicator);
      }
    }
    MPI_T_finalize();
  }
  ForcedAlgorithms(const ForcedAlgorithms&) = delete;
  ForcedAlgorithms& operator=(const ForcedAlgorithms&) = delete;
  ~ForcedAlgorithms() {
    for (Forced& f : forced_) MPI_Comm_free(&f.communicator);
  }

  const std::vector<Forced>& all() const { return forced_; }

 private:
  static std::string variable(wring::Collective collective) {
    using enum wring::Collective;
    const std::string name = collective == allreduce        ? "allreduce"
                             : collective == reduce_scatter ? "reduce_scatter_block"
                             : collective == allgather      ? "allgather"
                                                            : "bcast";
    return "coll_tuned_" + name + "_algorithm";
  }

  std::vector<Forced> forced_;
};

}  // namespace wring_benchmark
