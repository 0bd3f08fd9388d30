// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>

#include <wring/machine.hpp>

namespace wring::inline v0::detail {

/// Seconds that a sum of `bytes` by the transport takes once all ranks have come to it, as in a library that halves and doubles: two
/// messages in each of log2(p) rounds, 2(p-1)/p of the bytes in and out, and half of that added up. Ranks of a node share its link, and
/// only one of them need use it.
inline double seconds_of_sum(int ranks, double bytes, const Machine& m) {
  if (ranks == 1) return 0;
  const bool inside = ranks <= m.ranks_per_node;
  const double rounds = 2.0 * std::bit_width(static_cast<unsigned>(ranks - 1)), part = (ranks - 1.0) / ranks;
  const double latency = inside ? m.inside_latency : m.latency,
               bandwidth = inside ? m.inside_bandwidth : m.bandwidth;
  return rounds * (latency + 2 * m.overhead) + part * bytes * (2 / bandwidth + 1 / m.add);
}

}  // namespace wring::inline v0::detail
