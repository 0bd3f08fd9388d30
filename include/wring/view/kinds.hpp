// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <type_traits>

/// The kinds of views that users hold, told by their members, so that Kokkos' headers for them need not be included.
namespace wring::inline v0 {
namespace detail {

template <class V>
concept DynRankViewKind = !Kokkos::is_view_v<V> && requires(const V& v) { v.ConstDownCast(); };

template <class V>
concept OffsetViewKind = !Kokkos::is_view_v<V> && requires(const V& v) {
  v.begin(0);
  v.view();
};

template <class V>
concept DualViewKind = !Kokkos::is_view_v<V> && requires(V& v) {
  v.sync_host(), v.sync_device(), v.modify_host(), v.modify_device();
  v.need_sync_host(), v.need_sync_device();
  v.view_host(), v.view_device();
};

/// A view with an adaptor around it: `symmetric`, `scaled`.
template <class V>
concept AdaptedView = requires { requires V::adapts_view; };

}  // namespace detail

/// What collectives take: a Kokkos::View of up to eight dimensions, and what stands for one.
/// - DynRankView: elements correspond by their indices, as in a View.
/// - OffsetView: its offsets play no part.
/// - DualView: the side that the execution space can access, the device's first. `start` brings that side up to date, and marks
///   it as modified if it is an output; the other side is the user's to `sync` after the operation.
/// - `symmetric(view)`, `scaled(view, scale)`: a Kokkos::View whose data change their shape or their scale on the way.
template <class V>
concept ViewLike = Kokkos::is_view_v<V> || detail::DynRankViewKind<V> || detail::OffsetViewKind<V> ||
                   detail::DualViewKind<V> || detail::AdaptedView<V>;

namespace detail {

/// Whether operations with `Exec` use the device's side of a DualView.
template <class Exec, DualViewKind V> inline constexpr bool uses_device_side =
    Kokkos::SpaceAccessibility<Exec, typename V::t_dev::memory_space>::accessible;

/// The Kokkos::View on which `Exec` works.
template <class Exec, ViewLike V> auto plain_view(const V& v) {
  if constexpr (DynRankViewKind<V>)
    return std::remove_cvref_t<decltype(v.ConstDownCast())>(v.ConstDownCast());
  else if constexpr (OffsetViewKind<V>)
    return std::remove_cvref_t<decltype(v.view())>(v.view());
  else if constexpr (!DualViewKind<V>)
    return v;
  else if constexpr (uses_device_side<Exec, V>)
    return typename V::t_dev(v.view_device());
  else
    return typename V::t_host(v.view_host());
}

/// Brings the side of a DualView on which `Exec` works up to date. Does nothing for other views.
template <class Exec, ViewLike V> void bring_up_to_date(V v) {
  if constexpr (DualViewKind<V>) {
    if constexpr (uses_device_side<Exec, V>) {
      if (v.need_sync_device()) v.sync_device();
    } else if (v.need_sync_host()) {
      v.sync_host();
    }
  }
}

/// Marks that side as modified. A copy of a DualView shares the marks.
template <class Exec, ViewLike V> void mark_modified(V v) {
  if constexpr (DualViewKind<V>) {
    if constexpr (uses_device_side<Exec, V>)
      v.modify_device();
    else
      v.modify_host();
  }
}

}  // namespace detail
}  // namespace wring::inline v0
