// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <wring/algorithm/recursive_doubling.hpp>
#include <wring/collective/executor/agreement/head.hpp>
#include <wring/collective/executor/unsent.hpp>
#include <wring/collective/executor/working.hpp>
#include <wring/detail/pipeline.hpp>
#include <wring/transport/concept.hpp>

namespace wring::inline v0::detail {

/// What travels behind the head of an exchange and is merged on the way.
class ExchangeData {
 public:
  virtual ~ExchangeData() = default;
  virtual std::size_t max_bytes() const = 0;
  virtual std::size_t write(std::byte* to) const = 0;
  /// Throws TransportError if the bytes are not what `write` wrote on another rank of the same operation.
  virtual void merge(std::span<const std::byte> from) = 0;
  virtual void replace(std::span<const std::byte> from) = 0;
};

/// Nothing behind the head; whatever a rank that disagrees sends there is passed over.
class NoData final : public ExchangeData {
 public:
  std::size_t max_bytes() const override { return 0; }
  std::size_t write(std::byte*) const override { return 0; }
  void merge(std::span<const std::byte>) override {}
  void replace(std::span<const std::byte>) override {}
};

/// The small allreduce that opens (and, on demand, closes) every operation: heads merged by recursive doubling, on a channel of
/// their own. 2 log2(p) small messages; no rank leaves it early, so that a rank that is in trouble is heard by all.
template <Transport Link> class Exchange {
 public:
  /// Receives are posted for the head and this many bytes, whatever this rank itself has to say: a rank that disagrees about the
  /// length is heard all the same.
  static constexpr std::size_t receive_bytes = sizeof(Head) + ride_along_room;

  void start(Link& link, int channel, const Head& head, ExchangeData& data) {
    reset(link, channel, head, data.max_bytes());
    data_ = &data;
    post_after(link, 0);
  }

  /// Instead of `start`, on a rank that has failed: tells every rank that will wait for its head, and waits for nobody. Receives are
  /// posted by `drain` only, behind those of earlier exchanges on the channel.
  /// `most_data`: bytes that peers may send behind their heads.
  void announce(Link& link, int channel, const Head& head, const Failure& failure,
                std::size_t most_data = 0) {
    reset(link, channel, head, most_data);
    give_up(link, failure);
  }

  bool running() const { return running_; }
  /// Whether this rank has told anybody anything.
  bool has_spoken() const { return sent_ > 0; }
  const Head& head() const { return head_; }
  /// What of the messages to this rank was damaged, if anything.
  const Failure& damage() const { return damage_; }
  std::uint64_t sent() const { return sent_bytes_; }
  /// The rank whose message, or whose receive, is missing; -1 if none.
  int waits_for() const {
    if (at_ < plan_.steps.size()) return plan_.steps[at_].peer;
    for (std::size_t i = 0; i < sent_; ++i)
      if (outgoing_[i].active) return outgoing_[i].peer;
    return -1;
  }

  Progress advance(Link& link) {
    Progress result = Progress::blocked;
    while (at_ < plan_.steps.size()) {
      const Step& step = plan_.steps[at_];
      bool left_over = false;
      if (step.kind == Kind::send) send(link, step.peer);
      if (takes_message(step.kind)) {
        const std::optional<std::size_t> bytes = poll(link);
        if (!bytes) return result;
        posted_ = false;
        left_over = !accept(step.kind, std::span(incoming_).first(std::min(*bytes, incoming_.size())));
      }
      if (!left_over) ++at_;  // before anything that may throw: what has come does not come again
      post_after(link, at_);
      result = Progress::moved;
      if (left_over) return result;
    }
    for (std::size_t i = 0; i < sent_; ++i)
      if (outgoing_[i].active && !complete(link, outgoing_[i])) return result;
    running_ = false;
    return Progress::finished;
  }

  /// After `give_up` or `announce`: takes what peers still send, so that they need not wait. True once nothing is in flight.
  bool drain(Link& link) {
    bool idle = send_unsent(link);
    for (; at_ < plan_.steps.size(); ++at_) {
      if (!takes_message(plan_.steps[at_].kind)) continue;
      try {
        post_after(link, at_);
      } catch (...) {  // nothing more can be taken
        at_ = plan_.steps.size();
        break;
      }
      if (!poll(link)) return false;
      posted_ = false;
    }
    for (std::size_t i = 0; i < sent_; ++i)
      if (outgoing_[i].active && !complete(link, outgoing_[i])) idle = false;
    if (idle) running_ = false;
    return idle;
  }

  /// Tells every rank that still waits for this one's head that this rank has failed, and waits for nobody. Ranks that heard it
  /// before may know nothing of the failure and go on: so those who hear it now must not leave them either (`damaged`).
  void give_up(Link& link, const Failure& failure) {
    head_.fail(failure);
    if (sent_ > 0) head_.flags |= Head::damaged;
    for (std::size_t s = at_; s < plan_.steps.size(); ++s)
      if (plan_.steps[s].kind == Kind::send) unsent_.add(s, plan_.steps[s].peer);
    data_ = nullptr;
    send_unsent(link);
  }

  /// Takes back what is still in flight, as far as the transport lets go of it.
  void cancel(Link& link) {
    at_ = plan_.steps.size();
    unsent_.clear();
    if (posted_) posted_ = !link.cancel(request_);
    for (Outgoing& out : std::span(outgoing_).first(sent_))
      if (out.active) out.active = !link.cancel(out.request);
  }

 private:
  struct Outgoing {
    std::vector<std::byte> bytes;
    typename Link::Request request{};
    int peer = -1;
    bool active = false;
  };

  void reset(Link& link, int channel, const Head& head, std::size_t most_data) {
    if (!planned_ || plan_.ranks != link.size() || plan_.rank != link.rank())
      plan_ = RecursiveDoubling{}.plan({Collective::allreduce, 0}, link.rank(), link.size());
    planned_ = true;
    head_ = head, data_ = nullptr, channel_ = channel, at_ = 0, posted_ = false, sent_ = 0, running_ = true;
    damage_ = {};
    unsent_.clear();
    incoming_.resize(std::max(receive_bytes, sizeof(Head) + most_data));
  }

  /// The head of a rank that leaves goes out alone.
  bool send_unsent(Link& link) {
    NoData nothing;
    data_ = &nothing;
    const bool all = unsent_.attempt([&](std::size_t step) { send(link, plan_.steps[step].peer); });
    data_ = nullptr;
    if (!all) link.session().retire("a message could not be started: " + head_.failure().text);
    return all;
  }

  /// Receives are posted as early as they can be: the next one as soon as the one before has come.
  void post_after(Link& link, std::size_t from) {
    for (std::size_t s = from; s < plan_.steps.size() && !posted_; ++s)
      if (takes_message(plan_.steps[s].kind)) {
        request_ = link.receive(plan_.steps[s].peer, channel_, incoming_);
        posted_ = true;
      }
  }

  std::optional<std::size_t> poll(Link& link) {
    try {
      return link.test(request_);
    } catch (const TransportError& error) {
      note_damage(link.rank(), error.what());
      return 0;
    }
  }

  void send(Link& link, int peer) {
    const Region region(Work::wire);
    if (sent_ == outgoing_.size()) outgoing_.emplace_back();
    Outgoing& out = outgoing_[sent_];
    out.bytes.resize(sizeof(Head) + data_->max_bytes());
    const std::size_t bytes = sizeof(Head) + data_->write(out.bytes.data() + sizeof(Head));
    const auto message = std::span(out.bytes).first(bytes);
    Head sealed = head_;
    sealed.checksum = 0;
    std::memcpy(message.data(), &sealed, sizeof(Head));
    sealed.checksum = checksum(message);
    std::memcpy(message.data(), &sealed, sizeof(Head));
    out.request = link.send(peer, channel_, message);
    out.peer = peer, out.active = true;
    ++sent_;
    sent_bytes_ += bytes;
  }

  /// Takes a message, unless it was left on the channel by an operation of long ago.
  bool accept(Kind kind, std::span<std::byte> message) {
    Head other;
    if (message.size() >= sizeof(Head)) std::memcpy(&other, message.data(), sizeof(Head));
    const std::uint64_t sum = std::exchange(other.checksum, 0);
    if (message.size() >= sizeof(Head)) std::memcpy(message.data(), &other, sizeof(Head));
    if (message.size() < sizeof(Head) || other.magic != head_.magic || checksum(message) != sum) {
      note_damage(plan_.rank, "the opening message of an operation arrived damaged");
      return true;
    }
    if (other.epoch != head_.epoch) return false;
    const bool alike = other.agreed == head_.agreed && !((other.flags | head_.flags) & Head::disagree);
    if (kind == Kind::combine)
      head_.merge(other);
    else
      head_ = other;
    if (alike && message.size() > sizeof(Head)) accept_data(kind, message.subspan(sizeof(Head)));
    return true;
  }

  void accept_data(Kind kind, std::span<const std::byte> bytes) {
    try {
      if (kind == Kind::combine)
        data_->merge(bytes);
      else
        data_->replace(bytes);
    } catch (...) {
      note_damage(failure_from_current_exception(plan_.rank));
    }
  }

  void note_damage(int rank, const char* text) { note_damage({Cause::transport, rank, text}); }
  void note_damage(const Failure& failure) {
    head_.flags |= Head::damaged;
    if (!damage_) damage_ = failure;
    head_.fail(damage_);  // who hears of it knows where
  }

  Plan plan_;
  std::size_t at_ = 0, sent_ = 0;
  Head head_;
  ExchangeData* data_ = nullptr;
  int channel_ = 0;
  bool planned_ = false, posted_ = false, running_ = false;
  std::uint64_t sent_bytes_ = 0;
  Failure damage_;
  std::vector<std::byte> incoming_;
  typename Link::Request request_{};
  std::vector<Outgoing> outgoing_;
  Unsent unsent_;

  static bool complete(Link& link, Outgoing& out) {
    try {
      if (!link.test(out.request)) return false;
    } catch (const TransportError&) {
      // The peer meets its own error; a head that did not leave is noticed by those who wait for it.
    }
    out.active = false;
    return true;
  }
};

}  // namespace wring::inline v0::detail
