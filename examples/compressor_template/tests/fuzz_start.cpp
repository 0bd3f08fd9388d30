// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The fuzzer has a main function of its own; this comes before its first input.
#include <Kokkos_Core.hpp>

#include <cstdlib>

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  Kokkos::initialize(*count, *arguments);
  std::atexit([] { Kokkos::finalize(); });
  return 0;
}
