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

/// Allgather: every rank gets everybody's values in the order of ranks, as in MPI_Allgatherv, with identical bits on all ranks, its
/// own part included. `in` holds this rank's `counts[rank]` elements, `out` all of them; in place if `in` is that part of `out`.
/// Otherwise as Allreduce.
template <class Codec, class Link, class Schedule = Ring> class Allgather
    : public CollectiveByRank<Collective::allgather, Codec, Link, Schedule> {
  using Base = CollectiveByRank<Collective::allgather, Codec, Link, Schedule>;

 public:
  Allgather(Codec codec, Link& link, Schedule schedule = {}, Options options = {})
      : Base(std::move(codec), link, std::move(schedule), options) {}
  Allgather(Codec, Link&&, Schedule = {}, Options = {}) = delete;  // the link must outlive the operation
};

/// Allgather with everything chosen for you: `Grid`, and `Automatic`, for `machine`. Blocking. Otherwise as `allreduce`.
template <class Exec, class In, class Out, class Link>
  requires(ViewLike<In> && ViewLike<Out> && Transport<Link>)
Report allgather(const Exec& exec, const In& in, const Out& out, std::span<const std::size_t> counts,
                 Bound bound, Link& link, Options options = {}, const Machine& machine = typical_node()) {
  return Allgather(Grid<typename Out::value_type>{}, link, Automatic(machine), options)(exec, in, out, counts,
                                                                                        bound);
}

/// Any other call does not compile, and says why.
template <class... Args>
  requires detail::MistakenFreeCall<Args...>
Report allgather(const Args&...) {
  detail::explain_beginning<Args...>();
  return {};
}

}  // namespace wring::inline v0
