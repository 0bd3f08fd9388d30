// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "support/matrix.hpp"

/// Several tensors in one operation, each with its own length, bound and compressor.
namespace wring_test {

template <class T> using HostView = Kokkos::View<T*, Kokkos::HostSpace>;

template <class T> HostView<T> view_of(const std::vector<T>& values) {
  HostView<T> view("view", values.size());
  std::copy(values.begin(), values.end(), view.data());
  return view;
}
template <class T> std::vector<T> copy_of(const HostView<T>& view) {
  return {view.data(), view.data() + view.extent(0)};
}

/// A group for a collective, alike on every rank. Bounds and compressors take turns.
template <class Codec> struct GroupCall {
  Codec codec{};
  wring::Collective collective = wring::Collective::allreduce;
  wring::Options options{};
  Lengths lengths{};
  std::vector<std::optional<wring::Bound>> bounds{std::nullopt};
  std::vector<std::optional<Codec>> own{std::nullopt};

  const std::optional<wring::Bound>& bound_of(std::size_t item) const { return bounds[item % bounds.size()]; }
  const std::optional<Codec>& own_of(std::size_t item) const { return own[item % own.size()]; }

  /// The call of one tensor by itself.
  Call<Codec> alone(std::size_t item, int ranks) const {
    Call<Codec> call{.codec = own_of(item) ? *own_of(item) : codec};
    call.collective = collective, call.options = options, call.bound = bound_of(item), call.root = ranks - 1;
    return call;
  }
};

/// By tensor: its call by itself, what went in, what came out.
template <class Codec> struct GroupResult {
  using T = typename Codec::value_type;
  struct Tensor {
    Call<Codec> call;
    PerRank<T> inputs;
    Collected<T> got;
  };
  std::vector<Tensor> tensors;
  std::vector<Outcome> outcomes;
};

/// Values of several magnitudes.
template <class T> struct RealNumbers {
  std::vector<T> operator()(std::size_t n, std::uint64_t seed) const { return real_numbers<T>(n, seed); }
};

/// Runs a group. `make(length, seed)` makes a tensor's values; the seeds are those of `make_inputs`, and 100 more for each tensor.
template <class Codec, class Make = RealNumbers<typename Codec::value_type>>
GroupResult<Codec> collect_group(const AnyAlgorithm& algorithm, const GroupCall<Codec>& all, int ranks,
                                 const Make& make = {}) {
  using namespace wring;
  using T = typename Codec::value_type;
  using View = HostView<T>;
  const bool scatters = all.collective == Collective::reduce_scatter,
             gathers = all.collective == Collective::allgather;
  InProcess world(ranks, {.eager_limit = 0, .delay = 2, .seed = 7});
  GroupResult<Codec> result;
  for (std::size_t i = 0; i < all.lengths.size(); ++i) {
    auto& t = result.tensors.emplace_back();
    t.call = all.alone(i, ranks);
    t.inputs = make_inputs<T>(t.call, ranks, all.lengths[i], i % 2 == 1,
                              [&](std::size_t n, std::uint64_t seed) { return make(n, seed + 100 * i); });
  }
  std::vector<std::vector<View>> outputs(static_cast<std::size_t>(ranks));
  std::deque<Allreduce<Codec, InProcessTransport, AnyAlgorithm>> allreduces;
  std::deque<ReduceScatter<Codec, InProcessTransport, AnyAlgorithm>> scatterers;
  std::deque<Allgather<Codec, InProcessTransport, AnyAlgorithm>> gatherers;
  std::deque<Broadcast<Codec, InProcessTransport, AnyAlgorithm>> broadcasts;
  result.outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    std::vector<Item<View, View, Codec>> items;
    for (std::size_t i = 0; i < all.lengths.size(); ++i) {
      const auto& t = result.tensors[i];
      const View in = view_of(t.inputs[r]);
      outputs[r].push_back(scatters || gathers ? View("out", scatters ? t.call.counts[r] : all.lengths[i])
                                               : in);
      const auto plain =
          item(in, outputs[r].back(), t.call.bound, std::span<const std::size_t>(t.call.counts));
      if (all.own_of(i))
        items.push_back(plain.with(*all.own_of(i)));
      else
        items.push_back(plain);
    }
    auto tensors = group(std::move(items));
    InProcessTransport& link = world.link(rank);
    const Options& options = all.options;
    if (all.collective == Collective::allreduce)
      return allreduces.emplace_back(all.codec, link, algorithm, options).start(Exec{}, tensors);
    if (scatters) return scatterers.emplace_back(all.codec, link, algorithm, options).start(Exec{}, tensors);
    if (gathers) return gatherers.emplace_back(all.codec, link, algorithm, options).start(Exec{}, tensors);
    return broadcasts.emplace_back(all.codec, link, algorithm, options).start(Exec{}, tensors, ranks - 1);
  });
  for (std::size_t i = 0; i < all.lengths.size(); ++i) {
    Collected<T>& got = result.tensors[i].got;
    got.outcomes = result.outcomes;
    for (const auto& views : outputs) got.results.push_back(copy_of(views[i]));
  }
  return result;
}

/// The same, judged tensor by tensor: by its bound, or where it has none by `least_bound`.
template <class Codec, class Make = RealNumbers<typename Codec::value_type>>
GroupResult<Codec> run_group(const AnyAlgorithm& algorithm, const GroupCall<Codec>& all, int ranks,
                             double least_bound = 0, const Make& make = {}) {
  const auto result = collect_group(algorithm, all, ranks, make);
  INFO(name_of(all.collective) << ", " << ranks << " ranks, " << algorithm.name() << ", "
                               << all.lengths.size() << " tensors");
  for (std::size_t i = 0; i < all.lengths.size(); ++i) {
    const auto& t = result.tensors[i];
    INFO("tensor " << i << " of length " << all.lengths[i]);
    REQUIRE(judge(t.call, t.inputs, t.got, t.call.bound ? t.call.bound->value : least_bound) == "");
  }
  return result;
}

/// Whether each tensor of a group has the bits that it has by itself.
template <class Codec>
bool as_alone(const AnyAlgorithm& algorithm, const GroupResult<Codec>& result) {
  return std::all_of(result.tensors.begin(), result.tensors.end(), [&](const auto& t) {
    const auto alone = collect(algorithm, t.call, t.inputs);
    bool same = all_ok(alone.outcomes);
    for (std::size_t r = 0; r < t.inputs.size(); ++r)
      same = same && same_bits(alone.results[r], t.got.results[r]);
    return same;
  });
}

}  // namespace wring_test
