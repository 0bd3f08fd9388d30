// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <wring/collective/executor/message.hpp>
#include <wring/collective/executor/pieces.hpp>
#include <wring/collective/executor/shared.hpp>
#include <wring/collective/executor/unsent.hpp>
#include <wring/collective/executor/uses.hpp>
#include <wring/collective/executor/working.hpp>

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

  explicit Segment(S& shared) : s_(shared), work_(shared) {}

  /// `mute`: this segment's messages have gone out already, poisoned; it only takes what peers send.
  void start(std::size_t index, const NextUses& uses, int channel, bool mute = false) {
    mute_ = mute, index_ = index, uses_ = &uses, channel_ = channel, at_ = 0, posted_ = 0, waited_ = 0,
    closed_ = false, running_ = true;
    unsent_.clear();
    pieces_.clear();
    first_piece_.assign(1, 0);
    for (int b = 0; b < s_.plan.blocks; ++b) {
      s_.partition.pieces(b, index, [&](const PieceRange& range) {
        pieces_.emplace_back();
        pieces_.back().range = range, pieces_.back().block = b;
      });
      first_piece_.push_back(pieces_.size());
    }
  }

  bool running() const { return running_; }
  std::vector<Piece<Codec, Exec>>& pieces() { return pieces_; }
  std::size_t index() const { return index_; }

  /// Whether all steps are taken, and only messages of its own are still on their way.
  bool only_sends() const { return running_ && at_ == s_.plan.steps.size(); }

  /// The rank whose message this segment waits for, -1 if none.
  int waits_for() const {
    if (!running_) return -1;
    if (at_ < s_.plan.steps.size()) return s_.plan.steps[at_].peer;
    return outgoing_.empty() ? -1 : s_.plan.steps[outgoing_.front().step].peer;
  }

  /// Takes one step, so that everything else is polled between pieces of work. While a message is missing, what is complete goes to
  /// the user.
  Progress advance() {
    if (!running_) return Progress::blocked;
    s_.segment = static_cast<std::int64_t>(index_);
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
    s_.segment = static_cast<std::int64_t>(index_);
    for (; at_ < s_.plan.steps.size(); ++at_)
      if (s_.plan.steps[at_].kind == Kind::send && !mute_) unsent_.add(at_, s_.plan.steps[at_].peer);
    if (!unsent_.attempt([this](std::size_t step) { send(step); })) retire(s_);
    reap();
    try {
      for (post(); !incoming_.empty() && arrived(incoming_.front()); post())
        incoming_.erase(incoming_.begin());
    } catch (...) {  // nothing more can be taken
      posted_ = s_.plan.steps.size();
    }
    running_ = !incoming_.empty() || !outgoing_.empty() || !unsent_.empty();
    return !running_;
  }

  /// After `abandon`: takes back what is in flight, as far as the transport lets go of it.
  void cancel() {
    at_ = posted_ = s_.plan.steps.size();
    unsent_.clear();
    const auto free = [this](Message& message) { return s_.link->cancel(message.request); };
    std::erase_if(incoming_, free), std::erase_if(outgoing_, free);
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
      100;                                  ///< polls for a message, before its place is prepared at a cost
  static constexpr std::size_t window = 4;  ///< sends in flight

  template <class Visit> void each_piece(const Step& step, Visit visit) {
    const auto begin = first_piece_[static_cast<std::size_t>(step.first)],
               end = first_piece_[static_cast<std::size_t>(step.last)];
    for (std::size_t i = begin; i < end; ++i) visit(pieces_[i]);
  }

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
      if (step.kind != Kind::combine && step.kind != Kind::store) continue;
      std::size_t bytes = most_bytes(step);
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

  std::size_t most_piece_bytes(const Step& step) {
    std::size_t bytes = 0;
    each_piece(step, [&](auto& piece) { bytes += round_up(s_.worst_bytes(piece.range), 64); });
    return bytes;
  }

  /// The longest message that can come in a step.
  std::size_t most_bytes(const Step& step) {
    std::size_t count = 0;
    each_piece(step, [&](auto&) { ++count; });
    return header_bytes + std::max(table_bytes(count) + most_piece_bytes(step), poison_text_bytes);
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
    post(*last, std::max(bytes, most_bytes(s_.plan.steps[last->step])));
  }

  bool step() {
    const Step& step = s_.plan.steps[at_];
    if (step.kind == Kind::send) {
      if (outgoing_.size() >= window) return false;
      send(at_);
    } else if (step.kind == Kind::finish) {
      guarded([&] {
        [[maybe_unused]] const auto image = image_of(step);
        each_piece(step, [&](auto& piece) { work_.finish(piece, step.wire, step.budget); });
      });
    } else if (!receive(step)) {
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
      for (; delivered_ < pieces_.size() && !any; ++delivered_) any = work_.deliver(pieces_[delivered_]);
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

  MessageHeader header(const Step& step) {
    MessageHeader h;
    h.agreed = s_.agreed, h.segment = static_cast<std::uint32_t>(index_), h.first = step.first,
    h.last = step.last;
    h.raw = step.wire == Wire::raw ? 1 : 0;
    each_piece(step, [&](auto&) { ++h.pieces; });
    return h;
  }

  void send(std::size_t number) {
    const Step& step = s_.plan.steps[number];
    HostBytes message;
    guarded([&] { message = assemble(step); });
    if (s_.failure) {
      message = s_.messages.take(header_bytes + poison_text_bytes);
      seal_poison(message.span, header(step), s_.failure);
    }
    const double begun = stamp();
    const Region region(Work::wire);
    typename Link::Request request = s_.link->send(step.peer, channel_, message.span);
    s_.report.bytes_sent += message.span.size();
    ++s_.report.messages;
    outgoing_.push_back({number, std::move(message), std::move(request), begun});
  }

  /// Encodes what is not yet encoded, as a message; puts together what lies apart.
  HostBytes assemble(const Step& step) {
    encode(step);
    HostBytes message;
    if (!in_place(step, message)) message = put_together(step);
    each_piece(step, [&](auto& piece) { s_.report.bytes_raw += piece.range.count * sizeof(typename S::T); });
    forget(step);
    return message;
  }

  /// Leaves in `sending_` what the message carries.
  void encode(const Step& step) {
    [[maybe_unused]] const auto image = image_of(step);
    sending_.clear();
    each_piece(step, [&](auto& piece) {
      sending_.push_back(work_.to_send(piece, step.wire, step.budget, read_later(piece.block, step)));
    });
  }

  /// Opens room for a message with the pieces that a step encodes, if it does, for as long as the result lives. Devices have their
  /// pieces in other memory.
  struct NoImage {};
  auto image_of(const Step& step) {
    if constexpr (S::staged) {
      return NoImage{};
    } else {
      std::size_t count = 0, encoded = 0;
      each_piece(step, [&](auto& piece) { ++count, encoded += piece.encoded ? 1 : 0; });
      const bool wanted = work_.encodes(step) && (step.kind != Kind::send || encoded == 0);
      return typename Room<typename S::Space>::Image(s_.room, wanted ? count : 0,
                                                     wanted ? most_piece_bytes(step) : 0);
    }
  }

  /// Whether the pieces of a step lie as in a message, which need only be sealed, or has been sent before.
  bool in_place(const Step& step, HostBytes& message) {
    if (S::staged || sending_.empty()) return false;
    const Piece<Codec, Exec>& first = pieces_[first_piece_[static_cast<std::size_t>(step.first)]];
    if (!first.encoded || first.encoded.image == nullptr) return false;
    const std::byte* next = first.encoded.image + header_bytes + table_bytes(sending_.size());
    bool right = true;
    std::size_t i = 0;
    each_piece(step, [&](auto& piece) {
      right = right && piece.encoded && piece.encoded.image == first.encoded.image &&
              sending_[i].data() == piece.encoded.span.data() && sending_[i].data() == next;
      next += round_up(sending_[i++].size(), 64);
    });
    if (!right) return false;
    message = {first.encoded.buffer,
               {first.encoded.image, static_cast<std::size_t>(next - first.encoded.image)},
               first.encoded.image};
    const MessageHeader h = header(step);
    if (message.span[0] != std::byte{0}) return sealed_as(message.span, h);
    const Doing doing(s_, Work::wire, message.span.size());
    s_.exec.fence("wring::send");
    write_table(step, message.span);
    seal(message.span, h);
    return true;
  }

  void write_table(const Step& step, std::span<std::byte> message) {
    std::byte* entry = message.data() + header_bytes;
    std::memset(entry, 0, table_bytes(sending_.size()));
    std::size_t i = 0;
    each_piece(step, [&](auto& piece) {
      const std::uint64_t word = PieceEntry{sending_[i++].size(), piece.terms}.word();
      std::memcpy(entry, &word, 8);
      entry += 8;
    });
  }

  /// Copies the pieces behind header and table.
  HostBytes put_together(const Step& step) {
    std::size_t bytes = header_bytes + table_bytes(sending_.size());
    for (const auto& piece : sending_) bytes += round_up(piece.size(), 64);
    const Doing doing(s_, Work::wire, bytes);
    HostBytes message = s_.messages.take(bytes);
    std::byte* to = message.span.data() + header_bytes + table_bytes(sending_.size());
    for (const auto& piece : sending_) {
      copy_bytes<typename S::HostSpace, typename S::Space>(s_.exec, piece, to);
      const std::size_t padded = round_up(piece.size(), 64);
      std::memset(to + piece.size(), 0, padded - piece.size());
      to += padded;
    }
    s_.exec.fence("wring::send");
    write_table(step, message.span);
    seal(message.span, header(step));
    return message;
  }

  /// Whether this rank, or its user, reads the values of a block after the current step.
  bool read_later(int block, const Step& step) const {
    const Use use = uses_->after(at_, block, step.first);
    return use == Use::read || use == Use::send_raw || (use != Use::overwritten && s_.is_output(block));
  }

  /// Drops what no later step and no user reads.
  void forget(const Step& step) {
    each_piece(step, [&](auto& piece) {
      const Use use = uses_->after(at_, piece.block, step.first);
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
      if (h.cause != 0)
        s_.fail(failure_of(taken.span, h));
      else
        accept(step, taken);
    });
    if (left_over)
      pass_over_first();
    else
      incoming_.erase(incoming_.begin());
    return !left_over;
  }

  /// What a message will be combined with can be encoded while it is on its way; where that takes longer than to add it later, only
  /// if nothing else has been found to do.
  void prepare(const Step& step) {
    ++waited_;
    if (step.kind != Kind::combine) return;
    guarded([&] {
      each_piece(step, [&](auto& piece) {
        if (waited_ > patience || !work_.accumulates(piece)) work_.own(piece, step.wire == Wire::raw);
      });
    });
  }

  MessageHeader opened(std::span<std::byte> message, const Step& step) {
    const Doing doing(s_, Work::wire, message.size());
    return open(message, header(step));
  }

  /// Takes the pieces out of a message whose checksum is right; every size in it is checked all the same.
  void accept(const Step& step, const HostBytes& message) {
    std::size_t count = 0;
    each_piece(step, [&](auto&) { ++count; });
    const std::byte* entry = message.span.data() + header_bytes;
    std::size_t at = header_bytes + table_bytes(count);
    if (at > message.span.size()) throw TransportError("a message is too short for its table");
    [[maybe_unused]] const auto image = image_of(step);
    each_piece(step, [&](auto& piece) {
      std::uint64_t word = 0;
      std::memcpy(&word, entry, 8);
      entry += 8;
      const PieceEntry e = PieceEntry::from(word);
      if (e.bytes > message.span.size() - at) throw TransportError("a piece is longer than its message");
      auto theirs = on_device({message.buffer, message.span.subspan(at, e.bytes), message.span.data()});
      at += std::min(round_up(e.bytes, 64), message.span.size() - at);
      if (step.kind == Kind::combine)
        work_.combine(piece, std::move(theirs), e.terms, step.wire, step.budget);
      else
        work_.store(piece, std::move(theirs), e.terms, step.wire);
    });
    if (at != message.span.size()) throw TransportError("a message is longer than its pieces");
    if constexpr (S::staged) s_.exec.fence("wring::receive");
    forget(step);
  }

  /// The bytes of a received piece in the memory of the execution space: the message's own, or a copy.
  Bytes<typename S::Space> on_device(HostBytes received) {
    if constexpr (S::staged) {
      Bytes<typename S::Space> copy = s_.pool.take(received.span.size());
      copy_bytes<typename S::Space, typename S::HostSpace>(s_.exec, received.span, copy.span.data());
      return copy;
    } else {
      return received;
    }
  }

  void close() {
    guarded([&] {
      for (auto& piece : pieces_) work_.close(piece);
    });
    if constexpr (S::staged) s_.exec.fence("wring::close");
    pieces_.clear();
    closed_ = true;
  }

  S& s_;
  Pieces<Codec, Link, Exec> work_;
  const NextUses* uses_ = nullptr;
  std::size_t index_ = 0, at_ = 0, posted_ = 0;
  std::size_t delivered_ = 0;  ///< pieces looked at since the last step
  std::size_t waited_ = 0;     ///< polls for the message of this step
  int channel_ = 0;
  bool closed_ = false, running_ = false, mute_ = false;
  std::vector<Piece<Codec, Exec>> pieces_;
  std::vector<std::size_t> first_piece_;
  std::vector<std::span<const std::byte>> sending_;
  std::vector<Message> incoming_, outgoing_;  // a few: window and lookahead
  Unsent unsent_;
};

}  // namespace wring::inline v0::detail
