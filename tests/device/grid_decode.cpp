// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "elements.hpp"

#include <wring/detail/grid/team/kernels.hpp>

namespace wring::inline v0::detail {

#define CHECK(T)                                                                                             \
  template void team_grid_decode<T, Device>(const Device&, std::span<const std::byte>, std::span<T>,         \
                                            const GridParameters&, grid_team::TeamShape);
WRING_EACH_ELEMENT(CHECK)

}  // namespace wring::inline v0::detail
