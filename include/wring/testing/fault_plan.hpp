// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

namespace wring::inline v0::testing {

/// What happens to a message. `amount` is that of the Fault.
enum class FaultKind {
  delay,     ///< it leaves, or is seen to have come, only after `amount` further tests on this link
  reorder,   ///< a later message to (from) another peer goes first; after `amount` tests it goes all the same
  truncate,  ///< its last `amount` bytes are missing (all of them, if it has no more)
  extend,    ///< `amount` bytes of noise follow it
  flip,      ///< bit `amount`, modulo its length, is inverted
  noise,     ///< as many random bytes take its place; `amount` is their seed
  lose,      ///< it never leaves, though its send completes
  throw_at_start,  ///< `send` or `receive` throws TransportError, nothing is started
  throw_at_test,  ///< the `test` that would report its completion throws TransportError: what arrived is lost
  stop,           ///< from here on the rank takes no step: nothing leaves, nothing arrives, nothing is said
  die,            ///< from here on nothing leaves or arrives, and every call throws TransportError
};

inline constexpr std::initializer_list<FaultKind> all_fault_kinds = {
    FaultKind::delay,         FaultKind::reorder, FaultKind::truncate, FaultKind::extend,
    FaultKind::flip,          FaultKind::noise,   FaultKind::lose,     FaultKind::throw_at_start,
    FaultKind::throw_at_test, FaultKind::stop,    FaultKind::die};

inline const char* name_of(FaultKind kind) {
  constexpr const char* names[] = {"delay", "reorder",        "truncate",      "extend", "flip", "noise",
                                   "lose",  "throw at start", "throw at test", "stop",   "die"};
  return names[static_cast<int>(kind)];
}

/// Whether the bytes of a message are changed, which is done where it is sent.
constexpr bool damages(FaultKind kind) { return kind >= FaultKind::truncate && kind <= FaultKind::lose; }

/// Which messages are counted: those that open or close operations, those that carry the data of a plan, or all. The channel tells
/// them apart (docs/stream_format.md).
enum class MessageKind { any, agreement, data };

constexpr MessageKind kind_of(int channel) {
  return channel % 32 == 0 ? MessageKind::agreement : MessageKind::data;
}

enum class Side { send, receive };

/// One fault at one message: of all messages of the kind that `rank` sends (receives), in the order of its calls, the one with this
/// number. The first is 0.
struct Fault {
  FaultKind kind = FaultKind::flip;
  int rank = 0;
  MessageKind messages = MessageKind::any;
  std::uint64_t number = 0;
  std::uint64_t amount = 1;
  Side side = Side::send;
};

/// Faults at messages drawn at random: the same ones for the same seed and the same course of calls.
struct RandomFaults {
  double rate = 0;  ///< the share of messages, 0 to 1
  std::uint64_t seed = 1;
  MessageKind messages = MessageKind::any;
  std::vector<FaultKind> kinds = {FaultKind::delay,  FaultKind::reorder, FaultKind::truncate,
                                  FaultKind::extend, FaultKind::flip,    FaultKind::noise};
};

/// A script of faults for all ranks of a run. Every rank's FaultyTransport is given the same one and takes from it what is its own.
struct FaultPlan {
  std::vector<Fault> faults{};
  RandomFaults random{};

  /// The most tests for which a message is held back: links of one thread poll so often before they call themselves blocked.
  std::uint64_t longest_hold() const {
    std::uint64_t most = random.rate > 0 ? random_hold : 0;
    for (const Fault& f : faults)
      if (f.kind == FaultKind::delay || f.kind == FaultKind::reorder) most = std::max(most, f.amount);
    return most;
  }

  static constexpr std::uint64_t random_hold = 32;  ///< random holds last at most so many tests
};

/// A fault that took effect, and where.
struct InjectedFault {
  Fault fault;
  int peer = -1, channel = 0;
  std::size_t bytes = 0;  ///< of the message as it was, or the room of the receive
};

inline std::string describe(const Fault& f) {
  constexpr const char* kinds[] = {"", "agreement ", "data "};
  return std::string(name_of(f.kind)) + " (" + std::to_string(f.amount) + ") at rank " +
         std::to_string(f.rank) + ", " + kinds[static_cast<int>(f.messages)] +
         (f.side == Side::send ? "send " : "receive ") + std::to_string(f.number);
}

}  // namespace wring::inline v0::testing
