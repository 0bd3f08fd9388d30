// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include <wring/algorithm/plan.hpp>
#include <wring/algorithm/situation.hpp>
#include <wring/machine.hpp>

namespace wring::inline v0 {

namespace detail {

template <class A>
concept HasPlan = requires(const A& a, Task task, int rank, int ranks) {
  { a.plan(task, rank, ranks) } -> std::same_as<Plan>;
};

template <class A>
concept HasName = requires(const A& a) {
  { a.name() } -> std::convertible_to<std::string>;
};

}  // namespace detail

/// An algorithm says who sends which blocks to whom, in which order. It is a value with
/// - `Plan plan(Task task, int rank, int ranks) const`, a pure function for 0 <= rank < ranks, and
/// - `name() const`, which every rank must give alike.
///
/// Laws (`testing/algorithm_laws.hpp` checks them, for any number of ranks): every block ends as it should, once, with the same
/// bits on all ranks, and the plans complete with one outstanding message per rank, so they cannot deadlock.
template <class A>
concept Algorithm = std::copyable<A> && detail::HasPlan<A> && detail::HasName<A>;

/// An algorithm that knows which ranks share a node; `layout()` is a number for that knowledge, compared over ranks.
template <class A>
concept LaidOutAlgorithm = Algorithm<A> && requires(const A& a) {
  { a.layout() } -> std::same_as<std::uint64_t>;
};

/// An algorithm that has a formula for its compressed edges. Without it they are counted from the plans of all ranks.
template <class A>
concept EdgeCountedAlgorithm = Algorithm<A> && requires(const A& a, Task task, int ranks) {
  { a.edges(task, ranks) } -> std::same_as<EdgeCount>;
};

/// An algorithm that says for which tasks all ranks do the same at the same time: their steps are alike but for peers and blocks, and the
/// j-th message that a rank receives is the j-th that its sender sends, so that a rank's receives mirror its own sends. There, one rank
/// stands for all: a prediction for very many ranks follows one plan. Blocks may be taken as equal.
template <class A>
concept SymmetricAlgorithm = Algorithm<A> && requires(const A& a, Task task, int ranks) {
  { a.symmetric(task, ranks) } -> std::same_as<bool>;
};

/// An algorithm whose plans let the transport sum (`Kind::sum`): `static constexpr bool sums_words = true`. Compressors and transports that
/// cannot are refused when compiled; a plan with such a step that comes without this notice, when the operation starts.
template <class A>
concept SummingAlgorithm = Algorithm<A> && requires { requires A::sums_words; };

/// An algorithm that adapts itself to each operation before it starts:
/// - `adapt(situation)`: chooses, and returns the choice; from then on `name`, `plan` (and `edges`, `symmetric`) are those of the choice.
///   A pure function of the situation and of what `identity` stands for, both equal on all ranks.
/// - `identity()`: a number for all that it chooses by, compared over ranks.
/// - `use(machine)`: it chooses by this machine from now on: what a calibration has found, the same on all ranks.
template <class A>
concept AdaptiveAlgorithm =
    Algorithm<A> && requires(A& a, const A& constant, const Situation& situation, const Machine& machine) {
      { a.adapt(situation) } -> std::same_as<const Choice&>;
      { constant.identity() } -> std::same_as<std::uint64_t>;
      a.use(machine);
    };

/// The node layout of an algorithm, 0 where it has none.
template <Algorithm A>
std::uint64_t layout_of(const A& algorithm) {
  if constexpr (LaidOutAlgorithm<A>)
    return algorithm.layout();
  else
    return 0;
}

/// Whether one rank stands for all; false where the algorithm does not say.
template <Algorithm A>
bool is_symmetric(const A& algorithm, Task task, int ranks) {
  if constexpr (SymmetricAlgorithm<A>)
    return algorithm.symmetric(task, ranks);
  else
    return false;
}

/// One readable sentence for each requirement that a type misses: for entry points that take an algorithm.
template <class A>
constexpr void expect_algorithm() {
  static_assert(std::copyable<A>, "wring: an Algorithm must be copyable");
  static_assert(detail::HasPlan<A>,
                "wring: an Algorithm needs 'wring::Plan plan(wring::Task, int rank, int ranks) const'");
  static_assert(detail::HasName<A>, "wring: an Algorithm needs 'std::string name() const'");
}

}  // namespace wring::inline v0
