// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/plan.hpp>
#include <wring/algorithm/verify.hpp>
#include <wring/collective/executor/failure.hpp>
#include <wring/detail/hash.hpp>

namespace wring::inline v0::detail {

/// An algorithm's plan of a task, and what is known of it.
struct Planned {
  Task task;
  int variant = 0;  ///< of an algorithm that chooses among several
  Plan plan;
  std::string name, fault;
  std::uint64_t hash = 0, name_hash = 0;
  std::uint64_t number = 0;  ///< of those made
  EdgeCount edges;
  bool counted = false;

  /// An algorithm may refuse (a node layout that does not fit), or its plan may be none: that is told in the agreement, like any other fault
  /// of the call.
  template <class Schedule> void make(const Schedule& schedule, int rank, int ranks) {
    try {
      name = schedule.name();
      plan = schedule.plan(task, rank, ranks);
      hash = wring::hash(schedule.plan(task, 0, ranks));
      fault = fault_of_plan();
    } catch (...) {
      plan = Plan{.rank = rank, .ranks = ranks};
      plan.one_block_per_rank(task);
      hash = 0, fault = failure_from_current_exception(rank).text;
    }
    name_hash = Hasher().add(name).value();
  }

 private:
  /// What no executor could follow; empty where the plan is sound.
  std::string fault_of_plan() const {
    const bool by_owner =
        task.collective == Collective::reduce_scatter || task.collective == Collective::allgather;
    if (plan.blocks < 1) return "the algorithm's plan has no blocks";
    for (const Step& s : plan.steps)
      if (s.first < 0 || s.last > plan.blocks || s.first >= s.last ||
          (has_peer(s.kind) && (s.peer < 0 || s.peer >= plan.ranks || s.peer == plan.rank)))
        return "the algorithm's plan has an impossible step: " + describe(s);
      else if (s.wire == Wire::coded && s.budget >= plan.budgets)
        return "the algorithm's plan has a step of an unknown error class: " + describe(s);
    if (!by_owner || one_block_each()) return {};
    return "the algorithm's plan must give every rank exactly one block to own";
  }

  bool one_block_each() const {
    std::vector<bool> owns(static_cast<std::size_t>(plan.ranks));
    if (plan.blocks != plan.ranks || plan.owner.size() != owns.size()) return false;
    for (const int owner : plan.owner) {
      if (owner < 0 || owner >= plan.ranks || owns[static_cast<std::size_t>(owner)]) return false;
      owns[static_cast<std::size_t>(owner)] = true;
    }
    return true;
  }
};

/// The plans of one collective object, each made once; the oldest makes room where there are too many.
class PlanCache {
 public:
  /// Keeps up to `most` plans.
  explicit PlanCache(std::size_t most) : most_(most) {}

  /// The plan that was taken last.
  Planned& latest() { return plans_[latest_]; }
  const Planned& latest() const { return plans_[latest_]; }

  /// Takes the plan of a task from those that were made, or makes it.
  template <class Schedule>
  void take(const Schedule& schedule, const Task& task, int rank, int ranks, int variant = 0) {
    const auto at = std::find_if(plans_.begin(), plans_.end(), [&](const Planned& p) {
      return p.task == task && p.variant == variant && p.plan.ranks == ranks;
    });
    latest_ = static_cast<std::size_t>(at - plans_.begin());
    if (at != plans_.end()) return;
    if (latest_ == most_)
      latest_ = next_++ % most_;
    else
      plans_.emplace_back();
    Planned& made = latest();
    made = Planned{};
    made.task = task, made.variant = variant, made.number = ++made_;
    made.make(schedule, rank, ranks);
  }

 private:
  std::vector<Planned> plans_;
  std::size_t most_, latest_ = 0, next_ = 0;  ///< taken; to be replaced, when there are too many
  std::uint64_t made_ = 0;
};

}  // namespace wring::inline v0::detail
