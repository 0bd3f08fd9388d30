// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <wring/detail/wires.hpp>

namespace wring::inline v0::detail {

/// Who comes when, in virtual time: one appointment each, the earliest first, and at the same time the lowest number.
class Agenda {
 public:
  struct Turn {
    double time = never;
    std::size_t who = 0;
  };

  explicit Agenda(std::size_t count) : at_(count, never) {}

  /// Calls somebody at a time, unless that one comes earlier already.
  void call(std::size_t who, double time) {
    if (time >= at_[who]) return;
    at_[who] = time;
    turns_.push_back({time, who});
    std::push_heap(turns_.begin(), turns_.end(), later);
  }

  /// When the next one comes; `never` if nobody does.
  double next() {
    while (!turns_.empty() && turns_.front().time != at_[turns_.front().who]) drop();  // came earlier
    return turns_.empty() ? never : turns_.front().time;
  }

  /// After `next`: that turn, which is over.
  Turn take() {
    const Turn turn = turns_.front();
    drop();
    at_[turn.who] = never;
    return turn;
  }

 private:
  static bool later(const Turn& a, const Turn& b) {
    return a.time != b.time ? a.time > b.time : a.who > b.who;
  }
  void drop() {
    std::pop_heap(turns_.begin(), turns_.end(), later);
    turns_.pop_back();
  }

  std::vector<double> at_;
  std::vector<Turn> turns_;  ///< a heap
};

}  // namespace wring::inline v0::detail
