// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <wring/collective/executor/agreement/ahead.hpp>
#include <wring/collective/executor/segments/segment.hpp>
#include <wring/collective/executor/shared.hpp>
#include <wring/detail/pipeline.hpp>
#include <wring/detail/uses.hpp>

namespace wring::inline v0::detail {

/// All segments of one operation on their way through the plan, several at once.
template <class Codec, class Link, class Exec> class Segments {
 public:
  using S = Shared<Codec, Link, Exec>;

  Segments(S& shared, Ahead<Codec, Link, Exec>& ahead) : s_(shared), ahead_(ahead) {}

  /// No segment, until `start`.
  void clear() {
    depth_ = next_ = count_ = turn_ = 0;
    unsent_.clear();
  }

  /// Cuts the tensors and begins the first segments.
  void start(std::span<const std::size_t> counts, int first_channel) {
    first_channel_ = first_channel;
    s_.cut(counts);
    s_.report.segments = count_ = s_.partition.segments();
    s_.sums_in_all = count_ * s_.sums_of_plan, s_.sums_started = 0;
    next_ = 0;
    uses_.analyse(s_.plan);
    const std::size_t depth = s_.partition.depth(s_.options.depth);
    while (segments_.size() < depth) segments_.push_back(std::make_unique<Segment<Codec, Link, Exec>>(s_));
    depth_ = depth;
    for (auto& segment : active()) start(*segment);
  }

  /// Moves every active segment, until it needs a message; in virtual time one of them by one step, since other ranks come next if their
  /// clocks say so.
  Progress advance() {
    Progress result = Progress::blocked;
    bool running = false;
    for (std::size_t i = 0, first = std::exchange(turn_, 0); i < depth_; ++i) {
      const std::size_t slot = (first + i) % depth_;
      auto& segment = segments_[slot];
      if (!segment->running() && may_start()) start(*segment);
      if (segment->advance() != Progress::blocked) result = Progress::moved;
      if constexpr (VirtualTimeTransport<Link>) {
        turn_ = segment->goes_on() ? slot : slot + 1;
        if (result == Progress::moved) return result;
      } else {
        while (segment->goes_on() && segment->advance() == Progress::moved) continue;
      }
      running = running || segment->running();
    }
    return running || next_ < count_ ? result : Progress::finished;
  }

  /// Whether all steps of all segments are taken, and only messages of this rank are still on their way.
  bool only_sends() const {
    bool all = next_ >= count_;
    for (const auto& segment : active()) all = all && (!segment->running() || segment->only_sends());
    return all;
  }

  template <class Name> void waits_for(Name name) const {
    for (const auto& segment : active())
      if (segment->running()) name(segment->waits_for(), "data");
  }

  /// Whether a segment waits for a sum over all ranks.
  bool sums() const {
    return std::any_of(active().begin(), active().end(), [](const auto& segment) { return segment->sums(); });
  }

  /// This rank has failed and waits for nobody any more: all that it has still to send goes out now, poisoned.
  void leave() {
    for (auto& segment : active()) segment->abandon();
    for (std::size_t k = next_; k < count_; ++k)
      for (std::size_t step = 0; step < s_.plan.steps.size(); ++step)
        if (s_.plan.steps[step].kind == Kind::send)
          unsent_.add(k * s_.plan.steps.size() + step, s_.plan.steps[step].peer);
    send_poison();
  }

  /// After `leave`: takes what peers still send. True once nothing is in flight.
  bool drain() {
    bool idle = true;
    for (auto& segment : active()) {
      if (!segment->running() && may_start()) start(*segment, true);
      idle = segment->abandon() && idle;
    }
    send_poison();
    while (!poison_.empty() && sent(poison_.front().request)) poison_.pop_front();
    return idle && next_ >= count_ && poison_.empty() && unsent_.empty();
  }

  /// After `leave`: takes back what is in flight, as far as the transport lets go of it.
  void cancel() {
    next_ = count_;
    unsent_.clear();
    for (auto& segment : active()) segment->cancel();
    std::erase_if(poison_, [this](Poison& p) { return s_.link->cancel(p.request); });
  }

 private:
  struct Poison {
    std::array<std::byte, header_bytes + poison_text_bytes> bytes;
    typename Link::Request request{};
  };

  auto active() { return std::span(segments_).first(depth_); }
  auto active() const { return std::span(segments_).first(depth_); }

  /// Segments take channels in turn, and those in flight at once never share one: the next waits for the oldest.
  bool may_start() const {
    std::size_t oldest = next_;
    for (const auto& segment : active())
      if (segment->running()) oldest = std::min(oldest, segment->index());
    return next_ < count_ && next_ - oldest < segment_channels;
  }

  void start(Segment<Codec, Link, Exec>& segment, bool mute = false) {
    segment.start(next_, uses_, channel_of(next_), mute);
    ahead_.give(next_, segment.pieces());
    ++next_;
  }

  int channel_of(std::size_t segment) const {
    return first_channel_ + static_cast<int>(segment % segment_channels);
  }

  void send_poison() {
    const std::size_t steps = s_.plan.steps.size();
    if (!unsent_.attempt([&](std::size_t m) { poison(m / steps, s_.plan.steps[m % steps]); })) retire(s_);
  }

  /// A segment that was never begun is poisoned without one.
  void poison(std::size_t segment, const Step& step) {
    MessageHeader h;
    h.agreed = s_.agreed, h.segment = static_cast<std::uint32_t>(segment);
    h.first = step.first, h.last = step.last;
    Poison& poison = poison_.emplace_back();
    seal_poison(poison.bytes, h, s_.failure);
    try {
      poison.request = s_.link->send(step.peer, channel_of(segment), poison.bytes);
    } catch (...) {
      poison_.pop_back();
      throw;
    }
  }

  /// Whether a poisoned message has left.
  bool sent(typename Link::Request& request) {
    try {
      return s_.link->test(request).has_value();
    } catch (const Error&) {
      return true;
    }
  }

  S& s_;
  Ahead<Codec, Link, Exec>& ahead_;
  NextUses uses_;
  std::vector<std::unique_ptr<Segment<Codec, Link, Exec>>> segments_;
  std::list<Poison> poison_;
  Unsent unsent_;  ///< of segments that were never begun: segment * steps + step
  std::size_t depth_ = 0, next_ = 0, count_ = 0;  ///< active, the next to begin, all
  std::size_t turn_ = 0;                          ///< the active one that moves first
  int first_channel_ = 0;
};

}  // namespace wring::inline v0::detail
