// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstring>
#include <deque>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "support/algorithms.hpp"
#include "support/exact.hpp"
#include "support/ranks.hpp"
#include <wring/collective.hpp>

/// One collective over plain vectors, one per rank, with a check of all that the contract says about them.
namespace wring_test {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Lengths = std::vector<std::size_t>;
template <class T> using PerRank = std::vector<std::vector<T>>;
template <class T> using Values =
    Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// What is called, alike on all ranks.
template <class Codec> struct Call {
  Codec codec{};
  wring::Collective collective = wring::Collective::allreduce;
  wring::Options options{};
  std::optional<wring::Bound> bound{};
  int root = 0;
  bool in_place = false;
  Lengths counts{};  ///< per rank, for reduce-scatter and allgather
  wring::InProcessOptions world{};
};

template <class T> struct Collected {
  PerRank<T> results;
  std::vector<Outcome> outcomes;
  bool intact = true;  ///< nothing was written where nothing should be
};

/// A run of values between two fences.
template <class T> class Fenced {
 public:
  explicit Fenced(const std::vector<T>& values) : Fenced(values.size()) {
    if (!values.empty()) std::memcpy(static_cast<void*>(data()), values.data(), values.size() * sizeof(T));
  }
  explicit Fenced(std::size_t n) : size_(n), memory_(n + 2 * fence) {
    std::memset(static_cast<void*>(memory_.data()), pattern, memory_.size() * sizeof(T));
  }
  T* data() { return memory_.data() + fence; }
  std::size_t size() const { return size_; }
  /// Of no values: a view without memory.
  Values<T> view(std::size_t first, std::size_t count) {
    return count == 0 ? Values<T>() : Values<T>(data() + first, count);
  }
  std::vector<T> copy(std::size_t first, std::size_t count) {
    return {data() + first, data() + first + count};
  }
  bool fences_intact() const {
    const auto* bytes = reinterpret_cast<const unsigned char*>(memory_.data());
    const std::size_t edge = fence * sizeof(T), end = memory_.size() * sizeof(T);
    for (std::size_t i = 0; i < edge; ++i)
      if (bytes[i] != pattern || bytes[end - 1 - i] != pattern) return false;
    return true;
  }

 private:
  static constexpr std::size_t fence = 64;
  static constexpr unsigned char pattern = 0xa5;
  std::size_t size_;
  std::vector<T> memory_;
};

inline Lengths even_counts(std::size_t n, int ranks) {
  Lengths counts;
  for (std::size_t r = 0, p = static_cast<std::size_t>(ranks); r < p; ++r)
    counts.push_back(n * (r + 1) / p - n * r / p);
  return counts;
}

/// Some ranks get nothing, some a lot.
inline Lengths uneven_counts(std::size_t n, int ranks) {
  Lengths counts(static_cast<std::size_t>(ranks), 0);
  for (std::size_t left = n, r = 1; left > 0; r += 2) {
    const std::size_t share = r >= 50 ? left : (left + 1) / 2;
    counts[r % counts.size()] += share, left -= share;
  }
  return counts;
}

/// Runs a collective. `inputs[r]` is what rank r hands in (the whole vector for broadcast, on every rank), `codec_of(r)` its compressor.
template <class Codec, class CodecOf, class T = typename Codec::value_type>
Collected<T> collect(const AnyAlgorithm& algorithm, const Call<Codec>& call, const PerRank<T>& inputs,
                     CodecOf codec_of) {
  using namespace wring;
  const int ranks = static_cast<int>(inputs.size());
  const bool gathers = call.collective == Collective::allgather,
             scatters = call.collective == Collective::reduce_scatter;
  const std::size_t whole =
      gathers ? std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0}) : inputs[0].size();
  InProcess world(ranks, call.world);
  std::deque<Fenced<T>> in, out;
  Lengths first(inputs.size(), 0), count(inputs.size(), whole);
  for (std::size_t r = 0, at = 0; r < inputs.size(); ++r) {
    if (gathers || scatters) first[r] = at, count[r] = call.counts[r], at += call.counts[r];
    if (call.in_place && gathers) {
      in.emplace_back(std::vector<T>()), out.emplace_back(whole);
      if (count[r])
        std::memcpy(static_cast<void*>(out[r].data() + first[r]), inputs[r].data(), count[r] * sizeof(T));
    } else {
      in.emplace_back(inputs[r]), out.emplace_back(call.in_place ? 0 : scatters ? count[r] : whole);
    }
  }
  const auto input = [&](std::size_t r) {
    return call.in_place && gathers ? out[r].view(first[r], count[r]) : in[r].view(0, in[r].size());
  };
  const auto output = [&](std::size_t r) {
    if (!call.in_place || gathers) return out[r].view(0, out[r].size());
    return scatters ? in[r].view(first[r], count[r]) : in[r].view(0, whole);
  };
  std::deque<Allreduce<Codec, InProcessTransport, AnyAlgorithm>> allreduces;
  std::deque<ReduceScatter<Codec, InProcessTransport, AnyAlgorithm>> scatterers;
  std::deque<Allgather<Codec, InProcessTransport, AnyAlgorithm>> gatherers;
  std::deque<Broadcast<Codec, InProcessTransport, AnyAlgorithm>> broadcasts;
  Collected<T> result;
  result.outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    InProcessTransport& link = world.link(rank);
    const Values<const T> from = input(r);
    const auto tensors = group(item(from, output(r), call.bound, std::span<const std::size_t>(call.counts)));
    switch (call.collective) {
    case Collective::allreduce:
      return allreduces.emplace_back(codec_of(r), link, algorithm, call.options).start(Exec{}, tensors);
    case Collective::reduce_scatter:
      return scatterers.emplace_back(codec_of(r), link, algorithm, call.options).start(Exec{}, tensors);
    case Collective::allgather:
      return gatherers.emplace_back(codec_of(r), link, algorithm, call.options).start(Exec{}, tensors);
    default:
      return broadcasts.emplace_back(codec_of(r), link, algorithm, call.options)
          .start(Exec{}, tensors, call.root);
    }
  });
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    const Values<T> view = output(r);
    result.results.emplace_back(view.data(), view.data() + view.extent(0));
    result.intact = result.intact && in[r].fences_intact() && out[r].fences_intact();
    if (!call.in_place) result.intact = result.intact && same_bits(in[r].copy(0, in[r].size()), inputs[r]);
    if (call.in_place && scatters) {  // what belongs to others stays as it was
      std::vector<T> rest = in[r].copy(0, whole), before = inputs[r];
      for (std::size_t i = first[r]; i < first[r] + count[r]; ++i) rest[i] = before[i] = T();
      result.intact = result.intact && same_bits(rest, before);
    }
  }
  return result;
}

/// With one compressor on all ranks.
template <class Codec, class T = typename Codec::value_type>
Collected<T> collect(const AnyAlgorithm& algorithm, const Call<Codec>& call, const PerRank<T>& inputs) {
  return collect(algorithm, call, inputs, [&](std::size_t) -> const Codec& { return call.codec; });
}

/// The values of which element `i` of the whole result is made.
template <class T> std::vector<T> terms_of(wring::Collective collective, int root, const PerRank<T>& inputs,
                                           std::size_t i) {
  std::vector<T> terms;
  if (collective == wring::Collective::broadcast) return {inputs[static_cast<std::size_t>(root)][i]};
  for (const auto& input : inputs) {
    if (wring::reduces(collective)) {
      terms.push_back(input[i]);
    } else if (i < input.size()) {
      return {input[i]};
    } else {
      i -= input.size();
    }
  }
  return terms;
}

/// What is wrong with the outcome of a collective, or an empty string: every element within `bound` of the exact result, all ranks
/// with the same bits, nothing else written.
template <class Codec, class T = typename Codec::value_type>
std::string judge(const Call<Codec>& call, const PerRank<T>& inputs, const Collected<T>& got, double bound) {
  using namespace wring;
  if (!all_ok(got.outcomes)) return "failed:" + describe(got.outcomes);
  if (!got.intact) return "memory was written that is none of its business";
  std::vector<T> whole = got.results[0];
  if (call.collective == Collective::reduce_scatter) {
    whole.clear();
    for (const auto& part : got.results) whole.insert(whole.end(), part.begin(), part.end());
  } else {
    for (std::size_t r = 1; r < got.results.size(); ++r)
      if (!same_bits(got.results[r], whole))
        return "rank " + std::to_string(r) + " and rank 0 hold different bits";
  }
  const Operation operation = reduces(call.collective) ? call.options.operation : Operation::sum;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const std::vector<T> terms = terms_of(call.collective, call.root, inputs, i);
    if (!reduced_within(operation, terms, whole[i], bound)) {
      std::string text =
          "element " + std::to_string(i) + " is " + std::to_string(as_double(whole[i])) + ", made of";
      for (const T& x : terms) text += " " + std::to_string(as_double(x));
      return text;
    }
  }
  return {};
}

}  // namespace wring_test
