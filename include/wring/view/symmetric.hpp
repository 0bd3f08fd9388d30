// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <wring/bound.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/error.hpp>
#include <wring/view/adaptor.hpp>

namespace wring::inline v0 {

/// A symmetric matrix: see `symmetric`.
template <class V> struct Symmetric {
  static constexpr bool adapts_view = true;
  using value_type = typename V::value_type;
  using non_const_value_type = std::remove_const_t<value_type>;
  using memory_space = typename V::memory_space;
  static constexpr std::size_t rank() { return V::rank(); }

  V view;
  template <class T> void adapt(detail::Adaptor<T>& adaptor) const { adaptor.symmetric = true; }
};

/// Sends half of a symmetric matrix: for n rows the n (n + 1) / 2 elements (i, j) with i <= j, row by row. The result goes to (i, j) and
/// (j, i) alike, so that it is symmetric bit by bit; what the input holds below its diagonal is not looked at.
///
/// `view`: a Kokkos::View of two dimensions of equal extent, which is refused on all ranks where it is not, of any layout and stride, or
/// `scaled(view, scale)`, of which the scales on and above the diagonal count. Input and output are both symmetric, the same
/// matrix or apart; the order is equal on all ranks. For allreduce and broadcast, by itself or in groups.
/// A bound holds for every element. Cost: one packed copy.
template <class V>
  requires(Kokkos::is_view_v<V> || detail::AdaptedView<V>)
Symmetric<V> symmetric(const V& view) {
  static_assert(V::rank() == 2, "wring: symmetric takes a view of two dimensions");
  return {view};
}

/// The bound on each element of a reduced symmetric matrix of that dimension under which adding `damping` to its diagonal leaves
/// it positive definite, if the exact one is positive semidefinite: no eigenvalue moves by more than the norm of the error (Weyl), which is less
/// than dimension times its greatest element. A Kronecker factor's `damping` is the part that this factor gets: with the pi
/// correction pi sqrt(lambda) and sqrt(lambda) / pi. What is rounded when it is added is not counted.
/// Throws InvalidArgument unless damping is positive and finite, and dimension at least 1.
inline Bound positive_definite(double damping, std::size_t dimension) {
  if (!(damping > 0) || !std::isfinite(damping) || dimension == 0)
    throw InvalidArgument(detail::sentence("no bound keeps a matrix of dimension ", dimension,
                                           " positive definite with a damping of ", std::to_string(damping)));
  return absolute(damping / static_cast<double>(dimension) * (1 - 0x1p-20));
}

namespace detail {

/// Copies between a square array and its packed triangle. Unpacking writes both triangles.
template <class T, bool unpack> struct PackTriangle {
  std::conditional_t<unpack, T*, const T*> square;
  std::conditional_t<unpack, const T*, T*> packed;
  std::size_t order, count;
  std::ptrdiff_t row_stride, column_stride;

  KOKKOS_FUNCTION void operator()(std::size_t task) const {
    const std::size_t first = task * values_per_task;
    const std::size_t last = first + values_per_task < count ? first + values_per_task : count;
    std::size_t i = row_of(first), j = i + (first - start_of(i));
    for (std::size_t k = first; k < last; ++k) {
      if constexpr (unpack)
        square[at(i, j)] = square[at(j, i)] = packed[k];
      else
        packed[k] = square[at(i, j)];
      if (++j == order) j = ++i;
    }
  }

  KOKKOS_FUNCTION std::ptrdiff_t at(std::size_t i, std::size_t j) const {
    return static_cast<std::ptrdiff_t>(i) * row_stride + static_cast<std::ptrdiff_t>(j) * column_stride;
  }
  /// Where row i starts in the packed triangle.
  KOKKOS_FUNCTION std::size_t start_of(std::size_t i) const { return i * order - i * (i - (i > 0)) / 2; }
  KOKKOS_FUNCTION std::size_t row_of(std::size_t k) const {
    std::size_t low = 0, high = order - 1;
    while (low < high) {
      const std::size_t middle = low + (high - low + 1) / 2;
      if (start_of(middle) <= k)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

template <class T, class Exec>
void pack_triangle(const Exec& exec, const T* from, const Shape& shape, std::span<T> to) {
  for_each_task(
      "wring::pack", exec, to.size(),
      PackTriangle<T, false>{from, to.data(), shape.extent[0], to.size(), shape.stride[0], shape.stride[1]});
}

template <class T, class Exec>
void unpack_triangle(const Exec& exec, std::span<const T> from, T* to, const Shape& shape) {
  for_each_task(
      "wring::unpack", exec, from.size(),
      PackTriangle<T, true>{to, from.data(), shape.extent[0], from.size(), shape.stride[0], shape.stride[1]});
}

}  // namespace detail
}  // namespace wring::inline v0
