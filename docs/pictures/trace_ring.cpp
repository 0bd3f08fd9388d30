// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Traces an allreduce of gradients by a ring of four ranks, segments pipelined, on simulated links: the picture of docs/performance.md.
// From the top folder:
//   c++ -std=c++20 -fopenmp -Iinclude -isystem KOKKOS_INCLUDE docs/pictures/trace_ring.cpp -o trace_ring -lkokkoscore -lfmt
//   ./trace_ring examples/data ring.json && docs/pictures/draw_timeline.py ring.json docs/pictures/timeline_ring.svg

#include <wring/collective/allreduce.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <wring/algorithm/ring.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/transport/simulated.hpp>

using Vector = Kokkos::View<float*, Kokkos::HostSpace>;
using Allreduce = wring::Allreduce<wring::Grid<float>, wring::SimulatedTransport, wring::Ring>;

namespace {

constexpr int ranks = 4;
constexpr std::size_t values = 1 << 19;

/// Gradients of one rank, as often as it takes.
Vector gradients(const std::string& folder, int rank) {
  std::ifstream file(folder + "/step0100_w" + std::to_string(rank) + ".f32", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const std::size_t n = bytes.size() / sizeof(float);
  if (n == 0) throw std::runtime_error("there are no gradients in " + folder);
  Vector vector("gradients", values);
  for (std::size_t i = 0; i < values; ++i)
    std::memcpy(&vector(i), bytes.data() + i % n * sizeof(float), sizeof(float));
  return vector;
}

void trace(const std::string& folder, const std::string& path) {
  wring::Machine machine;
  machine.bandwidth = 125e6;                                // 1 Gb/s
  machine.encode = machine.combine = machine.decode = 1e9;  // slow enough to be seen
  wring::SimulatedNetwork network(ranks, machine);
  std::deque<wring::Timeline> timelines;
  std::deque<Allreduce> sums;
  std::vector<const wring::Timeline*> all;
  std::vector<Vector> vectors;
  for (int r = 0; r < ranks; ++r) {
    vectors.push_back(gradients(folder, r));
    sums.emplace_back(wring::Grid<float>{}, network.link(r), wring::Ring{},
                      wring::Options{.segment_bytes = 64 * 1024, .depth = 4});
    sums.back().record(timelines.emplace_back(100000));
    all.push_back(&timelines.back());
  }
  wring::simulate(network, [&](wring::SimulatedTransport& link) {
    const auto r = static_cast<std::size_t>(link.rank());
    return sums[r].start(Kokkos::DefaultHostExecutionSpace{}, vectors[r], wring::relative_to_rms(0.1));
  });
  std::ofstream file(path);
  wring::write_chrome_trace(file, all);
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: trace_ring GRADIENTS TRACE.json\n", stderr);
    return 2;
  }
  const Kokkos::ScopeGuard kokkos(argc, argv);
  try {
    trace(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trace_ring: %s\n", error.what());
    return 1;
  }
}
