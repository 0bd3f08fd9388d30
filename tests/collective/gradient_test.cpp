// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradient in every collective: the sum of what each rank's values become by themselves, whatever the algorithm; a bound where one is
// asked for; the error that is aimed at, on real gradients; groups.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include <wring/algorithm/automatic.hpp>
#include <wring/compressor/gradient.hpp>
#include <wring/view/common_scale.hpp>

#include "support/matrix.hpp"

using namespace wring_test;
using wring::Gradient;
using wring::InProcess;
using wring::StochasticRounding;

namespace {

template <class T> double squares_of(const std::vector<T>& x) {
  double sum = 0;
  for (const T& v : x)
    if (const double y = as_double(v); std::isfinite(y)) sum += y * y;
  return sum;
}

/// What all ranks agree upon, from all inputs at once.
template <class T> wring::Agreed agreed_of(const Call<Gradient<T>>& call, const PerRank<T>& inputs) {
  const bool reduces = wring::reduces(call.collective);
  wring::Agreed a{.collective = call.collective,
                  .operation = call.options.operation,
                  .ranks = static_cast<int>(inputs.size()),
                  .allowed_error = {},
                  .measured = true};
  double squares = 0, count = 0;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    const auto& x = inputs[r];
    a.total = reduces || call.collective == wring::Collective::broadcast ? x.size() : a.total + x.size();
    if (call.collective == wring::Collective::broadcast && static_cast<int>(r) != call.root) continue;
    const double own = squares_of(x);
    squares += own, count += static_cast<double>(x.size());
    for (const T& v : x)
      if (std::isfinite(as_double(v))) a.max_abs = std::max(a.max_abs, std::fabs(as_double(v)));
    if (!(own > 0)) continue;
    const double root_mean_square = std::sqrt(own / static_cast<double>(x.size()));
    const double found = call.codec.survey(Exec{}, std::span<const T>(x), root_mean_square);
    const double sent = std::exp2(std::round(256 * std::log2(found)) / 256);
    a.survey = a.survey == 0 ? sent : std::min(a.survey, sent);
  }
  a.root_mean_square = count > 0 ? std::sqrt(squares / count) : 0;
  return a;
}

/// What the values of a rank become by themselves.
template <class T>
std::vector<T> by_itself(Gradient<T> codec, const Call<Gradient<T>>& call, const wring::Agreed& agreed,
                         int rank, const std::vector<T>& x, std::size_t first) {
  codec.prepare(agreed);
  std::vector<std::byte> bytes(codec.max_compressed_bytes(x.size())),
      scratch(codec.scratch_bytes(x.size()) + 64);
  auto* const aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(scratch.data()) + 63) / 64 * 64);
  wring::Context c{.collective = call.collective,
                   .operation = call.options.operation,
                   .rank = rank,
                   .ranks = agreed.ranks,
                   .step = call.options.step,
                   .first = first,
                   .count = x.size(),
                   .total = agreed.total,
                   .scratch = {aligned, codec.scratch_bytes(x.size())}};
  bytes.resize(codec.compress(Exec{}, std::span<const T>(x), bytes, c));
  std::vector<T> y(x.size());
  codec.decompress(Exec{}, bytes, y, c);
  return y;
}

template <class T>
std::vector<T> expected_of(const Call<Gradient<T>>& call, const PerRank<T>& inputs) {
  const wring::Agreed agreed = agreed_of(call, inputs);
  PerRank<T> rounded;
  std::size_t first = 0;
  for (std::size_t r = 0; r < inputs.size(); ++r) {
    const bool sends = call.collective != wring::Collective::broadcast || static_cast<int>(r) == call.root;
    rounded.push_back(!sends ? std::vector<T>()
                             : by_itself(call.codec, call, agreed, static_cast<int>(r), inputs[r], first));
    if (call.collective == wring::Collective::allgather) first += inputs[r].size();
  }
  std::vector<T> result;
  for (std::size_t i = 0; i < agreed.total; ++i) {
    const std::vector<T> terms = terms_of(call.collective, call.root, rounded, i);
    double sum = as_double(terms[0]);
    for (std::size_t r = 1; r < terms.size(); ++r) {
      const double y = as_double(terms[r]);
      switch (call.options.operation) {
      case wring::Operation::min: sum = std::isnan(sum) || sum < y ? sum : y; break;
      case wring::Operation::max: sum = std::isnan(sum) || sum > y ? sum : y; break;
      default: sum += y;
      }
    }
    if (wring::reduces(call.collective) && call.options.operation == wring::Operation::mean)
      sum /= static_cast<double>(terms.size());
    result.push_back(to_element<T>(sum));
  }
  return result;
}

template <class T> void same_as_by_itself(int most_ranks, const Lengths& lengths, unsigned stride) {
  using Codec = Gradient<T>;
  unsigned number = 0;
  const auto check = [&](Call<Codec>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                         bool uneven) {
    const unsigned variant = static_cast<unsigned>(random_bits(5, number++) % 64);
    typename Codec::Options options{.target = std::pow(10, -1 - static_cast<int>(variant / 2 % 3))};
    if (variant % 2 == 1) options.rounding = StochasticRounding{variant};
    if (variant / 8 % 2 == 1) options.form = Codec::Form::packed;
    call.codec = Codec(options), call.options.step = variant;
    auto inputs = make_inputs<T>(call, ranks, n, uneven,
                                 [](std::size_t k, std::uint64_t seed) { return real_numbers<T>(k, seed); });
    if (variant % 5 == 0)
      for (auto& input : inputs)
        for (std::size_t i = 3; i < input.size(); i += 701) input[i] = to_element<T>(i % 2 ? NAN : INFINITY);
    if (variant % 7 == 0) std::fill(inputs[0].begin(), inputs[0].end(), T());
    INFO(describe(call, ranks, algorithm, n) << ", variant " << variant);
    const auto got = collect(algorithm, call, inputs);
    REQUIRE(all_ok(got.outcomes));
    REQUIRE(got.intact);
    const std::vector<T> expected = expected_of(call, inputs);
    std::vector<T> whole = got.results[0];
    if (call.collective == wring::Collective::reduce_scatter)
      for (std::size_t r = 1; r < got.results.size(); ++r)
        whole.insert(whole.end(), got.results[r].begin(), got.results[r].end());
    else
      for (const auto& result : got.results) REQUIRE(same_bits(result, whole));
    REQUIRE(whole.size() == expected.size());
    for (std::size_t i = 0; i < whole.size(); ++i)
      if (!(as_double(whole[i]) == as_double(expected[i]) ||
            (std::isnan(as_double(whole[i])) && std::isnan(as_double(expected[i])))))
        FAIL("element " << i << " is " << as_double(whole[i]) << ", not " << as_double(expected[i]));
  };
  for_each_case(Codec{}, most_ranks, [&](int) { return lengths; }, stride, true, check);
}

template <class T> void keeps_bounds(int most_ranks, double scale, const Lengths& lengths, unsigned stride) {
  unsigned number = 0;
  const auto check = [&](Call<Gradient<T>>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                         bool uneven) {
    const unsigned variant = static_cast<unsigned>(random_bits(6, number++) % 64);
    if (variant % 2 == 1) call.codec = Gradient<T>({.rounding = StochasticRounding{variant}});
    call.bound = variant / 2 % 2 == 1 ? wring::absolute(scale * std::pow(10, variant / 4 % 3))
                                      : wring::relative_to_range(scale * 4);
    const auto inputs = make_inputs<T>(
        call, ranks, n, uneven, [](std::size_t k, std::uint64_t seed) { return real_numbers<T>(k, seed); });
    double least = 0, most = 0;
    for (std::size_t r = 0; r < inputs.size(); ++r) {
      if (call.collective == wring::Collective::broadcast && static_cast<int>(r) != call.root) continue;
      for (const T& x : inputs[r]) least = std::min(least, as_double(x)), most = std::max(most, as_double(x));
    }
    const double bound = call.bound->kind == wring::Bound::Kind::range ? call.bound->value * (most - least)
                                                                       : call.bound->value;
    INFO(describe(call, ranks, algorithm, n) << ", bound " << bound << ", variant " << variant);
    REQUIRE(judge(call, inputs, collect(algorithm, call, inputs), bound * (1 + 1e-12)) == "");
  };
  for_each_case(Gradient<T>{}, most_ranks, [&](int) { return lengths; }, stride, true, check);
}

std::vector<float> real_gradient(int worker) {
  std::ifstream file(WRING_SOURCE_DIR "/examples/data/step0100_w" + std::to_string(worker) + ".f32",
                     std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<float> x(bytes.size() / sizeof(float));
  std::memcpy(x.data(), bytes.data(), x.size() * sizeof(float));
  return x;
}

}  // namespace

TEST_CASE("Gradient adds what the ranks' values become by themselves", "[collective][gradient]") {
  same_as_by_itself<float>(8, {0, 1, 2, 37, 513, 1300}, 9);
  same_as_by_itself<float>(4, {40000}, 60);
  same_as_by_itself<double>(4, {700, 5000}, 19);
  same_as_by_itself<wring::half_t>(4, {700, 5000}, 19);
}

TEST_CASE("Gradient keeps bounds", "[collective][gradient]") {
  keeps_bounds<float>(8, 2e-3, {1, 2, 37, 513, 1300}, 13);
  keeps_bounds<double>(4, 1e-6, {700, 5000}, 19);
  keeps_bounds<wring::half_t>(4, 0.4, {700, 5000}, 19);
}

TEST_CASE("Gradient reaches its target on real gradients", "[collective][gradient]") {
  PerRank<float> inputs;
  for (int worker = 0; worker < 4; ++worker) inputs.push_back(real_gradient(worker));
  REQUIRE(inputs[0].size() == 206346);
  for (const bool stochastic : {false, true})
    for (const double target : {1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.3}) {
      Gradient<float>::Options options{.target = target};
      if (stochastic) options.rounding = StochasticRounding{1};
      Call<Gradient<float>> call{.codec = Gradient<float>(options)};
      const wring::Agreed agreed = agreed_of(call, inputs);
      double error = 0, squares = 0;
      for (int rank = 0; rank < 4; ++rank) {
        const auto& x = inputs[static_cast<std::size_t>(rank)];
        const std::vector<float> y = by_itself(call.codec, call, agreed, rank, x, 0);
        squares += squares_of(x);
        for (std::size_t i = 0; i < x.size(); ++i)
          error += (double{x[i]} - double{y[i]}) * (double{x[i]} - double{y[i]});
      }
      INFO("target " << target << ", stochastic " << stochastic);
      CHECK(error / squares < 1.2 * target);
      CHECK(error / squares > 0.8 * target);
    }
}

TEST_CASE("Gradient packs where a machine says that the link is fast", "[collective][gradient]") {
  const auto bytes_sent = [](double bandwidth) {
    wring::Machine machine;
    machine.bandwidth = bandwidth;
    wring::InProcess world(2);
    std::deque<wring::Allreduce<Gradient<float>, wring::InProcessTransport, wring::Automatic>> allreduces;
    std::deque<std::vector<float>> data;
    const auto outcomes = on_all_ranks(world, [&](int rank) {
      data.push_back(real_gradient(rank));
      const Values<float> view(data.back().data(), data.back().size());
      return allreduces
          .emplace_back(Gradient<float>{}, world.link(rank), wring::Automatic(machine),
                        wring::Options{.ride_along_bytes = 0})
          .start(Exec{}, view, view);
    });
    REQUIRE(all_ok(outcomes));
    REQUIRE(data[0] == data[1]);
    return outcomes[0].report.bytes_sent;
  };
  CHECK(static_cast<double>(bytes_sent(1.1e8)) > 1.2 * static_cast<double>(bytes_sent(0.9e8)));
}

// Whole numbers of scales that all ranks have in common, drawn: twice the bound of common_scale_bound gives steps of one scale.
TEST_CASE("Gradient draws whole numbers of common scales, and their sums are right on average",
          "[collective][gradient]") {
  using Codec = Gradient<float>;
  constexpr int ranks = 3, steps = 300;
  constexpr std::size_t n = 300;
  PerRank<float> inputs;
  for (std::uint64_t r = 0; r < ranks; ++r) inputs.push_back(real_numbers<float>(n, r));
  std::vector<float> scales(wring::common_scales(n), 0);
  for (const auto& x : inputs) {
    std::vector<float> own(scales.size());
    wring::measure_scales<3>(Exec{}, Values<const float>(x.data(), n), Values<float>(own.data(), own.size()));
    for (std::size_t g = 0; g < own.size(); ++g) scales[g] = std::max(scales[g], own[g]);
  }
  const Values<const float> common(scales.data(), scales.size());
  const wring::Bound bound = wring::absolute(2 * wring::common_scale_bound(ranks).value);
  std::vector<double> mean(n), exact(n);
  for (const auto& x : inputs)
    for (std::size_t i = 0; i < n; ++i) exact[i] += x[i];
  InProcess world(ranks);
  std::deque<wring::Allreduce<Codec, wring::InProcessTransport, AnyAlgorithm>> sums;
  for (int r = 0; r < ranks; ++r)
    sums.emplace_back(Codec({.rounding = StochasticRounding{1}}), world.link(r), wring::Ring{});
  for (std::uint64_t step = 0; step < steps; ++step) {
    PerRank<float> results(ranks, std::vector<float>(n));
    for (auto& sum : sums) sum.options().step = step;
    const auto outcomes = on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      return sums[r].start(
          Exec{}, wring::scaled(Values<const float>(inputs[r].data(), n), common, wring::common_scale_group),
          wring::scaled(Values<float>(results[r].data(), n), common, wring::common_scale_group), bound);
    });
    INFO("step " << step << describe(outcomes));
    REQUIRE(all_ok(outcomes));
    for (std::size_t i = 0; i < n; ++i) {
      const double s = scales[i / 128], y = results[0][i];
      REQUIRE(results[1][i] == results[0][i]);
      REQUIRE(std::fabs(y / s - std::nearbyint(y / s)) < 1e-5);
      REQUIRE(std::fabs(y - exact[i]) < ranks * s * 1.0001);
      mean[i] += y / steps;
    }
  }
  for (std::size_t i = 0; i < n; ++i)  // each draw has a standard deviation of at most half a scale
    REQUIRE(std::fabs(mean[i] - exact[i]) <=
            5 * 0.5 * static_cast<double>(scales[i / 128]) * std::sqrt(double{ranks} / steps));
}
