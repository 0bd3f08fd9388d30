// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <wring/bound.hpp>

#include "codec/data_set.hpp"

namespace wring_benchmark {

/// What all codec benchmarks share.
struct Registry {
  std::vector<std::shared_ptr<const DataSet>> data;
  std::vector<std::size_t> sizes;    ///< in bytes of the values
  std::vector<wring::Bound> bounds;  ///< in place of those of the data sets, unless empty
  bool wrong = false;                ///< whether an error exceeded its bound

  /// The case of that name, made if it is not the one that was used last: Google Benchmark calls a benchmark several times.
  template <class Case> Case& current(const std::string& name,
                                      const std::function<std::shared_ptr<Case>()>& make) {
    if (name != name_) {
      name_.clear(), case_.reset();  // before the next one takes its memory
      case_ = make(), name_ = name;
    }
    return *static_cast<Case*>(case_.get());
  }

 private:
  std::string name_;
  std::shared_ptr<void> case_;
};

/// One in each file of elements/; CMake says which are built.
void register_float(Registry& registry);
void register_double(Registry& registry);
void register_half_t(Registry& registry);

}  // namespace wring_benchmark
