// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <wring/collective/request.hpp>
#include <wring/error.hpp>
#include <wring/transport/in_process.hpp>

/// Many ranks in one process: what came of an operation on each of them.
namespace wring_test {

struct Outcome {
  wring::Cause cause = wring::Cause::none;  ///< none: it ended well
  int rank = -1;                            ///< whom the error blames
  std::string text;
  wring::Report report;
  bool hangs = false;  ///< nothing moves any more

  bool ok() const { return cause == wring::Cause::none && !hangs; }
  friend bool operator==(const Outcome& a, wring::Cause cause) { return !a.hangs && a.cause == cause; }
  friend std::ostream& operator<<(std::ostream& out, const Outcome& o) {
    if (o.hangs) return out << "hangs";
    if (o.ok()) return out << "ok";
    return out << "error " << static_cast<int>(o.cause) << " of rank " << o.rank << " (" << o.text << ")";
  }
};

/// Runs `action` and says how it ended.
template <class Action> Outcome outcome_of(Action action) {
  Outcome outcome;
  try {
    action(outcome);
  } catch (const wring::Error& error) {
    outcome.cause = error.cause(), outcome.rank = error.rank(), outcome.text = error.what();
  }
  return outcome;
}

/// Tests all requests in turn until each has ended, or none can.
inline std::vector<Outcome> complete(wring::InProcess& world, std::vector<wring::Request>& requests) {
  std::vector<Outcome> outcomes(requests.size());
  std::vector<bool> ended(requests.size(), false);
  std::size_t left = requests.size();
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (!requests[i].valid()) ended[i] = true, --left;
  for (int idle = 0; left > 0 && idle < 2;) {
    bool moved = world.progress() != wring::Progress::blocked;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (ended[i]) continue;
      outcomes[i] = outcome_of([&](Outcome& o) {
        ended[i] = true;  // unless it says otherwise
        ended[i] = requests[i].test();
        if (ended[i]) o.report = requests[i].wait();
      });
      if (ended[i]) --left, moved = true;
    }
    idle = moved ? 0 : idle + 1;
  }
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (!ended[i]) outcomes[i].hangs = true;
  return outcomes;
}

/// Starts an operation on every rank, `start(rank)`, and completes all of them. What a start throws is that rank's outcome.
template <class Start> std::vector<Outcome> on_all_ranks(wring::InProcess& world, Start start) {
  std::vector<wring::Request> requests(static_cast<std::size_t>(world.size()));
  std::vector<Outcome> started(requests.size());
  for (std::size_t r = 0; r < requests.size(); ++r)
    started[r] = outcome_of([&](Outcome&) { requests[r] = start(static_cast<int>(r)); });
  std::vector<Outcome> outcomes = complete(world, requests);
  for (std::size_t r = 0; r < requests.size(); ++r)
    if (!started[r].ok()) outcomes[r] = started[r];
  return outcomes;
}

inline bool all_ok(const std::vector<Outcome>& outcomes) {
  for (const Outcome& o : outcomes)
    if (!o.ok()) return false;
  return true;
}

/// Whether every rank met an error of this kind that blames this rank (-2: whichever, but all the same).
inline bool all_failed(const std::vector<Outcome>& outcomes, wring::Cause cause, int rank = -2) {
  for (const Outcome& o : outcomes)
    if (!(o == cause) || o.rank != (rank == -2 ? outcomes[0].rank : rank)) return false;
  return true;
}

inline std::string describe(const std::vector<Outcome>& outcomes) {
  std::string text;
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    const Outcome& o = outcomes[r];
    text += "\n  rank " + std::to_string(r) + ": " +
            (o.hangs  ? "hangs"
             : o.ok() ? "ok"
                      : "error " + std::to_string(static_cast<int>(o.cause)) + ": " + o.text);
  }
  return text;
}

}  // namespace wring_test
