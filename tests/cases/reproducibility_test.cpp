// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same bits: on all ranks, in every run, with any number of threads.
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/detail/hash.hpp>

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include "cases/compressors.hpp"

using namespace wring_test;
using wring::absolute;
using wring::Collective;

namespace {

const std::vector<Collective> all_collectives(std::begin(collectives), std::end(collectives));

/// Ranks start, and messages arrive, in another order in each run.
template <class T> std::vector<PerRank<T>> runs_of(const AnyCompressor<T>& compressor,
                                                   const AnyAlgorithm& algorithm, AnyCall<T> call,
                                                   const PerRank<T>& inputs, int runs) {
  std::vector<PerRank<T>> all;
  for (int run = 0; run < runs; ++run) {
    call.world = {
        .eager_limit = run % 3 == 0 ? 4096u : 0u, .delay = run % 4, .seed = static_cast<std::uint64_t>(run)};
    const auto got = compressor.collect(algorithm, call, inputs);
    INFO(describe(got.outcomes));
    REQUIRE((all_ok(got.outcomes) && got.intact));
    all.push_back(got.results);
  }
  return all;
}

template <class T> void same_bits_in_every_run(const PerRank<T>& inputs, double bound) {
  const int ranks = static_cast<int>(inputs.size());
  for (const AnyCompressor<T>& compressor : all_compressors<T>()) {
    std::vector<T> first;
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
      AnyCall<T> call;
      if (!compressor.adds_values)
        call.bound = absolute(std::max(bound, compressor.least_bound * greatest_sum(call, inputs)));
      INFO(compressor.name << ", " << algorithm.name() << ", " << inputs[0].size() << " elements");
      const auto runs = runs_of(compressor, algorithm, call, inputs, 10);
      for (const auto& results : runs)
        for (const auto& result : results) REQUIRE(same_bits(result, runs[0][0]));
      if (compressor.adds_values) continue;  // sums of floating-point numbers depend on their order
      if (first.empty()) first = runs[0][0];
      REQUIRE(same_bits(runs[0][0], first));
    }
  }
}

using Bytes = std::vector<std::byte>;

/// Encoded bytes and decoded values of a matrix, packed from a layout that is not flat, as one number.
template <class Codec> std::uint64_t bits_of(Codec codec, std::size_t rows, std::size_t columns) {
  const Exec exec{};
  const std::size_t n = rows * columns;
  wring::InProcess world(2);
  std::deque<wring::Broadcast<Codec, wring::InProcessTransport>> spreads;
  std::vector<Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace>> data;
  for (int r = 0; r < 2; ++r)
    spreads.emplace_back(codec, world.link(r)), data.emplace_back("data", rows, columns);
  const std::vector<float> x = real_numbers<float>(n, 3);
  for (std::size_t i = 0; i < n; ++i) data[0](i / columns, i % columns) = x[i];
  std::optional<wring::Bound> bound;
  if constexpr (wring::BoundedCompressor<Codec>) bound = absolute(1e-3);
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return spreads[r].start(exec, wring::group(wring::item(data[r], bound)), 0);
  });
  if (!all_ok(outcomes)) return 0;
  wring::detail::Hasher hash;
  for (std::size_t i = 0; i < n; ++i)
    hash.add(__builtin_bit_cast(std::uint32_t, data[1](i / columns, i % columns)));
  if constexpr (wring::PreparedCompressor<Codec>)
    codec.prepare({.total = n, .max_abs = 4, .allowed_error = 1e-3, .measured = true});
  Bytes bytes(codec.max_compressed_bytes(n));
  const std::size_t size = codec.compress(exec, std::span(x), std::span(bytes),
                                          wring::Context{.ranks = 2, .count = n, .total = n});
  exec.fence();
  for (std::size_t i = 0; i < size; ++i) hash.add(static_cast<std::uint64_t>(bytes[i]));
  return hash.value();
}

/// Sums of four ranks in pieces that several threads share. The largest value is in the part of the first.
template <class T>
std::uint64_t bits_of_sums(typename wring::Grid<T>::Options options, wring::Bound bound, double largest) {
  const std::size_t ranks = 4, part = 50000;
  wring::InProcess world(4);
  std::deque<wring::ReduceScatter<wring::Grid<T>, wring::InProcessTransport, wring::Direct>> sums;
  std::vector<Kokkos::View<T*, Kokkos::HostSpace>> in, out;
  for (std::size_t r = 0; r < ranks; ++r) {
    sums.emplace_back(wring::Grid<T>(options), world.link(static_cast<int>(r)), wring::Direct{},
                      wring::Options{.operation = wring::mean, .segment_bytes = std::size_t{1} << 20});
    in.emplace_back("in", ranks * part), out.emplace_back("out", part);
    const auto x = real_numbers<T>(ranks * part, r);
    std::copy(x.begin(), x.end(), in.back().data());
    in.back()(7) = static_cast<T>(largest);
  }
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(Kokkos::DefaultHostExecutionSpace(), in[r], out[r], bound);
  });
  if (!all_ok(outcomes)) return 0;
  wring::detail::Hasher hash;
  for (const auto& y : out)
    for (std::size_t i = 0; i < part; ++i) hash.add(static_cast<double>(y(i)));
  return hash.value();
}

std::uint64_t bits_of_everything() {
  using Grid = wring::Grid<float>;
  wring::detail::Hasher hash;
  for (const bool delta : {false, true}) {
    hash.add(bits_of_sums<float>({.delta = delta}, absolute(1e-3), 4));
    hash.add(bits_of_sums<float>({.delta = delta}, wring::relative_to_rms(0.01), 4));
    hash.add(bits_of_sums<double>({.delta = delta}, absolute(1e-6), 2000));
  }
  for (const auto& [rows, columns] : {std::pair(3, 5), std::pair(100, 50), std::pair(1, 40000)}) {
    const auto r = static_cast<std::size_t>(rows), c = static_cast<std::size_t>(columns);
    hash.add(bits_of(wring::None<float>{}, r, c)).add(bits_of(wring::Cast<wring::half_t>{}, r, c));
    hash.add(bits_of(Grid{}, r, c)).add(bits_of(Grid(Grid::Options{.delta = true}), r, c));
  }
  return hash.value();
}

/// Sums and copies of long vectors through one compressor.
std::uint64_t bits_of(const AnyCompressor<float>& compressor) {
  const PerRank<float> inputs{real_numbers<float>(40000, 1), real_numbers<float>(40000, 2)};
  wring::detail::Hasher hash;
  for (const Collective collective : {Collective::allreduce, Collective::broadcast}) {
    AnyCall<float> call{.collective = collective};
    call.options.segment_bytes = 1 << 20;
    if (compressor.bounded) call.bound = absolute(1e-3);
    const auto got = compressor.collect(wring::Direct{}, call, inputs);
    hash.add(all_ok(got.outcomes));
    for (const auto& result : got.results)
      for (const float y : result) hash.add(__builtin_bit_cast(std::uint32_t, y));
  }
  return hash.value();
}

/// What this very program prints when it is run with so many threads.
std::string bits_with_threads(int threads) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0) return {};
  const std::string command = "OMP_NUM_THREADS=" + std::to_string(threads) +
                              " KOKKOS_NUM_THREADS=" + std::to_string(threads) + " '" + self + "' '[.bits]'";
  std::string bits;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  char line[512];
  while (std::fgets(line, sizeof line, pipe) != nullptr)
    if (const std::string text = line; text.starts_with("bits ")) bits += text;
  return pclose(pipe) == 0 ? bits : "failed";
}

}  // namespace

TEST_CASE("a sum that depends on its order: the same bits on all ranks, in every run",
          "[cases][reproducible]") {
  for (const std::size_t n : {1, 1000}) {
    PerRank<float> inputs;
    for (const float x : {1e8f, 1.0f, -1e8f, 1.0f}) inputs.emplace_back(n, x);
    same_bits_in_every_run(inputs, 60);
  }
  PerRank<float> mixed;
  for (std::uint64_t r = 0; r < 5; ++r) mixed.push_back(real_numbers<float>(1300, r, r == 2 ? 1e4 : 1));
  same_bits_in_every_run(mixed, 1e-2);
  PerRank<wring::half_t> halves;
  for (std::uint64_t r = 0; r < 3; ++r) halves.push_back(real_numbers<wring::half_t>(700, r, 100));
  same_bits_in_every_run(halves, 1);
}

TEST_CASE("what was rounded on its way is rounded at its owner too: all copies are alike",
          "[cases][reproducible]") {
  PerRank<float> inputs;
  for (std::uint64_t r = 0; r < 3; ++r) inputs.push_back(real_numbers<float>(64, r));
  const Case<float> all{.inputs = inputs,
                        .bound = absolute(0.05),
                        .collectives = {Collective::allgather, Collective::broadcast}};
  everywhere(all, [&](const AnyCompressor<float>& compressor, const AnyCall<float>& call,
                      const Collected<float>& got) {
    REQUIRE((all_ok(got.outcomes) && got.intact));
    for (const auto& y : got.results) REQUIRE(same_bits(y, got.results[0]));
    if (compressor.bounded && compressor.adds_values) return;  // keeps every bit
    for (std::size_t r = 0; r < 3; ++r) {                      // the owner's part has been replaced
      if (call.collective == Collective::broadcast && static_cast<int>(r) != call.root) continue;
      const std::size_t first = call.collective == Collective::allgather ? 64 * r : 0;
      const std::vector<float> own(got.results[r].begin() + static_cast<std::ptrdiff_t>(first),
                                   got.results[r].begin() + static_cast<std::ptrdiff_t>(first + 64));
      REQUIRE_FALSE(same_bits(own, inputs[r]));
    }
  });
}

TEST_CASE("the same bytes and values for any number of threads, more than rows included",
          "[cases][reproducible]") {
  const std::string one = bits_with_threads(1);
  REQUIRE(one.starts_with("bits "));
  for (const int threads : {1, 2, 7, 16}) {
    INFO(threads << " threads");
    REQUIRE(bits_with_threads(threads) == one);
  }
}

TEST_CASE("prints the bits", "[.bits]") {
  std::printf("bits %016llx\n", static_cast<unsigned long long>(bits_of_everything()));
  for (const AnyCompressor<float>& compressor : all_compressors<float>())
    std::printf("bits %016llx %s\n", static_cast<unsigned long long>(bits_of(compressor)),
                compressor.name.c_str());
  std::fflush(stdout);
}
