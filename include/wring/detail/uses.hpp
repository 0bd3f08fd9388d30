// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <wring/algorithm/plan.hpp>

namespace wring::inline v0::detail {

/// What a rank does next with a block after one of its steps.
enum class Use : std::uint8_t { nothing, overwritten, send, send_raw, read };

/// For every step of a plan and each of its blocks, the block's next use on this rank: what may be forgotten, what must be decoded,
/// what will travel.
class NextUses {
 public:
  void analyse(const Plan& plan) {
    analyse(plan, static_cast<std::size_t>(plan.blocks), [](int b) { return static_cast<std::size_t>(b); });
  }

  /// The same for runs of neighbouring blocks that all steps take together: `run(block)` is the one that begins with a block, and `runs`
  /// for the end.
  template <class Run> void analyse(const Plan& plan, std::size_t runs, Run run) {
    offset_.assign(plan.steps.size() + 1, 0);
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      offset_[s + 1] = offset_[s] + (run(plan.steps[s].last) - run(plan.steps[s].first));
    use_.resize(offset_.back());
    next_.assign(runs, Use::nothing);
    for (std::size_t s = plan.steps.size(); s-- > 0;) {
      const Step& step = plan.steps[s];
      std::size_t i = offset_[s];
      for (std::size_t r = run(step.first); r < run(step.last); ++r)
        use_[i++] = std::exchange(next_[r], use_in(step));
    }
  }

  /// The use of the `index`-th block (or run) of a step, after that step.
  Use after(std::size_t step, std::size_t index) const { return use_[offset_[step] + index]; }

 private:
  static Use use_in(const Step& step) {
    switch (step.kind) {
    case Kind::send: return step.wire == Wire::raw ? Use::send_raw : Use::send;
    case Kind::store: return Use::overwritten;
    default: return Use::read;
    }
  }

  std::vector<std::size_t> offset_;
  std::vector<Use> use_, next_;
};

}  // namespace wring::inline v0::detail
