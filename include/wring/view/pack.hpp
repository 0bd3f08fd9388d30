// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <wring/detail/value_kernels.hpp>

/// How a user's view becomes a run of elements: row-major order of its indices, whatever its layout, so that ranks may hold
/// different layouts of the same array.
namespace wring::inline v0::detail {

/// Shape of a view: extents and strides in elements, of up to eight dimensions.
struct Shape {
  std::array<std::size_t, 8> extent{};
  std::array<std::ptrdiff_t, 8> stride{};
  int rank = 0;

  std::size_t size() const {
    std::size_t n = 1;
    for (int d = 0; d < rank; ++d) n *= extent[static_cast<std::size_t>(d)];
    return n;
  }

  /// Whether memory order is row-major order without gaps.
  bool flat() const {
    if (size() == 0) return true;
    std::ptrdiff_t expected = 1;
    for (int d = rank; d-- > 0;) {
      const auto i = static_cast<std::size_t>(d);
      if (extent[i] != 1 && stride[i] != expected) return false;
      expected *= static_cast<std::ptrdiff_t>(extent[i]);
    }
    return true;
  }

  friend bool operator==(const Shape&, const Shape&) = default;
};

template <class View> Shape shape_of(const View& view) {
  Shape shape;
  shape.rank = static_cast<int>(View::rank());
  for (std::size_t d = 0; d < View::rank(); ++d) {
    shape.extent[d] = view.extent(d);
    shape.stride[d] = static_cast<std::ptrdiff_t>(view.stride(d));
  }
  return shape;
}

/// Copies between a strided array and a flat run, in row-major order.
template <class T, bool unpack> struct PackValues {
  std::conditional_t<unpack, T*, const T*> strided;
  std::conditional_t<unpack, const T*, T*> flat;
  std::size_t count;
  Kokkos::Array<std::size_t, 8> extent;
  Kokkos::Array<std::ptrdiff_t, 8> stride;
  int rank;

  KOKKOS_FUNCTION void operator()(std::size_t task) const {
    const std::size_t first = task * values_per_task;
    const std::size_t last = first + values_per_task < count ? first + values_per_task : count;
    for (std::size_t i = first; i < last; ++i) {
      std::size_t rest = i;
      std::ptrdiff_t at = 0;
      for (int d = rank - 1; d >= 0; --d) {
        at += static_cast<std::ptrdiff_t>(rest % extent[d]) * stride[d];
        rest /= extent[d];
      }
      if constexpr (unpack)
        strided[at] = flat[i];
      else
        flat[i] = strided[at];
    }
  }
};

template <bool unpack, class T> auto pack_functor(auto* strided, auto* flat, const Shape& shape) {
  PackValues<T, unpack> functor{strided, flat, shape.size(), {}, {}, shape.rank};
  for (std::size_t d = 0; d < 8; ++d)
    functor.extent[d] = shape.extent[d], functor.stride[d] = shape.stride[d];
  return functor;
}

template <class T, class Exec> void pack(const Exec& exec, const T* from, const Shape& shape,
                                         std::span<T> to) {
  for_each_task("wring::pack", exec, to.size(), pack_functor<false, T>(from, to.data(), shape));
}

template <class T, class Exec> void unpack(const Exec& exec, std::span<const T> from, T* to,
                                           const Shape& shape) {
  for_each_task("wring::unpack", exec, from.size(), pack_functor<true, T>(to, from.data(), shape));
}

}  // namespace wring::inline v0::detail
