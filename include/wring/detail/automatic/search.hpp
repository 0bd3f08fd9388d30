// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <wring/algorithm/cost.hpp>
#include <wring/algorithm/situation.hpp>
#include <wring/detail/automatic/route.hpp>
#include <wring/machine.hpp>

namespace wring::inline v0::detail {

/// A way to go, and how long it takes.
struct Outlook {
  Route route;
  std::size_t segment_bytes = 0;
  int depth = 0;
  double seconds = 0;
};

/// Looks for the fastest way with the cost model. First every algorithm with the segments and the depth that the situation has; then, where
/// one may still become the fastest, longer and shorter segments, more and fewer of them in flight, step by step as long as that helps.
class Search {
 public:
  static constexpr std::array<std::size_t, 10> segments{8 << 10,   16 << 10,  32 << 10, 64 << 10, 128 << 10,
                                                        256 << 10, 512 << 10, 1 << 20,  2 << 20,  4 << 20};
  static constexpr std::array<int, 5> depths{1, 2, 4, 8, 16};
  static constexpr double enough = 0.98;  ///< a change that gains less than 2 % is none
  static constexpr double hopeful =
      1.5;  ///< times the least time: beyond it no algorithm is looked at closely
  static constexpr double most_steps = 4096;    ///< of all plans that are followed, to be looked at closely
  static constexpr int most_broadcasters = 64;  ///< `Direct` has p * p messages there, never the fastest

  Search(const Situation& situation, const Machine& machine) : s_(situation), machine_(machine) {}

  /// The fastest way with or without compression; nothing if there is none: pieces of a compressor that combines are only unpacked where
  /// something is added, and where it has a form for that.
  std::optional<Outlook> best(bool compressed) const {
    const bool unpacks = !s_.load.packs_always && reduces(s_.task.collective);
    if (!compressed && s_.load.combines && !unpacks) return std::nullopt;
    std::vector<Outlook> outlooks;
    double least = std::numeric_limits<double>::infinity();
    for (int n = 0; n < Route::algorithms; ++n) {
      const Route route(compressed ? n : n + Route::algorithms);
      if (n == 1 && s_.task.collective == Collective::broadcast && s_.ranks > most_broadcasters) continue;
      if (const auto outlook = look(route, s_.load.segment_bytes, s_.load.depth))
        outlooks.push_back(*outlook), least = std::min(least, outlook->seconds);
    }
    std::optional<Outlook> best;
    for (Outlook& outlook : outlooks) {
      if (outlook.seconds <= hopeful * least && light(outlook.route)) improve(outlook);
      if (!best || outlook.seconds < best->seconds) best = outlook;
    }
    return best;
  }

 private:
  /// Nothing where a message would be too long.
  std::optional<Outlook> look(Route route, std::size_t segment_bytes, int depth) const {
    constexpr std::size_t most = std::size_t(1) << 29;
    const int widest = route.plan(s_.task, 0, s_.ranks).widest;
    if (segment_bytes > most / static_cast<std::size_t>(std::max(1, widest))) return std::nullopt;
    Load load = s_.load;
    load.segment_bytes = segment_bytes, load.depth = depth;
    if (!route.compressed()) load.measured = s_.measured_otherwise, load.ahead = false;
    return Outlook{route, segment_bytes, depth, predict(route, s_.task, s_.ranks, load, machine_).seconds};
  }

  bool light(Route route) const {
    const double plans = route.symmetric(s_.task, s_.ranks) ? 1 : s_.ranks;
    return plans * static_cast<double>(route.plan(s_.task, 0, s_.ranks).steps.size()) <= most_steps;
  }

  void improve(Outlook& outlook) const {
    while ((!s_.segment_given && improve_segments(outlook)) || (!s_.depth_given && improve_depth(outlook)))
      continue;
  }

  /// Whatever is longer than a block is as good as that.
  bool improve_segments(Outlook& outlook) const {
    const auto blocks =
        static_cast<std::size_t>(std::max(1, outlook.route.plan(s_.task, 0, s_.ranks).blocks));
    const std::size_t block = s_.load.bytes / blocks;
    const auto at =
        std::lower_bound(segments.begin(), segments.end(), std::min(outlook.segment_bytes, block));
    if (at == segments.end()) return false;
    return (at + 1 < segments.end() && take_if_faster(outlook, *(at + 1), outlook.depth)) ||
           (at != segments.begin() && take_if_faster(outlook, *(at - 1), outlook.depth));
  }

  bool improve_depth(Outlook& outlook) const {
    const auto at = std::lower_bound(depths.begin(), depths.end(), outlook.depth);
    return (at + 1 < depths.end() && take_if_faster(outlook, outlook.segment_bytes, *(at + 1))) ||
           (at != depths.begin() && take_if_faster(outlook, outlook.segment_bytes, *(at - 1)));
  }

  bool take_if_faster(Outlook& outlook, std::size_t segment_bytes, int depth) const {
    const auto other = look(outlook.route, segment_bytes, depth);
    if (!other || other->seconds >= enough * outlook.seconds) return false;
    outlook = *other;
    return true;
  }

  const Situation& s_;
  const Machine& machine_;
};

}  // namespace wring::inline v0::detail
