// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <wring/error.hpp>
#include <wring/testing/fault_plan.hpp>

namespace wring::inline v0::testing {

/// 64 random bits that depend on the arguments alone (splitmix64).
constexpr std::uint64_t fault_bits(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15u + (index + 1) * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

inline void fill_with_noise(std::vector<std::byte>& bytes, std::size_t from, std::uint64_t seed) {
  for (std::size_t i = from; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(fault_bits(seed, i) & 0xff);
}

/// Does to a message what the fault says.
inline void damage(const Fault& fault, std::vector<std::byte>& message) {
  const std::size_t size = message.size();
  switch (fault.kind) {
  case FaultKind::truncate: message.resize(size - std::min<std::uint64_t>(size, fault.amount)); break;
  case FaultKind::extend:
    message.resize(size + static_cast<std::size_t>(fault.amount));
    fill_with_noise(message, size, fault.amount);
    break;
  case FaultKind::flip:
    if (size > 0) message[fault.amount / 8 % size] ^= static_cast<std::byte>(1u << fault.amount % 8);
    break;
  case FaultKind::noise: fill_with_noise(message, 0, fault.amount); break;
  default: break;
  }
}

/// Counts the messages of one rank and says which of them a plan wants to be faulty.
class FaultScript {
 public:
  FaultScript(FaultPlan plan, int rank) : plan_(std::move(plan)), rank_(rank) {
    if (!(plan_.random.rate >= 0 && plan_.random.rate <= 1))
      throw InvalidArgument("fault plan: the rate is not between 0 and 1", rank);
    if (plan_.random.rate > 0 && plan_.random.kinds.empty())
      throw InvalidArgument("fault plan: a rate, but no kinds of faults", rank);
    for (const Fault& f : plan_.faults)
      if (f.side == Side::receive && damages(f.kind))
        throw InvalidArgument("fault plan: messages are damaged where they are sent: " + describe(f), rank);
    hold_ = plan_.longest_hold();
  }

  /// The fault of the next message, if it has one. The first of several wins.
  const Fault* next(Side side, int channel) {
    const MessageKind kind = kind_of(channel);
    const std::uint64_t all = count(side, MessageKind::any)++, own = count(side, kind)++;
    if (healed_) return nullptr;
    for (const Fault& f : plan_.faults)
      if (f.rank == rank_ && f.side == side && (f.messages == MessageKind::any || f.messages == kind) &&
          f.number == (f.messages == MessageKind::any ? all : own))
        return &f;
    return draw(side, kind, all);
  }

  std::uint64_t messages(Side side, MessageKind kind) const {
    return counts_[static_cast<int>(side)][static_cast<int>(kind)];
  }
  std::uint64_t longest_hold() const { return hold_; }
  void heal() { healed_ = true; }

 private:
  std::uint64_t& count(Side side, MessageKind kind) {
    return counts_[static_cast<int>(side)][static_cast<int>(kind)];
  }

  const Fault* draw(Side side, MessageKind kind, std::uint64_t number) {
    const RandomFaults& r = plan_.random;
    if (r.rate <= 0 || (r.messages != MessageKind::any && r.messages != kind)) return nullptr;
    const std::uint64_t where = number * 2 + static_cast<std::uint64_t>(side),
                        seed = r.seed * 65599 + static_cast<std::uint64_t>(rank_);
    if (static_cast<double>(fault_bits(seed, where) >> 11) * 0x1p-53 >= r.rate) return nullptr;
    const std::uint64_t bits = fault_bits(seed + 0x5851f42d4c957f2du, where);
    drawn_ = {.kind = r.kinds[bits % r.kinds.size()],
              .rank = rank_,
              .messages = MessageKind::any,
              .number = number,
              .amount = bits >> 32,
              .side = side};
    if (drawn_.kind == FaultKind::delay || drawn_.kind == FaultKind::reorder ||
        drawn_.kind == FaultKind::truncate || drawn_.kind == FaultKind::extend)
      drawn_.amount = 1 + drawn_.amount % FaultPlan::random_hold;
    return side == Side::receive && damages(drawn_.kind) ? nullptr : &drawn_;
  }

  FaultPlan plan_;
  int rank_;
  std::uint64_t hold_ = 0;
  std::uint64_t counts_[2][3] = {};
  Fault drawn_;
  bool healed_ = false;
};

}  // namespace wring::inline v0::testing
