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

/// Allreduce: every rank gets the reduction of all ranks' values, with identical bits.
///
/// Collective over the ranks of `link`, like everything below: all ranks construct the object alike (same compressor and options,
/// algorithm, options) and start operations in the same order. The object refers to its link, which must outlive it, and carries
/// one operation at a time; several objects on one link may overlap.
///
/// Views have any rank (up to 8), layout and memory that `exec` can access; elements correspond by their indices. The input is
/// read, the output written, from `start` until the request has completed; input and output are the same view or apart.
///
/// Bound: with a bounded compressor, |result - exact| <= the bound for every finite element, rounding included. Special values
/// arrive as IEEE arithmetic has them. Errors: see docs/errors.md.
/// Cost: one agreement (2 log2 p small messages), then the messages of the algorithm (docs/algorithms.md).
template <class Codec, class Link, class Schedule = Ring> class Allreduce
    : public BasicCollective<Codec, Link, Schedule> {
  using Base = BasicCollective<Codec, Link, Schedule>;

 public:
  static constexpr Collective kind = Collective::allreduce;

  Allreduce(Codec codec, Link& link, Schedule schedule = {}, Options options = {})
      : Base(std::move(codec), link, std::move(schedule), options) {}
  Allreduce(Codec, Link&&, Schedule = {}, Options = {}) = delete;  // the link must outlive the operation

  /// Starts an operation in place. It waits for work submitted to `exec` before it.
  template <class Exec, class View>
    requires ViewLike<View>
  Request start(const Exec& exec, const View& inout) {
    return start(exec, group(item(inout)));
  }
  template <class Exec, class View>
    requires ViewLike<View>
  Request start(const Exec& exec, const View& inout, Bound bound) {
    detail::explain_bound<Codec, Exec>();
    return start(exec, group(item(inout, bound)));
  }
  /// The same with separate input and output.
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
  /// Several tensors in one set of messages, each with its own bound.
  template <class Exec, class... Items> Request start(const Exec& exec, Group<Items...> tensors) {
    return this->start_group(Collective::allreduce, 0, exec, std::move(tensors));
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

/// Allreduce with everything chosen for you: `Grid`, and `Automatic`, for `machine`. In place, blocking. Each call chooses anew from an
/// assumed compression ratio, and, unless a `machine` is given, an assumed network of 10 Gb/s; an object with `Automatic` learns and calibrates. `options` and `machine` must be equal on all ranks.
template <class Exec, class View, class Link>
  requires(ViewLike<View> && Transport<Link>)
Report allreduce(const Exec& exec, const View& inout, Bound bound, Link& link, Options options = {},
                 const Machine& machine = typical_node()) {
  return Allreduce(Grid<typename View::non_const_value_type>{}, link, Automatic(machine),
                   options)(exec, inout, bound);
}

/// Any other call does not compile, and says why.
template <class... Args>
  requires detail::MistakenFreeCall<Args...>
Report allreduce(const Args&...) {
  detail::explain_beginning<Args...>();
  return {};
}

}  // namespace wring::inline v0
