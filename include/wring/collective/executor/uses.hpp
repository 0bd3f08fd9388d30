// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <wring/algorithm/plan.hpp>

namespace wring::inline v0::detail {

/// What this rank does next with a block after one of its steps.
enum class Use : std::uint8_t { nothing, overwritten, send, send_raw, read };

/// For every step and each of its blocks, the block's next use on this rank: what may be forgotten, and what must be decoded.
class NextUses {
 public:
  void analyse(const Plan& plan) {
    offset_.assign(plan.steps.size() + 1, 0);
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      offset_[s + 1] = offset_[s] + static_cast<std::size_t>(plan.steps[s].last - plan.steps[s].first);
    use_.resize(offset_.back());
    next_.assign(static_cast<std::size_t>(plan.blocks), Use::nothing);
    for (std::size_t s = plan.steps.size(); s-- > 0;) {
      const Step& step = plan.steps[s];
      for (int b = step.first; b < step.last; ++b) {
        Use& next = next_[static_cast<std::size_t>(b)];
        use_[offset_[s] + static_cast<std::size_t>(b - step.first)] = next;
        switch (step.kind) {
        case Kind::send: next = step.wire == Wire::raw ? Use::send_raw : Use::send; break;
        case Kind::store: next = Use::overwritten; break;
        default: next = Use::read;
        }
      }
    }
  }

  Use after(std::size_t step, int block, int first) const {
    return use_[offset_[step] + static_cast<std::size_t>(block - first)];
  }

 private:
  std::vector<std::size_t> offset_;
  std::vector<Use> use_, next_;
};

}  // namespace wring::inline v0::detail
