// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <wring/detail/cost/cut.hpp>
#include <wring/detail/cost/script.hpp>
#include <wring/detail/pipeline.hpp>
#include <wring/detail/sum_seconds.hpp>
#include <wring/detail/wires.hpp>

namespace wring::inline v0::detail {

/// One rank on its way through its plan in virtual time: `Segments` and `Segment` without values. Some segments are in flight at once, each
/// takes one step in its turn, and all work of a rank is done one piece after the other.
class Walk {
 public:
  /// For the entry of a piece in its message, and to round it up, on average.
  static constexpr double piece_bytes = 40;

  void start(const Cut& cut, const Machine& machine, int ranks) {
    cut_ = &cut, machine_ = &machine, ranks_ = ranks;
    slots_.assign(cut.depth(), {});
    next_ = turn_ = 0, busy_ = 0, sent_ = 0, sums_end_ = 0;
  }

  struct Move {
    double again = never;  ///< when to come again, as far as can be known
    bool moved = false;    ///< it is busy until then
  };

  /// Takes one step, if one is possible at `now`; else it waits, and may have to come again earlier when a message arrives.
  template <class World> Move advance(double now, const Script& script, World& world) {
    double earliest = never;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const std::size_t at = turn_ + i < slots_.size() ? turn_ + i : turn_ + i - slots_.size();
      Slot& slot = slots_[at];
      if (!slot.running && !start(slot)) continue;
      const double ready = ready_at(slot, script, world);
      earliest = std::min(earliest, ready);
      if (ready > now) continue;
      const double seconds = step(now, slot, script, world);
      turn_ = goes_on(slot, script) ? at : at + 1 < slots_.size() ? at + 1 : 0;
      return {now + seconds, true};
    }
    return {earliest, false};
  }

  bool finished() const {
    return next_ == cut_->followed() &&
           std::none_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.running; });
  }

  // Of all segments, those left out included.
  double busy() const { return busy_; }  ///< seconds of work
  double sent() const { return sent_; }  ///< bytes

 private:
  struct Slot {
    std::size_t segment = 0, at = 0, sends = 0;
    std::array<double, sends_in_flight> left{};  ///< when its latest messages have left
    double summed = 0;                           ///< when its latest sum has come
    bool running = false, closed = false;
  };

  bool start(Slot& slot) {
    if (next_ == cut_->followed()) return false;
    for (const Slot& other : slots_)
      if (other.running && next_ - other.segment >= segment_channels) return false;
    slot = {}, slot.running = true, slot.segment = next_++;
    return true;
  }

  template <class World> double ready_at(const Slot& slot, const Script& script, World& world) const {
    return std::max(slot.summed, next_at(slot, script, world));
  }

  template <class World> double next_at(const Slot& slot, const Script& script, World& world) const {
    if (slot.at < script.steps.size()) {
      const ScriptStep& step = script.steps[slot.at];
      if (!has_peer(step.kind)) return 0;
      if (step.kind == Kind::send)
        return slot.sends < sends_in_flight ? 0 : slot.left[slot.sends % sends_in_flight];
      return world.arrival(slot.segment, step.message);
    }
    return slot.closed && slot.sends > 0 ? slot.left[(slot.sends - 1) % sends_in_flight] : 0;
  }

  /// Whether its next step needs no message: that comes before the steps of other segments.
  static bool goes_on(const Slot& slot, const Script& script) {
    return slot.running && slot.at < script.steps.size() && !awaits_others(script.steps[slot.at].kind);
  }

  double message_bytes(const ScriptStep& step, double block) const {
    return header_bytes + cut_->filled(step.blocks) * (piece_bytes * step.blocks + step.wire * block);
  }

  double work(const ScriptStep& step, double block) const {
    return cut_->filled(step.blocks) * (step.seconds * block + machine_->launch * step.calls);
  }

  /// Returns how long it takes.
  template <class World> double step(double now, Slot& slot, const Script& script, World& world) {
    const double block = cut_->bytes(slot.segment);
    if (slot.at == script.steps.size()) {
      if (slot.closed) {
        slot.running = false;
        world.ended(slot.segment, now);
        return 0;
      }
      slot.closed = true;
      return spend(slot, work(script.close, block));
    }
    const ScriptStep& step = script.steps[slot.at++];
    if (step.kind == Kind::finish) return spend(slot, work(step, block));
    const double bytes = message_bytes(step, block);
    const double seconds = spend(slot, work(step, block) + machine_->overhead + bytes / machine_->copy);
    if (step.kind == Kind::send) {
      slot.left[slot.sends++ % sends_in_flight] = world.send(now + seconds, slot.segment, step, bytes);
      sent_ += bytes * cut_->weight(slot.segment);
    }
    if (step.kind == Kind::sum) sum(slot, now + seconds, bytes);
    return seconds;
  }

  /// All ranks are taken to come to it at the same time. One sum after the other.
  void sum(Slot& slot, double now, double bytes) {
    slot.summed = sums_end_ = std::max(now, sums_end_) + seconds_of_sum(ranks_, bytes, *machine_);
    sent_ += 2 * (ranks_ - 1.0) / ranks_ * bytes * cut_->weight(slot.segment);
  }

  double spend(const Slot& slot, double seconds) {
    busy_ += seconds * cut_->weight(slot.segment);
    return seconds;
  }

  const Cut* cut_ = nullptr;
  const Machine* machine_ = nullptr;
  std::vector<Slot> slots_;
  std::size_t next_ = 0, turn_ = 0;
  double busy_ = 0, sent_ = 0;
  double sums_end_ = 0;  ///< of all so far
  int ranks_ = 1;
};

}  // namespace wring::inline v0::detail
