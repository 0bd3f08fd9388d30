// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <wring/version.hpp>

/// What a measured number depends on: machine, versions, date.
namespace wring_benchmark {

inline std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto at = line.find(": "); at != line.npos) return line.substr(at + 2);
  return "unknown";
}

inline std::string compiler_name() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "g++ " __VERSION__;
#else
  return "unknown";
#endif
}

/// The processor features for which the benchmark itself was compiled; wring chooses its kernels when it runs.
inline std::string compiled_for() {
#if defined(__AVX512F__)
  return "AVX-512";
#elif defined(__AVX2__)
  return "AVX2";
#else
  return "baseline";
#endif
}

/// The date, as ISO 8601 has it.
inline std::string now() {
  const auto time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(time));
}

/// Names and values. The revision is what the environment variable WRING_REVISION says (benchmarks/run sets it), or the version.
inline std::vector<std::pair<std::string, std::string>> machine() {
  const Kokkos::DefaultHostExecutionSpace exec;
  const auto version = [](int n) { return fmt::format("{}.{}.{}", n / 10000, n / 100 % 100, n % 100); };
  const char* revision = std::getenv("WRING_REVISION");
  return {{"processor", processor_name()},
          {"cores", std::to_string(std::thread::hardware_concurrency())},
          {"threads", std::to_string(exec.concurrency())},
          {"execution_space", exec.name()},
          {"date", now()},
          {"compiler", compiler_name()},
          {"compiled_for", compiled_for()},
          {"kokkos", version(KOKKOS_VERSION)},
          {"wring", revision ? revision : version(WRING_VERSION)}};
}

}  // namespace wring_benchmark
