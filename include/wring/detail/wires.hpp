// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <wring/machine.hpp>

/// Messages in virtual time: when they leave, and when they arrive.
namespace wring::inline v0::detail {

inline constexpr double never = std::numeric_limits<double>::infinity();

/// The way of a message: out of one port, into another, at one speed.
struct Way {
  std::size_t from = 0, to = 0;  ///< ports
  double latency = 0, bandwidth = 1;
};

/// The ports of a machine's ranks: one per node towards the other nodes, then one per rank towards the others of its node.
class Ports {
 public:
  Ports(int ranks, const Machine& machine)
      : machine_(machine), nodes_((ranks - 1) / machine.ranks_per_node + 1),
        count_(static_cast<std::size_t>(nodes_ + ranks)) {}

  std::size_t count() const { return count_; }

  Way way(int from, int to) const {
    const int a = from / machine_.ranks_per_node, b = to / machine_.ranks_per_node;
    if (a != b) return {index(a), index(b), machine_.latency, machine_.bandwidth};
    return {index(nodes_ + from), index(nodes_ + to), machine_.inside_latency, machine_.inside_bandwidth};
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  Machine machine_;
  int nodes_;
  std::size_t count_;
};

/// A switched network: each port sends one message after the other, and takes one after the other, both at a time. A message begins to
/// arrive when its first byte has crossed, and waits in the switch while the port it goes to takes another. Messages are taken in the order
/// of their first bytes, whoever has sent them.
class Wires {
 public:
  struct Arrival {
    std::size_t message = 0;
    double time = 0;  ///< of its last byte
  };

  explicit Wires(std::size_t ports) : sends_at_(ports, 0.0), takes_at_(ports, 0.0) {}

  /// Hands over a message that is ready at `now`. Returns when its last byte will have left.
  double send(double now, const Way& way, double bytes, std::size_t message) {
    const double begin = std::max(now, sends_at_[way.from]), seconds = bytes / way.bandwidth;
    crossing_.push_back({begin + way.latency, sequence_++, seconds, way.to, message});
    std::push_heap(crossing_.begin(), crossing_.end(), later);
    return sends_at_[way.from] = begin + seconds;
  }

  /// When the next message begins to arrive; `never` if none is on its way.
  double next() const { return crossing_.empty() ? never : crossing_.front().first_byte; }

  /// Takes that message in. Nothing may be sent afterwards that begins to arrive before it.
  Arrival take() {
    std::pop_heap(crossing_.begin(), crossing_.end(), later);
    const Crossing c = crossing_.back();
    crossing_.pop_back();
    double& port = takes_at_[c.to];
    port = std::max(c.first_byte, port) + c.seconds;
    return {c.message, port};
  }

 private:
  struct Crossing {
    double first_byte;
    std::uint64_t sequence;
    double seconds;  ///< that its bytes take
    std::size_t to, message;
  };
  static bool later(const Crossing& a, const Crossing& b) {
    return a.first_byte != b.first_byte ? a.first_byte > b.first_byte : a.sequence > b.sequence;
  }

  std::vector<double> sends_at_, takes_at_;  ///< when a port is free again
  std::vector<Crossing> crossing_;           ///< a heap, the next one in front
  std::uint64_t sequence_ = 0;
};

}  // namespace wring::inline v0::detail
