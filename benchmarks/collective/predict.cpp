// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the cost model says of an allreduce on a machine that may not be there, up to very many ranks. See ../README.md.

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <wring/algorithm.hpp>

#include "support/arguments.hpp"
#include "support/program.hpp"

namespace {

using namespace wring_benchmark;

constexpr const char* usage = R"(usage: benchmark.collective.predict [--OPTION VALUE ...]
  --bytes        of the vector, with k, m, g                        (default 64m)
  --ranks        numbers of ranks                                   (default 4,16,64,1024,131072)
  --algorithms   of ring,direct,recursive_doubling,halving_doubling (default all)
  --ratio        of compression, of a rank's own values             (default 4.5)
  --sum-ratio    of sums                                            (default 4)
  --segment, --depth   bytes of values in a segment, segments in flight (default 128k, 4)
and the members of wring::Machine, in seconds or bytes per second (default: those of wring::Machine, 100 Mb/s)
  --latency, --overhead, --bandwidth, --measure, --encode, --combine, --decode, --launch, --add, --copy
One row for each number of ranks and algorithm: compressed, and the values as they are. Of a number that is no power of two, the last
two algorithms follow every rank: seconds for ten thousand of them, minutes for a hundred thousand.
)";

struct Settings {
  wring::Machine machine{};
  wring::Load load{.combines = true, .measured = true};
  std::vector<int> ranks{};
  std::vector<std::string> algorithms{};
};

void take_machine(Arguments& arguments, wring::Machine& machine) {
  const auto take = [&](const char* name, double& member) {
    member = arguments.number(name, fmt::format("{}", member));
  };
  take("latency", machine.latency), take("overhead", machine.overhead), take("bandwidth", machine.bandwidth);
  take("measure", machine.measure), take("encode", machine.encode), take("combine", machine.combine);
  take("decode", machine.decode), take("launch", machine.launch);
  take("add", machine.add), take("copy", machine.copy);
}

Settings settings_from(Arguments& arguments) {
  Settings s;
  const std::string algorithms = "ring,direct,recursive_doubling,halving_doubling";
  s.load.bytes = arguments.size("bytes", "64m");
  s.load.ratio = arguments.positive("ratio", "4.5"), s.load.sum_ratio = arguments.positive("sum-ratio", "4");
  s.load.segment_bytes = arguments.size("segment", "128k"), s.load.depth = arguments.count("depth", "4", 1);
  s.ranks = arguments.list("ranks", "4,16,64,1024,131072",
                           [](const std::string& text) { return count_from(text, 2); });
  s.algorithms = arguments.choices("algorithms", algorithms, split(algorithms));
  take_machine(arguments, s.machine);
  arguments.expect_all_known();
  wring::expect_possible(s.load), wring::expect_possible(s.machine);
  return s;
}

template <class Algorithm> void print_row(const Algorithm& algorithm, int ranks, const Settings& s) {
  wring::Load plain = s.load;
  plain.coded = plain.measured = false;
  const auto begin = std::chrono::steady_clock::now();
  const wring::Prediction coded = wring::predict(algorithm, {}, ranks, s.load, s.machine);
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const wring::Prediction as_they_are = wring::predict(algorithm, {}, ranks, plain, s.machine);
  fmt::print("{:8}  {:<20} {:12.3f} {:8.2f} {:8.2f} {:16.3f} {:10.2f} {:14.6f}\n", ranks, algorithm.name(),
             1e3 * coded.seconds, coded.wire_share(), coded.busy_seconds / coded.seconds,
             1e3 * as_they_are.seconds, as_they_are.seconds / coded.seconds, took);
  std::fflush(stdout);  // the next one may take a while
}

void print_row(const std::string& algorithm, int ranks, const Settings& s) {
  if (algorithm == "ring") return print_row(wring::Ring{}, ranks, s);
  if (algorithm == "direct") return print_row(wring::Direct{}, ranks, s);
  if (algorithm == "recursive_doubling") return print_row(wring::RecursiveDoubling{}, ranks, s);
  print_row(wring::HalvingDoubling{}, ranks, s);
}

int run(const Settings& s) {
  fmt::print("allreduce of {} bytes, compressed {:.2f}-fold, links of {:.4g} MB/s\n\n", s.load.bytes,
             s.load.ratio, s.machine.bandwidth / 1e6);
  fmt::print("{:>8}  {:<20} {:>12} {:>8} {:>8} {:>16} {:>10} {:>14}\n", "ranks", "algorithm", "ms", "wire",
             "busy", "uncompressed ms", "quotient", "predicted in s");
  for (const int ranks : s.ranks)
    for (const auto& algorithm : s.algorithms) print_row(algorithm, ranks, s);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  return run_program("collective.predict", usage, count, arguments, settings_from, run);
}
