// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/bound.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/detail/identity.hpp>
#include <wring/view/kinds.hpp>

namespace wring::inline v0 {

/// A compressor of one tensor's own, with the hash of its identity; or none, for the operation's.
template <class Codec> class OwnCompressor {
 public:
  OwnCompressor() = default;
  explicit OwnCompressor(Codec codec)
      : codec_(std::move(codec)), hash_(detail::hash_of(Identity(codec_->identity()))) {}

  const std::optional<Codec>& codec() const { return codec_; }
  std::uint64_t hash() const { return hash_; }

 private:
  std::optional<Codec> codec_;
  std::uint64_t hash_ = 0;
};
/// Always the operation's.
template <> class OwnCompressor<void> {};

/// One tensor of an operation: where it comes from, where the result goes, its own bound; and a compressor of its own, if it has one.
template <class In, class Out, class Codec = void> struct Item {
  In in;
  Out out;
  std::optional<Bound> bound{};
  std::span<const std::size_t>
      counts{};  ///< elements per rank, for reduce-scatter and allgather; read during `start` alone
  OwnCompressor<Codec> own{};

  /// The same tensor with a compressor of its own: of the operation's type, with other options, the same on all ranks. A copy is
  /// kept. Its identity is made into a hash here, once: where calls must not allocate, keep the item from call to call.
  template <class Other> Item<In, Out, Other> with(Other codec) const {
    return {in, out, bound, counts, OwnCompressor<Other>(std::move(codec))};
  }
  /// So that a vector may hold items with and without.
  template <class Other>
    requires std::is_void_v<Codec>
  operator Item<In, Out, Other>() const {
    return {in, out, bound, counts, {}};
  }
};

/// A tensor that is reduced (or broadcast) in place.
template <class View>
  requires ViewLike<View>
Item<View, View> item(const View& inout, std::optional<Bound> bound = std::nullopt) {
  return {inout, inout, bound, {}, {}};
}

/// A tensor with separate input and output.
template <class In, class Out>
  requires(ViewLike<In> && ViewLike<Out>)
Item<In, Out> item(const In& in, const Out& out, std::optional<Bound> bound = std::nullopt,
                   std::span<const std::size_t> counts = {}) {
  return {in, out, bound, counts, {}};
}

/// Several tensors that share one set of messages, in the same order on all ranks: a few of different types of view ...
template <class... Items> struct Group {
  std::tuple<Items...> items;
};
template <class... In, class... Out, class... Codec>
Group<Item<In, Out, Codec>...> group(Item<In, Out, Codec>... items) {
  return {std::tuple<Item<In, Out, Codec>...>(std::move(items)...)};
}

/// ... or any number of one type of view.
template <class In, class Out, class Codec> struct Group<std::vector<Item<In, Out, Codec>>> {
  std::vector<Item<In, Out, Codec>> items;
};
template <class In, class Out, class Codec>
Group<std::vector<Item<In, Out, Codec>>> group(std::vector<Item<In, Out, Codec>> items) {
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
template <class Exec, class In, class Out, class Codec> auto plain_item(const Item<In, Out, Codec>& item) {
  auto in = plain_view<Exec>(item.in);
  auto out = plain_view<Exec>(item.out);
  return Item<decltype(in), decltype(out), Codec>{in, out, item.bound, item.counts, item.own};
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
