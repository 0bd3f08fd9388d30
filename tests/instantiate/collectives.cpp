// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "instantiate/collectives.hpp"

WRING_INSTANTIATE(wring::Grid<float>, wring::InProcessTransport, Exec);
WRING_INSTANTIATE_ALGORITHM(wring::Grid<float>, wring::InProcessTransport, wring::Ring);
WRING_INSTANTIATE(wring::None<double>, wring::InProcessTransport, Exec);
WRING_INSTANTIATE_ALGORITHM(wring::None<double>, wring::InProcessTransport, wring::Direct);
WRING_INSTANTIATE_ALGORITHM(wring::None<double>, wring::InProcessTransport, wring::Ring);
