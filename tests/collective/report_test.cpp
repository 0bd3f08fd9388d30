// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the report says is what happened; temporary memory stays small.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>

#include "support/collect.hpp"
#include "support/executors.hpp"
#include "support/matrix.hpp"

using namespace wring_test;
using wring::Collective;
using wring::InProcess;
using wring::None;

namespace {

using View = Kokkos::View<float*, Kokkos::HostSpace>;

/// Allreduces `n` values on `ranks` ranks; the reports of all ranks, and the bytes that the world has moved.
template <class Codec>
std::vector<Outcome> run(const Codec& codec, const AnyAlgorithm& algorithm, int ranks, std::size_t n,
                         wring::Options options, std::uint64_t& moved) {
  InProcess world(ranks);
  std::deque<wring::Allreduce<Codec, wring::InProcessTransport, AnyAlgorithm>> sums;
  std::vector<View> data;
  for (int r = 0; r < ranks; ++r)
    sums.emplace_back(codec, world.link(r), algorithm, options), data.emplace_back("data", n);
  auto outcomes = on_all_ranks(world, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, data[static_cast<std::size_t>(r)]);
  });
  moved = world.bytes();
  return outcomes;
}

/// The bytes of all messages of a plan, if each block is its part of one long piece: the plan is followed with sets of ranks, as bits, for
/// values; `sizes[set]`: encoded, of the sum of these ranks' vectors.
double bytes_of_edges(const AnyAlgorithm& algorithm, int ranks, const std::vector<double>& sizes) {
  using Sets = std::vector<std::size_t>;
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<wring::Plan> plans;
  for (int r = 0; r < ranks; ++r) plans.push_back(algorithm.plan({}, r, ranks));
  const auto blocks = static_cast<std::size_t>(plans[0].blocks);
  std::vector<Sets> held;
  for (std::size_t r = 0; r < p; ++r) held.emplace_back(blocks, std::size_t{1} << r);
  std::map<std::pair<int, int>, std::deque<Sets>> channels;
  Sets next(p, 0);
  double bytes = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < p; ++r)
      for (; next[r] < plans[r].steps.size(); ++next[r], moved = true) {
        const wring::Step& step = plans[r].steps[next[r]];
        const auto first = held[r].begin() + step.first, last = held[r].begin() + step.last;
        if (step.kind == wring::Kind::send) {
          channels[{plans[r].rank, step.peer}].emplace_back(first, last);
          for (auto set = first; set != last; ++set) bytes += sizes[*set] / static_cast<double>(blocks);
        } else if (step.kind != wring::Kind::finish) {
          auto& channel = channels[{step.peer, plans[r].rank}];
          if (channel.empty()) break;
          const bool adds = step.kind == wring::Kind::combine;
          for (std::size_t i = 0; i < channel.front().size(); ++i)
            first[static_cast<std::ptrdiff_t>(i)] =
                (adds ? first[static_cast<std::ptrdiff_t>(i)] : 0) | channel.front()[i];
          channel.pop_front();
        }
      }
  }
  for (std::size_t r = 0; r < p; ++r) REQUIRE(next[r] == plans[r].steps.size());
  return bytes;
}

/// The bytes of every sum of some of the vectors, by the set of ranks as bits, for an allreduce within `bound`.
std::vector<double> sizes_of_sums(const PerRank<float>& inputs, double bound) {
  const std::size_t n = inputs[0].size();
  wring::Grid<float> codec;
  wring::Agreed agreed;
  agreed.ranks = static_cast<int>(inputs.size()), agreed.total = n, agreed.allowed_error = bound;
  for (const auto& input : inputs)
    for (const float x : input) agreed.max_abs = std::max(agreed.max_abs, std::abs(as_double(x)));
  agreed.measured = true;
  codec.prepare(agreed);
  wring::Context context;
  context.ranks = agreed.ranks, context.count = context.total = n;
  std::vector<std::vector<std::byte>> pieces(std::size_t{1} << inputs.size());
  std::vector<double> sizes(pieces.size(), 0);
  for (std::size_t set = 1; set < pieces.size(); ++set) {
    const std::size_t rest = set & (set - 1), rank = static_cast<std::size_t>(std::countr_zero(set));
    std::vector<std::byte>& piece = pieces[set];
    piece.resize(codec.max_combined_bytes(n, agreed.ranks));
    piece.resize(rest == 0 ? codec.compress(Exec{}, std::span<const float>(inputs[rank]), piece, context)
                           : codec.combine(Exec{}, pieces[rest], pieces[set ^ rest], piece, context));
    sizes[set] = static_cast<double>(piece.size());
  }
  return sizes;
}

/// The temporary memory of an allreduce, in vectors: docs/algorithms.md.
double most_vectors(const std::string& algorithm, const std::optional<wring::Bound>& bound) {
  const int column = !bound ? 0 : bound->kind != wring::Bound::Kind::absolute ? 1 : 2;
  if (algorithm == "ring" || algorithm == "direct")
    return std::array{0.8, 0.3, 0.8}[static_cast<std::size_t>(column)];
  if (algorithm == "halving_doubling") return std::array{1.5, 0.6, 1.0}[static_cast<std::size_t>(column)];
  if (algorithm == "recursive_doubling") return std::array{1.5, 0.7, 1.4}[static_cast<std::size_t>(column)];
  return std::array{1.5, 1.8, 1.8}[static_cast<std::size_t>(column)];
}

}  // namespace

TEST_CASE(
    "report: bytes on the wire are those of the plan's edges encoded offline, and two hundredths at most",
    "[collective][report]") {
  constexpr int ranks = 4;
  constexpr double bound = 0.25;
  for (const std::size_t n : {1u << 18, 1u << 20}) {
    PerRank<float> inputs;
    for (std::uint64_t r = 0; r < ranks; ++r) inputs.push_back(real_numbers<float>(n, r));
    const std::vector<double> sizes = sizes_of_sums(inputs, bound);
    for (const AnyAlgorithm& algorithm :
         {AnyAlgorithm(wring::Ring{}), AnyAlgorithm(wring::Direct{}),
          AnyAlgorithm(wring::RecursiveDoubling{}), AnyAlgorithm(wring::HalvingDoubling{})}) {
      Call<wring::Grid<float>> call{.bound = wring::absolute(bound)};
      double sent = 0;
      for (const Outcome& o : collect(algorithm, call, inputs).outcomes)
        sent += static_cast<double>(o.report.bytes_sent);
      const double least = bytes_of_edges(algorithm, ranks, sizes);
      INFO(algorithm.name() << ", " << n << " values: " << sent << " bytes, offline " << least);
      CHECK((sent >= 0.98 * least && sent <= 1.02 * least));
    }
  }
}

TEST_CASE("report: bytes sent by all ranks are the bytes that moved", "[collective][report]") {
  for (const int ranks : {1, 2, 3, 4, 6})
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
      for (const std::size_t n : {0, 10, 5000})
        for (const bool confirm : {false, true}) {
          std::uint64_t moved = 0, sent = 0;
          const auto outcomes =
              run(None<float>{}, algorithm, ranks, n, {.segment_bytes = 4096, .confirm = confirm}, moved);
          INFO(algorithm.name() << ", " << ranks << " ranks, " << n << " elements" << describe(outcomes));
          REQUIRE(all_ok(outcomes));
          for (const Outcome& o : outcomes) {
            const wring::Report& r = o.report;
            sent += r.bytes_sent;
            REQUIRE(r.bytes_given == n * sizeof(float));
            REQUIRE((r.algorithm == algorithm.name() && r.compressor == "none"));
            REQUIRE(r.rode_along == (n <= 10 && ranks > 1));
            REQUIRE((r.seconds >= 0 && r.wire_seconds >= 0 && r.encode_seconds <= r.seconds));
            REQUIRE_FALSE(r.bound.has_value());
            REQUIRE_FALSE(r.reproducible);
            if (ranks == 1) REQUIRE((r.messages == 0 && r.bytes_sent == 0 && r.ratio() == 1));
            if (r.rode_along) REQUIRE(r.ratio() == 1);
          }
          REQUIRE(sent == moved);
        }
}

TEST_CASE("report: a ring sends 2 (p - 1) / p vectors per rank, and encodes p pieces per segment",
          "[collective][report]") {
  std::uint64_t moved = 0;
  const std::size_t n = 64 * 512;  // 4 blocks of 16 units, 2 segments of 8
  const auto outcomes =
      run(wring::Cast<wring::bhalf_t>{}, wring::Ring{}, 4, n, {.segment_bytes = 8 * 512 * 4}, moved);
  for (const Outcome& o : outcomes) {
    REQUIRE(o.report.bytes_raw == n * 4 * 6 / 4);
    REQUIRE((o.report.segments == 2 && o.report.messages == 12 && o.report.encodings == 8));
    REQUIRE(o.report.ratio() > 1.9);
  }
}

TEST_CASE("report: a broadcast is given the vector on every rank", "[collective][report]") {
  Call<None<float>> call{.collective = Collective::broadcast};
  const auto got = collect(wring::Ring{}, call, PerRank<float>(3, std::vector<float>(100, 1)));
  for (const Outcome& o : got.outcomes) REQUIRE(o.report.bytes_given == 400);
}

TEST_CASE("report: temporary memory is what docs/algorithms.md says, from four segments on",
          "[collective][report]") {
  const std::size_t n = 256 * 1024, bytes = n * sizeof(float);
  const auto check = [&](const auto& codec, std::optional<wring::Bound> bound) {
    for (const int ranks : {2, 4, 5, 8})
      for (const std::size_t segments : {4, 5, 8, 16})
        for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
          const auto blocks = static_cast<std::size_t>(algorithm.plan({}, 0, ranks).blocks);
          Call<std::remove_cvref_t<decltype(codec)>> call{.codec = codec, .bound = bound};
          call.options.segment_bytes = bytes / blocks / segments;
          PerRank<float> inputs;
          for (int r = 0; r < ranks; ++r)
            inputs.push_back(real_numbers<float>(n, static_cast<std::uint64_t>(r)));
          for (const Outcome& o : collect(algorithm, call, inputs).outcomes) {
            INFO(algorithm.name() << ", " << ranks << " ranks, " << o.report.segments << " segments"
                                  << (bound ? ", Grid" : ""));
            REQUIRE((o.ok() && o.report.segments >= segments));
            const double vectors = static_cast<double>(o.report.temporary_bytes) / static_cast<double>(bytes);
            CHECK(vectors < most_vectors(algorithm.name(), bound) + 0.01);  // headers
          }
        }
  };
  check(None<float>{}, std::nullopt);
  check(wring::Grid<float>{}, wring::relative_to_rms(0.1));
  check(wring::Grid<float>{}, wring::absolute(0.25));
}

TEST_CASE("report: its names, and all of it, can be printed by fmt and by streams", "[collective][report]") {
  wring::Report report;
  report.algorithm = "ring", report.compressor = "grid", report.reason = "as given";
  report.bytes_given = 4000, report.bytes_sent = 1500, report.bytes_raw = 6000;
  report.seconds = 0.0025, report.encode_seconds = 1e-3, report.wire_seconds = 1.5e-3;
  CHECK(fmt::format("{}: {}", report.algorithm, report.reason) == "ring: as given");
  const std::string without_bound =
      "ring, grid: 4000 bytes given, 1500 sent, ratio 4, no bound, 2.5 ms (measure 0, encode 1, combine 0, "
      "decode 0, wire 1.5); as given";
  CHECK(to_string(report) == without_bound);
  CHECK(fmt::format("{}", report) == without_bound);
  report.bound = 1.25e-4;
  std::ostringstream out;
  out << report.compressor << " | " << report;
  CHECK(out.str().starts_with(
      "grid | ring, grid: 4000 bytes given, 1500 sent, ratio 4, bound 0.000125, 2.5 ms ("));
}
