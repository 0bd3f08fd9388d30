// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include <wring/detail/cost/script.hpp>
#include <wring/error.hpp>

namespace wring::inline v0::detail {

/// Numbers the messages of one rank whose receives mirror its sends: its j-th receive is like its j-th send. Returns how many there are.
inline std::size_t number_messages(Script& script) {
  std::vector<ScriptStep*> sends;
  std::uint32_t receives = 0;
  for (ScriptStep& step : script.steps) {
    if (step.kind != Kind::send) continue;
    step.message = static_cast<std::uint32_t>(sends.size());
    sends.push_back(&step);
  }
  for (ScriptStep& step : script.steps) {
    if (!takes_message(step.kind)) continue;
    if (receives == sends.size() || sends[receives]->blocks != step.blocks)
      throw InvalidArgument(
          "predict: the algorithm says that it is symmetric, but a receive has no send like it");
    step.wire = sends[receives]->wire, step.message = receives++;
  }
  return sends.size();
}

/// Numbers the messages of all ranks: the k-th send of a pair of ranks is the k-th receive. Returns how many there are.
inline std::size_t number_messages(std::span<Script> scripts) {
  struct End {
    std::int32_t to, from;
    std::uint32_t order;
    ScriptStep* step;
    bool operator<(const End& b) const { return std::tie(to, from, order) < std::tie(b.to, b.from, b.order); }
  };
  std::vector<End> sends, receives;
  for (std::size_t r = 0; r < scripts.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    std::uint32_t order = 0;
    for (ScriptStep& step : scripts[r].steps) {
      if (step.kind == Kind::send) sends.push_back({step.peer, rank, order++, &step});
      if (takes_message(step.kind)) receives.push_back({rank, step.peer, order++, &step});
    }
  }
  std::sort(sends.begin(), sends.end());
  std::sort(receives.begin(), receives.end());
  bool fit = sends.size() == receives.size();
  for (std::size_t m = 0; fit && m < sends.size(); ++m) {
    fit = sends[m].to == receives[m].to && sends[m].from == receives[m].from;
    sends[m].step->message = receives[m].step->message = static_cast<std::uint32_t>(m);
    receives[m].step->wire = sends[m].step->wire;
  }
  if (!fit) throw InvalidArgument("predict: the plans of the ranks do not fit together");
  return sends.size();
}

}  // namespace wring::inline v0::detail
