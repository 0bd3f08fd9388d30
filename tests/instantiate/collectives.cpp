// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "instantiate/collectives.hpp"

WRING_INSTANTIATE(wring::Grid<float>, wring::InProcessTransport, wring::Ring, Exec);
WRING_INSTANTIATE(wring::None<double>, wring::InProcessTransport, wring::Direct, Exec);
