# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the library and its tests need: found by find_package first; where a package is missing and
# WRING_FETCH_DEPENDENCIES allows it, a pinned release is fetched. Fetching is untested.
include_guard()

set(WRING_KOKKOS_MINIMUM 4.6)
set(WRING_MPI_MINIMUM 3.1)

# wring_dependency(NAME MINIMUM URL): a macro, since find_package sets variables that its caller may need.
macro(wring_dependency name minimum url)
  if(NOT TARGET ${ARGV3})
    find_package(${name} ${minimum} QUIET)
    if(NOT ${name}_FOUND)
      if(NOT WRING_FETCH_DEPENDENCIES)
        message(FATAL_ERROR "wring needs ${name} ${minimum}: name its folder in CMAKE_PREFIX_PATH, or set "
                            "WRING_FETCH_DEPENDENCIES=ON to have it fetched (untested).")
      endif()
      message(STATUS "wring: fetching ${name} from ${url} (untested)")
      include(FetchContent)
      FetchContent_Declare(${name} URL ${url} DOWNLOAD_EXTRACT_TIMESTAMP OFF SYSTEM)
      FetchContent_MakeAvailable(${name})
      set(wring_fetched TRUE)
    endif()
  endif()
endmacro()

macro(wring_find_dependencies)
  if(NOT TARGET MPI::MPI_CXX)
    find_package(MPI ${WRING_MPI_MINIMUM} REQUIRED COMPONENTS CXX)
  endif()
  if(WRING_FETCH_DEPENDENCIES AND NOT DEFINED Kokkos_ENABLE_OPENMP)
    set(Kokkos_ENABLE_OPENMP ON)
  endif()
  wring_dependency(Kokkos ${WRING_KOKKOS_MINIMUM}
                   https://github.com/kokkos/kokkos/releases/download/4.7.01/kokkos-4.7.01.tar.gz Kokkos::kokkos)
  wring_dependency(fmt 9 https://github.com/fmtlib/fmt/archive/refs/tags/10.2.1.tar.gz fmt::fmt)
  if(wring_fetched AND WRING_INSTALL)
    message(STATUS "wring: no install rules, since a dependency was fetched: install it first and find it")
    set(WRING_INSTALL OFF)
  endif()
endmacro()

macro(wring_find_catch2)
  wring_dependency(Catch2 3 https://github.com/catchorg/Catch2/archive/refs/tags/v3.7.1.tar.gz Catch2::Catch2)
endmacro()
