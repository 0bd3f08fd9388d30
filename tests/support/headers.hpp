// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What most tests include of other libraries, compiled once and given to all of them (tests/CMakeLists.txt). Each file includes what it uses
// all the same. The kernels of Grid are compiled once, too, in kernels.cpp.
#if defined(__x86_64__)
#include <immintrin.h>  // before fmt, after whose pragmas a precompiled header makes g++ take the form for optimised code, with -O0 too
#endif

#include <fmt/format.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <wring/detail/grid/level.hpp>

#define WRING_EACH_GRID_LEVEL(DO) DO(scalar) WRING_EACH_VECTOR_LEVEL(DO) WRING_EACH_X86_64_LEVEL(DO)
#if WRING_NATIVE_VECTORS
#define WRING_EACH_VECTOR_LEVEL(DO) DO(vector16)
#else
#define WRING_EACH_VECTOR_LEVEL(DO)
#endif
#if WRING_X86_64
#define WRING_EACH_X86_64_LEVEL(DO) DO(avx2) DO(avx512)
#else
#define WRING_EACH_X86_64_LEVEL(DO)
#endif

#define WRING_EXTERN_LEVEL(L) extern template struct wring::detail::grid::KernelsOf<wring::detail::Level::L>;
WRING_EACH_GRID_LEVEL(WRING_EXTERN_LEVEL)
