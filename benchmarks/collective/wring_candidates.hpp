// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <wring/wring.hpp>

#include "collective/candidate.hpp"
#include "collective/problem.hpp"
#include "collective/settings.hpp"

namespace wring_benchmark {

/// Any of the algorithms as one type, so that each compressor is compiled once.
class AnySchedule {
 public:
  template <class A>
    requires(!std::same_as<A, AnySchedule>)
  AnySchedule(const A& model)
      : name_(model.name()),
        plan_([model](wring::Task task, int rank, int ranks) { return model.plan(task, rank, ranks); }) {}

  std::string name() const { return name_; }
  wring::Plan plan(wring::Task task, int rank, int ranks) const { return plan_(task, rank, ranks); }

 private:
  std::string name_;
  std::function<wring::Plan(wring::Task, int, int)> plan_;
};

/// `node`: ranks of a node, which matters to `Hierarchical` alone.
inline AnySchedule schedule_from(const std::string& name, int node) {
  if (name == "ring") return wring::Ring{};
  if (name == "direct") return wring::Direct{};
  if (name == "recursive_doubling") return wring::RecursiveDoubling{};
  if (name == "hierarchical") return wring::Hierarchical<>(node);
  return wring::HalvingDoubling{};
}

class WringCandidates {
 public:
  WringCandidates(const Problem& problem, const Settings& settings, double allowed_error,
                  wring::MpiTransport& link)
      : problem_(problem), settings_(settings), allowed_error_(allowed_error), link_(link) {}

  std::vector<Candidate> all() const {
    std::vector<Candidate> candidates;
    for (const auto& compressor : settings_.compressors)
      for (const auto& algorithm : settings_.algorithms)
        if (is_pair(compressor, algorithm)) candidates.push_back(one(compressor, algorithm));
    return candidates;
  }

 private:
  Candidate one(const std::string& compressor, const std::string& algorithm) const {
    Candidate c{
        .what = "wring " + compressor + "/" + algorithm, .compressor = compressor, .algorithm = algorithm};
    c.allowance.same_bits = true;
    if (algorithm == "native")
      complete_bounded(c, wring::PackedWords<float>(), wring::Native{});
    else if (algorithm == "automatic")
      complete(c, compressor, wring::Automatic{});
    else
      complete(c, compressor, schedule_from(algorithm, settings_.node));
    return c;
  }

  template <class Schedule>
  void complete(Candidate& c, const std::string& compressor, const Schedule& schedule) const {
    if (compressor == "grid") {
      complete_bounded(c, wring::Grid<float>(), schedule);
    } else if (compressor == "none") {
      c.allowance.relative = problem_.ranks * 0x1p-24;
      c.run = call(wring::None<float>(), schedule, std::nullopt);
    } else {
      c.allowance.relative = (problem_.ranks + 1) * 0x1p-8;  // as for MPI's cast
      c.run = call(wring::Cast<wring::bhalf_t, float>(), schedule, std::nullopt);
    }
  }

  template <class Codec, class Schedule>
  void complete_bounded(Candidate& c, Codec codec, const Schedule& schedule) const {
    c.allowance.bound = allowed_error_, c.allowance.relative = problem_.ranks * 0x1p-53;
    c.run = call(codec, schedule, settings_.bound);
  }

  template <class Codec, class Schedule>
  std::function<wring::Report()> call(Codec codec, const Schedule& schedule,
                                      std::optional<wring::Bound> bound) const {
    using enum wring::Collective;
    switch (problem_.collective) {
    case allreduce:
      return group_of<wring::Allreduce<Codec, wring::MpiTransport, Schedule>>(codec, schedule, bound);
    case reduce_scatter:
      return group_of<wring::ReduceScatter<Codec, wring::MpiTransport, Schedule>>(codec, schedule, bound);
    case allgather:
      return group_of<wring::Allgather<Codec, wring::MpiTransport, Schedule>>(codec, schedule, bound);
    default: return broadcast_of(codec, schedule, bound);
    }
  }

  template <class Operation, class Codec, class Schedule>
  std::function<wring::Report()> group_of(Codec codec, const Schedule& schedule,
                                          std::optional<wring::Bound> bound) const {
    const auto operation = std::make_shared<Operation>(codec, link_, schedule, settings_.options);
    calibrate(*operation, schedule);
    return [operation, in = problem_.in, out = problem_.out, bound] {
      return (*operation)(Exec{}, wring::group(wring::item(in, out, bound)));
    };
  }

  template <class Codec, class Schedule> std::function<wring::Report()>
  broadcast_of(Codec codec, const Schedule& schedule, std::optional<wring::Bound> bound) const {
    using Operation = wring::Broadcast<Codec, wring::MpiTransport, Schedule>;
    const auto operation = std::make_shared<Operation>(codec, link_, schedule, settings_.options);
    calibrate(*operation, schedule);
    return [operation, data = problem_.out, bound] {
      return (*operation)(Exec{}, wring::group(wring::item(data, bound)), 0);
    };
  }

  using Exec = Kokkos::DefaultHostExecutionSpace;

  template <class Operation, class Schedule> static void calibrate(Operation& operation, const Schedule&) {
    if constexpr (std::is_same_v<Schedule, wring::Automatic>) operation.calibrate(Exec{});
  }

  const Problem& problem_;
  const Settings& settings_;
  double allowed_error_;
  wring::MpiTransport& link_;
};

}  // namespace wring_benchmark
