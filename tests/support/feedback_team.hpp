// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <wring/algorithm.hpp>
#include <wring/collective/executor/segments/partition.hpp>
#include <wring/compressor/error_feedback.hpp>

#include "support/collect.hpp"
#include "support/values.hpp"

/// Ranks in one process that call a collective again and again, with error feedback.
namespace wring_test {

template <class Inner> struct FeedbackTeam {
  using T = typename Inner::value_type;
  using Codec = wring::ErrorFeedback<Inner>;
  using Op = wring::Allreduce<Codec, wring::InProcessTransport, AnyAlgorithm>;

  FeedbackTeam(int count, const AnyAlgorithm& algorithm, wring::Operation operation,
               const Inner& inner = Inner(), wring::ResidualStorage storage = wring::ResidualStorage::full)
      : ranks(count), world(count), codec(inner), options{.operation = operation} {
    for (int r = 0; r < ranks; ++r) states.emplace_back(storage);
    move_by(algorithm);
  }

  /// Another algorithm from now on, with the same states.
  void move_by(const AnyAlgorithm& algorithm) {
    ops.clear();
    for (int r = 0; r < ranks; ++r)
      ops.emplace_back(Codec(codec, state(r)), world.link(r), algorithm, options);
  }

  wring::FeedbackState<T>& state(int rank) { return states[static_cast<std::size_t>(rank)]; }

  /// One more operation; what came of it is in `results`.
  std::vector<Outcome> step(const PerRank<T>& inputs, std::optional<wring::Bound> bound = {}) {
    results.assign(inputs.size(), {});
    for (std::size_t r = 0; r < inputs.size(); ++r) results[r].resize(inputs[r].size());
    for (Op& op : ops) op.options().step = steps;
    ++steps;
    return on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const Values<const T> in(inputs[r].data(), inputs[r].size());
      const Values<T> out(results[r].data(), results[r].size());
      return ops[r].start(Exec{}, wring::group(wring::item(in, out, bound)));
    });
  }

  bool one_answer() const {
    for (const auto& result : results)
      if (!same_bits(result, results[0])) return false;
    return true;
  }

  int ranks;
  std::uint64_t steps = 0;
  wring::InProcess world;
  Inner codec;
  wring::Options options;
  std::deque<wring::FeedbackState<T>> states;
  std::deque<Op> ops;
  PerRank<T> results;
};

/// What all states hold for each of n elements, in all encodings: what is owed to the result, where no two ranks encode one sum.
template <class Inner> std::vector<double> all_residuals(const FeedbackTeam<Inner>& team, std::size_t n) {
  std::vector<double> all(n);
  for (const auto& state : team.states)
    for (int encoding = 0; encoding < 2; ++encoding) {
      const std::vector<double> residuals = state.residuals(0, encoding);
      for (std::size_t i = 0; i < residuals.size(); ++i) all[i] += residuals[i];
    }
  return all;
}

/// The exact sum of each element over the ranks.
template <class T> std::vector<double> exact_sums(const PerRank<T>& inputs) {
  std::vector<double> sums(inputs[0].size());
  for (const auto& input : inputs)
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += as_double(input[i]);
  return sums;
}

/// Which encodings the result of each block has passed: worked out from the plans of all ranks, by names alone. Ranks that encode the
/// same sum with the same past do one and the same thing, a class; the first of them stands for it.
class EncodingTrace {
 public:
  struct Encoding {
    int rank = 0, number = 0;
    friend bool operator<(const Encoding& a, const Encoding& b) {
      return std::pair(a.rank, a.number) < std::pair(b.rank, b.number);
    }
  };
  struct Class {
    std::vector<Encoding> members;
    int times = 0;  ///< how often it is in the result
  };

  /// `combines`: pieces are added encoded, `finishes`: and encoded anew at the end.
  EncodingTrace(const AnyAlgorithm& algorithm, int ranks, bool combines, bool finishes)
      : combines_(combines), finishes_(finishes) {
    for (int r = 0; r < ranks; ++r)
      plans_.push_back(algorithm.plan({wring::Collective::allreduce, 0}, r, ranks));
    for (int b = 0; b < plans_[0].blocks; ++b) run(b);
  }

  /// The classes of encodings that the result of a block has passed.
  const std::vector<Class>& of_block(int block) const { return classes_[static_cast<std::size_t>(block)]; }
  const wring::Plan& plan() const { return plans_[0]; }

 private:
  /// What a rank holds of a block: names of inputs, and of the classes that it has passed.
  struct Held {
    std::map<std::string, int> content;
    int encodings = 0;
    bool encoded = false;
  };

  void run(int block) {
    const auto ranks = plans_.size();
    std::vector<Held> held(ranks);
    for (std::size_t r = 0; r < ranks; ++r) held[r].content["x" + std::to_string(r)] = 1;
    std::map<std::string, Class> classes;
    std::map<std::pair<int, int>, std::deque<Held>> on_the_way;
    std::vector<std::size_t> at(ranks, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < ranks; ++r)
        while (at[r] < plans_[r].steps.size() &&
               take(block, static_cast<int>(r), plans_[r].steps[at[r]], held[r], on_the_way, classes))
          ++at[r], moved = true;
    }
    auto& all = classes_.emplace_back();
    for (auto& [name, each] : classes) {
      const auto found = held[0].content.find(name);
      if (found == held[0].content.end()) continue;
      each.times = found->second;
      all.push_back(each);
    }
  }

  /// One step of one rank; false while its message is missing.
  bool take(int block, int rank, const wring::Step& step, Held& mine,
            std::map<std::pair<int, int>, std::deque<Held>>& on_the_way,
            std::map<std::string, Class>& classes) {
    using wring::Kind;
    if (block < step.first || block >= step.last) return true;
    const bool coded = step.wire == wring::Wire::coded;
    if (step.kind == Kind::send) {
      if (combines_ || coded) encode(rank, mine, classes);
      on_the_way[{rank, step.peer}].push_back(mine);
      return true;
    }
    if (step.kind == Kind::finish) {
      if (combines_) encode(rank, mine, classes);
      mine.encoded = false;
      if (combines_ ? finishes_ : coded) encode(rank, mine, classes);
      mine.encoded = combines_ || coded;
      return true;
    }
    auto& queue = on_the_way[{step.peer, rank}];
    if (queue.empty()) return false;
    const Held theirs = queue.front();
    queue.pop_front();
    if (step.kind == Kind::store) {
      mine.content = theirs.content, mine.encoded = combines_ || coded;
      return true;
    }
    if (combines_) encode(rank, mine, classes);
    for (const auto& [name, times] : theirs.content) mine.content[name] += times;
    mine.encoded = combines_;
    return true;
  }

  static void encode(int rank, Held& mine, std::map<std::string, Class>& classes) {
    if (mine.encoded) return;
    std::string name = "C(";
    for (const auto& [of, times] : mine.content) name += of + "*" + std::to_string(times) + ",";
    name += ")";
    classes[name].members.push_back({rank, mine.encodings++});
    mine.content[name] = 1;
    mine.encoded = true;
  }

  bool combines_, finishes_;
  std::vector<wring::Plan> plans_;
  std::vector<std::vector<Class>> classes_;
};

/// What is still owed to each element of the result, in units of sums, put together from the states of all ranks. Empty if ranks of one
/// class hold different residuals.
template <class Inner>
std::vector<double> owed(const FeedbackTeam<Inner>& team, const EncodingTrace& trace, std::size_t n) {
  std::map<EncodingTrace::Encoding, std::vector<double>> residuals;
  const auto of = [&](const EncodingTrace::Encoding& e) -> const std::vector<double>& {
    auto [at, fresh] = residuals.try_emplace(e);
    if (fresh) at->second = team.states[static_cast<std::size_t>(e.rank)].residuals(0, e.number);
    return at->second;
  };
  std::vector<double> all(n);
  wring::detail::Partition partition;
  const std::size_t lengths[] = {n};
  partition.cut_evenly(trace.plan(), lengths, std::size_t{1} << 30);
  bool same = true;
  for (int b = 0; b < trace.plan().blocks; ++b)
    partition.pieces(b, 0, [&](const wring::detail::PieceRange& range) {
      for (const auto& each : trace.of_block(b))
        for (std::size_t i = range.first; i < range.first + range.count; ++i) {
          const double e = of(each.members[0])[i];
          for (const auto& member : each.members) same = same && of(member)[i] == e;
          all[i] += each.times * e;
        }
    });
  return same ? all : std::vector<double>();
}

}  // namespace wring_test
