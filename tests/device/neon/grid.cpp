// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels that run on every processor, for one with registers of 16 bytes that is not an x86-64.
#include <wring/collective/executor/agreement/magnitudes.hpp>
#include <wring/compressor/grid.hpp>

namespace wring::inline v0 {

using Host = Kokkos::DefaultHostExecutionSpace;

#define CHECK(T)                                                                                             \
  template class Grid<T>;                                                                                    \
  template std::size_t Grid<T>::compress(const Host&, std::span<const T>, std::span<std::byte>,              \
                                         const Context&);                                                    \
  template void Grid<T>::decompress(const Host&, std::span<const std::byte>, std::span<T>, const Context&)   \
      const;                                                                                                 \
  template std::size_t Grid<T>::combine(const Host&, std::span<const std::byte>, std::span<const std::byte>, \
                                        std::span<std::byte>, const Context&) const;                         \
  template void detail::for_each_task(const char*, const Host&, std::size_t, const detail::MeasureValues<T>&);
CHECK(float)
CHECK(double)
#undef CHECK

}  // namespace wring::inline v0
