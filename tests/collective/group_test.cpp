// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Several tensors in one operation: each with its own shape and bound, in one set of messages.
#include <catch2/catch_test_macros.hpp>

#include <numeric>

#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>

#include "support/matrix.hpp"

using namespace wring_test;
using wring::InProcess;
using wring::InProcessTransport;
using wring::None;

namespace {

using View = Kokkos::View<double*, Kokkos::HostSpace>;

View view_of(const std::vector<double>& values) {
  View view("view", values.size());
  std::copy(values.begin(), values.end(), view.data());
  return view;
}

std::vector<double> copy_of(const View& view) { return {view.data(), view.data() + view.extent(0)}; }

/// A group of tensors of these lengths for a collective, on every rank; judged tensor by tensor.
template <class Codec>
void run_group(const Codec& codec, const AnyAlgorithm& algorithm, wring::Collective collective, int ranks,
               const Lengths& lengths, const std::vector<std::optional<wring::Bound>>& bounds,
               wring::Options options, double least_bound) {
  using namespace wring;
  const auto p = static_cast<std::size_t>(ranks);
  const bool scatters = collective == Collective::reduce_scatter,
             gathers = collective == Collective::allgather;
  InProcess world(ranks, {.eager_limit = 0, .delay = 2, .seed = 7});
  std::vector<Call<Codec>> calls(lengths.size());
  std::vector<PerRank<double>> inputs;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    calls[i].collective = collective, calls[i].root = ranks - 1, calls[i].options = options;
    inputs.push_back(
        make_inputs<double>(calls[i], ranks, lengths[i], i % 2 == 1, [&](std::size_t n, std::uint64_t seed) {
          return real_numbers<double>(n, seed + 100 * i);
        }));
  }
  std::vector<std::vector<View>> outputs(p);
  std::deque<Allreduce<Codec, InProcessTransport, AnyAlgorithm>> allreduces;
  std::deque<ReduceScatter<Codec, InProcessTransport, AnyAlgorithm>> scatterers;
  std::deque<Allgather<Codec, InProcessTransport, AnyAlgorithm>> gatherers;
  std::deque<Broadcast<Codec, InProcessTransport, AnyAlgorithm>> broadcasts;
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    std::vector<Item<View, View>> items;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      const View in = view_of(inputs[i][r]);
      if (scatters || gathers) {
        outputs[r].push_back(View("out", scatters ? calls[i].counts[r] : lengths[i]));
        items.push_back(item(in, outputs[r].back(), bounds[i % bounds.size()], calls[i].counts));
      } else {
        outputs[r].push_back(in);
        items.push_back(item(in, bounds[i % bounds.size()]));
      }
    }
    auto tensors = group(std::move(items));
    InProcessTransport& link = world.link(rank);
    if (collective == Collective::allreduce)
      return allreduces.emplace_back(codec, link, algorithm, options).start(Exec{}, tensors);
    if (scatters) return scatterers.emplace_back(codec, link, algorithm, options).start(Exec{}, tensors);
    if (gathers) return gatherers.emplace_back(codec, link, algorithm, options).start(Exec{}, tensors);
    return broadcasts.emplace_back(codec, link, algorithm, options).start(Exec{}, tensors, ranks - 1);
  });
  INFO(name_of(collective) << ", " << ranks << " ranks, " << algorithm.name() << ", " << lengths.size()
                           << " tensors");
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    Collected<double> got{{}, outcomes, true};
    for (std::size_t r = 0; r < p; ++r) got.results.push_back(copy_of(outputs[r][i]));
    const auto& bound = bounds[i % bounds.size()];
    INFO("tensor " << i << " of length " << lengths[i]);
    REQUIRE(judge(calls[i], inputs[i], got, bound ? bound->value : least_bound) == "");
  }
}

const wring::Operation turns[] = {wring::sum, wring::mean, wring::min, wring::max};
constexpr double rounding = 8 * 40 * 0x1p-53;  // of 9 terms up to 4

}  // namespace

TEST_CASE("group: tensors of very different lengths, zero included", "[collective][group]") {
  unsigned number = 0;
  for (const int ranks : {1, 2, 3, 4, 8})
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
      for (const auto collective : collectives) {
        wring::Options options{.operation = turns[number++ % 4], .segment_bytes = 8192};
        run_group(None<double>{}, algorithm, collective, ranks, {0, 3, 1000, 0, 1, 5000, 512}, {std::nullopt},
                  options, rounding);
      }
}

TEST_CASE("group: nothing but empty tensors, and no tensor at all", "[collective][group]") {
  for (const auto collective : collectives) {
    run_group(None<double>{}, wring::Ring{}, collective, 3, {0, 0, 0}, {std::nullopt}, {}, 0);
    run_group(None<double>{}, wring::Ring{}, collective, 3, {}, {std::nullopt}, {}, 0);
    run_group(wring::Grid<double>{}, wring::Ring{}, collective, 3, {}, {wring::absolute(1)}, {}, 0);
  }
}

TEST_CASE("group: many tiny tensors", "[collective][group]") {
  Lengths lengths;
  for (std::size_t i = 0; i < 300; ++i) lengths.push_back(1 + random_bits(1, i) % 50);
  unsigned number = 0;
  for (const int ranks : {1, 3, 4})
    for (const auto collective : collectives) {
      const auto algorithms = all_algorithms(ranks);
      wring::Options options{.operation = turns[number % 4], .segment_bytes = 64 * 1024};
      run_group(None<double>{}, algorithms[number++ % algorithms.size()], collective, ranks, lengths,
                {std::nullopt}, options, rounding);
    }
}

TEST_CASE("group: more tensors than one message of the agreement was made for", "[collective][group]") {
  run_group(None<double>{}, wring::Ring{}, wring::Collective::allreduce, 2, Lengths(3000, 2),
            {wring::absolute(1)}, {}, 0);
}

TEST_CASE("group: every tensor within its own bound", "[collective][group]") {
  unsigned number = 0;
  for (const int ranks : {1, 2, 3, 5})
    for (const auto collective : collectives) {
      const auto algorithms = all_algorithms(ranks);
      wring::Options options{.operation = turns[number % 4], .segment_bytes = 8192};
      run_group(wring::Grid<double>{}, algorithms[number++ % algorithms.size()], collective, ranks,
                {700, 0, 3, 5000, 1}, {wring::absolute(1e-3), wring::absolute(0.5), wring::absolute(1e-9)},
                options, 0);
    }
}

TEST_CASE("group: one bound that cannot be held refuses all tensors, none is written",
          "[collective][group]") {
  InProcess world(3);
  std::deque<wring::Allreduce<wring::Grid<double>, InProcessTransport>> sums;
  std::vector<View> a, b;
  for (int r = 0; r < 3; ++r) {
    sums.emplace_back(wring::Grid<double>{}, world.link(r));
    a.push_back(view_of({1, 2, 3})), b.push_back(view_of({1e300, 1}));
  }
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(Exec{}, wring::group(wring::item(a[r], wring::absolute(0.1)),
                                              wring::item(b[r], wring::absolute(1e-3))));
  });
  INFO(describe(outcomes));
  REQUIRE(all_failed(outcomes, wring::Cause::unattainable));
  for (std::size_t r = 0; r < 3; ++r) {
    REQUIRE(copy_of(a[r]) == std::vector<double>{1, 2, 3});
    REQUIRE(copy_of(b[r]) == std::vector<double>{1e300, 1});
  }
}

TEST_CASE("group: a tuple of views of different types", "[collective][group]") {
  InProcess world(2);
  std::deque<wring::Allreduce<None<double>, InProcessTransport>> sums;
  std::vector<Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace>> matrix;
  std::vector<Kokkos::View<double, Kokkos::HostSpace>> scalar;
  std::vector<View> in, out;
  for (int r = 0; r < 2; ++r) {
    sums.emplace_back(None<double>{}, world.link(r));
    matrix.emplace_back("m", 3, 4), scalar.emplace_back("s");
    in.push_back(view_of({1, 2, 3})), out.push_back(view_of({0, 0, 0}));
    Kokkos::deep_copy(matrix.back(), r + 1), scalar.back()() = 10 * r + 1;
  }
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(
        Exec{}, wring::group(wring::item(matrix[r]), wring::item(scalar[r]), wring::item(in[r], out[r])));
  });
  REQUIRE(all_ok(outcomes));
  for (std::size_t r = 0; r < 2; ++r) {
    REQUIRE(matrix[r](2, 3) == 3);
    REQUIRE(scalar[r]() == 12);
    REQUIRE(copy_of(out[r]) == std::vector<double>{2, 4, 6});
    REQUIRE(copy_of(in[r]) == std::vector<double>{1, 2, 3});
  }
}

TEST_CASE("group: ranks that disagree on the number of tensors, or on the bound of one",
          "[collective][group]") {
  InProcess world(2);
  std::deque<wring::Allreduce<None<double>, InProcessTransport>> sums;
  for (int r = 0; r < 2; ++r) sums.emplace_back(None<double>{}, world.link(r));
  const auto run = [&](std::vector<double> bounds0, std::vector<double> bounds1) {
    return on_all_ranks(world, [&](int r) {
      std::vector<wring::Item<View, View>> items;
      for (const double e : r == 0 ? bounds0 : bounds1)
        items.push_back(wring::item(view_of({1, 2}), wring::absolute(e)));
      return sums[static_cast<std::size_t>(r)].start(Exec{}, wring::group(std::move(items)));
    });
  };
  REQUIRE(all_failed(run({1, 1}, {1, 1, 1}), wring::Cause::mismatch));
  REQUIRE(all_failed(run({1, 1}, {1}), wring::Cause::mismatch));
  REQUIRE(all_failed(run({1, 1, 2}, {1, 1, 3}), wring::Cause::mismatch));
  REQUIRE(all_ok(run({1, 1, 2}, {1, 1, 2})));
}
