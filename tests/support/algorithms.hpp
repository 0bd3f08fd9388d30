// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <wring/algorithm.hpp>

/// Any algorithm as one type, so that a test compiles each compressor once.
namespace wring_test {

class AnyAlgorithm {
 public:
  template <class A>
    requires(!std::same_as<A, AnyAlgorithm>)
  AnyAlgorithm(const A& model)
      : name_(model.name()), layout_(wring::layout_of(model)),
        plan_([model](wring::Task task, int rank, int ranks) { return model.plan(task, rank, ranks); }) {}

  std::string name() const { return name_; }
  std::uint64_t layout() const { return layout_; }
  wring::Plan plan(wring::Task task, int rank, int ranks) const { return plan_(task, rank, ranks); }

 private:
  std::string name_;
  std::uint64_t layout_;
  std::function<wring::Plan(wring::Task, int, int)> plan_;
};
static_assert(wring::LaidOutAlgorithm<AnyAlgorithm>);

/// Every kind of algorithm that `ranks` ranks can run: compiled once, in algorithms.cpp.
std::vector<AnyAlgorithm> all_algorithms(int ranks);

}  // namespace wring_test
