// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <wring/algorithm/native.hpp>
#include <wring/compressor/none.hpp>

#include "support/executors.hpp"
#include "support/matrix.hpp"

/// One input, every compressor that takes its element type, every algorithm.
namespace wring_test {

inline constexpr double infinite = std::numeric_limits<double>::infinity(),
                        not_a_number = std::numeric_limits<double>::quiet_NaN();

/// What is called, alike with every compressor: the codec in it does not count.
template <class T> using AnyCall = Call<wring::None<T>>;

/// A compressor as one type; all are compiled once, in cases/compressors/.
template <class T> struct AnyCompressor {
  std::string name;
  bool bounded = false;        ///< asks for a bound and keeps it
  bool adds_values = true;     ///< not encoded pieces
  bool by_itself = true;       ///< rounds each value by itself, not in groups with a common scale
  double roundoff = 0;         ///< of what it sends, relative; 0 if it keeps all bits, or a bound
  double least_subnormal = 0;  ///< of what it sends
  double greatest = infinite;  ///< finite value that it sends
  bool mixes = false;          ///< values of a group into each other, so that zeros and signs are not kept
  bool sums_only = false;      ///< refuses MIN and MAX
  bool sums_words = false;     ///< runs by Native, too
  double least_bound = 0;      ///< it may refuse bounds below so many times the greatest partial sum,
  double least_error = 0;      ///< and those below this; both 0: it keeps every bound that can be kept
  /// What of a rank's input counts, the others are as zeros; empty: all of it.
  std::function<std::vector<T>(const std::vector<T>&)> selected{};
  std::function<Collected<T>(const AnyAlgorithm&, const AnyCall<T>&, const PerRank<T>&)> collect{};
};

/// For float, double, half_t and bhalf_t: all that take such elements.
template <class T> std::vector<AnyCompressor<T>> all_compressors();

template <class T> std::vector<T> elements(const std::vector<double>& values) {
  std::vector<T> x;
  for (const double v : values) x.push_back(to_element<T>(v));
  return x;
}

template <class T> double greatest_magnitude(const PerRank<T>& inputs) {
  double most = 0;
  for (const auto& input : inputs)
    for (const T& x : input)
      if (std::isfinite(as_double(x))) most = std::max(most, std::abs(as_double(x)));
  return most;
}

/// The greatest magnitude that values and their partial sums may have.
template <class T> double greatest_sum(const AnyCall<T>& call, const PerRank<T>& inputs) {
  const bool adds = wring::reduces(call.collective) && wring::adds(call.options.operation);
  return greatest_magnitude(inputs) * (adds ? static_cast<double>(inputs.size()) : 1);
}

/// What a collective may be off by where no bound was asked: a rounding of each encoding (at most 2 p of them reach a sum) and of each
/// addition, relative to the greatest partial sum; anything where a narrow format cannot hold that.
template <class T> double unasked_error(const AnyCompressor<T>& compressor, const AnyCall<T>& call,
                                        const PerRank<T>& inputs) {
  const bool reduces = wring::reduces(call.collective), adds = reduces && wring::adds(call.options.operation);
  const double ranks = static_cast<double>(inputs.size()), sums = greatest_sum(call, inputs);
  const double own = wring::FloatTraits<T>::unit_roundoff, tiny = wring::FloatTraits<T>::least_subnormal;
  if (sums > compressor.greatest) return infinite;  // saturated
  double error = adds ? ranks * (own * 1.1 * sums + tiny) : 0;
  if (compressor.roundoff != 0)
    error += (adds      ? 2 * ranks
              : reduces ? (compressor.by_itself ? 2 : 2 * ranks)
                        : 1) *
             (std::max(compressor.roundoff, own) * 1.1 * sums + std::max(compressor.least_subnormal, tiny));
  return error;
}

/// Copies are never refused. Sums may be, where rounding them may exceed the bound, or where partial sums may overflow if values are
/// added as they are.
enum class Refusable { nothing, sums_of_values, sums };

/// An input, and what is asked of it.
template <class T> struct Case {
  PerRank<T> inputs;  ///< of equal length, but for allgather
  wring::Bound bound = wring::absolute(0);
  double error = bound.value;  ///< what the bound means here, in the units of the data
  std::vector<wring::Collective> collectives{wring::Collective::allreduce, wring::Collective::broadcast};
  std::vector<wring::Operation> operations{wring::sum};
  Refusable refusable = Refusable::nothing;
  std::vector<AnyAlgorithm> algorithms = all_algorithms(static_cast<int>(inputs.size()));
};

/// The call of a case, run in one of the ways that must not matter.
template <class T> AnyCall<T> call_of(const Case<T>& all, wring::Collective collective,
                                      wring::Operation operation, unsigned variant) {
  const int ranks = static_cast<int>(all.inputs.size());
  AnyCall<T> call{.collective = collective};
  vary(call, static_cast<unsigned>(random_bits(21, variant) % 1024), ranks);
  call.options.operation = operation;
  if (collective == wring::Collective::reduce_scatter)
    call.counts = uneven_counts(all.inputs[0].size(), ranks);
  if (collective == wring::Collective::allgather)
    for (const auto& input : all.inputs) call.counts.push_back(input.size());
  return call;
}

/// Whether all ranks have refused what this compressor may refuse: it says so itself.
template <class T> bool declined(const AnyCompressor<T>& compressor, const Case<T>& all,
                                 const AnyCall<T>& call, const Collected<T>& got) {
  if (compressor.sums_only && wring::reduces(call.collective) && !wring::adds(call.options.operation)) {
    REQUIRE((all_failed(got.outcomes, wring::Cause::argument) && got.intact));
    return true;
  }
  const double sums = greatest_sum(call, all.inputs);
  const bool tight = sums > 0 && all.error < std::max(compressor.least_bound * sums, compressor.least_error);
  return tight && all_failed(got.outcomes, wring::Cause::unattainable) && got.intact;
}

/// Those of a case, and Native for what it is made for.
template <class T>
std::vector<AnyAlgorithm> algorithms_of(const Case<T>& all, const AnyCompressor<T>& compressor) {
  std::vector<AnyAlgorithm> algorithms = all.algorithms;
  if (compressor.sums_words) algorithms.emplace_back(wring::Native{});
  return algorithms;
}

/// Calls `check(compressor, call, collected)` for every compressor, algorithm, collective and operation of a case, but where a compressor
/// has declined.
template <class T, class Check> void everywhere(const Case<T>& all, Check check) {
  unsigned variant = 0;
  for (const AnyCompressor<T>& compressor : all_compressors<T>())
    for (const AnyAlgorithm& algorithm : algorithms_of(all, compressor))
      for (const wring::Collective collective : all.collectives)
        for (const wring::Operation operation : all.operations) {
          if (!wring::reduces(collective) && operation != all.operations[0]) continue;
          AnyCall<T> call = call_of(all, collective, operation, variant++);
          if (compressor.bounded) call.bound = all.bound;
          const auto got = compressor.collect(algorithm, call, all.inputs);
          INFO(compressor.name << ", "
                               << describe(call, static_cast<int>(all.inputs.size()), algorithm,
                                           all.inputs[0].size())
                               << ", bound " << all.bound.value << describe(got.outcomes));
          if (!declined(compressor, all, call, got)) check(compressor, call, got);
        }
}

/// What of all inputs counts.
template <class T> PerRank<T> selected(const AnyCompressor<T>& compressor, PerRank<T> inputs) {
  if (compressor.selected)
    for (auto& input : inputs) input = compressor.selected(input);
  return inputs;
}

/// Every compressor keeps the bound, or rounds what it sends as its format does.
template <class T> void hold(const Case<T>& all) {
  everywhere(all, [&](const AnyCompressor<T>& compressor, const AnyCall<T>& call, const Collected<T>& got) {
    const bool sums = wring::reduces(call.collective) && wring::adds(call.options.operation);
    const bool refusable = all.refusable == Refusable::sums ||
                           (all.refusable == Refusable::sums_of_values && compressor.adds_values);
    if (refusable && sums && all_failed(got.outcomes, wring::Cause::unattainable)) {
      REQUIRE(got.intact);
      return;
    }
    const double allowed = compressor.bounded ? all.error : unasked_error(compressor, call, all.inputs);
    if (allowed == infinite) {
      REQUIRE((all_ok(got.outcomes) && got.intact));
      return;
    }
    INFO("allowed " << allowed);
    REQUIRE(judge(call, selected(compressor, all.inputs), got, allowed) == "");
  });
}

}  // namespace wring_test
