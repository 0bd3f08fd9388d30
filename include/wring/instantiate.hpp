// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/collective/collective.hpp>

/// Compiles collectives once, in one file of a program, instead of in every file that calls them.
///
/// A header that all these files include says what is elsewhere; one file, which includes it too, says that it is there:
///
///     WRING_EXTERN(wring::Grid<float>, wring::MpiTransport, Kokkos::DefaultExecutionSpace);        // collectives.hpp
///     WRING_EXTERN_ALGORITHM(wring::Grid<float>, wring::MpiTransport, wring::Ring);
///
///     WRING_INSTANTIATE(wring::Grid<float>, wring::MpiTransport, Kokkos::DefaultExecutionSpace);   // collectives.cpp
///     WRING_INSTANTIATE_ALGORITHM(wring::Grid<float>, wring::MpiTransport, wring::Ring);
///
/// outside of all namespaces. The arguments are types: compressor, transport, and execution space or algorithm. A name with a comma
/// in it needs an alias. All four collectives are covered, with every type of view: what is compiled where they are called is what
/// depends on the views. Calls that are not covered are compiled as ever, and results are the same bit by bit. Where the one file
/// is missing, or does not say all that the header says, the program is not linked.
#define WRING_EXTERN(CODEC, LINK, EXEC) extern template class ::wring::detail::Execution<CODEC, LINK, EXEC>
#define WRING_INSTANTIATE(CODEC, LINK, EXEC) template class ::wring::detail::Execution<CODEC, LINK, EXEC>

/// The objects that call an algorithm: once for each, beside the above.
#define WRING_EXTERN_ALGORITHM(CODEC, LINK, SCHEDULE)                                                        \
  extern template class ::wring::BasicCollective<CODEC, LINK, SCHEDULE>
#define WRING_INSTANTIATE_ALGORITHM(CODEC, LINK, SCHEDULE)                                                   \
  template class ::wring::BasicCollective<CODEC, LINK, SCHEDULE>
