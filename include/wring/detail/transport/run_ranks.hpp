// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include <wring/error.hpp>
#include <wring/transport/session.hpp>

/// Programs of all ranks of a world whose ranks share a thread.
namespace wring::inline v0::detail {

template <class Started> bool test_started(Started& started) {
  if constexpr (requires { started.test(); })
    return started.test();
  else
    return started->test();
}

/// "rank 0 waits for rank 1 (head); rank 1 waits for nobody".
template <class World> std::string waits_for(World& world) {
  std::string text;
  for (int r = 0; r < world.size(); ++r) {
    const std::string whom = world.link(r).session().waits_for();
    text +=
        (r == 0 ? "rank " : "; rank ") + std::to_string(r) + " waits for " + (whom.empty() ? "nobody" : whom);
  }
  return text;
}

/// Starts a program on each rank, `start(link)`, and tests what it returns until all have finished. Throws Error if no rank can move.
template <class World, class Start> void run_ranks(World& world, Start&& start) {
  std::vector<std::invoke_result_t<Start&, decltype(world.link(0))>> started;
  for (int r = 0; r < world.size(); ++r) started.push_back(start(world.link(r)));
  std::vector<bool> finished(started.size(), false);
  for (int idle = 0;;) {
    bool changed = false;
    for (std::size_t r = 0; r < started.size(); ++r) {
      if (!finished[r] && test_started(started[r])) finished[r] = changed = true;
    }
    if (std::find(finished.begin(), finished.end(), false) == finished.end()) return;
    if (world.progress() != Progress::blocked) changed = true;
    idle = changed ? 0
                   : idle + 1;  // a test may have moved others, whose own tests come later: ask all once more
    if (idle == 2) throw Error("all ranks are blocked: " + waits_for(world));
  }
}

}  // namespace wring::inline v0::detail
