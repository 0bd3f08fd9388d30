// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include <wring/algorithm/plan.hpp>

namespace wring::inline v0::detail {

/// How many of a rank's first encodings of a value, at least, are of sums that no other rank encodes as well; by its own plan. Its input leaves it
/// with what it sends first: before, no other rank holds a sum with it. A block that it sends and then adds to is exchanged, and its peer may
/// come to hold the same.
inline std::size_t encodings_alone(const Plan& plan) {
  constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> encoded(static_cast<std::size_t>(plan.blocks), all);  // with what was sent first
  std::size_t least = all;
  for (const Step& step : plan.steps)
    for (int b = step.first; b < step.last; ++b) {
      std::size_t& sent = encoded[static_cast<std::size_t>(b)];
      if (step.kind == Kind::combine || step.kind == Kind::finish) least = std::min(least, sent);
      if ((step.kind == Kind::send || step.kind == Kind::sum) && sent == all)
        sent = step.wire == Wire::raw ? 0 : 1;
    }
  return least;
}

}  // namespace wring::inline v0::detail
