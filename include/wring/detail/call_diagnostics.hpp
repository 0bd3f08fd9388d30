// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <wring/collective/group.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/transport/concept.hpp>
#include <wring/view/kinds.hpp>

/// One readable sentence for a call of a collective that cannot be. What is asked here comes before anything else of the call is compiled, so
/// that the sentence is the first error, and the only one.
namespace wring::inline v0::detail {

template <class T> inline constexpr bool is_group_v = false;
template <class... Items> inline constexpr bool is_group_v<Group<Items...>> = true;

/// What every call of a collective object begins with ...
template <class Exec, class Data = void, class...> inline constexpr bool begins_call =
    Kokkos::is_execution_space_v<Exec> && (ViewLike<Data> || is_group_v<Data>);
/// ... and every call of a free function.
template <class Exec, class Data = void, class...> inline constexpr bool begins_free_call =
    Kokkos::is_execution_space_v<Exec> && ViewLike<Data>;

/// Calls that do not begin so. Those of free functions must have a link, so that no other library's function is meant.
template <class... Args>
concept MistakenCall = sizeof...(Args) > 0 && !begins_call<Args...>;
template <class... Args>
concept MistakenFreeCall = (Transport<Args> || ...) && !begins_free_call<Args...>;

template <class Exec, class Data = void, class...> constexpr void explain_beginning() {
  constexpr bool has_exec = Kokkos::is_execution_space_v<Exec>;
  static_assert(has_exec, "wring: the first argument must be a Kokkos execution space instance");
  static_assert(!has_exec || ViewLike<Data> || is_group_v<Data>,
                "wring: data are given as a Kokkos::View (or DynRankView, OffsetView, DualView) or a "
                "wring::group of items; make an unmanaged View of other memory: "
                "Kokkos::View<float*, Kokkos::HostSpace>(pointer, length)");
  static_assert(!has_exec || !is_group_v<Data>,
                "wring: a group needs a collective object, wring::Allreduce for example");
}

/// Whether an operation of this compressor can work on views of these types; a sentence, where it cannot.
template <class T, class Exec, class In, class Out> constexpr bool explain_views() {
  using Value = std::remove_const_t<typename In::value_type>;
  constexpr bool alike = std::is_same_v<Value, typename Out::value_type>, same = std::is_same_v<Value, T>,
                 flat = In::rank() <= 8 && Out::rank() <= 8,
                 reached = Kokkos::SpaceAccessibility<Exec, typename In::memory_space>::accessible &&
                           Kokkos::SpaceAccessibility<Exec, typename Out::memory_space>::accessible;
  static_assert(alike, "wring: input and output must have the same element type, and the output must not be "
                       "const");
  static_assert(!alike || same, "wring: the views' element type is not the compressor's value_type");
  static_assert(flat, "wring: views have at most eight dimensions");
  static_assert(reached, "wring: the execution space cannot access the memory of the views");
  return alike && same && flat && reached;
}

/// Whether an item's own compressor can stand for the operation's.
template <class Codec, class Own> constexpr bool explain_own() {
  constexpr bool fits = std::is_void_v<Own> || std::is_same_v<Own, Codec>;
  static_assert(fits, "wring: an item's own compressor must be of the same type as the operation's; it may "
                      "have other options");
  return fits;
}

/// The same for all items, which hold the views on which `Exec` works.
template <class Codec, class Exec, class Items> struct ItemsOf;
template <class Codec, class Exec, class... In, class... Out, class... Own>
struct ItemsOf<Codec, Exec, std::tuple<Item<In, Out, Own>...>> {
  using T = typename Codec::value_type;
  static constexpr bool fit() {
    return ((explain_own<Codec, Own>() && explain_views<T, Exec, In, Out>()) && ...);
  }
};
template <class Codec, class Exec, class In, class Out, class Own>
struct ItemsOf<Codec, Exec, std::vector<Item<In, Out, Own>>>
    : ItemsOf<Codec, Exec, std::tuple<Item<In, Out, Own>>> {};

/// Whether a compressor that works on the default host space does so where the call is to run.
template <class Codec, class Exec> constexpr bool explain_space() {
  constexpr bool works = !Compressor<Codec> || Compressor<Codec, Exec>;
  static_assert(works,
                "wring: the compressor does not work in this execution space: its compress and decompress "
                "do not take it (EntropyGrid and Gradient are for hosts)");
  return works;
}

/// Whether a call can be compiled further; a sentence, where it cannot. `Items`: as the user holds them.
template <class Codec, class Exec, class Items> constexpr bool explain_call() {
  constexpr bool has_exec = Kokkos::is_execution_space_v<Exec>;
  static_assert(has_exec, "wring: the first argument must be a Kokkos execution space instance");
  if constexpr (has_exec)
    return explain_space<Codec, Exec>() &&
           ItemsOf<Codec, Exec, decltype(plain_items<Exec>(std::declval<Items&>()))>::fit();
  else
    return false;
}

}  // namespace wring::inline v0::detail
