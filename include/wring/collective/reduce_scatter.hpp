// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <span>
#include <utility>

#include <wring/algorithm/automatic.hpp>
#include <wring/algorithm/ring.hpp>
#include <wring/bound.hpp>
#include <wring/collective/by_rank.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/machine.hpp>

namespace wring::inline v0 {

/// Reduce-scatter: the ranks' values are reduced, and every rank gets its part: `counts[r]` elements go to rank r, in the order
/// of ranks, as in MPI_Reduce_scatter. `in` holds all of them, `out` this rank's part; in place if `out` is that part of `in`.
/// Otherwise as Allreduce.
template <class Codec, class Link, class Schedule = Ring> class ReduceScatter
    : public CollectiveByRank<Collective::reduce_scatter, Codec, Link, Schedule> {
  using Base = CollectiveByRank<Collective::reduce_scatter, Codec, Link, Schedule>;

 public:
  ReduceScatter(Codec codec, Link& link, Schedule schedule = {}, Options options = {})
      : Base(std::move(codec), link, std::move(schedule), options) {}
  ReduceScatter(Codec, Link&&, Schedule = {}, Options = {}) = delete;  // the link must outlive the operation
};

/// Reduce-scatter with everything chosen for you: `Grid`, and `Automatic`, for `machine`. Blocking. Otherwise as `allreduce`.
template <class Exec, class In, class Out, class Link>
  requires(ViewLike<In> && ViewLike<Out> && Transport<Link>)
Report reduce_scatter(const Exec& exec, const In& in, const Out& out, std::span<const std::size_t> counts,
                      Bound bound, Link& link, Options options = {},
                      const Machine& machine = typical_node()) {
  return ReduceScatter(Grid<typename Out::value_type>{}, link, Automatic(machine), options)(exec, in, out,
                                                                                            counts, bound);
}

/// Any other call does not compile, and says why.
template <class... Args>
  requires detail::MistakenFreeCall<Args...>
Report reduce_scatter(const Args&...) {
  detail::explain_beginning<Args...>();
  return {};
}

}  // namespace wring::inline v0
