// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <wring/algorithm/plan.hpp>
#include <wring/collective/executor/agreement/experience.hpp>
#include <wring/collective/executor/failure.hpp>
#include <wring/collective/options.hpp>

namespace wring::inline v0::detail {

/// What a collective hands to the executor, beyond the tensors: the same for all of them.
struct Job {
  Task task;
  Options options;
  std::string algorithm, compressor;  ///< names
  std::uint64_t compressor_hash = 0;  ///< of its identity
  std::uint64_t algorithm_hash = 0;   ///< of its name and of the plan of rank 0; or of what it chooses by
  std::uint64_t choice_hash = 0;      ///< of the plan that it has chosen
  std::uint64_t layout = 0;           ///< of nodes
  std::uint64_t type = 0;             ///< of the element type
  std::vector<std::size_t> counts;    ///< per tensor and rank, for reduce-scatter and allgather
  std::string reason, ride_reason;    ///< for the report: why this way, and why the data ride along
  bool compressed = true;             ///< whether messages are encoded
  double wire_speed = 0;  ///< bytes per second of a rank's link, if the algorithm knows; covered by `layout`
  std::shared_ptr<Experience> experience;  ///< to be told how well the data compress; may be null
  Failure failure;                         ///< what is wrong with this rank's arguments, if anything
};

}  // namespace wring::inline v0::detail
