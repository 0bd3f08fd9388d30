// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "elements.hpp"

#include <wring/detail/grid/team/kernels.hpp>

namespace wring::inline v0::detail {

#define CHECK(T)                                                                                             \
  template std::size_t team_grid_finish<T, Device>(const Device&, std::span<const std::byte>, std::size_t,   \
                                                   std::span<std::byte>, const GridParameters&,              \
                                                   grid_team::TeamShape);
WRING_EACH_ELEMENT(CHECK)

}  // namespace wring::inline v0::detail
