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
#include "support/bound.hpp"

namespace wring_benchmark {

inline constexpr const char* usage = R"(usage: mpirun ... benchmark.collective.sweep [--OPTION VALUE ...]
  --collective   allreduce (default), reduce_scatter, allgather or broadcast
  --sizes        bytes of the whole vector, with k, m, g            (default 8,1k,64k,1m,4m,16m,64m)
  --compressors  of none,grid,cast (to bfloat16),packed_words  (default: all but packed_words)
  --algorithms   of ring,direct,recursive_doubling,halving_doubling,hierarchical,automatic,native
                 (default: all but hierarchical); packed_words runs on native alone, and alone on it
  --node         ranks of a node, for hierarchical (default: those that share memory)
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
  std::vector<std::size_t> sizes{};
  std::vector<std::string> compressors{}, algorithms{}, data{};
  wring::Bound bound{};
  wring::Options options{};
  std::string mpi{}, label{}, link{}, json{};
  int node = 0;       ///< ranks of a node; 0: those that share memory
  int repeat = 0;     ///< 0: adaptive
  double budget = 0;  ///< seconds
};

inline wring::Collective collective_from(const std::string& name) {
  using enum wring::Collective;
  for (const auto c : {allreduce, reduce_scatter, allgather, broadcast})
    if (name == wring::name_of(c)) return c;
  throw std::invalid_argument("there is no collective '" + name + "'");
}

/// Bytes of a vector of float32 whose length MPI can count.
inline std::size_t vector_size_from(const std::string& text) {
  const std::size_t bytes = size_from(text);
  if (bytes >= sizeof(float) && bytes / sizeof(float) < std::size_t{1} << 31) return bytes;
  throw std::invalid_argument("'" + text + "' is no size of a vector of float32: from 4 to less than 8g");
}

/// Bytes of a segment, which has one value at least.
inline std::size_t segment_from(const std::string& text) {
  const std::size_t bytes = size_from(text);
  if (bytes >= sizeof(float)) return bytes;
  throw std::invalid_argument("'" + text + "' has no room for a value");
}

inline wring::Options options_from(Arguments& arguments) {
  wring::Options options;
  options.segment_bytes = arguments.of("segment", std::to_string(options.segment_bytes), segment_from);
  options.depth = arguments.count("depth", std::to_string(options.depth), 1);
  options.ride_along_bytes = arguments.size("ride-along", std::to_string(options.ride_along_bytes));
  return options;
}

/// Whether that compressor is measured on that algorithm: words that add up where the library adds them, and nothing else there.
inline bool is_pair(const std::string& compressor, const std::string& algorithm) {
  return (compressor == "packed_words") == (algorithm == "native");
}

inline void expect_pair(const Settings& s) {
  for (const auto& compressor : s.compressors)
    for (const auto& algorithm : s.algorithms)
      if (is_pair(compressor, algorithm)) return;
  throw std::invalid_argument("packed_words runs on native alone, and alone on it");
}

inline Settings settings_from(Arguments& arguments) {
  Settings s;
  s.collective = arguments.of("collective", "allreduce", collective_from);
  s.sizes = arguments.list("sizes", "8,1k,64k,1m,4m,16m,64m", vector_size_from);
  const std::string compressors = "none,grid,cast";
  s.compressors = arguments.choices("compressors", compressors, split(compressors + ",packed_words"));
  const std::string algorithms = "ring,direct,recursive_doubling,halving_doubling,automatic,native";
  s.algorithms = arguments.choices("algorithms", algorithms, split(algorithms + ",hierarchical"));
  s.node = arguments.count("node", "0");
  s.bound = arguments.of("bound", "rms:0.1", bound_from);
  s.data = arguments.list("data", "");
  s.options = options_from(arguments);
  s.mpi = arguments.choice("mpi", "all", {"all", "default", "none"});
  s.repeat = arguments.count("repeat", "0");
  s.budget = arguments.positive("budget", "0.5");
  s.label = arguments.text("label", ""), s.link = arguments.text("link", "");
  s.json = arguments.text("json", "");
  arguments.expect_all_known();
  expect_pair(s);
  return s;
}

}  // namespace wring_benchmark
