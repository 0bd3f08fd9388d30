// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <wring/algorithm/verify.hpp>

namespace wring::inline v0::testing {

namespace detail {

/// "ring, allreduce, 5 ranks: "
template <Algorithm A>
std::string case_name(const A& algorithm, Task task, int ranks) {
  std::string text = std::string(algorithm.name()) + ", " + name_of(task.collective);
  if (task.collective == Collective::broadcast) text += " from root " + std::to_string(task.root);
  return text + ", " + std::to_string(ranks) + (ranks == 1 ? " rank: " : " ranks: ");
}

/// What is wrong with a formula for the edges, given what was counted; empty if nothing is.
inline std::string compare_edges(EdgeCount declared, EdgeCount counted) {
  const std::size_t classes = std::max(declared.per_budget.size(), counted.per_budget.size());
  for (EdgeCount* e : {&declared, &counted}) {  // classes that nothing uses may be left out at the end
    if (e->moved.size() != e->per_budget.size())
      return "edges() has per_budget and moved of different lengths";
    e->per_budget.resize(classes, 0);
    e->moved.resize(classes, 0);
  }
  for (std::size_t j = 0; j < classes; ++j) {
    const std::string of_class = " of class " + std::to_string(j);
    if (declared.per_budget[j] != counted.per_budget[j])
      return "edges() says " + std::to_string(declared.per_budget[j]) + " edges" + of_class +
             ", the plans have " + std::to_string(counted.per_budget[j]);
    if (std::abs(declared.moved[j] - counted.moved[j]) > 1e-9 * counted.moved[j])
      return "edges() says that " + std::to_string(declared.moved[j]) + " vectors are moved in pieces" +
             of_class + ", the plans move " + std::to_string(counted.moved[j]);
  }
  return "";
}

/// Why one rank does not stand for all, in words; empty if it does.
inline std::string find_asymmetry(const std::vector<Plan>& plans) {
  const auto alike = [](const Step& a, const Step& b) {
    return a.kind == b.kind && a.wire == b.wire && a.budget == b.budget &&
           a.last - a.first == b.last - b.first;
  };
  std::vector<std::vector<Step>> sends(plans.size()), receives(plans.size());
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const std::vector<Step>&mine = plans[r].steps, &first = plans[0].steps;
    if (!std::equal(mine.begin(), mine.end(), first.begin(), first.end(), alike))
      return "symmetric(), but the steps of rank " + std::to_string(r) + " are not like those of rank 0";
    for (const Step& step : mine)
      if (has_peer(step.kind)) (step.kind == Kind::send ? sends : receives)[r].push_back(step);
  }
  for (std::size_t r = 0; r < plans.size(); ++r)
    for (std::size_t j = 0; j < receives[r].size(); ++j) {
      const Step& receive = receives[r][j];
      const std::vector<Step>& theirs = sends[static_cast<std::size_t>(receive.peer)];
      if (j >= theirs.size() || theirs[j].peer != static_cast<int>(r) || theirs[j].first != receive.first ||
          theirs[j].last != receive.last)
        return "symmetric(), but what rank " + std::to_string(r) + " receives " + std::to_string(j + 1) +
               ". is not what its sender sends " + std::to_string(j + 1) + ".";
    }
  return "";
}

}  // namespace detail

/// The laws of an algorithm for one task and number of ranks; what fails, in words.
///
/// - `plan` is a pure function: the same arguments give the same plan.
/// - `verify` finds no fault in the plans of all ranks.
/// - `edges`, where the algorithm has it, says what is counted.
/// - Where the algorithm says so, all ranks do the same, and what a rank receives mirrors what it sends.
template <Algorithm A>
std::vector<std::string> check_algorithm_laws(const A& algorithm, Task task, int ranks) {
  std::vector<std::string> failures;
  const auto fail = [&](const std::string& what) {
    failures.push_back(detail::case_name(algorithm, task, ranks) + what);
  };
  try {
    const std::vector<Plan> plans = plans_of(algorithm, task, ranks);
    const A copy = algorithm;
    for (int r : {0, ranks / 2, ranks - 1})
      if (!(copy.plan(task, r, ranks) == plans[static_cast<std::size_t>(r)]))
        fail("plan() gives rank " + std::to_string(r) + " two different plans");
    const Verdict verdict = verify(plans, task);
    if (!verdict.ok()) fail(verdict.error);
    if constexpr (EdgeCountedAlgorithm<A>) {
      const std::string wrong =
          verdict.ok() ? detail::compare_edges(algorithm.edges(task, ranks), verdict.edges) : "";
      if (!wrong.empty()) fail(wrong);
    }
    const std::string differs = is_symmetric(algorithm, task, ranks) ? detail::find_asymmetry(plans) : "";
    if (!differs.empty()) fail(differs);
  } catch (const std::exception& e) {
    fail(std::string("an exception: ") + e.what());
  }
  return failures;
}

/// The laws for 1 to `max_ranks` ranks (from `min_ranks` on, for an algorithm that does not serve all), the four
/// collectives, and every root (some roots, above 8 ranks). Returns what fails, in words: empty is success.
template <Algorithm A>
std::vector<std::string> check_algorithm_laws(const A& algorithm, int max_ranks, int min_ranks = 1) {
  std::vector<std::string> failures;
  const auto check = [&](Task task, int ranks) {
    for (std::string& text : check_algorithm_laws(algorithm, task, ranks))
      failures.push_back(std::move(text));
  };
  for (int p = min_ranks; p <= max_ranks; ++p) {
    for (Collective c : {Collective::allreduce, Collective::reduce_scatter, Collective::allgather})
      check({c}, p);
    std::set<int> roots = {0, 1, p / 3, p / 2, p - 1};
    for (int r = 0; p <= 8 && r < p; ++r) roots.insert(r);
    for (int r : roots)
      if (r < p) check({Collective::broadcast, r}, p);
  }
  return failures;
}

}  // namespace wring::inline v0::testing
