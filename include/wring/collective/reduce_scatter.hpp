// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <span>
#include <utility>

#include <wring/algorithm/ring.hpp>
#include <wring/bound.hpp>
#include <wring/collective/collective.hpp>
#include <wring/compressor/grid.hpp>

namespace wring::inline v0 {

/// Reduce-scatter: the ranks' values are reduced, and every rank gets its part: `counts[r]` elements go to rank r, in the order
/// of ranks, as in MPI_Reduce_scatter. `in` holds all of them, `out` this rank's part; in place if `out` is that part of `in`.
/// Otherwise as Allreduce.
template <class Codec, class Link, class Schedule = Ring> class ReduceScatter
    : public BasicCollective<Codec, Link, Schedule> {
  using Base = BasicCollective<Codec, Link, Schedule>;

 public:
  /// Elements per rank, in the order of ranks; the same on all ranks. Read during `start` alone.
  using Counts = std::span<const std::size_t>;

  ReduceScatter(Codec codec, Link& link, Schedule schedule = {}, Options options = {})
      : Base(std::move(codec), link, std::move(schedule), options) {}
  ReduceScatter(Codec, Link&&, Schedule = {}, Options = {}) = delete;  // the link must outlive the operation

  /// Equal counts on all ranks.
  template <class Exec, class In, class Out>
    requires(Kokkos::is_view_v<In> && Kokkos::is_view_v<Out>)
  Request start(const Exec& exec, const In& in, const Out& out) {
    return start(exec, group(item(in, out)));
  }
  template <class Exec, class In, class Out>
    requires(Kokkos::is_view_v<In> && Kokkos::is_view_v<Out>)
  Request start(const Exec& exec, const In& in, const Out& out, Bound bound) {
    detail::explain_bound<Codec, Exec>();
    return start(exec, group(item(in, out, bound)));
  }
  /// Counts of any size, zero included.
  template <class Exec, class In, class Out>
    requires(Kokkos::is_view_v<In> && Kokkos::is_view_v<Out>)
  Request start(const Exec& exec, const In& in, const Out& out, Counts counts) {
    return start(exec, group(item(in, out, std::nullopt, counts)));
  }
  template <class Exec, class In, class Out>
    requires(Kokkos::is_view_v<In> && Kokkos::is_view_v<Out>)
  Request start(const Exec& exec, const In& in, const Out& out, Counts counts, Bound bound) {
    detail::explain_bound<Codec, Exec>();
    return start(exec, group(item(in, out, bound, counts)));
  }
  /// Several tensors in one set of messages, each with its own counts and bound.
  template <class Exec, class... Items> Request start(const Exec& exec, Group<Items...> tensors) {
    return this->start_group(Collective::reduce_scatter, 0, exec, std::move(tensors));
  }

  /// The blocking form of each `start`; a trailing deadline limits the wait.
  template <class Exec, class... Args> Report operator()(const Exec& exec, const Args&... args) {
    return this->run([&](const auto&... a) { return start(exec, a...); }, args...);
  }
};

/// Reduce-scatter with everything chosen for you: `Grid`, `Ring`. Blocking.
template <class Exec, class In, class Out, class Link>
  requires(Kokkos::is_view_v<In> && Kokkos::is_view_v<Out> && Transport<Link>)
Report reduce_scatter(const Exec& exec, const In& in, const Out& out, std::span<const std::size_t> counts,
                      Bound bound, Link& link, Options options = {}) {
  return ReduceScatter(Grid<typename Out::value_type>{}, link, Ring{}, options)(exec, in, out, counts, bound);
}

}  // namespace wring::inline v0
