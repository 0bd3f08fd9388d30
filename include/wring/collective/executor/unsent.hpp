// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace wring::inline v0::detail {

/// Messages that a rank which leaves has still to send. A transport may refuse one: it is tried again later, and so are those behind it
/// to the same peer; the other peers get theirs.
class Unsent {
 public:
  void clear() { messages_.clear(); }
  bool empty() const { return messages_.empty(); }
  void add(std::size_t message, int peer) { messages_.push_back({message, peer}); }

  /// Calls `send(message)` for each, in order. True if none was refused.
  template <class Send> bool attempt(Send send) {
    refusing_.clear();
    std::erase_if(messages_, [&](const Message& m) {
      if (std::find(refusing_.begin(), refusing_.end(), m.peer) != refusing_.end()) return false;
      try {
        send(m.number);
        return true;
      } catch (...) {
        refusing_.push_back(m.peer);
        return false;
      }
    });
    return messages_.empty();
  }

 private:
  struct Message {
    std::size_t number;
    int peer;
  };
  std::vector<Message> messages_;
  std::vector<int> refusing_;
};

}  // namespace wring::inline v0::detail
