// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>

#include <wring/detail/spaces.hpp>
#include <wring/detail/value_kernels.hpp>

/// Reductions that allocate nothing: on hosts Kokkos' own make strings in every call.
namespace wring::inline v0::detail {

/// A part of a reduction for each index; of all indices together there are `runs`.
template <class Functor> struct ReduceRun {
  using Value = typename Functor::value_type;
  Functor functor;
  std::size_t count, runs;
  Value* parts;

  std::size_t begin(std::size_t run) const { return count / runs * run + std::min(run, count % runs); }
  void operator()(std::size_t run) const {
    Value part;
    functor.init(part);
    for (std::size_t i = begin(run), end = begin(run + 1); i < end; ++i) functor(i, part);
    parts[run] = part;
  }
};

/// What `functor(i, value)` makes of all i below `count`, put together by its `join` in any order; it has the members that Kokkos asks
/// for. A thread gets `least` indices or more. Synchronises.
template <class Exec, class Functor>
typename Functor::value_type reduce(const char* label, const Exec& exec, std::size_t count,
                                    const Functor& functor, std::size_t least = values_per_task) {
  using Value = typename Functor::value_type;
  Value total;
  functor.init(total);
  if constexpr (RunsOnHost<Exec>) {
    constexpr std::size_t most_runs = 128;
    const auto threads = std::min(most_runs, static_cast<std::size_t>(exec.concurrency()));
    const std::size_t runs = std::max<std::size_t>(1, std::min(threads, count / least));
    Value parts[most_runs];
    for_each_task(label, exec, runs * values_per_task, ReduceRun<Functor>{functor, count, runs, parts});
    exec.fence(label);
    for (std::size_t run = 0; run < runs; ++run) functor.join(total, parts[run]);
  } else if (count > 0) {
    Kokkos::parallel_reduce(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, count),
                            functor, total);
    exec.fence(label);
  }
  return total;
}

/// The members for sums, and for the greatest number, of those that are not negative.
template <class Value> struct SumOf {
  using value_type = Value;
  KOKKOS_FUNCTION void init(Value& sum) const { sum = 0; }
  KOKKOS_FUNCTION void join(Value& into, const Value& from) const { into += from; }
};
template <class Value> struct GreatestOf {
  using value_type = Value;
  KOKKOS_FUNCTION void init(Value& greatest) const { greatest = 0; }
  KOKKOS_FUNCTION void join(Value& into, const Value& from) const { into = from > into ? from : into; }
};

}  // namespace wring::inline v0::detail
