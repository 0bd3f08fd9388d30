// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <wring/collective/checked.hpp>

#include "support/matrix.hpp"

/// Checked collectives on many ranks in one process, and what they say.
namespace wring_test {

inline constexpr std::size_t small_piece = 160;  // bytes: many pieces

struct Judged {
  Outcome outcome;
  std::optional<wring::VerificationError::Element> element;
};

/// Tests the requests of all ranks in turn until each has ended.
inline std::vector<Judged> complete(wring::InProcess& world, std::vector<wring::CheckedRequest>& requests) {
  std::vector<Judged> verdicts(requests.size());
  std::size_t left = requests.size();
  for (int idle = 0; left > 0 && idle < 3;) {
    bool moved = world.progress() != wring::Progress::blocked;
    for (std::size_t r = 0; r < requests.size(); ++r) {
      if (!requests[r].valid()) continue;
      Judged& v = verdicts[r];
      v.outcome = outcome_of([&](Outcome& o) {
        try {
          if (requests[r].test()) o.report = requests[r].wait();
        } catch (const wring::VerificationError& error) {
          v.element = error.element;
          throw;
        }
      });
      if (!requests[r].valid()) --left, moved = true;
    }
    idle = moved ? 0 : idle + 1;
  }
  for (std::size_t r = 0; r < requests.size(); ++r) verdicts[r].outcome.hangs = requests[r].valid();
  return verdicts;
}

/// Runs a checked collective; `codec_of(r)` is the compressor of rank r.
template <class Codec, class CodecOf, class T = typename Codec::value_type>
std::vector<Judged> run(const Call<Codec>& call, const PerRank<T>& inputs, CodecOf codec_of,
                        const AnyAlgorithm& algorithm = wring::Ring()) {
  using namespace wring;
  using Link = InProcessTransport;
  const std::size_t ranks = inputs.size();
  InProcess world(static_cast<int>(ranks), call.world);
  std::deque<Checked<Allreduce<Codec, Link, AnyAlgorithm>>> allreduces;
  std::deque<Checked<ReduceScatter<Codec, Link, AnyAlgorithm>>> scatterers;
  std::deque<Checked<Allgather<Codec, Link, AnyAlgorithm>>> gatherers;
  std::deque<Checked<Broadcast<Codec, Link, AnyAlgorithm>>> broadcasts;
  std::vector<std::vector<T>> in = inputs, out(ranks);
  std::vector<CheckedRequest> requests;
  std::size_t first = 0;
  for (std::size_t r = 0; r < ranks; ++r) {
    auto& link = world.link(static_cast<int>(r));
    const bool scatters = call.collective == Collective::reduce_scatter,
               gathers = call.collective == Collective::allgather;
    const std::size_t whole = gathers
                                  ? std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0})
                                  : in[r].size(),
                      part = scatters || gathers ? call.counts[r] : whole;
    out[r].resize(gathers && call.in_place ? whole : scatters ? part : whole);
    Values<const T> from(in[r].data(), in[r].size());
    Values<T> to(out[r].data(), out[r].size());
    if (call.in_place && gathers) {
      std::copy(in[r].begin(), in[r].end(), out[r].begin() + static_cast<std::ptrdiff_t>(first));
      from = Values<const T>(out[r].data() + first, part);
    } else if (call.in_place) {
      to = Values<T>(in[r].data() + (scatters ? first : 0), part);
    }
    first += scatters || gathers ? part : 0;
    const auto tensors = group(item(from, to, call.bound, std::span<const std::size_t>(call.counts)));
    const Codec codec = codec_of(static_cast<int>(r));
    if (call.collective == Collective::allreduce)
      requests.push_back(allreduces.emplace_back(Allreduce(codec, link, algorithm, call.options), small_piece)
                             .start(Exec{}, tensors));
    else if (scatters)
      requests.push_back(
          scatterers.emplace_back(ReduceScatter(codec, link, algorithm, call.options), small_piece)
              .start(Exec{}, tensors));
    else if (gathers)
      requests.push_back(gatherers.emplace_back(Allgather(codec, link, algorithm, call.options), small_piece)
                             .start(Exec{}, tensors));
    else
      requests.push_back(broadcasts.emplace_back(Broadcast(codec, link, algorithm, call.options), small_piece)
                             .start(Exec{}, tensors, call.root));
  }
  return complete(world, requests);
}

template <class Codec, class T> std::vector<Judged> run(const Call<Codec>& call, const PerRank<T>& inputs,
                                                        const AnyAlgorithm& algorithm = wring::Ring()) {
  return run(call, inputs, [&](int) { return call.codec; }, algorithm);
}

inline std::string describe(const std::vector<Judged>& verdicts) {
  std::vector<Outcome> outcomes;
  for (const Judged& v : verdicts) outcomes.push_back(v.outcome);
  return describe(outcomes);
}

inline void require_right(const std::vector<Judged>& verdicts) {
  INFO(describe(verdicts));
  for (const Judged& v : verdicts) REQUIRE(v.outcome.ok());
}

/// Every rank has met the same error, of this element on this rank.
inline void require_wrong(const std::vector<Judged>& verdicts, std::size_t element, int rank,
                          const char* says = "") {
  INFO(describe(verdicts));
  for (const Judged& v : verdicts) {
    REQUIRE(v.outcome == wring::Cause::verification);
    REQUIRE(v.outcome.text == verdicts[0].outcome.text);
    REQUIRE(v.outcome.text.find(says) != std::string::npos);
    REQUIRE(v.outcome.rank == rank);
    REQUIRE(v.element);
    REQUIRE(v.element->index == element);
    REQUIRE(v.element->tensor == 0);
  }
}

/// Calls `check(call, inputs)` for every collective, in place or not.
template <class Codec, class Check> void for_each_collective(int ranks, const Codec& codec, std::size_t n,
                                                             Check check) {
  using T = typename Codec::value_type;
  for (const wring::Collective collective : collectives)
    for (const bool in_place : {false, true}) {
      Call<Codec> call{.codec = codec, .collective = collective, .root = ranks - 1, .in_place = in_place};
      const auto inputs = make_inputs<T>(
          call, ranks, n, true, [](std::size_t k, std::uint64_t seed) { return whole_numbers<T>(k, seed); });
      INFO(wring::name_of(collective)
           << (in_place ? " in place, " : ", ") << ranks << " ranks, " << n << " elements");
      check(call, inputs);
    }
}

}  // namespace wring_test
