// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "collective/candidate.hpp"
#include "collective/forced.hpp"
#include "collective/mpi_calls.hpp"
#include "collective/mpi_cast.hpp"
#include "collective/problem.hpp"

namespace wring_benchmark {

inline Candidate plain_mpi(const Problem& problem, const std::string& suffix, MPI_Comm communicator) {
  Candidate c{.what = mpi_name(problem.collective) + suffix, .uncompressed_mpi = true, .nominal_ratio = 1};
  c.allowance.relative = problem.ranks * 0x1p-24;
  c.run = [&problem, communicator] {
    call_mpi(problem.collective, problem.in.data(), problem.out.data(), static_cast<int>(problem.elements),
             static_cast<int>(problem.part), MPI_FLOAT, MPI_SUM, communicator);
    return wring::Report();
  };
  return c;
}

inline Candidate mpi_cast(const Problem& problem) {
  const auto cast = std::make_shared<CastToBfloat16>(problem);
  Candidate c{.what = std::string(mpi_name(problem.collective)) + " bf16 cast", .nominal_ratio = 2};
  c.allowance.relative = (problem.ranks + 1) * 0x1p-8;  // one rounding to 8 bits for each input and each sum
  c.run = [cast] {
    cast->run();
    return wring::Report();
  };
  return c;
}

/// MPI's own choice first, then its algorithms forced, then the cast.
inline std::vector<Candidate> mpi_candidates(const Problem& problem, const std::string& which,
                                             ForcedAlgorithms& forced) {
  std::vector<Candidate> candidates;
  if (which == "none") return candidates;
  candidates.push_back(plain_mpi(problem, "", MPI_COMM_WORLD));
  for (const auto& f : forced.all()) {
    if (which != "all") break;
    Candidate& c = candidates.emplace_back(plain_mpi(problem, " forced " + f.name, f.communicator));
    c.before = [&forced, &f] { forced.select(f); };
    c.after = [&forced] { forced.release(); };
  }
  candidates.push_back(mpi_cast(problem));
  return candidates;
}

}  // namespace wring_benchmark
