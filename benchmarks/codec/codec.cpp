// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every compressor on every data set and element type, against copies of the same bytes. See ../README.md.
//
//     codec [Google Benchmark's options] [--sizes=BYTES,...] [--bounds=FRACTION,...]
//           [made] [gradient:FILE[,FILE] ...] [field:FILE[,FILE] ...]

#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include <Kokkos_Core.hpp>

#include "codec/data_set.hpp"
#include "codec/registry.hpp"
#include "support/arguments.hpp"
#include "support/machine.hpp"

namespace {

using namespace wring_benchmark;

void take_arguments(Registry& registry, int count, char** arguments) {
  std::string sizes = "256k,64m";
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument.starts_with("--sizes="))
      sizes = argument.substr(8);
    else if (argument.starts_with("--bounds="))
      for (const auto& bound : split(argument.substr(9))) registry.bounds.push_back(number_from(bound));
    else
      registry.data.push_back(std::make_shared<DataSet>(data_set_from(argument)));
  }
  for (const auto& size : split(sizes)) registry.sizes.push_back(size_from(size));
  if (!registry.data.empty()) return;
  const std::string gradient = WRING_SOURCE_DIR "/examples/data/step0100_w",
                    factor = WRING_SOURCE_DIR "/benchmarks/data/factor_w",
                    field = WRING_SOURCE_DIR "/benchmarks/data/field.f32";
  for (const auto& set : {"gradient:" + gradient + "0.f32," + gradient + "1.f32",
                          "field:" + factor + "0.f32," + factor + "1.f32", "field:" + field})
    registry.data.push_back(std::make_shared<DataSet>(data_set_from(set)));
}

void register_all(Registry& registry) {
#define WRING_BENCHMARK_ELEMENT(name) register_##name(registry);
  WRING_BENCHMARK_ELEMENTS
#undef WRING_BENCHMARK_ELEMENT
}

}  // namespace

int main(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  const Kokkos::ScopeGuard kokkos;
  Registry registry;
  try {
    take_arguments(registry, count, arguments);
    register_all(registry);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  for (const auto& [name, value] : machine()) benchmark::AddCustomContext(name, value);
  benchmark::RunSpecifiedBenchmarks();
  return registry.wrong ? 1 : 0;
}
