// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>

#include <wring/algorithm/situation.hpp>
#include <wring/collective/executor/agreement/exchange.hpp>
#include <wring/collective/executor/shared.hpp>
#include <wring/collective/options.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/detail/pipeline.hpp>
#include <wring/machine.hpp>

/// What an adaptive algorithm is told of an operation: how the executor would go about it on a host, so that ranks on devices choose as
/// the others do.
namespace wring::inline v0::detail {

/// Bytes per second of one rank's link, by the machine that an algorithm was given or has had measured; 0 where there is none.
template <class Schedule> double known_wire_speed(const Schedule& schedule) {
  if constexpr (requires {
                  { schedule.machine() } -> std::convertible_to<Machine>;
                }) {
    const Machine& m = schedule.machine();
    if (!(m == typical_node())) return m.bandwidth / m.ranks_per_node;
  }
  return 0;
}

inline constexpr double assumed_ratio = 4;  ///< until the ranks have seen one

/// Where compressed pieces have a size known beforehand, their ratio is.
template <class Codec> std::optional<double> fixed_ratio(const Codec& codec) {
  if constexpr (FixedSizeCompressor<Codec>) {
    constexpr std::size_t n = 4096;
    const double bytes = static_cast<double>(codec.compressed_bytes(n));
    if (bytes > 0) return static_cast<double>(n * sizeof(typename Codec::value_type)) / bytes;
  }
  return std::nullopt;
}

/// The same for tensors some of which have a codec of their own: of all together.
template <class Codec>
std::optional<double> fixed_ratio(std::span<const Tensor<Codec>> tensors, const Codec& codec) {
  const std::optional<double> usual = fixed_ratio(codec);
  double values = 0, encoded = 0;
  for (const auto& t : tensors) {
    const std::optional<double> ratio = t.codec ? fixed_ratio(*t.codec) : usual;
    if (!ratio) return std::nullopt;
    values += static_cast<double>(t.total), encoded += static_cast<double>(t.total) / *ratio;
  }
  const bool own = std::any_of(tensors.begin(), tensors.end(), [](const auto& t) { return t.codec_hash; });
  return own && encoded > 0 ? values / encoded : usual;
}

/// The ratio to go by, and where it comes from.
inline void expect_ratio(Situation& situation, std::optional<double> fixed, std::optional<double> seen) {
  situation.load.ratio = fixed ? *fixed : seen.value_or(assumed_ratio);
  situation.ratio_source = fixed ? RatioSource::fixed : seen ? RatioSource::seen : RatioSource::assumed;
}

/// How `RideAlong` would let these data ride, if room is the only limit.
template <class Codec>
std::optional<RidesAlong> possible_ride(std::span<const Tensor<Codec>> tensors, Task task, int ranks) {
  if (RememberingCompressor<Codec> || tensors.size() != 1 || ranks == 1) return std::nullopt;
  const auto& t = tensors[0];
  const std::size_t bytes = t.total * sizeof(typename Codec::value_type);
  const bool absolute = t.bound && t.bound->kind == Bound::Kind::absolute;
  if (AnticipatingCompressor<Codec> && reduces(task.collective) && absolute && t.total > 0 &&
      bytes <= ride_along_room)
    return RidesAlong::summed;
  constexpr bool divided = !CombiningCompressor<Codec> && !LosslessCompressor<Codec>;
  const std::size_t terms = reduces(task.collective) ? static_cast<std::size_t>(ranks) : 1;
  if ((divided && t.bound) || bytes > gathered_room / terms) return std::nullopt;
  return RidesAlong::gathered;
}

/// `options`: the user's. `ratio`: what the ranks have agreed upon, if anything.
template <class Codec>
Situation situation_of(std::span<const Tensor<Codec>> tensors, const Codec& codec, Task task, int ranks,
                       const Options& options, std::optional<double> ratio) {
  using T = typename Codec::value_type;
  const Options otherwise;
  bool bounded = false, absolute = true;
  Situation situation;
  situation.task = task, situation.ranks = ranks;
  Load& load = situation.load;
  load.value_bytes = sizeof(T);
  for (const auto& t : tensors) {
    load.bytes += t.total * sizeof(T);
    bounded = bounded || t.bound;
    absolute = absolute && t.bound && t.bound->kind == Bound::Kind::absolute;
  }
  expect_ratio(situation, fixed_ratio(tensors, codec), ratio);
  load.combines = CombiningCompressor<Codec>, load.lossless = LosslessCompressor<Codec>;
  load.packs_always = load.combines && !WideFormCompressor<Codec>;
  load.finishes = FinishingCompressor<Codec> && adds(options.operation);
  load.segment_bytes = options.segment_bytes, load.depth = options.depth;
  load.ahead = MeasuringCompressor<Codec> && absolute && reduces(task.collective) && ranks > 1;
  situation.measured_otherwise = (bounded || SurveyingCompressor<Codec>) && FloatElement<T>;
  load.measured = (situation.measured_otherwise && !load.ahead) || InspectingCompressor<Codec>;
  situation.ride = possible_ride(tensors, task, ranks);
  situation.segment_given = options.segment_bytes != otherwise.segment_bytes;
  situation.depth_given = options.depth != otherwise.depth;
  situation.ride_given = options.ride_along_bytes != otherwise.ride_along_bytes;
  return situation;
}

}  // namespace wring::inline v0::detail
