// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>

#include <wring/config.hpp>

namespace wring::inline v0::detail {

/// Copies bytes that do not overlap, in the order of `exec`; both sides are memory that `exec` can access.
template <class Exec> void copy_bytes(const Exec& exec, const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  using Space = typename Exec::memory_space;
  using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  const Kokkos::View<const unsigned char*, Space, Unmanaged> source(static_cast<const unsigned char*>(from),
                                                                    bytes);
  const Kokkos::View<unsigned char*, Space, Unmanaged> target(static_cast<unsigned char*>(to), bytes);
  Kokkos::deep_copy(exec, target, source);
}

}  // namespace wring::inline v0::detail
