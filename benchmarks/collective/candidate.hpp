// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <wring/collective/report.hpp>

#include "collective/reference.hpp"

namespace wring_benchmark {

/// One way to carry out the problem's collective from its `in` to its `out`.
struct Candidate {
  std::string what{};
  std::string compressor{}, algorithm{};  ///< of wring; empty for MPI
  bool uncompressed_mpi = false;          ///< MPI on the values themselves, chosen by MPI or forced
  std::optional<double> nominal_ratio{};  ///< of MPI, whose bytes nobody counts
  Allowance allowance{};
  std::function<void()> before{}, after{};  ///< what belongs to every run and is not timed; may be empty
  std::function<wring::Report()> run{};
};

}  // namespace wring_benchmark
