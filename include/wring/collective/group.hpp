// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/bound.hpp>
#include <wring/view/kinds.hpp>

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
  requires ViewLike<View>
Item<View, View> item(const View& inout, std::optional<Bound> bound = std::nullopt) {
  return {inout, inout, bound, {}};
}

/// A tensor with separate input and output.
template <class In, class Out>
  requires(ViewLike<In> && ViewLike<Out>)
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

/// The items with the views on which `Exec` works in place of what the user holds.
template <class Exec, class In, class Out> auto plain_item(const Item<In, Out>& item) {
  auto in = plain_view<Exec>(item.in);
  auto out = plain_view<Exec>(item.out);
  return Item<decltype(in), decltype(out)>{in, out, item.bound, item.counts};
}
template <class Exec, class... Items> auto plain_items(const std::tuple<Items...>& items) {
  return std::apply([](const auto&... item) { return std::make_tuple(plain_item<Exec>(item)...); }, items);
}
template <class Exec, class It> auto plain_items(std::vector<It>& items) {
  using Plain = decltype(plain_item<Exec>(items[0]));
  if constexpr (std::is_same_v<Plain, It>) {
    return std::move(items);
  } else {
    std::vector<Plain> plain;
    plain.reserve(items.size());
    for (const It& item : items) plain.push_back(plain_item<Exec>(item));
    return plain;
  }
}

}  // namespace detail
}  // namespace wring::inline v0
