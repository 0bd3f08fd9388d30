// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/arguments.hpp"

namespace wring_benchmark {

/// A control variable of the MPI library, while MPI_T is initialised. What was written is undone at the end. Nothing happens where
/// the library has no variable of that name.
class ControlVariable {
 public:
  explicit ControlVariable(const std::string& name) {
    int index = 0, objects = 0;
    if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS) return;
    int name_length = 0, length = sizeof description_, verbosity = 0, binding = 0, scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_cvar_get_info(index, nullptr, &name_length, &verbosity, &type, &enumeration_, description_, &length,
                        &binding, &scope);
    if (MPI_T_cvar_handle_alloc(index, nullptr, &handle_, &objects) != MPI_SUCCESS) return;
    there_ = objects == 1 && MPI_T_cvar_read(handle_, before_) == MPI_SUCCESS;
  }
  ControlVariable(const ControlVariable&) = delete;
  ControlVariable& operator=(const ControlVariable&) = delete;
  ~ControlVariable() {
    restore();
    if (there_) MPI_T_cvar_handle_free(&handle_);
  }

  bool write(int value) {
    alignas(int) char bytes[room] = {};
    std::memcpy(bytes, &value, sizeof value);  // a little-endian int serves for a bool
    return there_ && MPI_T_cvar_write(handle_, bytes) == MPI_SUCCESS;
  }
  void restore() {
    if (there_) MPI_T_cvar_write(handle_, before_);
  }

  using Choices = std::vector<std::pair<int, std::string>>;

  /// What it may be, and how that is called. Open MPI enumerates it; MPICH describes it, one value per line from 0, as
  /// "name - explanation" after a heading.
  Choices choices() const {
    if (!there_) return {};
    return enumeration_ == MPI_T_ENUM_NULL ? described() : enumerated();
  }

 private:
  static constexpr int room = 64;

  Choices enumerated() const {
    Choices all;
    int count = 0, length = 0;
    MPI_T_enum_get_info(enumeration_, &count, nullptr, &length);
    for (int i = 0; i < count; ++i) {
      char name[128] = {};
      int value = 0, size = sizeof name;
      if (MPI_T_enum_get_item(enumeration_, i, &value, name, &size) == MPI_SUCCESS)
        all.emplace_back(value, name);
    }
    return all;
  }

  Choices described() const {
    Choices all;
    for (const auto& line : split(description_, '\n'))
      if (line.find(" - ") != line.npos)
        all.emplace_back(static_cast<int>(all.size()), line.substr(0, line.find(' ')));
    return all;
  }

  MPI_T_cvar_handle handle_ = MPI_T_CVAR_HANDLE_NULL;
  MPI_T_enum enumeration_ = MPI_T_ENUM_NULL;
  char description_[4096] = {};
  alignas(int) char before_[room] = {};
  bool there_ = false;
};

}  // namespace wring_benchmark
