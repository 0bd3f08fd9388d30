// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/instantiate.hpp>
#include <wring/transport/in_process.hpp>

#include "support/collect.hpp"

// What most tests of collectives call, compiled once (executors/) for all that include this.
#define WRING_TEST_COLLECT(CODEC)                                                                            \
  template wring_test::Collected<CODEC::value_type> wring_test::collect(                                     \
      const AnyAlgorithm&, const Call<CODEC>&, const PerRank<CODEC::value_type>&)
#define WRING_TEST_EXTERN(CODEC)                                                                             \
  WRING_EXTERN(CODEC, wring::InProcessTransport, Kokkos::DefaultHostExecutionSpace);                         \
  WRING_EXTERN_ALGORITHM(CODEC, wring::InProcessTransport, wring_test::AnyAlgorithm);                        \
  extern WRING_TEST_COLLECT(CODEC)
#define WRING_TEST_INSTANTIATE(CODEC)                                                                        \
  WRING_INSTANTIATE(CODEC, wring::InProcessTransport, Kokkos::DefaultHostExecutionSpace);                    \
  WRING_INSTANTIATE_ALGORITHM(CODEC, wring::InProcessTransport, wring_test::AnyAlgorithm);                   \
  WRING_TEST_COLLECT(CODEC)

WRING_TEST_EXTERN(wring::None<float>);
WRING_TEST_EXTERN(wring::None<double>);
WRING_TEST_EXTERN(wring::Grid<float>);
WRING_TEST_EXTERN(wring::Grid<double>);
