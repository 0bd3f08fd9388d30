// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <memory>
#include <optional>

#include <wring/collective/executor/choosing/calibration.hpp>
#include <wring/collective/request.hpp>
#include <wring/machine.hpp>
#include <wring/transport/concept.hpp>

namespace wring::inline v0 {

namespace detail {

/// A calibration in flight, and the request for its end.
struct StartedCalibration {
  std::shared_ptr<CalibrationState> state;
  Request request;
};

template <class Exec, class Codec, class Link>
StartedCalibration start_calibration(const Exec& exec, const Codec& codec, Link& link) {
  static_assert(Kokkos::is_execution_space_v<Exec>,
                "wring: the first argument must be a Kokkos execution space instance");
  const auto calibration = std::make_shared<Calibration<Codec, Link, Exec>>();
  calibration->start(link, codec, exec);
  return {calibration, Request(calibration)};
}

inline Machine wait_for(StartedCalibration started, std::optional<Deadline> deadline) {
  static_cast<void>(deadline ? started.request.wait(*deadline) : started.request.wait());
  return *started.state->machine();
}

}  // namespace detail

/// Measures how fast `codec` works on this machine, and the link: the figures of the slowest rank, identical on all of them. To be given to
/// `Automatic`, or to `predict`.
///
/// Collective over the ranks of `link`, like the start of an operation, with the same compressor on all ranks. Blocks, at the longest until
/// `deadline`; where all ranks share a thread, nobody could move: see `start_calibration` of the collectives. A copy of the compressor
/// encodes made values, once 256 KiB of them, which stay in the caches, and once 8 MiB, which do not, for long vectors. Every rank counts as a node of its own: where ranks share a node's link, all use it at once.
/// Cost: some milliseconds of work, 8 MiB of memory and as much for what is encoded, and exchanges among all ranks: seven of small messages; and of 128 KiB as many as it takes until the link
/// has warmed up and they become no faster, at least three, no more once they have taken 10 ms. Throws what an operation throws.
template <class Exec, class Codec, Transport Link>
Machine calibrate(const Exec& exec, const Codec& codec, Link& link,
                  std::optional<Deadline> deadline = std::nullopt) {
  return detail::wait_for(detail::start_calibration(exec, codec, link), deadline);
}

}  // namespace wring::inline v0
