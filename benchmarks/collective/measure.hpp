// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <vector>

#include <wring/collective/report.hpp>

#include "collective/candidate.hpp"
#include "collective/problem.hpp"
#include "collective/settings.hpp"

namespace wring_benchmark {

/// What was measured of one candidate. Times are in seconds, one for each repetition: that of the slowest rank.
struct Series {
  std::vector<double> seconds;
  std::vector<wring::Report> reports;  ///< of this rank, one for each repetition
  Verdict first, last;                 ///< before and after all repetitions
};

/// Times all candidates in turn, so that what the machine does meanwhile meets all of them alike. In each call of each repetition
/// the ranks leave a barrier together. A repetition consists of several calls where they are short, and counts their mean.
class Measurement {
 public:
  Measurement(const Problem& problem, const std::vector<Candidate>& candidates, const Settings& settings)
      : problem_(problem), candidates_(candidates), settings_(settings), series_(candidates.size()),
        reference_(problem) {}

  const std::vector<Series>& run() {
    for (std::size_t i = 0; i < candidates_.size(); ++i) series_[i].first = judge(i);
    double spent = 0;
    for (int repetition = 0; goes_on(repetition, spent); ++repetition) spent += repeat(repetition);
    for (std::size_t i = 0; i < candidates_.size(); ++i) series_[i].last = judge(i);
    return series_;
  }

  int calls() const { return problem_.bytes() <= 4096 ? 32 : problem_.bytes() <= 65536 ? 8 : 1; }

 private:
  /// The same on all ranks, since `spent` is.
  bool goes_on(int repetition, double spent) const {
    if (settings_.repeat > 0) return repetition < settings_.repeat;
    const double budget = settings_.budget * static_cast<double>(candidates_.size());
    return repetition < 7 || (spent < budget && repetition < 1000);
  }

  /// Each repetition starts with another candidate. Gives the seconds of all.
  double repeat(int repetition) {
    std::vector<double> seconds(candidates_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      const std::size_t which = (i + static_cast<std::size_t>(repetition)) % candidates_.size();
      seconds[which] = time(which);
    }
    MPI_Allreduce(MPI_IN_PLACE, seconds.data(), static_cast<int>(seconds.size()), MPI_DOUBLE, MPI_MAX,
                  MPI_COMM_WORLD);
    double all = 0;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      series_[i].seconds.push_back(seconds[i]), all += seconds[i] * calls();
    return all;
  }

  double time(std::size_t which) {
    double seconds = 0;
    wring::Report report;
    for (int call = 0; call < calls(); ++call) {
      problem_.restore();
      seconds += run(candidates_[which], report);
    }
    series_[which].reports.push_back(report);
    return seconds / calls();
  }

  /// Gives the seconds from the barrier to the end of this rank's part.
  static double run(const Candidate& candidate, wring::Report& report) {
    if (candidate.before) candidate.before();
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    report = candidate.run();
    const double seconds = MPI_Wtime() - start;
    if (candidate.after) candidate.after();
    return seconds;
  }

  /// One run that is not timed. Where wring guarantees a bound, the guarantee must hold, and be no more than was asked for.
  Verdict judge(std::size_t which) {
    problem_.wipe();
    wring::Report report;
    run(candidates_[which], report);
    Allowance allowance = candidates_[which].allowance;
    if (allowance.bound > 0) {
      const bool as_asked = report.bound && *report.bound <= allowance.bound * (1 + 1e-12);
      allowance.bound = as_asked ? *report.bound : -1;
    }
    return reference_.judge(allowance);
  }

  const Problem& problem_;
  const std::vector<Candidate>& candidates_;
  const Settings& settings_;
  std::vector<Series> series_;
  Reference reference_;
};

}  // namespace wring_benchmark
