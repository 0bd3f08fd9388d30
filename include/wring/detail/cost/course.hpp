// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <wring/detail/agenda.hpp>
#include <wring/detail/cost/cut.hpp>
#include <wring/detail/cost/script.hpp>
#include <wring/detail/cost/walk.hpp>
#include <wring/detail/wires.hpp>
#include <wring/error.hpp>
#include <wring/machine.hpp>

namespace wring::inline v0::detail {

/// The course of an operation in virtual time: what happens next, happens next. Ranks and messages are taken in the order of their times;
/// nothing depends on the order of ranks where times differ.
class Course {
 public:
  /// `mirrored`: the script of one rank stands for all, and what it sends is what it gets.
  Course(std::span<const Script> scripts, std::size_t messages, const Cut& cut, const Machine& machine,
         int ranks, bool mirrored)
      : scripts_(scripts), messages_(messages), ports_(ranks, machine), wires_(ports_.count()),
        arrivals_(messages * cut.followed(), never), receivers_(mirrored ? 0 : messages),
        walks_(scripts.size()), busy_until_(scripts.size(), 0.0), agenda_(scripts.size()),
        ended_(cut.followed(), 0.0), cut_(&cut), mirrored_(mirrored) {
    for (std::size_t r = 0; r < walks_.size(); ++r) {
      walks_[r].start(cut, machine, ranks);
      agenda_.call(r, 0);
    }
    if (mirrored) way_ = ports_.way(0, ranks - 1), way_.to = way_.from;
  }

  /// Follows all ranks to their end. Returns the time of it.
  double run() {
    for (;;) {
      const double turn = agenda_.next(), message = wires_.next();
      if (turn == never && message == never) break;
      if (message <= turn)
        arrive(wires_.take());
      else
        move(agenda_.take());
    }
    for (const Walk& walk : walks_)
      if (!walk.finished()) throw InvalidArgument("predict: the plans do not come to their end");
    return extrapolate();
  }

  /// Of the rank that does most.
  double busy() const {
    double most = 0;
    for (const Walk& walk : walks_) most = std::max(most, walk.busy());
    return most;
  }
  double sent() const {
    double most = 0;
    for (const Walk& walk : walks_) most = std::max(most, walk.sent());
    return most;
  }

  // ---- what a walk asks for

  double arrival(std::size_t segment, std::size_t message) const {
    return arrivals_[segment * messages_ + message];
  }

  double send(double now, std::size_t segment, const ScriptStep& step, double bytes) {
    if (!mirrored_) {
      way_ = ports_.way(static_cast<int>(moving_), step.peer);
      receivers_[step.message] = static_cast<std::size_t>(step.peer);
    }
    return wires_.send(now, way_, bytes, segment * messages_ + step.message);
  }

  void ended(std::size_t segment, double now) { ended_[segment] = std::max(ended_[segment], now); }

 private:
  void move(const Agenda::Turn& turn) {
    moving_ = turn.who;
    Walk::Move move{turn.time, false};
    do {  // it goes on alone until somebody else may have something to say
      move = walks_[moving_].advance(move.again, scripts_[moving_], *this);
      if (move.moved) busy_until_[moving_] = move.again;
    } while (move.again < wires_.next() && move.again < agenda_.next());
    agenda_.call(moving_, move.again);
  }

  void arrive(const Wires::Arrival& arrival) {
    arrivals_[arrival.message] = arrival.time;
    const std::size_t rank = mirrored_ ? 0 : receivers_[arrival.message % messages_];
    agenda_.call(rank, std::max(arrival.time, busy_until_[rank]));
  }

  /// The time of all segments, from those that were followed: how much later one ends than the one before, when all are under way.
  double extrapolate() {
    for (std::size_t k = 1; k < ended_.size(); ++k) ended_[k] = std::max(ended_[k], ended_[k - 1]);
    if (cut_->left_out() == 0) return ended_.back();
    const std::size_t d = cut_->depth(), from = 2 * d - 1, to = ended_.size() - d - 1;
    const double each = (ended_[to] - ended_[from]) / static_cast<double>(to - from);
    return ended_.back() + each * static_cast<double>(cut_->left_out());
  }

  std::span<const Script> scripts_;
  std::size_t messages_;  ///< of one segment
  Ports ports_;
  Wires wires_;
  std::vector<double> arrivals_;        ///< by segment and message
  std::vector<std::size_t> receivers_;  ///< by message
  std::vector<Walk> walks_;
  std::vector<double> busy_until_;  ///< by rank
  Agenda agenda_;
  std::vector<double> ended_;  ///< when the last rank was through with a segment
  const Cut* cut_;
  Way way_;
  std::size_t moving_ = 0;
  bool mirrored_;
};

}  // namespace wring::inline v0::detail
