// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/bound.hpp>

namespace wring::inline v0 {

/// One tensor of an operation: where it comes from, where the result goes, its own bound.
template <class In, class Out> struct Item {
  In in;
  Out out;
  std::optional<Bound> bound{};
  std::span<const std::size_t>
      counts{};  ///< elements per rank, for reduce-scatter and allgather; read during `start` alone
};

/// A tensor that is reduced (or broadcast) in place.
template <class View>
  requires Kokkos::is_view_v<View>
Item<View, View> item(const View& inout, std::optional<Bound> bound = std::nullopt) {
  return {inout, inout, bound, {}};
}

/// A tensor with separate input and output.
template <class In, class Out>
  requires(Kokkos::is_view_v<In> && Kokkos::is_view_v<Out>)
Item<In, Out> item(const In& in, const Out& out, std::optional<Bound> bound = std::nullopt,
                   std::span<const std::size_t> counts = {}) {
  return {in, out, bound, counts};
}

/// Several tensors that share one set of messages: a few of different types of view ...
template <class... Items> struct Group {
  std::tuple<Items...> items;
};
template <class... In, class... Out> Group<Item<In, Out>...> group(Item<In, Out>... items) {
  return {std::tuple<Item<In, Out>...>(std::move(items)...)};
}

/// ... or any number of one type of view.
template <class In, class Out> struct Group<std::vector<Item<In, Out>>> {
  std::vector<Item<In, Out>> items;
};
template <class In, class Out> Group<std::vector<Item<In, Out>>> group(std::vector<Item<In, Out>> items) {
  return {std::move(items)};
}

namespace detail {

template <class... Items, class Visit> void for_each_item(const std::tuple<Items...>& items, Visit visit) {
  std::apply([&](const auto&... item) { (visit(item), ...); }, items);
}
template <class It, class Visit> void for_each_item(const std::vector<It>& items, Visit visit) {
  for (const auto& item : items) visit(item);
}

}  // namespace detail
}  // namespace wring::inline v0
