// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <wring/config.hpp>

namespace wring::inline v0 {

/// Whether moving an operation forward changed anything.
enum class Progress { blocked, moved, finished };

/// An operation in flight, as its link sees it: something that can be moved forward and never throws.
class Pending {
 public:
  virtual ~Pending() = default;
  /// Does what can be done without waiting. `finished`: nothing is left to do, nothing is in flight.
  virtual Progress advance() noexcept = 0;
  /// What it waits for, in words: "rank 3 (message of segment 2)". Empty if it waits for nobody.
  virtual std::string waits_for() const = 0;
  /// The link is being destroyed: it must not be used any more, and whoever waits for the operation must hear of it.
  virtual void orphan() noexcept {}
};

/// What every transport carries for the operations that use it: their order, which are in flight, whether the link is retired.
/// Belongs to one thread at a time, like its transport. Operations keep themselves alive here until they have drained.
class Session {
 public:
  Session() { pending_.reserve(16); }
  Session(Session&&) noexcept = default;
  Session& operator=(Session&& other) noexcept {
    orphan();
    pending_ = std::move(other.pending_), turns_ = std::move(other.turns_),
    reason_ = std::move(other.reason_), failure_ = std::move(other.failure_);
    failed_rank_ = other.failed_rank_, clean_ = other.clean_, sequence_ = other.sequence_,
    told_ = other.told_;
    return *this;
  }
  ~Session() { orphan(); }

  /// Ends what is in flight with an error, without the link.
  void orphan() noexcept {
    for (const auto& operation : pending_) operation->orphan();
  }

  /// The number of the next operation: equal on all ranks as long as operations are started in the same order.
  std::uint64_t next_sequence() { return sequence_++; }
  std::uint64_t started() const { return sequence_; }

  void attach(std::shared_ptr<Pending> operation) { pending_.push_back(std::move(operation)); }
  std::size_t in_flight() const { return pending_.size(); }

  /// Moves every operation in flight once, in the order of their starts.
  Progress progress() {
    Progress result = Progress::blocked;
    for (std::size_t i = 0; i < pending_.size();) {
      const std::shared_ptr<Pending> operation =
          pending_[i];  // it may drop its last other reference meanwhile
      const Progress p = operation->advance();
      if (p != Progress::blocked) result = Progress::moved;
      const auto at = std::find(pending_.begin(), pending_.end(), operation);
      if (p == Progress::finished && at != pending_.end())
        pending_.erase(at);
      else
        i = static_cast<std::size_t>(at - pending_.begin()) + 1;
    }
    return result;
  }

  /// Sums by the transport are started in the same order on all ranks: operations take turns, in the order of their starts. `take_turn` when
  /// one starts that may have sums, `end_turn` when it starts no more of them.
  void take_turn(std::uint64_t operation) { turns_.push_back(operation); }
  void end_turn(std::uint64_t operation) { std::erase(turns_, operation); }
  bool has_turn(std::uint64_t operation) const { return !turns_.empty() && turns_.front() == operation; }

  /// What the operations in flight wait for, in words; empty if none is in flight.
  std::string waits_for() const {
    std::string text;
    for (const auto& operation : pending_) text += (text.empty() ? "" : ", ") + operation->waits_for();
    return text;
  }

  /// A retired link accepts no new operation: one was abandoned on it, so that ranks may disagree about what is in flight.
  void retire(std::string reason) {
    soil();
    if (reason_.empty()) reason_ = std::move(reason);
  }
  bool retired() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }

  /// What later operations on this link tell their peers: a failure of an operation that this rank met and others may not know of.
  /// One that still drains after its peers have told everybody has nothing to add.
  void remember_failure(std::string what, int rank, std::uint64_t operation) {
    if (failure_.empty() && operation >= told_) failure_ = std::move(what), failed_rank_ = rank;
  }
  const std::string& failure() const { return failure_; }
  int failed_rank() const { return failed_rank_; }
  /// Messages that nobody takes may be left on the link, since an operation has failed in its midst or was given up.
  void soil() { clean_ = false; }
  bool clean() const { return clean_; }
  /// Of failures before this operation all ranks have heard.
  std::uint64_t told() const { return told_; }
  /// All ranks have heard of failures before operation `next`.
  void forget_failure(std::uint64_t next) {
    failure_.clear(), failed_rank_ = -1;
    told_ = std::max(told_, next);
  }

 private:
  std::vector<std::shared_ptr<Pending>> pending_;
  std::vector<std::uint64_t> turns_;  ///< operations that may still start sums
  std::string reason_, failure_;
  int failed_rank_ = -1;
  bool clean_ = true;
  std::uint64_t sequence_ = 0, told_ = 0;
};

}  // namespace wring::inline v0
