// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "collective/problem.hpp"
#include "support/arguments.hpp"
#include "support/program.hpp"

namespace wring_benchmark {

/// What a rank holds when all have begun, or why it cannot begin.
template <class Prepared> struct Beginning {
  std::optional<Prepared> prepared{};
  bool help = false, understood = true;
  std::string sentence{};
};

template <class Prepare> auto begin_with(int count, char** texts, Prepare prepare) {
  Beginning<decltype(prepare(std::declval<Arguments&>()))> beginning;
  try {
    Arguments arguments(count, texts);
    beginning.help = arguments.help();
    if (!beginning.help) beginning.prepared.emplace(prepare(arguments));
  } catch (const std::invalid_argument& error) {
    beginning.sentence = error.what(), beginning.understood = false;
  } catch (const std::exception& error) {
    beginning.sentence = error.what();
  }
  return beginning;
}

/// Between MPI_Init and MPI_Finalize. Either all ranks run, or none does: the first of those that cannot begin says why.
template <class Prepare, class Run> int run_on_ranks(const std::string& name, const char* usage, int count,
                                                     char** texts, Prepare prepare, Run run) {
  const int rank = rank_of(MPI_COMM_WORLD), ranks = size_of(MPI_COMM_WORLD);
  auto beginning = begin_with(count, texts, prepare);
  if (beginning.help) return rank == 0 ? std::fputs(usage, stdout), 0 : 0;
  const int speaker = static_cast<int>(over_ranks(beginning.prepared ? ranks : rank, MPI_MIN));
  if (speaker == rank) complain(name, beginning.sentence, beginning.understood);
  return speaker < ranks ? 2 : run(*beginning.prepared);
}

/// A program on the ranks of MPI_COMM_WORLD: as `run_program`. `prepare` may do different things on different ranks, and has no
/// messages.
template <class Prepare, class Run>
int run_mpi_program(const std::string& name, const char* usage, int count, char** texts, Prepare prepare,
                    Run run) {
  MPI_Init(&count, &texts);
  int status = 1;
  try {
    status = run_on_ranks(name, usage, count, texts, prepare, run);
  } catch (const std::exception& error) {  // the other ranks may wait for this one
    complain(name, "rank " + std::to_string(rank_of(MPI_COMM_WORLD)) + ": " + error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}

}  // namespace wring_benchmark
