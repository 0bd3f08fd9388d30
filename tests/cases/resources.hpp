// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

/// What a process uses.
namespace wring_test {

/// Bytes in memory; 0 where the system does not tell.
inline std::size_t resident_bytes() {
#if defined(__linux__)
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
#else
  return 0;
#endif
}

/// The least growth of memory in five rounds. What leaks grows in every round; buffers that are kept for later grow in some.
template <class Round> std::size_t least_growth(Round round) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (int i = 0; i < 5; ++i) {
    const std::size_t before = resident_bytes();
    round();
    const std::size_t now = resident_bytes();
    least = std::min(least, now > before ? now - before : 0);
  }
  return least;
}

inline std::size_t entries_of(const char* folder) {
  std::error_code error;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) count += !entry.path().empty();
  return count;
}
inline std::size_t threads_running() { return entries_of("/proc/self/task"); }
inline std::size_t files_open() { return entries_of("/proc/self/fd"); }

/// Where this process may run, and with how many threads.
inline std::vector<int> binding() {
  std::vector<int> state{Kokkos::DefaultHostExecutionSpace().concurrency(), Kokkos::num_threads()};
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) state.push_back(i);
#endif
#if defined(_OPENMP)
  state.push_back(-1), state.push_back(omp_get_max_threads()), state.push_back(omp_get_dynamic());
#endif
  return state;
}

}  // namespace wring_test
