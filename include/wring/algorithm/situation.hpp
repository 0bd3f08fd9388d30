// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <wring/algorithm/load.hpp>
#include <wring/algorithm/plan.hpp>

namespace wring::inline v0 {

/// Where the compression ratio of a load comes from: nobody knows it yet; the ranks have seen it in earlier operations; or pieces have a
/// fixed size.
enum class RatioSource { assumed, seen, fixed };

/// What an algorithm is told of an operation that is about to start. All of it is known to every rank in the same way, as far as their
/// calls agree.
struct Situation {
  Task task;
  int ranks = 1;
  Load load;  ///< if it is compressed; segments and depth as the user's options say
  RatioSource ratio_source = RatioSource::assumed;  ///< of `load.ratio`
  bool measured_otherwise =
      false;  ///< whether the inputs are measured first where pieces are not encoded by the plan
  std::optional<RidesAlong> ride;  ///< how the data could travel with the agreement; empty: not at all

  // What the user has given, and is not to be chosen.
  bool segment_given = false, depth_given = false, ride_given = false;

  friend bool operator==(const Situation&, const Situation&) = default;
};

/// What an algorithm has chosen for an operation.
struct Choice {
  int variant = 0;         ///< which of its plans
  bool compressed = true;  ///< whether its messages are encoded
  bool rides_along = false;
  std::size_t segment_bytes = 128 * 1024;
  int depth = 4;
  double seconds = 0;       ///< that it will take, as far as is known
  std::string reason;       ///< why, in words, for the report
  std::string ride_reason;  ///< the same where the data ride along
};

}  // namespace wring::inline v0
