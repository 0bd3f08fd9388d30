// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "elements.hpp"

#include <wring/detail/sparse/team.hpp>
#include <wring/detail/sparse/team_select.hpp>

namespace wring::inline v0::detail {

#define CHECK(T)                                                                                             \
  template sparse::Selection<T> sparse::team_select_greatest<T, Device>(const Device&, std::span<const T>,   \
                                                                        std::size_t, std::size_t);           \
  template std::size_t team_sparse_encode<T, Device>(const Device&, std::span<const T>,                      \
                                                     std::span<std::byte>, const sparse::Selection<T>&,      \
                                                     std::size_t, sparse::TeamShape);                        \
  template void team_sparse_decode<T, Device>(const Device&, std::span<const std::byte>, std::span<T>, int,  \
                                              sparse::TeamShape);                                            \
  template std::size_t team_sparse_combine<T, Device>(const Device&, std::span<const std::byte>,             \
                                                      std::span<const std::byte>, std::size_t,               \
                                                      std::span<std::byte>, Operation, sparse::TeamShape);
WRING_EACH_ELEMENT(CHECK)

}  // namespace wring::inline v0::detail
