// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <wring/algorithm/load.hpp>
#include <wring/algorithm/plan.hpp>
#include <wring/detail/uses.hpp>
#include <wring/machine.hpp>

/// What the steps of a plan cost: what the executor does with every block, without values and without time.
namespace wring::inline v0::detail {

/// One step of a rank, for a segment of which every block has the same number of bytes.
struct ScriptStep {
  Kind kind = Kind::finish;
  std::int32_t peer = -1;
  std::uint32_t message = 0;  ///< its number among all messages; `finish` has none
  double seconds = 0;         ///< of work, for every byte of a block
  double calls = 0;           ///< of the codec, if no block is empty
  double wire = 0;            ///< bytes of its message, for every byte of a block
  double blocks = 0;
};

/// What one rank does with one segment. `close`: what is left to do when all steps are taken.
struct Script {
  std::vector<ScriptStep> steps;
  ScriptStep close;
};

/// Follows a plan and notes the work of each step. Blocks that go the same way together are followed as one, so that a plan's cost does
/// not depend on the number of its blocks. Mirrors `CombiningPieces` and `ValuePieces`.
class Scribe {
 public:
  Scribe(Task task, const Load& load, const Machine& machine)
      : task_(task), combining_(load.coded && load.combines), packs_always_(load.packs_always),
        finishes_(load.finishes), coded_(load.coded), lossless_(load.lossless),
        own_wire_(load.coded ? 1 / load.ratio : 1),
        sum_wire_(load.coded && load.sum_ratio > 0 ? 1 / load.sum_ratio : own_wire_),
        encode_(load.ahead ? 0 : 1 / machine.encode), combine_(1 / machine.combine),
        decode_(1 / machine.decode), add_(1 / machine.add), copy_(1 / machine.copy) {}

  void write(const Plan& plan, Script& script) {
    divide(plan);
    sums_wide_ = false;
    script.steps.resize(plan.steps.size());
    uses_.analyse(plan, runs_.size(), [this](int block) { return run(block); });
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      const Step& step = plan.steps[s];
      ScriptStep& out = script.steps[s] = {};
      out.kind = step.kind, out.peer = step.peer, out.blocks = step.last - step.first;
      const std::size_t first = run(step.first), last = run(step.last);
      for (std::size_t r = first; r < last; ++r) follow(step, runs_[r], uses_.after(s, r - first), out);
    }
    close(script.close = {});
  }

 private:
  /// Neighbouring blocks that every step takes together, or not at all.
  struct Run {
    double blocks = 0;
    bool output = true, encoded = false, summed = false;
    bool wide = false;  ///< encoded for speed, in its full size
  };

  void divide(const Plan& plan) {
    begin_.assign({0, plan.blocks});
    for (const Step& step : plan.steps) begin_.push_back(step.first), begin_.push_back(step.last);
    const auto output = [&](int b) {
      return task_.collective != Collective::reduce_scatter ||
             plan.owner[static_cast<std::size_t>(b)] == plan.rank;
    };
    if (task_.collective == Collective::reduce_scatter)
      for (int b = 0; b < plan.blocks; ++b)
        if (output(b)) begin_.push_back(b), begin_.push_back(b + 1);
    std::sort(begin_.begin(), begin_.end());
    begin_.erase(std::unique(begin_.begin(), begin_.end()), begin_.end());
    runs_.assign(begin_.size() - 1, {});
    for (std::size_t r = 0; r < runs_.size(); ++r)
      runs_[r].blocks = begin_[r + 1] - begin_[r], runs_[r].output = output(begin_[r]);
  }

  std::size_t run(int block) const {
    return static_cast<std::size_t>(std::lower_bound(begin_.begin(), begin_.end(), block) - begin_.begin());
  }

  /// `next`: what becomes of the run after this step.
  void follow(const Step& step, Run& run, Use next, ScriptStep& out) {
    if (combining_)
      follow_encoded(step, run, next, out);
    else
      follow_values(step, run, next, out);
  }

  static void work(ScriptStep& out, const Run& run, double seconds) {
    out.seconds += seconds * run.blocks, out.calls += run.blocks;
  }

  void encode_once(Run& run, ScriptStep& out) {
    if (!run.encoded) work(out, run, encode_);
    run.encoded = true;
  }

  void take(const Step& step, Run& run) const {
    run.summed = step.kind == Kind::combine || reduces(task_.collective);
  }

  double wire(const Run& run) const { return run.blocks * (run.summed ? sum_wire_ : own_wire_); }

  void follow_encoded(const Step& step, Run& run, Use next, ScriptStep& out) {
    const bool wide = step.wire == Wire::raw && reduces(task_.collective) && !packs_always_;
    if (step.kind != Kind::store && !run.encoded) run.wide = wide && step.kind != Kind::finish;
    if (step.kind == Kind::store)
      run.encoded = true;
    else
      encode_once(run, out);
    if (step.kind == Kind::send || step.kind == Kind::sum) out.wire += run.wide ? run.blocks : wire(run);
    if (step.kind == Kind::combine || (step.kind == Kind::finish && finishes_)) {
      work(out, run, combine_);
      run.wide = sums_wide_ = wide && step.kind == Kind::combine && next != Use::send;
    }
    if (step.kind == Kind::store) run.wide = sums_wide_;  // others have done as this rank did
    if (awaits_others(step.kind)) take(step, run);
  }

  void follow_values(const Step& step, Run& run, Use next, ScriptStep& out) {
    const bool coded = coded_ && step.wire == Wire::coded;
    switch (step.kind) {
    case Kind::send:
      if (coded)
        encode_values(run, out,
                      next == Use::read || next == Use::send_raw || (next != Use::overwritten && run.output));
      out.wire += coded ? wire(run) : run.blocks;
      return;
    case Kind::combine:
      coded ? work(out, run, combine_) : void(out.seconds += add_ * run.blocks);
      run.encoded = false;
      return take(step, run);
    case Kind::store:
      coded ? work(out, run, decode_) : void(out.seconds += copy_ * run.blocks);
      run.encoded = coded;
      return take(step, run);
    case Kind::sum:  // no compressor of values does that, but values as they are could be summed so
      if (coded) encode_once(run, out);
      out.wire += coded ? wire(run) : run.blocks;
      run.encoded = false;
      return take(step, run);
    case Kind::finish:
      coded_ ? work(out, run, combine_) : void(out.seconds += add_ * run.blocks);
      run.encoded = false;
      if (coded) encode_values(run, out, true);
    }
  }

  /// An encoded piece is replaced by its decoded values, where anybody reads them.
  void encode_values(Run& run, ScriptStep& out, bool read_later) {
    if (!run.encoded && read_later && !lossless_) work(out, run, decode_);
    encode_once(run, out);
  }

  void close(ScriptStep& out) {
    if (!combining_) return;
    for (Run& run : runs_) {
      if (!run.output) continue;
      out.blocks += run.blocks;
      encode_once(run, out);
      work(out, run, decode_);
    }
  }

  Task task_;
  bool combining_, packs_always_, finishes_, coded_, lossless_;
  double own_wire_, sum_wire_, encode_, combine_, decode_, add_, copy_;
  std::vector<int> begin_;  ///< of the runs, and the end
  std::vector<Run> runs_;
  NextUses uses_;
  bool sums_wide_ = false;  ///< the latest sum is in full size
};

}  // namespace wring::inline v0::detail
