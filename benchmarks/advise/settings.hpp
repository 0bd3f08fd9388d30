// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <wring/bound.hpp>
#include <wring/operation.hpp>

#include "collective/settings.hpp"
#include "support/arguments.hpp"
#include "support/bound.hpp"

namespace wring_benchmark {

inline constexpr const char* advise_usage =
    R"(usage: [mpirun ...] benchmark.advise.advise [--OPTION VALUE ...]
  --ranks        of the program to be advised      (default: those that are started, at least 4)
  --collective   allreduce (default) or reduce_scatter
  --data         files of float32, one per rank, taken in turn          (default: a made signal)
  --bound        rms:FRACTION, range:FRACTION or absolute:ERROR         (default rms:0.1)
  --sizes        bytes of the vector, with k, m, g (default 4k,16k,64k,256k,1m,4m,16m,64m,256m)
  --rates        of links, in Gb/s                 (default 0.1,1,10,25,100,400)
  --latency      of those links, in microseconds   (default 10)
  --json         a file for the results
)";

struct AdviseSettings {
  int ranks = 0;  ///< 0: those that are started, at least 4
  wring::Collective collective = wring::Collective::allreduce;
  std::vector<std::string> data{};
  wring::Bound bound{};
  std::vector<std::size_t> sizes{};
  std::vector<double> rates{};  ///< bits per second
  double latency = 0;           ///< seconds
  std::string json{};
};

/// Only what adds up is advised on.
inline wring::Collective reduction_from(const std::string& name) {
  const wring::Collective collective = collective_from(name);
  if (wring::reduces(collective)) return collective;
  throw std::invalid_argument("'" + name + "' adds nothing up: allreduce or reduce_scatter");
}

/// Bits per second.
inline double rate_from(const std::string& gigabits) {
  if (const double rate = 1e9 * number_from(gigabits); rate > 0) return rate;
  throw std::invalid_argument("'" + gigabits + "' is not greater than 0");
}

inline AdviseSettings advise_settings_from(Arguments& arguments) {
  AdviseSettings s;
  s.ranks = arguments.of("ranks", "0", [](const std::string& text) {
    return text == "0" ? 0 : count_from(text, 2);  // one rank alone has no link
  });
  s.collective = arguments.of("collective", "allreduce", reduction_from);
  s.data = arguments.list("data", "");
  s.bound = arguments.of("bound", "rms:0.1", bound_from);
  s.sizes = arguments.list("sizes", "4k,16k,64k,256k,1m,4m,16m,64m,256m", vector_size_from);
  s.rates = arguments.list("rates", "0.1,1,10,25,100,400", rate_from);
  s.latency = 1e-6 * arguments.positive("latency", "10");
  s.json = arguments.text("json", "");
  arguments.expect_all_known();
  return s;
}

}  // namespace wring_benchmark
