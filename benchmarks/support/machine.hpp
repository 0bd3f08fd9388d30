// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <Kokkos_Core.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <wring/version.hpp>

#include "support/json.hpp"

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

/// The revision is what the environment variable WRING_REVISION says (benchmarks/run sets it), or the version.
inline JsonObject machine() {
  const char* revision = std::getenv("WRING_REVISION");
  const auto version = fmt::format("{}.{}.{}", WRING_VERSION_MAJOR, WRING_VERSION_MINOR, WRING_VERSION_PATCH);
  JsonObject object;
  object.add("processor", processor_name())
      .add("cores", std::thread::hardware_concurrency())
      .add("threads", Kokkos::DefaultHostExecutionSpace().concurrency())
      .add("execution_space", Kokkos::DefaultHostExecutionSpace::name())
      .add("date",
           fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                       fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now()))))
      .add("compiler", compiler_name())
      .add("compiled_for", compiled_for())
      .add("kokkos",
           fmt::format("{}.{}.{}", KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100))
      .add("wring", revision ? std::string(revision) : version);
  return object;
}

}  // namespace wring_benchmark
