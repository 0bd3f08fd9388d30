// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the report says is what happened; temporary memory stays small.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/cast.hpp>
#include <wring/compressor/none.hpp>

#include "support/collect.hpp"
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

}  // namespace

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

TEST_CASE("report: temporary memory is at most one and a half vectors from four segments on",
          "[collective][report]") {
  const std::size_t n = 256 * 1024, bytes = n * sizeof(float);
  for (const int ranks : {2, 4, 5})
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
      const auto blocks =
          static_cast<std::size_t>(algorithm.plan({Collective::allreduce, 0}, 0, ranks).blocks);
      std::uint64_t moved = 0;
      const auto outcomes =
          run(None<float>{}, algorithm, ranks, n, {.segment_bytes = bytes / blocks / 8, .depth = 2}, moved);
      for (const Outcome& o : outcomes) {
        INFO(algorithm.name() << ", " << ranks << " ranks, " << o.report.segments << " segments");
        REQUIRE(o.report.segments >= 4);
        REQUIRE(o.report.temporary_bytes <= bytes * 3 / 2);
      }
    }
}
