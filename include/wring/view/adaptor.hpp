// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <type_traits>

#include <wring/narrow.hpp>
#include <wring/view/kinds.hpp>
#include <wring/view/pack.hpp>

/// What the adaptors of views have in common: which elements of a view travel, and by what they are divided.
namespace wring::inline v0::detail {

/// The type of scales: that in which an element is computed with.
template <class T> struct ScaleOf {
  using type = T;
};
template <FloatElement T> struct ScaleOf<T> {
  using type = typename FloatTraits<T>::Wide;
};

/// An adaptor with the types of the views forgotten.
template <class T> struct Adaptor {
  using Scale = typename ScaleOf<T>::type;
  bool symmetric = false;
  const Scale* scale = nullptr;
  Shape scale_shape{};
  std::size_t scale_group = 1;  ///< so many elements that travel one after the other have a scale in common
  bool scaled = false;

  bool none() const { return !symmetric && !scaled; }
  friend bool operator==(const Adaptor&, const Adaptor&) = default;
};

/// Elements of the packed triangle of a square array, or all.
inline std::size_t packed_size(const Shape& shape, bool symmetric) {
  const std::size_t n = shape.extent[0];
  if (!symmetric) return shape.size();
  return n % 2 == 0 ? n / 2 * (n + 1) : (n + 1) / 2 * n;
}

/// The Kokkos::View within adaptors.
template <class V> const auto& view_within(const V& v) {
  if constexpr (AdaptedView<V>)
    return view_within(v.view);
  else
    return v;
}

/// What the adaptors around a view say.
template <class T, class V> Adaptor<T> adaptor_of(const V& v) {
  if constexpr (!AdaptedView<V>) {
    return {};
  } else {
    Adaptor<T> adaptor = adaptor_of<T>(v.view);
    v.adapt(adaptor);
    return adaptor;
  }
}

}  // namespace wring::inline v0::detail
