// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A rank or a message fails in the middle of an operation: whoever depends on it gets an error, nobody hangs, no value is wrong.
#include <catch2/catch_test_macros.hpp>

#include <memory>

#include <wring/compressor/none.hpp>
#include <wring/testing/faulty_transport.hpp>

#include "support/collect.hpp"
#include "support/matrix.hpp"

using namespace wring_test;
using wring::Cause;
using wring::Collective;
using wring::InProcess;
using wring::testing::FaultKind;
using wring::testing::FaultPlan;
using wring::testing::MessageKind;
using FaultyLink = wring::testing::FaultyTransport<wring::InProcessTransport>;

namespace {

/// Values as they are, until the n-th call of one kind fails.
struct Fuse {
  int compress_at = -1, decompress_at = -1;
  int compressed = 0, decompressed = 0;
};
struct Fragile {
  using value_type = double;
  std::shared_ptr<Fuse> fuse = std::make_shared<Fuse>();

  std::size_t max_compressed_bytes(std::size_t n) const { return 8 * n + 8; }
  wring::Identity identity() const { return {"fragile", 1, {}}; }
  template <class E> std::size_t compress(const E&, std::span<const double> x, std::span<std::byte> bytes,
                                          const wring::Context&) {
    if (fuse->compressed++ == fuse->compress_at) throw std::runtime_error("the compressor broke");
    if (!x.empty()) std::memcpy(bytes.data(), x.data(), x.size_bytes());
    return x.size_bytes();
  }
  template <class E> void decompress(const E&, std::span<const std::byte> bytes, std::span<double> x,
                                     const wring::Context&) {
    if (fuse->decompressed++ == fuse->decompress_at) throw wring::CodecError("the decompressor broke");
    if (bytes.size() != x.size_bytes()) throw wring::CodecError("wrong size");
    if (!x.empty()) std::memcpy(x.data(), bytes.data(), bytes.size());
  }
};

/// An operation on every rank of a world, of which some links or codecs may be faulty.
template <class Codec> struct Run {
  Run(int ranks, Collective what, std::size_t n, wring::Options options, const AnyAlgorithm& algorithm,
      const FaultPlan& plan = {}, std::function<Codec(int)> codec_of = {})
      : world(ranks, {.eager_limit = 0, .delay = 2, .seed = 11}),
        call{.collective = what, .options = options} {
    inputs = make_inputs<double>(call, ranks, n, false, whole_numbers<double>);
    for (int r = 0; r < ranks; ++r) {
      links.emplace_back(world.link(r), plan);
      const Codec& codec = codecs.emplace_back(codec_of ? codec_of(r) : Codec{});
      allreduces.emplace_back(codec, links.back(), algorithm, options),
          scatterers.emplace_back(codec, links.back(), algorithm, options);
      gatherers.emplace_back(codec, links.back(), algorithm, options),
          broadcasts.emplace_back(codec, links.back(), algorithm, options);
    }
  }

  Collected<double> collect() {
    Collected<double> got;
    const bool gathers = call.collective == Collective::allgather,
               scatters = call.collective == Collective::reduce_scatter;
    const std::size_t whole =
        gathers ? std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0}) : inputs[0].size();
    for (std::size_t r = 0; r < inputs.size(); ++r)
      got.results.emplace_back(scatters ? call.counts[r] : whole, -1e9);
    got.outcomes = on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const Values<const double> in(inputs[r].data(), inputs[r].size());
      const Values<double> out(got.results[r].data(), got.results[r].size());
      const auto tensors =
          wring::group(wring::item(in, out, std::nullopt, std::span<const std::size_t>(call.counts)));
      switch (call.collective) {
      case Collective::allreduce: return allreduces[r].start(Exec{}, tensors);
      case Collective::reduce_scatter: return scatterers[r].start(Exec{}, tensors);
      case Collective::allgather: return gatherers[r].start(Exec{}, tensors);
      default: return broadcasts[r].start(Exec{}, tensors, 0);
      }
    });
    return got;
  }

  /// Ranks that report success must hold the right result. Returns how many failed.
  int check(const Collected<double>& got, Cause cause, int blamed) {
    int failed = 0;
    std::size_t at = 0;
    for (std::size_t r = 0; r < inputs.size(); ++r) {
      const Outcome& o = got.outcomes[r];
      REQUIRE_FALSE(o.hangs);
      bool right = true;
      for (std::size_t i = 0; i < got.results[r].size(); ++i, ++at) {
        if (!o.ok()) continue;
        const std::size_t index = call.collective == Collective::reduce_scatter ? at : i;
        right = right &&
                reduced_within(wring::sum, terms_of(call.collective, 0, inputs, index), got.results[r][i], 0);
      }
      REQUIRE(right);
      if (o.ok()) continue;
      ++failed;
      REQUIRE(o == cause);
      if (blamed >= 0) REQUIRE(o.rank == blamed);
    }
    return failed;
  }

  InProcess world;
  Call<Codec> call;
  PerRank<double> inputs;
  std::deque<FaultyLink> links;
  std::deque<Codec> codecs;
  std::deque<wring::Allreduce<Codec, FaultyLink, AnyAlgorithm>> allreduces;
  std::deque<wring::ReduceScatter<Codec, FaultyLink, AnyAlgorithm>> scatterers;
  std::deque<wring::Allgather<Codec, FaultyLink, AnyAlgorithm>> gatherers;
  std::deque<wring::Broadcast<Codec, FaultyLink, AnyAlgorithm>> broadcasts;
};

/// After a failure: the next operation tells everyone (unless all know, or nobody was hurt), the one after is as good as new.
template <class Codec> void recovers(Run<Codec>& run, int failed, bool confirm) {
  while (run.world.progress() != wring::Progress::blocked) {
  }
  if (failed > 0 && !confirm) {
    const auto second = run.collect();
    INFO("the operation after it:" << describe(second.outcomes));
    REQUIRE(all_failed(second.outcomes, Cause::abandoned));
  }
  const auto third = run.collect();
  INFO("the operation after that:" << describe(third.outcomes));
  REQUIRE(run.check(third, Cause::none, -1) == 0);
}

/// A bit of the byte at `place` is flipped in one message; if `place` is negative, `cut` bytes are missing at its end.
FaultPlan damage(int rank, MessageKind kind, int number, int place, std::uint64_t cut) {
  wring::testing::Fault fault{.kind = place < 0 ? FaultKind::truncate : FaultKind::flip,
                              .rank = rank,
                              .messages = kind,
                              .number = static_cast<std::uint64_t>(number)};
  fault.amount = place < 0 ? cut : static_cast<std::uint64_t>(place) * 8 + 4;
  return {.faults = {fault}};
}

const AnyAlgorithm some_algorithms[] = {wring::Ring{}, wring::Direct{}, wring::RecursiveDoubling{},
                                        wring::Hierarchical<>(2)};

}  // namespace

TEST_CASE("failure: a codec throws on one rank, at any call", "[collective][failure]") {
  for (const bool confirm : {false, true})
    for (const int ranks : {2, 3, 4})
      for (const AnyAlgorithm& algorithm : some_algorithms)
        for (const Collective what : collectives)
          for (const bool decompress : {false, true})
            for (const int k : {0, 1, 3, 8}) {
              const int culprit = 1;
              const auto codec_of = [&](int r) {
                Fragile codec;
                if (r == culprit) (decompress ? codec.fuse->decompress_at : codec.fuse->compress_at) = k;
                return codec;
              };
              const wring::Options options{.segment_bytes = 4096,
                                           .depth = 2,
                                           .ride_along_bytes = k == 3 ? 65536u : 0u,
                                           .confirm = confirm};
              Run<Fragile> run(ranks, what, k == 3 ? 60 : 3000, options, algorithm, {}, codec_of);
              const auto got = run.collect();
              INFO((confirm ? "confirm, " : "")
                   << wring::name_of(what) << ", " << ranks << " ranks, " << algorithm.name()
                   << (decompress ? ", decompress " : ", compress ") << k << describe(got.outcomes));
              const int failed = run.check(got, Cause::codec, culprit);
              if (failed > 0) REQUIRE(got.outcomes[1] == Cause::codec);
              if (confirm) REQUIRE((failed == 0 || failed == ranks));
              if (failed > 0) REQUIRE(got.outcomes[1].text.find("broke") != std::string::npos);
              const Fuse& fuse = *run.codecs[1].fuse;
              const bool blown = (decompress ? fuse.decompressed : fuse.compressed) > k;
              if (!confirm && blown) REQUIRE(failed > 0);
              run.codecs[1].fuse->compress_at = run.codecs[1].fuse->decompress_at = -1;
              recovers(run, failed, confirm);
            }
}

TEST_CASE("failure: a damaged message is noticed, whatever byte it hits", "[collective][failure]") {
  for (const int ranks : {2, 3, 4})
    for (const AnyAlgorithm& algorithm : some_algorithms)
      for (const Collective what : collectives)
        for (const int number : {0, 1, 4})
          for (const int place : {0, 4, 9, 30, 57, 70, 130, 500, 4000, -1}) {
            if (random_bits(1, static_cast<std::uint64_t>(ranks * 1000 + number * 100 + place + 1)) % 2)
              continue;
            const FaultPlan plan = damage(0, MessageKind::data, number, place, 24);
            Run<wring::None<double>> run(ranks, what, 3000,
                                         {.segment_bytes = 4096, .depth = 2, .ride_along_bytes = 0},
                                         algorithm, plan);
            const auto got = run.collect();
            const bool hit = !run.links[0].injected().empty();
            INFO(wring::name_of(what) << ", " << ranks << " ranks, " << algorithm.name() << ", message "
                                      << number << ", byte " << place << describe(got.outcomes));
            const int failed = run.check(got, Cause::transport, -1);
            REQUIRE((failed > 0) == hit);
            for (FaultyLink& link : run.links) link.heal();
            recovers(run, failed, false);
          }
}

TEST_CASE("failure: a damaged agreement hangs nobody and gives no wrong value", "[collective][failure]") {
  for (const int ranks : {2, 3, 4, 5, 7})
    for (const AnyAlgorithm& algorithm : some_algorithms)
      for (const Collective what : collectives)
        for (const int number : {0, 1, 2})
          for (const int place : {0, 8, 20, 40, 200, 260, -1, -2}) {
            for (const bool rides : {false, true}) {
              const FaultPlan plan =
                  damage(1, MessageKind::agreement, number, place, place == -1 ? 156 : 1 << 20);
              const wring::Options options{
                  .segment_bytes = 4096, .depth = 2, .ride_along_bytes = rides ? 65536u : 0u};
              Run<wring::None<double>> run(ranks, what, 60, options, algorithm, plan);
              const auto got = run.collect();
              const bool hit = !run.links[1].injected().empty();
              INFO(wring::name_of(what)
                   << ", " << ranks << " ranks, " << algorithm.name() << (rides ? ", rides" : "")
                   << ", message " << number << ", byte " << place << describe(got.outcomes));
              const int failed = run.check(got, Cause::transport, -1);
              REQUIRE((failed > 0) == hit);
              for (FaultyLink& link : run.links) link.heal();
              recovers(run, failed, false);
            }
          }
}

TEST_CASE("failure: a damaged agreement of a group hangs nobody", "[collective][failure]") {
  for (const int ranks : {2, 3, 4, 6})
    for (int number = 0; number < 6; ++number) {
      InProcess world(ranks);
      std::deque<FaultyLink> links;
      std::deque<wring::Allreduce<wring::None<double>, FaultyLink>> sums;
      std::vector<std::vector<double>> data(static_cast<std::size_t>(ranks), std::vector<double>(900, 1));
      for (int r = 0; r < ranks; ++r) {
        links.emplace_back(world.link(r), damage(1, MessageKind::agreement, number, 17, 0));
        sums.emplace_back(wring::None<double>{}, links.back());
      }
      const auto outcomes = on_all_ranks(world, [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        const Values<double> a(data[r].data(), 600), b(data[r].data() + 600, 300);
        return sums[r].start(Exec{}, wring::group(wring::item(a, wring::absolute(1e-6)),
                                                  wring::item(b, wring::absolute(1e-3))));
      });
      INFO(ranks << " ranks, message " << number << describe(outcomes));
      for (std::size_t r = 0; r < outcomes.size(); ++r) {
        REQUIRE_FALSE(outcomes[r].hangs);
        if (outcomes[r].ok())
          REQUIRE(data[r] == std::vector<double>(900, ranks));
        else
          REQUIRE(outcomes[r] == Cause::transport);
      }
    }
}
