// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include <wring/bound.hpp>
#include <wring/collective/collective.hpp>

namespace wring::inline v0 {

/// What ReduceScatter and Allgather have in common: every rank owns a part of the whole, in the order of ranks.
template <Collective which, class Codec, class Link, class Schedule>
class CollectiveByRank : public BasicCollective<Codec, Link, Schedule> {
 public:
  static constexpr Collective kind = which;

  using BasicCollective<Codec, Link, Schedule>::BasicCollective;

  /// Elements per rank, in the order of ranks; the same on all ranks. Read during `start` alone.
  using Counts = std::span<const std::size_t>;

  /// Equal counts on all ranks.
  template <class Exec, class In, class Out>
    requires(ViewLike<In> && ViewLike<Out>)
  Request start(const Exec& exec, const In& in, const Out& out) {
    return start(exec, group(item(in, out)));
  }
  template <class Exec, class In, class Out>
    requires(ViewLike<In> && ViewLike<Out>)
  Request start(const Exec& exec, const In& in, const Out& out, Bound bound) {
    detail::explain_bound<Codec, Exec>();
    return start(exec, group(item(in, out, bound)));
  }
  /// Counts of any size, zero included.
  template <class Exec, class In, class Out>
    requires(ViewLike<In> && ViewLike<Out>)
  Request start(const Exec& exec, const In& in, const Out& out, Counts counts) {
    return start(exec, group(item(in, out, std::nullopt, counts)));
  }
  template <class Exec, class In, class Out>
    requires(ViewLike<In> && ViewLike<Out>)
  Request start(const Exec& exec, const In& in, const Out& out, Counts counts, Bound bound) {
    detail::explain_bound<Codec, Exec>();
    return start(exec, group(item(in, out, bound, counts)));
  }
  /// Several tensors in one set of messages, each with its own counts and bound.
  template <class Exec, class... Items> Request start(const Exec& exec, Group<Items...> tensors) {
    return this->start_group(which, 0, exec, std::move(tensors));
  }

  /// Any other call does not compile, and says why.
  template <class... Args>
    requires detail::MistakenCall<Args...>
  Request start(const Args&...) {
    detail::explain_beginning<Args...>();
    return {};
  }

  /// The blocking form of each `start`; a trailing deadline limits the wait.
  template <class Exec, class... Args> Report operator()(const Exec& exec, const Args&... args) {
    return detail::start_and_wait([&](const auto&... a) { return start(exec, a...); }, args...);
  }
};

}  // namespace wring::inline v0
