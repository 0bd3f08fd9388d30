// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include <wring/bound.hpp>
#include <wring/collective/group.hpp>
#include <wring/view/kinds.hpp>

/// The arguments of a collective's call, whichever form it has: a group of tensors, and a root.
namespace wring::inline v0::detail {

template <class Tensors> struct CheckedCall {
  Tensors tensors;
  int root = 0;
};
template <class Tensors> CheckedCall(Tensors, int) -> CheckedCall<Tensors>;
template <class Tensors> CheckedCall(Tensors) -> CheckedCall<Tensors>;

template <ViewLike View> auto checked_call(const View& data, std::optional<Bound> bound = std::nullopt) {
  return CheckedCall{group(item(data, bound))};
}
template <ViewLike View> auto checked_call(const View& data, int root, std::optional<Bound> bound = {}) {
  return CheckedCall{group(item(data, bound)), root};
}
template <ViewLike In, ViewLike Out>
auto checked_call(const In& in, const Out& out, std::optional<Bound> bound = std::nullopt) {
  return CheckedCall{group(item(in, out, bound))};
}
template <ViewLike In, ViewLike Out> auto checked_call(const In& in, const Out& out,
                                                       std::span<const std::size_t> counts,
                                                       std::optional<Bound> bound = std::nullopt) {
  return CheckedCall{group(item(in, out, bound, counts))};
}
template <class... Items> auto checked_call(const Group<Items...>& tensors, int root = 0) {
  return CheckedCall{tensors, root};
}

}  // namespace wring::inline v0::detail
