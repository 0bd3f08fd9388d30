// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

#include <wring/detail/grid/team/layout.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/operation.hpp>

/// The form beyond the int64 grid: a piece is its elements, padded with zeros to 64 bytes, and sums are
/// floating-point sums in the order of the plan. NaNs are canonical as soon as anything has been computed, so
/// that backends agree.
namespace wring::inline v0::detail::grid_team {

template <class T> KOKKOS_INLINE_FUNCTION constexpr std::size_t values_bytes(std::size_t n) {
  return round_up(n * sizeof(T), line);
}

/// Values into a piece; one call per element slot, padding included.
template <class Exec, class T> struct StoreValues {
  using execution_space = Exec;

  const T* x;
  std::byte* out;
  std::size_t n;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    if (i < n)
      reinterpret_cast<T*>(out)[i] = x[i];
    else
      for (std::size_t k = 0; k < sizeof(T); ++k) out[i * sizeof(T) + k] = std::byte{0};
  }
};

/// Two pieces into one.
template <class Exec, class T> struct CombineValues {
  using execution_space = Exec;

  const std::byte *a, *b;
  std::byte* out;
  std::size_t n;
  Operation operation;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    if (i < n)
      reinterpret_cast<T*>(out)[i] =
          combined(reinterpret_cast<const T*>(a)[i], reinterpret_cast<const T*>(b)[i]);
    else
      for (std::size_t k = 0; k < sizeof(T); ++k) out[i * sizeof(T) + k] = std::byte{0};
  }

  KOKKOS_FUNCTION T combined(T first, T second) const {
    if (operation == Operation::min) return grid::canonical(select_value<false>(first, second));
    if (operation == Operation::max) return grid::canonical(select_value<true>(first, second));
    return grid::canonical(add_values(first, second));
  }
};

/// A piece into values, divided by the number of terms for MEAN.
template <class Exec, class T> struct LoadValues {
  using execution_space = Exec;

  const std::byte* in;
  T* y;
  double divisor;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    const T x = grid::canonical(reinterpret_cast<const T*>(in)[i]);
    y[i] = divisor == 1 ? x : grid::canonical(narrow<T>(static_cast<double>(widen(x)) / divisor));
  }
};

}  // namespace wring::inline v0::detail::grid_team
