// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What runs over plain values: combination, finishing, copies, and the packing of views.
#include "elements.hpp"

#include <complex>
#include <cstdint>

#include <wring/detail/value_kernels.hpp>
#include <wring/view/pack.hpp>

namespace wring::inline v0::detail {

#define CHECK(T)                                                                                             \
  template void for_each_task(const char*, const Device&, std::size_t, const CombineValues<T>&);             \
  template void for_each_task(const char*, const Device&, std::size_t, const FinishValues<T>&);              \
  template void for_each_task(const char*, const Device&, std::size_t, const CopyValues<T>&);                \
  template void for_each_task(const char*, const Device&, std::size_t, const PackValues<T, false>&);         \
  template void for_each_task(const char*, const Device&, std::size_t, const PackValues<T, true>&);
WRING_EACH_ELEMENT(CHECK)
CHECK(std::int8_t)
CHECK(std::uint16_t)
CHECK(std::int32_t)
CHECK(std::uint64_t)
CHECK(Kokkos::complex<float>)
CHECK(Kokkos::complex<double>)

}  // namespace wring::inline v0::detail
