// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/value_kernels.hpp>

namespace wring::inline v0::detail {

/// Copies bytes that do not overlap, in the order of `exec`; both sides are memory that `exec` can access.
template <class Exec> void copy_bytes(const Exec& exec, const void* from, void* to, std::size_t bytes) {
  if (bytes == 0) return;
  using Space = typename Exec::memory_space;
  if constexpr (std::is_same_v<Space, Kokkos::HostSpace>) {
    if (bytes <= 16 * values_per_task) {  // sooner done than shared out
      exec.fence("wring::copy");
      std::memcpy(to, from, bytes);
      return;
    }
    copy_values(exec, std::span(static_cast<const std::byte*>(from), bytes),
                std::span(static_cast<std::byte*>(to), bytes));
  } else {
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    const Kokkos::View<const unsigned char*, Space, Unmanaged> source(static_cast<const unsigned char*>(from),
                                                                      bytes);
    const Kokkos::View<unsigned char*, Space, Unmanaged> target(static_cast<unsigned char*>(to), bytes);
    Kokkos::deep_copy(exec, target, source);
  }
}

}  // namespace wring::inline v0::detail
