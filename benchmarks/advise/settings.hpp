// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <wring/bound.hpp>
#include <wring/operation.hpp>

#include "collective/settings.hpp"
#include "support/arguments.hpp"

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
  std::vector<std::string> data;
  std::string bound_text;
  wring::Bound bound;
  std::vector<std::size_t> sizes;
  std::vector<double> rates;  ///< bits per second
  double latency = 0;         ///< seconds
  std::string json;
};

inline AdviseSettings advise_settings_from(Arguments arguments) {
  AdviseSettings s;
  s.ranks = arguments.count("ranks", "0");
  s.collective = collective_from(arguments.text("collective", "allreduce"));
  s.data = arguments.list("data", "");
  s.bound_text = arguments.text("bound", "rms:0.1");
  s.bound = bound_from(s.bound_text);
  for (const auto& size : arguments.list("sizes", "4k,16k,64k,256k,1m,4m,16m,64m,256m"))
    s.sizes.push_back(size_from(size));
  for (const auto& rate : arguments.list("rates", "0.1,1,10,25,100,400"))
    s.rates.push_back(1e9 * number_from(rate));
  s.latency = 1e-6 * arguments.number("latency", "10");
  s.json = arguments.text("json", "");
  arguments.expect_all_known();
  if (!wring::reduces(s.collective)) throw std::invalid_argument("only what adds up is advised on");
  if (s.ranks == 1) throw std::invalid_argument("one rank alone has no link");
  if (std::ranges::any_of(s.rates, [](double rate) { return !(rate > 0); }) || !(s.latency > 0))
    throw std::invalid_argument("rates and latency must be greater than 0");
  return s;
}

}  // namespace wring_benchmark
