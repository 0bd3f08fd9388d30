// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <wring/collective/executor/segments/message.hpp>
#include <wring/collective/executor/segments/parcels.hpp>
#include <wring/collective/executor/segments/sum.hpp>
#include <wring/collective/executor/shared.hpp>
#include <wring/collective/executor/unsent.hpp>
#include <wring/collective/executor/working.hpp>
#include <wring/detail/pipeline.hpp>
#include <wring/detail/uses.hpp>

namespace wring::inline v0::detail {

/// A link that refuses what a rank has to say when it leaves serves nobody any more.
template <class S> void retire(S& s) {
  s.link->session().retire("a message could not be started: " + s.failure.text);
}

/// One segment on its way through the plan. Number and order of its messages depend on the plan alone: a rank that has failed sends
/// poisoned messages instead, and takes what it receives without looking at it.
template <class Codec, class Link, class Exec> class Segment {
 public:
  using S = Shared<Codec, Link, Exec>;

  explicit Segment(S& shared) : s_(shared), parcels_(shared) {}

  /// `mute`: this segment's messages have gone out already, poisoned; it only takes what peers send.
  void start(std::size_t index, const NextUses& uses, int channel, bool mute = false) {
    mute_ = mute, uses_ = &uses, channel_ = channel, at_ = 0, posted_ = 0, waited_ = 0, delivered_ = 0,
    next_sum_ = sums_started_ = 0, closed_ = false, running_ = true;
    unsent_.clear();
    parcels_.cut(index);
  }

  bool running() const { return running_; }
  std::vector<Piece<Codec, Exec>>& pieces() { return parcels_.pieces(); }
  std::size_t index() const { return parcels_.segment(); }

  /// Whether all steps are taken, and only messages of its own are still on their way.
  bool only_sends() const { return running_ && at_ == s_.plan.steps.size(); }

  /// Whether its next step needs no message. It comes first: what has been added up leaves before anything else is added up.
  bool goes_on() const {
    return running_ && at_ < s_.plan.steps.size() && !awaits_others(s_.plan.steps[at_].kind);
  }

  /// The rank whose message this segment waits for, -1 if none.
  int waits_for() const {
    if (!running_ || sums()) return -1;
    if (at_ < s_.plan.steps.size()) return s_.plan.steps[at_].peer;
    return outgoing_.empty() ? -1 : s_.plan.steps[outgoing_.front().step].peer;
  }

  /// Whether it waits for a sum over all ranks.
  bool sums() const { return running_ && at_ < s_.plan.steps.size() && s_.plan.steps[at_].kind == Kind::sum; }

  /// Takes one step, so that everything else is polled between pieces of work. While a message is missing, what is complete goes to
  /// the user.
  Progress advance() {
    if (!running_) return Progress::blocked;
    s_.segment = static_cast<std::int64_t>(index());
    const bool reaped = reap();
    post();
    if (at_ < s_.plan.steps.size())
      return step() || reaped || deliver() ? Progress::moved : Progress::blocked;
    if (!closed_) {
      close();
      return Progress::moved;
    }
    if (!outgoing_.empty()) return reaped ? Progress::moved : Progress::blocked;
    running_ = false;
    return Progress::finished;
  }

  /// Waits for nobody any more: what is left to send goes out poisoned at once; what peers still send is taken and dropped, so that
  /// they need not wait either. True when nothing is in flight.
  bool abandon() {
    if (!running_) return true;
    s_.segment = static_cast<std::int64_t>(index());
    for (; at_ < s_.plan.steps.size(); ++at_)
      if (s_.plan.steps[at_].kind == Kind::send && !mute_) unsent_.add(at_, s_.plan.steps[at_].peer);
    if (!unsent_.attempt([this](std::size_t step) { send(step); })) retire(s_);
    const bool all_summed = start_all_sums() && reap_sums();
    reap();
    try {
      for (post(); !incoming_.empty() && arrived(incoming_.front()); post())
        incoming_.erase(incoming_.begin());
    } catch (...) {  // nothing more can be taken
      posted_ = s_.plan.steps.size();
    }
    running_ = !all_summed || !incoming_.empty() || !outgoing_.empty() || !unsent_.empty();
    return !running_;
  }

  /// After `abandon`: takes back what is in flight, as far as the transport lets go of it.
  void cancel() {
    at_ = posted_ = next_sum_ = s_.plan.steps.size();
    unsent_.clear();
    const auto free = [this](Message& message) { return s_.link->cancel(message.request); };
    std::erase_if(incoming_, free), std::erase_if(outgoing_, free), std::erase_if(summing_, free);
  }

 private:
  using HostBytes = Bytes<typename S::HostSpace>;
  struct Message {
    std::size_t step = 0;
    HostBytes bytes;
    typename Link::Request request{};
    double begin = 0;  ///< when it was started, if that is recorded
  };

  static constexpr std::size_t lookahead = 2;  ///< receives posted ahead
  static constexpr std::size_t patience =
      100;  ///< polls for a message, before its place is prepared at a cost

  bool reap() {
    bool any = false;
    while (!outgoing_.empty()) {
      try {
        if (!s_.link->test(outgoing_.front().request)) break;
      } catch (...) {
        s_.fail(failure_from_current_exception(s_.plan.rank));
      }
      record(Timeline::Kind::send, outgoing_.front(), outgoing_.front().bytes.span.size());
      outgoing_.erase(outgoing_.begin());
      any = true;
    }
    return any;
  }

  /// A message whose end has just been found.
  void record(Timeline::Kind kind, const Message& message, std::size_t bytes) {
    if (!s_.timeline) return;
    const Step& step = s_.plan.steps[message.step];
    Timeline::Event event = s_.event(kind, message.begin, s_.now());
    event.peer = step.peer, event.first = step.first, event.last = step.last, event.bytes = bytes;
    s_.timeline->add(event);
  }

  /// When a message is started, if that is recorded.
  double stamp() const { return s_.timeline ? s_.now() : 0; }

  bool arrived(Message& message) {
    try {
      return s_.link->test(message.request).has_value();
    } catch (...) {
      return true;  // nobody wants it
    }
  }

  void post() {
    for (; posted_ < s_.plan.steps.size() && incoming_.size() < lookahead; ++posted_) {
      const Step& step = s_.plan.steps[posted_];
      if (!takes_message(step.kind)) continue;
      std::size_t bytes = parcels_.most_bytes(step);
      for (const Message& m : incoming_)  // this receive may have to take the place of one before it
        if (s_.plan.steps[m.step].peer == step.peer) bytes = std::max(bytes, m.bytes.span.size());
      Message& m = incoming_.emplace_back();
      m.step = posted_;
      try {
        post(m, bytes);
      } catch (...) {
        incoming_.pop_back();
        throw;
      }
    }
  }

  void post(Message& m, std::size_t bytes) {
    m.bytes = s_.messages.take(bytes);
    m.begin = stamp();
    m.request = s_.link->receive(s_.plan.steps[m.step].peer, channel_, m.bytes.span);
  }

  /// The message that came first was left on the channel by an operation of long ago: the next receive from that peer takes its
  /// place, and so on, and one more is posted.
  void pass_over_first() {
    const int peer = s_.plan.steps[incoming_.front().step].peer;
    Message* last = &incoming_.front();
    const std::size_t bytes = last->bytes.span.size();
    for (Message& m : incoming_) {
      if (&m == last || s_.plan.steps[m.step].peer != peer) continue;
      last->bytes = std::move(m.bytes), last->request = std::move(m.request);
      last = &m;
    }
    post(*last, std::max(bytes, parcels_.most_bytes(s_.plan.steps[last->step])));
  }

  bool step() {
    const Step& step = s_.plan.steps[at_];
    if (step.kind == Kind::send) {
      if (outgoing_.size() >= sends_in_flight) return false;
      send(at_);
    } else if (step.kind == Kind::finish) {
      guarded([&] { parcels_.finish(step); });
    } else if (!(step.kind == Kind::sum ? sum(step) : receive(step))) {
      return false;
    }
    ++at_;
    delivered_ = waited_ = 0;
    return true;
  }

  /// One complete piece, if there is one.
  bool deliver() {
    bool any = false;
    guarded([&] {
      for (; delivered_ < pieces().size() && !any; ++delivered_)
        any = parcels_.work().deliver(pieces()[delivered_]);
    });
    return any;
  }

  /// Runs a piece of work unless this rank has failed; a failure is recorded, never thrown.
  template <class Action> void guarded(Action action) {
    if (s_.failure) return;
    try {
      action();
    } catch (...) {
      s_.fail(failure_from_current_exception(s_.plan.rank));
    }
  }

  void send(std::size_t number) {
    const Step& step = s_.plan.steps[number];
    HostBytes message;
    guarded([&] {
      message = parcels_.assemble(step, [&](int block) { return read_later(block, step); });
      forget(step);
    });
    if (s_.failure) {
      message = s_.messages.take(header_bytes + poison_text_bytes);
      seal_poison(message.span, parcels_.header(step), s_.failure);
    }
    const double begun = stamp();
    const Region region(Work::wire);
    Message& sent = outgoing_.emplace_back();  // first, for what is on its way needs its memory
    sent.step = number, sent.bytes = std::move(message), sent.begin = begun;
    try {
      sent.request = s_.link->send(step.peer, channel_, sent.bytes.span);
    } catch (...) {
      outgoing_.pop_back();
      throw;
    }
    s_.report.bytes_sent += sent.bytes.span.size();
    ++s_.report.messages;
  }

  /// Of a block, after the current step.
  Use next_use(int block, const Step& step) const {
    return uses_->after(at_, static_cast<std::size_t>(block - step.first));
  }

  /// Whether this rank, or its user, reads the values of a block after the current step.
  bool read_later(int block, const Step& step) const {
    const Use use = next_use(block, step);
    return use == Use::read || use == Use::send_raw || (use != Use::overwritten && s_.is_output(block));
  }

  /// Drops what no later step and no user reads.
  void forget(const Step& step) {
    parcels_.each_piece(step, [&](auto& piece) {
      const Use use = next_use(piece.block, step);
      const bool output = s_.is_output(piece.block);
      if (use == Use::overwritten || (use == Use::nothing && !output)) {
        piece.encoded.reset();
        if (!output) piece.memory.reset(), piece.values = {};
      }
    });
  }

  bool receive(const Step& step) {
    Message& message = incoming_.front();
    std::size_t bytes = 0;
    try {
      const auto got = s_.link->test(message.request);
      if (!got) {
        prepare(step);
        return false;
      }
      bytes = *got;
      record(Timeline::Kind::receive, message, bytes);
    } catch (...) {
      s_.fail(failure_from_current_exception(s_.plan.rank));
    }
    bool left_over = false;
    guarded([&] {
      const std::span<std::byte> received = message.bytes.span.first(bytes);
      const MessageHeader h = opened(received, step);
      left_over = h.agreed != s_.agreed;
      if (left_over) return;
      HostBytes taken = std::move(message.bytes);
      taken.span = received;
      if (h.cause != 0) return s_.fail(failure_of(taken.span, h));
      parcels_.accept(step, taken, [&](int block) { return next_use(block, step) == Use::send; });
      forget(step);
    });
    if (left_over)
      pass_over_first();
    else
      incoming_.erase(incoming_.begin());
    return !left_over;
  }

  /// Starts the sum when its turn has come, and takes what comes of it. False as long as it is not there.
  bool sum(const Step& step) {
    if (summing_.empty() && !start_sum(at_)) return false;
    Message& message = summing_.front();
    try {
      if (!s_.link->test(message.request)) return false;
    } catch (...) {
      s_.fail(failure_from_current_exception(s_.plan.rank));
    }
    record(Timeline::Kind::sum, message, message.bytes.span.size());
    guarded([&] { take_sum(step, message.bytes); });
    summing_.clear();
    return true;
  }

  void take_sum(const Step& step, const HostBytes& words) {
    if constexpr (S::sums) {
      {
        const Doing doing(s_, Work::wire, words.span.size());
        if (const Failure failure = open_sum(words.span, sum_mark(parcels_.header(step)), s_.plan.ranks))
          return s_.fail(failure);
      }
      parcels_.accept_sum(step, words);
      forget(step);
    }
  }

  /// Starts the sum of a step, poisoned if this rank has failed. False if others come first.
  bool start_sum(std::size_t number) {
    if constexpr (S::sums) {
      if (!s_.may_sum(index() * s_.sums_of_plan + sums_started_)) return false;
      const HostBytes words = words_of(s_.plan.steps[number]);
      const double begun = stamp();
      Message& sum = summing_.emplace_back();  // first, for what is on its way needs its memory
      sum.step = number, sum.bytes = words, sum.begin = begun;
      next_sum_ = number + 1, ++sums_started_;
      s_.note_sum();
      try {
        sum.request = s_.link->sum_words(
            {reinterpret_cast<std::uint64_t*>(words.span.data()), words.span.size() / sizeof(std::uint64_t)});
      } catch (...) {
        summing_.pop_back();
        throw;
      }
      s_.report.bytes_sent += words.span.size();
      ++s_.report.messages;
    }
    return true;
  }

  /// What this rank hands to a sum.
  HostBytes words_of(const Step& step) {
    const std::uint64_t mark = sum_mark(parcels_.header(step));
    HostBytes words;
    guarded([&] {
      words = parcels_.assemble_sum(step);
      const Doing doing(s_, Work::wire, words.span.size());
      seal_sum(words.span, {.mark = mark});
    });
    if (s_.failure) {
      words = s_.messages.take(parcels_.sum_bytes(step));
      seal_failed_sum(words.span, mark, s_.failure);
    }
    return words;
  }

  /// After a failure: takes part in all sums that are left, in their order, without waiting for any. True once all are started, or none need
  /// be.
  bool start_all_sums() {
    if constexpr (!S::sums) return true;
    if (!s_.sums_agreed) return true;
    try {
      for (; next_sum_ < s_.plan.steps.size(); ++next_sum_)
        if (s_.plan.steps[next_sum_].kind == Kind::sum && !start_sum(next_sum_)) return false;
    } catch (...) {  // nothing more can be started
      retire(s_);
      next_sum_ = s_.plan.steps.size();
    }
    return true;
  }

  /// Whether no sum is in flight any more.
  bool reap_sums() {
    std::erase_if(summing_, [this](Message& sum) { return arrived(sum); });
    return summing_.empty();
  }

  /// What a message will be combined with can be encoded while it is on its way; where that takes longer than to add it later, only
  /// if nothing else has been found to do.
  void prepare(const Step& step) {
    ++waited_;
    if (step.kind != Kind::combine) return;
    guarded([&] {
      parcels_.each_piece(step, [&](auto& piece) {
        auto& work = parcels_.work();
        if (waited_ > patience || !work.accumulates(piece)) work.own(piece, step.wire == Wire::raw);
      });
    });
  }

  MessageHeader opened(std::span<std::byte> message, const Step& step) {
    const Doing doing(s_, Work::wire, message.size());
    return open(message, parcels_.header(step));
  }

  void close() {
    guarded([&] {
      for (auto& piece : pieces()) parcels_.work().close(piece);
    });
    if constexpr (S::staged) s_.exec.fence("wring::close");
    pieces().clear();
    closed_ = true;
  }

  S& s_;
  Parcels<Codec, Link, Exec> parcels_;
  const NextUses* uses_ = nullptr;
  std::size_t at_ = 0, posted_ = 0;
  std::size_t delivered_ = 0;  ///< pieces looked at since the last step
  std::size_t waited_ = 0;     ///< polls for the message of this step
  int channel_ = 0;
  bool closed_ = false, running_ = false, mute_ = false;
  std::size_t next_sum_ = 0,
              sums_started_ = 0;              ///< the first step whose sum is not started, and how many are
  std::vector<Message> incoming_, outgoing_;  // a few: sends in flight and lookahead
  std::vector<Message> summing_;
  Unsent unsent_;
};

}  // namespace wring::inline v0::detail
