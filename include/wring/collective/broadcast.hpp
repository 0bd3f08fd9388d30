// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <span>
#include <utility>

#include <wring/algorithm/automatic.hpp>
#include <wring/algorithm/ring.hpp>
#include <wring/bound.hpp>
#include <wring/collective/collective.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/machine.hpp>

namespace wring::inline v0 {

/// Broadcast: every rank gets the root's values, with identical bits on all ranks, the root's own copy included (it is replaced by
/// what the others receive). All ranks give the same root. Otherwise as Allreduce.
template <class Codec, class Link, class Schedule = Ring> class Broadcast
    : public BasicCollective<Codec, Link, Schedule> {
  using Base = BasicCollective<Codec, Link, Schedule>;

 public:
  static constexpr Collective kind = Collective::broadcast;

  Broadcast(Codec codec, Link& link, Schedule schedule = {}, Options options = {})
      : Base(std::move(codec), link, std::move(schedule), options) {}
  Broadcast(Codec, Link&&, Schedule = {}, Options = {}) = delete;  // the link must outlive the operation

  template <class Exec, class View>
    requires ViewLike<View>
  Request start(const Exec& exec, const View& data, int root) {
    return start(exec, group(item(data)), root);
  }
  template <class Exec, class View>
    requires ViewLike<View>
  Request start(const Exec& exec, const View& data, int root, Bound bound) {
    detail::explain_bound<Codec, Exec>();
    return start(exec, group(item(data, bound)), root);
  }
  /// Several tensors in one set of messages, each with its own bound.
  template <class Exec, class... Items> Request start(const Exec& exec, Group<Items...> tensors, int root) {
    return this->start_group(Collective::broadcast, root, exec, std::move(tensors));
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

/// Broadcast with everything chosen for you: `Grid`, and `Automatic`, for `machine`. Blocking. Otherwise as `allreduce`.
template <class Exec, class View, class Link>
  requires(ViewLike<View> && Transport<Link>)
Report broadcast(const Exec& exec, const View& data, int root, Bound bound, Link& link, Options options = {},
                 const Machine& machine = typical_node()) {
  return Broadcast(Grid<typename View::non_const_value_type>{}, link, Automatic(machine),
                   options)(exec, data, root, bound);
}

/// Any other call does not compile, and says why.
template <class... Args>
  requires detail::MistakenFreeCall<Args...>
Report broadcast(const Args&...) {
  detail::explain_beginning<Args...>();
  return {};
}

}  // namespace wring::inline v0
