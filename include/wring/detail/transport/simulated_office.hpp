// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include <wring/detail/agenda.hpp>
#include <wring/detail/sum_seconds.hpp>
#include <wring/detail/transport/queue.hpp>
#include <wring/detail/transport/sums.hpp>
#include <wring/detail/wires.hpp>
#include <wring/machine.hpp>

namespace wring::inline v0::detail {

/// A message, or a receive for one, in virtual time.
struct TimedPosting {
  TimedPosting* next = nullptr;     ///< in a queue or in the list of free ones
  TimedPosting* message = nullptr;  ///< of a receive that has met it
  std::size_t number = 0;
  int from = 0, to = 0, channel = 0;
  std::byte* target = nullptr;
  std::size_t size = 0;    ///< of the bytes given
  std::size_t length = 0;  ///< what `test` reports
  double leaves = never, arrives = never;
  bool sends = false, requested = false, met = false;
  bool sums = false, fits = true;
  Summand summand{};
  std::vector<std::byte> kept;  ///< a message that came before its receive
};

/// Moves the messages of all ranks in virtual time: bytes as soon as a message meets its receive, of which the receiver hears when its clock
/// has reached the arrival. Keeps the clocks, and knows whose turn it is.
class SimulatedOffice {
 public:
  using Entry = TimedPosting;

  SimulatedOffice(int ranks, const Machine& machine)
      : machine_(machine), ports_(ranks, machine), wires_(ports_.count()), agenda_(index(ranks)),
        ranks_(index(ranks)), sums_(ranks) {}

  const Machine& machine() const { return machine_; }
  double clock(int rank) const { return ranks_[index(rank)].clock; }

  void set_link(int from, int to, double latency, double bandwidth) {
    links_[{from, to}] = {latency, bandwidth};
  }

  void spend(int rank, double seconds) {
    ranks_[index(rank)].clock += seconds;
    stir(rank);
  }

  TimedPosting* send(int from, int to, int channel, std::span<const std::byte> bytes) {
    spend(from, machine_.overhead);
    TimedPosting* message = fresh(from, to, channel, bytes.size());
    message->sends = true, message->length = bytes.size();
    message->leaves =
        wires_.send(clock(from), way(from, to), static_cast<double>(bytes.size()), message->number);
    ranks_[index(from)].ends.push(message->leaves);
    ++messages_, bytes_ += bytes.size();
    if (TimedPosting* receive = ranks_[index(to)].receives.take_partner(*message)) {
      meet(*receive, *message, bytes);
    } else {
      message->kept.assign(bytes.begin(), bytes.end());
      ranks_[index(to)].messages.append(message);
    }
    return message;
  }

  TimedPosting* receive(int from, int to, int channel, std::span<std::byte> bytes) {
    stir(to);
    TimedPosting* receive = fresh(from, to, channel, bytes.size());
    receive->sends = false, receive->target = bytes.data(), receive->length = 0;
    if (TimedPosting* message = ranks_[index(to)].messages.take_partner(*receive))
      meet(*receive, *message, message->kept);
    else
      ranks_[index(to)].receives.append(receive);
    return receive;
  }

  /// Begins when the last rank has come to it and the one before has ended; ends on all of them at once.
  TimedPosting* sum(int rank, std::span<std::uint64_t> words) {
    spend(rank, machine_.overhead);
    TimedPosting* posting = fresh(rank, rank, 0, words.size_bytes());
    posting->sums = true, posting->length = posting->size;
    posting->summand = {words, {}};
    posting->arrives = clock(rank);
    sums_.join(index(rank), posting,
               [this](std::span<TimedPosting* const> all, bool fit) { end_sum(all, fit); });
    return posting;
  }

  /// Whether this posting has ended on the clock of its rank. To take a message costs the receiver its overhead.
  bool completed(const TimedPosting& posting) {
    if (posting.sends || posting.sums) return posting.leaves <= clock(posting.from);
    if (posting.message == nullptr || posting.message->arrives > clock(posting.to)) return false;
    spend(posting.to, machine_.overhead);
    return true;
  }

  static bool truncated(const TimedPosting& posting) {
    return posting.sums ? !posting.fits : !posting.sends && posting.message->size > posting.size;
  }

  void withdraw(TimedPosting* posting) { dismiss(posting); }

  /// Its request is gone. A receive that has no message is taken back, a message still arrives.
  void dismiss(TimedPosting* posting) {
    posting->requested = false;
    if (posting->sums) return dismiss_sum(*posting);
    if (posting->sends) return recycle_message(*posting);
    if (posting->message != nullptr) {
      posting->message->met = true;
      recycle_message(*posting->message);
    } else {
      ranks_[index(posting->to)].receives.take([posting](const TimedPosting& p) { return &p == posting; });
    }
    recycle(*posting);
  }

  /// Lets the rank move whose turn it is: `move(rank)` says whether it could. False if it is nobody's turn until somebody begins something.
  template <class Move> bool progress(Move move) {
    for (;;) {
      const double turn = agenda_.next(), message = wires_.next();
      if (turn == never && message == never) return false;
      if (message <= turn) {
        arrive(wires_.take());
        continue;
      }
      const std::size_t rank = agenda_.take().who;
      if (ranks_[rank].clock > turn) {  // it has been busy meanwhile
        agenda_.call(rank, ranks_[rank].clock);
        continue;
      }
      ranks_[rank].clock = turn;
      visit(rank, move);
      return true;
    }
  }

  /// Lets a rank move. Returns whether it could.
  template <class Move> bool visit(std::size_t rank, Move move) {
    const double begin = ranks_[rank].clock;
    const int before = std::exchange(moving_, static_cast<int>(rank));
    const bool moved = move(moving_) || ranks_[rank].clock > begin;
    moving_ = before;
    if (moved)
      agenda_.call(rank, ranks_[rank].clock);
    else
      sleep(rank);
    return moved;
  }

  /// All clocks go on to the latest.
  double synchronise() {
    double latest = 0;
    for (const Rank& r : ranks_) latest = std::max(latest, r.clock);
    for (Rank& r : ranks_) r.clock = latest;
    return latest;
  }

  std::uint64_t messages() const { return messages_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Link {
    double latency, bandwidth;
  };
  struct Rank {
    double clock = 0;
    PostingQueue<TimedPosting> messages, receives;                          ///< that wait for their partner
    std::priority_queue<double, std::vector<double>, std::greater<>> ends;  ///< when something of it ends
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  Way way(int from, int to) const {
    Way way = ports_.way(from, to);
    const auto link = links_.find({from, to});
    if (link != links_.end()) way.latency = link->second.latency, way.bandwidth = link->second.bandwidth;
    return way;
  }

  /// What a rank does outside of its turn gives it one.
  void stir(int rank) {
    if (rank != moving_) agenda_.call(index(rank), clock(rank));
  }

  /// A rank that cannot move comes again when something of it ends.
  void sleep(std::size_t rank) {
    auto& ends = ranks_[rank].ends;
    while (!ends.empty() && ends.top() <= ranks_[rank].clock) ends.pop();
    if (!ends.empty()) agenda_.call(rank, ends.top());
  }

  void end_sum(std::span<TimedPosting* const> all, bool fit) {
    for (const TimedPosting* p : all) sums_end_ = std::max(sums_end_, p->arrives);
    sums_end_ += seconds_of_sum(static_cast<int>(all.size()), static_cast<double>(all[0]->size), machine_);
    for (TimedPosting* p : all) {
      p->leaves = sums_end_, p->fits = fit;
      ranks_[index(p->from)].ends.push(sums_end_);
      agenda_.call(index(p->from), std::max(sums_end_, clock(p->from)));
      if (!p->requested) recycle(*p);
    }
  }

  /// The words are the caller's again; what they were still counts.
  void dismiss_sum(TimedPosting& posting) {
    if (posting.leaves != never) return recycle(posting);
    posting.summand.kept.assign(posting.summand.words.begin(), posting.summand.words.end());
  }

  void arrive(const Wires::Arrival& arrival) {
    TimedPosting& message = postings_[arrival.message];
    message.arrives = arrival.time;
    Rank& to = ranks_[index(message.to)];
    to.ends.push(arrival.time);
    agenda_.call(index(message.to), std::max(arrival.time, to.clock));
    recycle_message(message);
  }

  void meet(TimedPosting& receive, TimedPosting& message, std::span<const std::byte> bytes) {
    receive.message = &message;
    receive.length = std::min(bytes.size(), receive.size);
    if (receive.length > 0) std::memcpy(receive.target, bytes.data(), receive.length);
    std::vector<std::byte>().swap(message.kept);
  }

  TimedPosting* fresh(int from, int to, int channel, std::size_t size) {
    if (free_ == nullptr) {
      free_ = &postings_.emplace_back();
      free_->number = postings_.size() - 1;
    }
    TimedPosting* posting = std::exchange(free_, free_->next);
    posting->message = nullptr, posting->requested = true, posting->met = false;
    posting->from = from, posting->to = to, posting->channel = channel, posting->size = size;
    posting->leaves = posting->arrives = never;
    posting->sends = posting->sums = false;
    return posting;
  }

  /// A message is done with when its sender, its receiver and the wire are.
  void recycle_message(TimedPosting& message) {
    if (!message.requested && message.met && message.arrives != never) recycle(message);
  }
  void recycle(TimedPosting& posting) { posting.next = std::exchange(free_, &posting); }

  Machine machine_;
  Ports ports_;
  Wires wires_;
  Agenda agenda_;
  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, Link> links_;  ///< those that are not as the machine has them
  std::deque<TimedPosting> postings_;
  TimedPosting* free_ = nullptr;
  Sums<TimedPosting> sums_;
  double sums_end_ = 0;  ///< when the latest sum has ended
  int moving_ = -1;      ///< whose turn it is
  std::uint64_t messages_ = 0, bytes_ = 0;
};

}  // namespace wring::inline v0::detail
