// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>

#include <Kokkos_Core.hpp>

namespace wring_benchmark {

/// Memory aligned to 64 bytes.
template <class T> class Buffer {
 public:
  explicit Buffer(std::size_t count) : view_("buffer", count) {}
  std::span<T> span() const { return {view_.data(), view_.size()}; }
  T* data() const { return view_.data(); }

 private:
  Kokkos::View<T*, Kokkos::HostSpace> view_;
};

}  // namespace wring_benchmark
