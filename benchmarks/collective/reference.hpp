// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "collective/mpi_calls.hpp"
#include "collective/problem.hpp"

namespace wring_benchmark {

/// What a result may differ by: the guaranteed bound, and the rounding of each addition or encoding, as a part of the sum of
/// magnitudes.
struct Allowance {
  double bound = 0;
  double relative = 0;
  bool same_bits = false;  ///< on all ranks
};

struct Verdict {
  double error = 0;  ///< the largest of all elements and ranks
  bool right = false;
};

/// The result in double, and for each element the sum of the magnitudes that went into it.
class Reference {
 public:
  explicit Reference(const Problem& problem)
      : problem_(problem), exact_(problem.out.size()), magnitude_(problem.out.size()) {
    std::vector<double> in(problem.in.data(), problem.in.data() + problem.in.size());
    carry_out(in, exact_);
    for (double& x : in) x = std::fabs(x);
    carry_out(in, magnitude_);
  }

  /// Compares what is in the problem's `out` on every rank. Collective.
  Verdict judge(const Allowance& allowance) const {
    double worst = 0;
    bool right = true;
    const float* out = problem_.out.data();
    for (std::size_t i = 0; i < exact_.size(); ++i) {
      const double error = std::fabs(out[i] - exact_[i]);
      right = right && error <= allowance.bound + allowance.relative * magnitude_[i] + 0x1p-126;
      worst = std::max(worst, error);
    }
    if (allowance.same_bits && problem_.collective != wring::Collective::reduce_scatter)
      right = same_on_all_ranks() && right;
    return {over_ranks(worst, MPI_MAX), over_ranks(right ? 1 : 0, MPI_MIN) == 1};
  }

 private:
  void carry_out(const std::vector<double>& in, std::vector<double>& out) const {
    if (problem_.collective == wring::Collective::broadcast) out = in;
    call_mpi(problem_.collective, in.data(), out.data(), static_cast<int>(problem_.elements),
             static_cast<int>(problem_.part), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }

  bool same_on_all_ranks() const {
    std::uint64_t hash = 14695981039346656037u;
    for (std::size_t i = 0; i < problem_.out.size(); ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, problem_.out.data() + i, sizeof bits);
      hash = (hash ^ bits) * 1099511628211u;
    }
    std::uint64_t least = 0, most = 0;
    MPI_Allreduce(&hash, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&hash, &most, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return least == most;
  }

  const Problem& problem_;
  std::vector<double> exact_, magnitude_;
};

}  // namespace wring_benchmark
