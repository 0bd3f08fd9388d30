// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <wring/bound.hpp>
#include <wring/collective/options.hpp>
#include <wring/operation.hpp>

#include "support/arguments.hpp"

namespace wring_benchmark {

inline constexpr const char* usage = R"(usage: mpirun ... benchmark.collective.sweep [--OPTION VALUE ...]
  --collective   allreduce (default), reduce_scatter, allgather or broadcast
  --sizes        bytes of the whole vector, with k, m, g            (default 8,1k,64k,1m,4m,16m,64m)
  --compressors  of none,grid,cast                                  (default all)
  --algorithms   of ring,direct,recursive_doubling,halving_doubling,automatic (default all)
  --bound        rms:FRACTION, range:FRACTION or absolute:ERROR     (default rms:0.1)
  --data         files of float32, one per rank, taken in turn      (default: a made signal)
  --segment, --depth, --ride-along   wring's options                (default: the library's)
  --mpi          all (default): MPI's own choice, each of its algorithms forced, the bf16 cast; default: without
                 the forced ones; none
  --repeat       repetitions                 (default: at least 7, until --budget is spent)
  --budget       seconds for each row        (default 0.5)
  --label, --link   texts that are kept with the results: what this run is, the rate of its link
  --json         a file for the results
)";

struct Settings {
  wring::Collective collective = wring::Collective::allreduce;
  std::vector<std::size_t> sizes;
  std::vector<std::string> compressors, algorithms, data;
  std::string bound_text;
  wring::Bound bound;
  wring::Options options;
  std::string mpi, label, link, json;
  int repeat = 0;     ///< 0: adaptive
  double budget = 0;  ///< seconds
};

inline wring::Collective collective_from(const std::string& name) {
  using enum wring::Collective;
  for (const auto c : {allreduce, reduce_scatter, allgather, broadcast})
    if (name == wring::name_of(c)) return c;
  throw std::invalid_argument("there is no collective '" + name + "'");
}

inline wring::Bound bound_from(const std::string& text) {
  const auto at = text.find(':');
  const std::string kind = text.substr(0, at);
  const double value = at == text.npos ? 0 : number_from(text.substr(at + 1));
  if (kind == "rms") return wring::relative_to_rms(value);
  if (kind == "range") return wring::relative_to_range(value);
  if (kind == "absolute") return wring::absolute(value);
  throw std::invalid_argument("'" + text + "' is no bound: rms:, range: or absolute: and a number");
}

inline void expect_names(const std::vector<std::string>& given, const std::vector<std::string>& known) {
  for (const auto& name : given)
    if (std::ranges::find(known, name) == known.end())
      throw std::invalid_argument("'" + name + "' is none of those there are; see --help");
}

inline Settings settings_from(Arguments arguments) {
  Settings s;
  s.collective = collective_from(arguments.text("collective", "allreduce"));
  for (const auto& size : arguments.list("sizes", "8,1k,64k,1m,4m,16m,64m"))
    s.sizes.push_back(size_from(size));
  s.compressors = arguments.list("compressors", "none,grid,cast");
  s.algorithms = arguments.list("algorithms", "ring,direct,recursive_doubling,halving_doubling,automatic");
  s.bound_text = arguments.text("bound", "rms:0.1");
  s.bound = bound_from(s.bound_text);
  s.data = arguments.list("data", "");
  const wring::Options otherwise;
  s.options.segment_bytes = arguments.size("segment", std::to_string(otherwise.segment_bytes));
  s.options.depth = arguments.count("depth", std::to_string(otherwise.depth));
  s.options.ride_along_bytes = arguments.size("ride-along", std::to_string(otherwise.ride_along_bytes));
  s.mpi = arguments.text("mpi", "all");
  s.repeat = arguments.count("repeat", "0");
  s.budget = arguments.number("budget", "0.5");
  s.label = arguments.text("label", ""), s.link = arguments.text("link", ""),
  s.json = arguments.text("json", "");
  arguments.expect_all_known();
  expect_names(s.compressors, {"none", "grid", "cast"});
  expect_names(s.algorithms, {"ring", "direct", "recursive_doubling", "halving_doubling", "automatic"});
  expect_names({s.mpi}, {"all", "default", "none"});
  return s;
}

}  // namespace wring_benchmark
