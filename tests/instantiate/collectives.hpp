// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/compressor/grid.hpp>
#include <wring/instantiate.hpp>
#include <wring/transport/in_process.hpp>
#include <wring/wring.hpp>

/// What both files of the program know.
using Exec = Kokkos::DefaultHostExecutionSpace;
WRING_EXTERN(wring::Grid<float>, wring::InProcessTransport, Exec);
WRING_EXTERN_ALGORITHM(wring::Grid<float>, wring::InProcessTransport, wring::Ring);
WRING_EXTERN(wring::None<double>, wring::InProcessTransport, Exec);
WRING_EXTERN_ALGORITHM(wring::None<double>, wring::InProcessTransport, wring::Direct);
WRING_EXTERN_ALGORITHM(wring::None<double>, wring::InProcessTransport, wring::Ring);
