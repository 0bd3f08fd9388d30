// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every compressor on every data set and element type, against copies of the same bytes. See ../README.md.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include "codec/data_set.hpp"
#include "codec/registry.hpp"
#include "support/arguments.hpp"
#include "support/bound.hpp"
#include "support/machine.hpp"
#include "support/program.hpp"

namespace {

using namespace wring_benchmark;

constexpr const char* usage = R"(usage: benchmark.codec.codec [DATA ...] [--OPTION=VALUE ...]
  DATA        gradient:FILE[,FILE], field:FILE[,FILE] or made  (default: files of the repository)
  --sizes     bytes of the values, with k, m, g        (default 256k,64m)
  --bounds    rms:FRACTION, range:FRACTION or absolute:ERROR   (default: those of the data, rms:0.1,rms:0.01 of
              gradients, range:0.001,range:0.0001 of fields)
A row is WORK/COMPRESSOR/ELEMENT/SIZE/DATA[/BOUND], and --benchmark_filter takes those that a regular expression finds.
"Library was built as DEBUG" is said of Google Benchmark, which some distributions build so, and not of wring.

Google Benchmark's own options:
)";

void print_usage() {
  std::fputs(usage, stdout);
  benchmark::PrintDefaultHelp();
}

std::vector<std::string> own_data() {
  const std::string gradient = WRING_SOURCE_DIR "/examples/data/step0100_w",
                    factor = WRING_SOURCE_DIR "/benchmarks/data/factor_w",
                    field = WRING_SOURCE_DIR "/benchmarks/data/field.f32";
  return {"gradient:" + gradient + "0.f32," + gradient + "1.f32",
          "field:" + factor + "0.f32," + factor + "1.f32", "field:" + field};
}

/// Bytes of one value of the widest type at least.
std::size_t values_size_from(const std::string& text) {
  if (const std::size_t bytes = size_from(text); bytes >= sizeof(double)) return bytes;
  throw std::invalid_argument("'" + text + "' has no room for a value");
}

Registry registry_from(Arguments& arguments) {
  Registry registry;
  registry.sizes = arguments.list("sizes", "256k,64m", values_size_from);
  registry.bounds = arguments.list("bounds", "", bound_from);
  const auto words = arguments.words();
  arguments.expect_all_known();
  for (const auto& set : words.empty() ? own_data() : words)
    registry.data.push_back(std::make_shared<DataSet>(data_set_from(set)));
  return registry;
}

void register_all(Registry& registry) {
#define WRING_BENCHMARK_ELEMENT(name) register_##name(registry);
  WRING_BENCHMARK_ELEMENTS
#undef WRING_BENCHMARK_ELEMENT
}

int run(Registry& prepared) {
  const Kokkos::ScopeGuard kokkos;
  Registry registry = std::move(prepared);  // its buffers go before Kokkos does
  register_all(registry);
  for (const auto& [name, value] : machine()) benchmark::AddCustomContext(name, value);
  const bool found = benchmark::RunSpecifiedBenchmarks() > 0;  // a row for the filter
  return found && !registry.wrong ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments, print_usage);  // takes its own options away
  return run_program("codec.codec", usage, count, arguments, registry_from, run);
}
