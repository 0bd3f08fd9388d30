// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

namespace wring::inline v0::detail {

/// Whether kernels of an execution space are functions of the host that work on the host's own memory.
template <class Exec>
concept RunsOnHost =
    bool(Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Exec::memory_space>::accessible) &&
    bool(Kokkos::SpaceAccessibility<Exec, Kokkos::HostSpace>::accessible);

}  // namespace wring::inline v0::detail
