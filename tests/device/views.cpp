// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The adaptors of views, on a device.
#include "elements.hpp"

#include <wring/view/scaled.hpp>
#include <wring/view/symmetric.hpp>

namespace wring::inline v0::detail {

#define CHECK(T)                                                                                             \
  template void pack_triangle<T, Device>(const Device&, const T*, const Shape&, std::span<T>);               \
  template void unpack_triangle<T, Device>(const Device&, std::span<const T>, T*, const Shape&);             \
  template std::size_t divide_by_scale<T, Device>(const Device&, const T*, const Scales<T>&, std::span<T>);  \
  template void multiply_by_scale<T, Device>(const Device&, std::span<T>, const Scales<T>&, double);         \
  template ScaleSummary inspect_scales<T, Device>(const Device&, std::span<const ScaleOf<T>::type>);
WRING_EACH_ELEMENT(CHECK)

}  // namespace wring::inline v0::detail
