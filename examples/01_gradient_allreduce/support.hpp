// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What example 01 needs beside the library: a file, an exact reference, a clock, a table.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

inline std::vector<float> load(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<float> values(file ? static_cast<std::size_t>(file.tellg()) / sizeof(float) : 0);
  file.seekg(0).read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(4 * values.size()));
  if (!file || values.empty()) throw std::runtime_error("cannot read " + path);
  return values;
}

template <class T> T over_ranks(T value, MPI_Datatype type, MPI_Op operation) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, type, operation, MPI_COMM_WORLD);
  return value;
}

inline bool on_all_ranks(bool fact) { return over_ranks<int>(fact, MPI_INT, MPI_LAND) != 0; }

/// The mean of all ranks' values and their root mean square, in extended precision: errors below 1e-19 of the values.
struct Reference {
  std::vector<long double> mean;
  double root_mean_square = 0;

  explicit Reference(const std::vector<float>& mine) : mean(mine.begin(), mine.end()) {
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    long double squares = 0;
    for (const long double x : mean) squares += x * x;
    squares = over_ranks(squares, MPI_LONG_DOUBLE, MPI_SUM);
    root_mean_square = static_cast<double>(sqrtl(squares / static_cast<long double>(mean.size()) / ranks));
    MPI_Allreduce(MPI_IN_PLACE, mean.data(), static_cast<int>(mean.size()), MPI_LONG_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
    for (long double& x : mean) x /= ranks;
  }

  /// The largest error of a result, on any rank.
  double error_of(const float* result) const {
    long double worst = 0;
    for (std::size_t i = 0; i < mean.size(); ++i) worst = std::max(worst, fabsl(result[i] - mean[i]));
    return static_cast<double>(over_ranks(worst, MPI_LONG_DOUBLE, MPI_MAX));
  }
};

/// Whether all ranks hold the bits of rank 0.
inline bool same_on_all_ranks(const float* values, std::size_t count) {
  std::vector<float> first(values, values + count);
  MPI_Bcast(first.data(), static_cast<int>(count), MPI_FLOAT, 0, MPI_COMM_WORLD);
  return on_all_ranks(std::memcmp(first.data(), values, 4 * count) == 0);
}

/// Median over some repetitions of the slowest rank's time, in milliseconds; two repetitions to warm up.
template <class Work> double milliseconds(Work work) {
  std::vector<double> times;
  for (int repetition = -2; repetition < 15; ++repetition) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    work();
    const double seconds = over_ranks(MPI_Wtime() - start, MPI_DOUBLE, MPI_MAX);
    if (repetition >= 0) times.push_back(1e3 * seconds);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

/// One line of the table, printed by rank 0.
struct Row {
  std::string name;
  double bytes = 0, ratio = 1, error = 0, bound = 0, milliseconds = 0;
  bool all_ranks_agree = false, all_algorithms_agree = false;

  static void print_heading() {
    std::printf("%-38s %10s %6s %10s %10s %6s %6s %8s\n", "", "bytes on", "", "largest", "", "ranks", "algo.",
                "");
    std::printf("%-38s %10s %6s %10s %10s %6s %6s %8s\n", "", "the wire", "ratio", "error", "bound", "agree",
                "agree", "ms");
  }
  void print() const {
    std::printf("%-38s %10.0f %6.2f %10.3e ", name.c_str(), bytes, ratio, error);
    if (bound > 0)
      std::printf("%10.3e %6s %6s", bound, all_ranks_agree ? "yes" : "NO",
                  all_algorithms_agree ? "yes" : "NO");
    else
      std::printf("%10s %6s %6s", "none", all_ranks_agree ? "yes" : "no", "");
    std::printf(" %8.2f\n", milliseconds);
  }
};
