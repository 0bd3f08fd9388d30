// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <wring/narrow.hpp>

/// The execution space that the files of this folder instantiate kernels for: a device where one is switched on,
/// else the host (which shows that the files themselves are right).
#if defined(KOKKOS_ENABLE_CUDA)
using Device = Kokkos::Cuda;
#elif defined(KOKKOS_ENABLE_HIP)
using Device = Kokkos::HIP;
#else
using Device = Kokkos::DefaultHostExecutionSpace;
#endif

#if defined(KOKKOS_HALF_T_IS_FLOAT) && !KOKKOS_HALF_T_IS_FLOAT
#define WRING_KOKKOS_HALF(X) X(Kokkos::Experimental::half_t)
#else
#define WRING_KOKKOS_HALF(X)
#endif
#if defined(KOKKOS_BHALF_T_IS_FLOAT) && !KOKKOS_BHALF_T_IS_FLOAT
#define WRING_KOKKOS_BHALF(X) X(Kokkos::Experimental::bhalf_t)
#else
#define WRING_KOKKOS_BHALF(X)
#endif

/// X(T) for every floating-point element type: `WRING_EACH_ELEMENT(CHECK)` instantiates what `CHECK(T)` says.
#define WRING_EACH_ELEMENT(X)                                                                                \
  X(float) X(double) X(wring::half_t) X(wring::bhalf_t) WRING_KOKKOS_HALF(X) WRING_KOKKOS_BHALF(X)
