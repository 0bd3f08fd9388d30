// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/error.hpp>
#include <wring/transport/concept.hpp>

namespace wring::inline v0::testing {

struct TransportLawOptions {
  /// The longest message that is sent to a receive which is too short for it. There are transports that write past the end.
  std::size_t longest_truncated = std::size_t(1) << 20;
  /// `check_transport_laws` gives up after this time.
  std::chrono::seconds limit{60};
};

/// What every transport must keep, as a program that each rank runs on its own link, one step at a time; so that the same laws run with
/// all ranks in one thread and with one rank per process. All ranks run it. Failures are collected as sentences, no test framework needed.
///
///     TransportLaws laws(link);
///     while (!laws.advance()) {}      // or: advance the laws of other ranks in between
///     report(laws.failures());
///
/// The laws: messages of a pair and channel arrive in order; channels are independent; any length from 0 to 1 MiB, at any address; a
/// longer receive reports the length and leaves the rest of its bytes alone; a shorter one is a TransportError and harms nothing else;
/// many messages in flight, tested in any order; a receive without a message can be cancelled and takes none later. Of a
/// `WordSummingTransport` also: sums of words are those of all ranks modulo 2^64, in the order of their starts, beside messages and in any
/// order of tests; one that is given up still counts for the others.
template <Transport Link>
class TransportLaws {
 public:
  static_assert(Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Link::memory_space>::accessible,
                "wring: the transport laws need a transport whose memory the host can access");

  explicit TransportLaws(Link& link, const TransportLawOptions& options = {})
      : link_(&link), options_(options) {
    if (link.rank() < 0 || link.rank() >= link.size()) fail("the rank is not in 0 .. size - 1");
  }
  TransportLaws(const TransportLaws&) = delete;
  TransportLaws& operator=(const TransportLaws&) = delete;
  ~TransportLaws() { abandon(); }

  /// Does what can be done without waiting. True: all laws have been tried.
  bool advance() {
    if (law_ == laws.size()) return true;
    if (!started_) start_stage();
    for (auto message = messages_.rbegin(); message != messages_.rend(); ++message)
      test(*message);  // newest first
    if (in_flight([](const Message& m) { return !m.sends; })) return false;
    if (stage_ + 1 < laws[law_].stages) {
      ++stage_;
      started_ = false;
      return false;
    }
    if (in_flight([](const Message&) { return true; })) return false;
    finish_law();
    return law_ == laws.size();
  }

  const std::vector<std::string>& failures() const { return failures_; }

  /// Ends early, with a failure for what is still in flight.
  void give_up() {
    if (law_ == laws.size()) return;
    int named = 0;
    for (const Message& message : messages_) {
      if (message.in_flight && named++ < 3) fail(describe(message) + " has not completed");
    }
    abandon();
    law_ = laws.size();
  }

 private:
  struct Message {
    bool sends = false, in_flight = false;
    int peer = 0, channel = 0, number = 0;
    std::size_t length = 0;  ///< of the message
    std::size_t room = 0;    ///< of the receive
    std::size_t mine = 0;    ///< bytes that the transport may have written: none until something has arrived
    typename Link::Request request;
    std::vector<std::byte> bytes;
    std::vector<std::uint64_t> words{};  ///< of a sum: `length` bytes, `peer` is this rank
    bool sums = false, given_up = false;
  };

  struct Law {
    const char* name;
    void (TransportLaws::*start)(int peer);
    int stages = 1;
    bool of_all = false;  ///< started once for all peers, even if there are none
  };

  static constexpr std::byte untouched{0xa5};
  static constexpr std::size_t mebibyte = std::size_t(1) << 20;

  // Each law is started once per stage, for every peer. The next stage begins when all receives have completed, the next law when
  // the sends have too. Law k uses the channels 8 k + 8 and following; `channels_are_independent` the ends of the range as well.

  void messages_arrive_in_order(int peer) {
    for (int i = 0; i < 8; ++i) send(peer, channel(), i, lengths_of_order(i));
    for (int i = 0; i < 8; ++i) receive(peer, channel(), i, lengths_of_order(i), lengths_of_order(i));
  }

  void channels_are_independent(int peer) {
    const std::array channels{32767, 0, channel()};
    if (stage_ == 0) {
      for (int i = 0; i < 3; ++i) send(peer, channels[static_cast<std::size_t>(i)], i, 3000);
    }
    receive(peer, channels[static_cast<std::size_t>(2 - stage_)], 2 - stage_, 3000,
            3000);  // the last one first
  }

  void any_length_arrives(int peer) {
    const std::array<std::size_t, 7> lengths{0, 1, 3, 255, 4097, 65537, mebibyte};
    for (std::size_t i = 0; i < lengths.size(); ++i) send(peer, channel(), static_cast<int>(i), lengths[i]);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      receive(peer, channel(), static_cast<int>(i), lengths[i], lengths[i]);
    }
  }

  void longer_receives_report_the_length(int peer) {
    const std::array<std::size_t, 4> lengths{0, 10, 5000, 100000};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      receive(peer, channel(), static_cast<int>(i), lengths[i], lengths[i] + 100);
      send(peer, channel(), static_cast<int>(i), lengths[i]);
    }
  }

  void shorter_receives_fail_alone(int peer) {
    const std::array<std::size_t, 5> lengths{10, 20, options_.longest_truncated, 1, 100},
        rooms{4, 20, 16, 0, 100};
    for (std::size_t i = 0; i < lengths.size(); ++i)
      send(peer, channel(), static_cast<int>(i), lengths[i], rooms[i]);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      receive(peer, channel(), static_cast<int>(i), lengths[i], rooms[i]);
    }
  }

  void many_may_be_in_flight(int peer) {
    const bool sends_first = link_->rank() % 2 == 1;  // the other half receives first
    for (const bool sends : {sends_first, !sends_first}) {
      for (int i = 0; i < 100; ++i) {
        const std::size_t length = static_cast<std::size_t>(i * 37 % 1000);
        if (sends)
          send(peer, channel() + i % 4, i, length);
        else
          receive(peer, channel() + i % 4, i, length, length);
      }
    }
  }

  void receives_can_be_cancelled(int peer) {
    if (stage_ == 0) {
      receive(peer, channel(), 0, 50,
              50);  // there is no message yet: it is sent when the token below has arrived
      test(messages_.back());
      give_up(messages_.back());
      send(peer, channel() + 1, 0, 1);
      receive(peer, channel() + 1, 0, 1, 1);
    } else {
      send(peer, channel(), 1, 50);
      receive(peer, channel(), 1, 50, 50);
    }
  }

  static constexpr std::array<std::size_t, 5> words_of_sums{3, 1000, 0, 1, 70000};

  void words_are_summed(int /*peer*/) {
    if constexpr (WordSummingTransport<Link>) {
      for (int k = 0; k < static_cast<int>(words_of_sums.size()); ++k) {
        sum(10 * stage_ + k, words_of_sums[static_cast<std::size_t>(k)]);
        for (int peer = 0; k % 2 == 0 && peer < link_->size(); ++peer) {
          if (peer == link_->rank()) continue;
          send(peer, channel(), k, 500);
          receive(peer, channel(), k, 500, 500);
        }
      }
      if (stage_ == 1 && link_->rank() == 0) give_up_sum();
    }
  }

  static constexpr std::array<Law, 8> laws{{
      {"messages arrive in order", &TransportLaws::messages_arrive_in_order},
      {"channels are independent", &TransportLaws::channels_are_independent, 3},
      {"any length arrives", &TransportLaws::any_length_arrives},
      {"longer receives report the length", &TransportLaws::longer_receives_report_the_length},
      {"shorter receives fail alone", &TransportLaws::shorter_receives_fail_alone},
      {"many may be in flight", &TransportLaws::many_may_be_in_flight},
      {"receives can be cancelled", &TransportLaws::receives_can_be_cancelled, 2},
      {"words are summed", &TransportLaws::words_are_summed, 2, true},
  }};

  static std::size_t lengths_of_order(int i) { return static_cast<std::size_t>(i * 7919 % 3001); }
  int channel() const { return 8 * static_cast<int>(law_) + 8; }

  void start_stage() {
    started_ = true;
    if (laws[law_].of_all) return (this->*laws[law_].start)(-1);
    for (int peer = 0; peer < link_->size(); ++peer) {
      if (peer != link_->rank()) (this->*laws[law_].start)(peer);
    }
  }

  void finish_law() {
    for (const Message& message : messages_) {
      if (!message.sends) check_rest(message);
    }
    messages_.clear();
    ++law_;
    stage_ = 0;
    started_ = false;
  }

  /// The bytes begin one after the start of their allocation, and end one before its end.
  Message& prepare(bool sends, int peer, int channel, int number, std::size_t length, std::size_t room) {
    Message& m = messages_.emplace_back();
    m.sends = sends, m.peer = peer, m.channel = channel, m.number = number, m.length = length, m.room = room;
    m.bytes.assign((sends ? length : room) + 2, untouched);
    return m;
  }

  void send(int peer, int channel, int number, std::size_t length, std::optional<std::size_t> room = {}) {
    Message& m = prepare(true, peer, channel, number, length, room.value_or(length));
    const std::uint64_t start = seed(m);
    for (std::size_t i = 0; i < length; ++i) m.bytes[i + 1] = content(start, i);
    m.request = link_->send(peer, channel, std::span<const std::byte>(m.bytes).subspan(1, length));
    m.in_flight = true;
  }

  void receive(int peer, int channel, int number, std::size_t length, std::size_t room) {
    Message& m = prepare(false, peer, channel, number, length, room);
    m.request = link_->receive(peer, channel, std::span<std::byte>(m.bytes).subspan(1, room));
    m.in_flight = true;
  }

  void sum(int number, std::size_t count) {
    Message& m = prepare(false, link_->rank(), 0, number, count * sizeof(std::uint64_t), 0);
    m.sums = true, m.words.resize(count);
    for (std::size_t i = 0; i < count; ++i) m.words[i] = word_of(link_->rank(), number, i);
    m.request = link_->sum_words(std::span<std::uint64_t>(m.words));
    m.in_flight = true;
  }

  /// A large number: sums of them wrap.
  static std::uint64_t word_of(int rank, int number, std::size_t i) {
    return (static_cast<std::uint64_t>(rank + 1) << 61) +
           (i + 1) * (0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(number * 100 + rank));
  }

  void check_sum(const Message& m, std::size_t length) {
    if (length != m.length) fail(describe(m) + " reports " + std::to_string(length) + " bytes");
    for (std::size_t i = 0; i < m.words.size(); ++i) {
      std::uint64_t expected = 0;
      for (int rank = 0; rank < link_->size(); ++rank) expected += word_of(rank, m.number, i);
      if (m.words[i] != expected) return fail(describe(m) + " has a wrong word " + std::to_string(i));
    }
  }

  /// The second sum of this stage, given up unless it has completed or the transport refuses: nothing more is written to it.
  void give_up_sum() {
    for (Message& m : messages_) {
      if (!m.sums || m.number != 11) continue;
      test(m);
      if (!m.in_flight || !link_->cancel(m.request)) return;
      m.in_flight = false, m.given_up = true;
      std::fill(m.words.begin(), m.words.end(), std::uint64_t{0});
    }
  }

  std::uint64_t seed(const Message& m) const {
    const int from = m.sends ? link_->rank() : m.peer, to = m.sends ? m.peer : link_->rank();
    std::uint64_t result = 1;
    for (const int part : {from, to, m.channel, m.number})
      result = result * 65599 + static_cast<std::uint64_t>(part);
    return result * 0x9e3779b97f4a7c15u;
  }

  static std::byte content(std::uint64_t seed, std::size_t i) {
    return static_cast<std::byte>((seed + i * 0x100000001b3u) >> 40);
  }

  void test(Message& m) {
    if (!m.in_flight) return;
    try {
      const std::optional<std::size_t> length = link_->test(m.request);
      if (!length) return;
      m.in_flight = false;
      m.mine = std::min(m.length, m.room);
      m.sums ? check_sum(m, *length) : check(m, *length);
    } catch (const std::exception& error) {
      m.in_flight = false;
      m.mine = m.room;
      if (dynamic_cast<const TransportError*>(&error) == nullptr || m.length <= m.room || m.sums) {
        fail(describe(m) + " failed: " + error.what());
      }
    }
  }

  /// Cancels a receive that has no message yet.
  void give_up(Message& m) {
    if (!m.in_flight) return fail(describe(m) + " completed before its message was sent");
    m.in_flight = !link_->cancel(m.request);
    if (m.in_flight) fail(describe(m) + " could not be cancelled");
  }

  void check(const Message& m, std::size_t length) {
    if (!m.sends && m.length > m.room) {
      return fail(describe(m) + " reports success, but has room for " + std::to_string(m.room) +
                  " bytes only");
    }
    if (length != m.length) fail(describe(m) + " reports " + std::to_string(length) + " bytes");
    if (m.sends) return;
    const std::uint64_t start = seed(m);
    for (std::size_t i = 0; i < m.length; ++i) {
      if (m.bytes[i + 1] != content(start, i))
        return fail(describe(m) + " has a wrong byte " + std::to_string(i));
    }
  }

  /// Nothing was written but what arrived.
  void check_rest(const Message& m) {
    const auto beyond = m.bytes.begin() + static_cast<std::ptrdiff_t>(m.mine) + 1;
    const bool clean =
        m.bytes.front() == untouched &&
        std::all_of(beyond, m.bytes.end(), [](std::byte b) { return b == untouched; }) &&
        (!m.given_up || std::all_of(m.words.begin(), m.words.end(), [](auto w) { return w == 0; }));
    if (!clean) fail(describe(m) + " changed bytes beyond its message");
  }

  template <class Which> bool in_flight(Which which) const {
    return std::any_of(messages_.begin(), messages_.end(),
                       [&](const Message& m) { return m.in_flight && which(m); });
  }

  /// Nothing may touch the messages any more: what the transport does not give back stays allocated.
  void abandon() {
    for (Message& m : messages_) {
      if (m.in_flight && !link_->cancel(m.request)) {
        static_cast<void>(new auto(std::move(m.bytes)));
        static_cast<void>(new auto(std::move(m.words)));
      }
      m.in_flight = false;
    }
  }

  std::string describe(const Message& m) const {
    if (m.sums)
      return "the sum of " + std::to_string(m.words.size()) + " words (number " + std::to_string(m.number) +
             ")";
    return std::string(m.sends ? "the send to" : "the receive from") + " rank " + std::to_string(m.peer) +
           " on channel " + std::to_string(m.channel) + " (message " + std::to_string(m.number) + ", " +
           std::to_string(m.length) + " bytes)";
  }

  void fail(const std::string& what) {
    const std::string law = law_ < laws.size() ? std::string(laws[law_].name) + ": " : std::string();
    failures_.push_back(law + "rank " + std::to_string(link_->rank()) + ": " + what);
  }

  Link* link_;
  TransportLawOptions options_;
  std::size_t law_ = 0;
  int stage_ = 0;
  bool started_ = false;
  std::deque<Message> messages_;
  std::vector<std::string> failures_;
};

/// Runs the laws on all links that live in this process: all ranks of a shared-thread transport, or the one of this process, while the
/// other ranks do the same. Returns what failed on them.
template <Transport Link>
std::vector<std::string> check_transport_laws(const std::vector<Link*>& links,
                                              const TransportLawOptions& options = {}) {
  std::deque<TransportLaws<Link>> programs;
  for (Link* link : links) programs.emplace_back(*link, options);
  const auto deadline = std::chrono::steady_clock::now() + options.limit;
  for (bool finished = false; !finished && std::chrono::steady_clock::now() < deadline;
       std::this_thread::yield()) {
    finished = true;
    for (TransportLaws<Link>& program : programs) finished &= program.advance();
    progress(*links.front());
  }
  std::vector<std::string> failures;
  for (TransportLaws<Link>& program : programs) {
    program.give_up();
    failures.insert(failures.end(), program.failures().begin(), program.failures().end());
  }
  return failures;
}

}  // namespace wring::inline v0::testing
