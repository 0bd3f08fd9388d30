// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a bound asks of the input.
#include "elements.hpp"

#include <wring/collective/executor/agreement/magnitudes.hpp>

namespace wring::inline v0::detail {

#define CHECK(T)                                                                                             \
  template void for_each_task(const char*, const Device&, std::size_t, const MeasureValues<T>&);             \
  template bool has_special_values<T, Device>(const Device&, std::span<const T>);                            \
  template std::uint32_t sample<T, Device>(const Device&, std::span<const T>);
WRING_EACH_ELEMENT(CHECK)

}  // namespace wring::inline v0::detail
