// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/headers.hpp"

#define WRING_INSTANTIATE_LEVEL(L) template struct wring::detail::grid::KernelsOf<wring::detail::Level::L>;
WRING_EACH_GRID_LEVEL(WRING_INSTANTIATE_LEVEL)
