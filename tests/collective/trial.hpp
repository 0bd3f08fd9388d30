// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <wring/collective.hpp>
#include <wring/testing/faulty_transport.hpp>
#include <wring/transport/in_process.hpp>

#include "support/collect.hpp"
#include "support/matrix.hpp"

/// One collective on ranks of which some may fail, driven to its end whatever happens.
namespace wring_test {

using FaultyLink = wring::testing::FaultyTransport<wring::InProcessTransport>;

/// What all ranks call, alike.
struct Exercise {
  wring::Collective collective = wring::Collective::allreduce;
  int ranks = 2;
  AnyAlgorithm algorithm = wring::Ring{};
  wring::Options options{};
  Lengths lengths{40};  ///< of the tensors: more than one are a group
  bool bounded = false;
  int root = 0;
  std::uint64_t seed = 1;
};

inline std::string describe(const Exercise& e) {
  return std::string(wring::name_of(e.collective)) + " " + wring::name_of(e.options.operation) + ", " +
         std::to_string(e.ranks) + " ranks, " + e.algorithm.name() + ", " + std::to_string(e.lengths[0]) +
         " elements" + (e.lengths.size() > 1 ? " and more" : "") + ", segments of " +
         std::to_string(e.options.segment_bytes) + ", depth " + std::to_string(e.options.depth) +
         ", ride along " + std::to_string(e.options.ride_along_bytes) +
         (e.options.confirm ? ", confirmed" : "") + ", root " + std::to_string(e.root) + ", seed " +
         std::to_string(e.seed);
}

/// How an operation ended on all ranks.
template <class T> struct Ending {
  std::vector<Outcome> outcomes;
  std::vector<bool> took_part, timed_out;  ///< timed out: nothing moved any more, a deadline ended it
  std::vector<PerRank<T>> results;         ///< per tensor and rank
  std::size_t rounds = 0;                  ///< of tests of all ranks
  bool endless = false;                    ///< always said that something moved

  int failed() const {
    int n = 0;
    for (std::size_t r = 0; r < outcomes.size(); ++r) n += took_part[r] && !outcomes[r].ok();
    return n;
  }
  int present() const { return static_cast<int>(std::count(took_part.begin(), took_part.end(), true)); }
  bool any_timed_out() const { return std::count(timed_out.begin(), timed_out.end(), true) > 0; }
  /// Every rank that took part ended alike: well, or with the same error.
  bool alike() const {
    const Outcome* first = nullptr;
    for (std::size_t r = 0; r < outcomes.size(); ++r) {
      if (!took_part[r]) continue;
      if (first == nullptr) first = &outcomes[r];
      if (outcomes[r].cause != first->cause || outcomes[r].rank != first->rank) return false;
    }
    return true;
  }
};

/// What somebody does on one rank between two rounds of tests; true: its request is gone.
using Meddle = std::function<bool(int rank, std::size_t round, wring::Request& request)>;

/// An operation on every rank of a world, with faults. The same objects serve several operations.
template <class Codec> class Trial {
 public:
  using T = typename Codec::value_type;

  Trial(const Exercise& exercise, const wring::testing::FaultPlan& plan = {},
        std::function<Codec(int)> codec_of = {})
      : exercise_(exercise), world_(exercise.ranks, {.eager_limit = exercise.seed % 3 == 0 ? 4096u : 0u,
                                                     .delay = static_cast<int>(exercise.seed % 3),
                                                     .seed = exercise.seed}) {
    for (std::size_t i = 0; i < exercise_.lengths.size(); ++i) {
      Call<Codec> call;
      call.collective = exercise_.collective;
      inputs_.push_back(make_inputs<T>(
          call, exercise_.ranks, exercise_.lengths[i], exercise_.seed % 2 == 1,
          [&](std::size_t n, std::uint64_t rank) { return whole_numbers<T>(n, rank + 100 * i); }));
      counts_.push_back(call.counts);
    }
    for (int r = 0; r < exercise_.ranks; ++r) {
      FaultyLink& link = links_.emplace_back(world_.link(r), plan);
      const Codec codec = codec_of ? codec_of(r) : Codec{};
      switch (exercise_.collective) {
      case wring::Collective::allreduce:
        allreduces_.emplace_back(codec, link, exercise_.algorithm, exercise_.options);
        break;
      case wring::Collective::reduce_scatter:
        scatterers_.emplace_back(codec, link, exercise_.algorithm, exercise_.options);
        break;
      case wring::Collective::allgather:
        gatherers_.emplace_back(codec, link, exercise_.algorithm, exercise_.options);
        break;
      default: broadcasts_.emplace_back(codec, link, exercise_.algorithm, exercise_.options);
      }
    }
  }

  const Exercise& exercise() const { return exercise_; }
  FaultyLink& link(int rank) { return links_[static_cast<std::size_t>(rank)]; }
  const PerRank<T>& inputs(std::size_t tensor) const { return inputs_[tensor]; }
  const Lengths& counts(std::size_t tensor) const { return counts_[tensor]; }

  /// Runs the operation: starts it on all ranks but those absent, tests until all have ended or nothing moves, at most so many rounds; then
  /// the deadline of every rank passes. Ranks that have stopped take part no more.
  Ending<T> run(std::size_t most_rounds, const std::vector<int>& absent = {}, const Meddle& meddle = {}) {
    const auto ranks = static_cast<std::size_t>(exercise_.ranks);
    Ending<T> end;
    prepare_results(end);
    end.outcomes.resize(ranks), end.took_part.assign(ranks, true), end.timed_out.assign(ranks, false);
    std::vector<wring::Request> requests(ranks);
    std::vector<bool> over(ranks, false);
    for (std::size_t r = 0; r < ranks; ++r) {
      if (std::count(absent.begin(), absent.end(), static_cast<int>(r)) > 0 || links_[r].stopped()) {
        end.took_part[r] = false, over[r] = true;
        continue;
      }
      end.outcomes[r] = outcome_of([&](Outcome&) { requests[r] = start(static_cast<int>(r), end); });
      over[r] = !end.outcomes[r].ok();
    }
    poll(end, requests, over, most_rounds, meddle);
    for (std::size_t r = 0; r < ranks; ++r) {
      if (over[r]) continue;
      over[r] = true;
      if (links_[r].stopped() && end.outcomes[r].ok()) {
        end.took_part[r] = false;
        continue;
      }
      end.timed_out[r] = true;
      end.outcomes[r] = outcome_of([&](Outcome&) { requests[r].wait(wring::Deadline::clock::now()); });
      poll(end, requests, over, end.rounds + most_rounds, meddle);  // the others may go on now
    }
    return end;
  }

  /// Moves what is left of earlier operations until nothing moves; false if that has no end.
  bool settle(std::size_t most_rounds) {
    for (std::size_t i = 0; i < most_rounds; ++i)
      if (links_[0].progress() == wring::Progress::blocked) return true;
    return false;
  }

  bool retired() {
    for (FaultyLink& link : links_)
      if (link.session().retired()) return true;
    return false;
  }

 private:
  void prepare_results(Ending<T>& end) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      end.results.emplace_back();
      for (std::size_t r = 0; r < inputs_[i].size(); ++r)
        end.results[i].emplace_back(
            exercise_.collective == wring::Collective::reduce_scatter ? counts_[i][r] : exercise_.lengths[i],
            static_cast<T>(-999));
    }
  }

  wring::Request start(int rank, Ending<T>& end) {
    const auto r = static_cast<std::size_t>(rank);
    std::vector<wring::Item<Values<const T>, Values<T>>> items;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::optional<wring::Bound> bound =
          exercise_.bounded ? std::optional(i + exercise_.seed % 2 == 0 ? wring::absolute(1e-2)
                                                                        : wring::relative_to_rms(1e-2))
                            : std::nullopt;
      items.push_back(wring::item(Values<const T>(inputs_[i][r].data(), inputs_[i][r].size()),
                                  Values<T>(end.results[i][r].data(), end.results[i][r].size()), bound,
                                  std::span<const std::size_t>(counts_[i])));
    }
    const auto tensors = wring::group(std::move(items));
    switch (exercise_.collective) {
    case wring::Collective::allreduce: return allreduces_[r].start(Exec{}, tensors);
    case wring::Collective::reduce_scatter: return scatterers_[r].start(Exec{}, tensors);
    case wring::Collective::allgather: return gatherers_[r].start(Exec{}, tensors);
    default: return broadcasts_[r].start(Exec{}, tensors, exercise_.root);
    }
  }

  void poll(Ending<T>& end, std::vector<wring::Request>& requests, std::vector<bool>& over,
            std::size_t most_rounds, const Meddle& meddle) {
    for (int idle = 0; idle < 2 && std::find(over.begin(), over.end(), false) != over.end();) {
      if (end.rounds++ == most_rounds) {
        end.endless = true;
        return;
      }
      bool moved = false;
      for (std::size_t r = 0; r < over.size(); ++r) {
        if (over[r]) continue;
        if (meddle && meddle(static_cast<int>(r), end.rounds, requests[r])) {
          over[r] = moved = true, end.took_part[r] = false;
          continue;
        }
        end.outcomes[r] = outcome_of([&](Outcome& o) {
          over[r] = true;  // unless it says otherwise
          over[r] = requests[r].test();
          if (over[r]) o.report = requests[r].wait();
        });
        moved = moved || over[r];
      }
      moved = links_[0].progress() != wring::Progress::blocked || moved;
      idle = moved ? 0 : idle + 1;
    }
  }

  Exercise exercise_;
  std::vector<PerRank<T>> inputs_;
  std::vector<Lengths> counts_;
  wring::InProcess world_;
  std::deque<FaultyLink> links_;
  std::deque<wring::Allreduce<Codec, FaultyLink, AnyAlgorithm>> allreduces_;
  std::deque<wring::ReduceScatter<Codec, FaultyLink, AnyAlgorithm>> scatterers_;
  std::deque<wring::Allgather<Codec, FaultyLink, AnyAlgorithm>> gatherers_;
  std::deque<wring::Broadcast<Codec, FaultyLink, AnyAlgorithm>> broadcasts_;
};

}  // namespace wring_test
