// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/collective/collective.hpp>

/// Compiles collectives once, in one file of a program, instead of in every file that calls them.
///
/// In a header that all these files include, and in one file, after the same definitions:
///
///     using Codec = wring::Grid<float>;                                                 // collectives.hpp
///     WRING_EXTERN(Codec, wring::MpiTransport, wring::Ring, Kokkos::DefaultExecutionSpace);
///
///     WRING_INSTANTIATE(Codec, wring::MpiTransport, wring::Ring, Kokkos::DefaultExecutionSpace);   // collectives.cpp
///
/// The arguments are types: compressor, transport, algorithm and execution space. Those whose names contain a comma need an alias.
/// All four collectives are covered, and every type of view; what is still compiled where they are called depends on the views.
/// Nothing changes but the place of the code: calls that are not covered are compiled as ever. A program in which the file with
/// WRING_INSTANTIATE is missing is not linked.
#define WRING_EXTERN(CODEC, LINK, SCHEDULE, EXEC)                                                            \
  extern template class ::wring::detail::Execution<CODEC, LINK, EXEC>;                                       \
  extern template class ::wring::BasicCollective<CODEC, LINK, SCHEDULE>

/// See WRING_EXTERN.
#define WRING_INSTANTIATE(CODEC, LINK, SCHEDULE, EXEC)                                                       \
  template class ::wring::detail::Execution<CODEC, LINK, EXEC>;                                              \
  template class ::wring::BasicCollective<CODEC, LINK, SCHEDULE>
