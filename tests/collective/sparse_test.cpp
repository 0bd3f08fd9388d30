// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives through TopK and Threshold: each rank's own selection, and then the collective of what was selected.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/error_feedback.hpp>
#include <wring/compressor/threshold.hpp>
#include <wring/compressor/top_k.hpp>

#include "support/matrix.hpp"

using namespace wring_test;
using wring::Threshold;
using wring::TopK;

namespace {

template <class T> bool larger(T a, T b) { return std::fabs(as_double(a)) > std::fabs(as_double(b)); }

/// What a rank sends of its input; the others are zeros.
template <class T> std::vector<T> sent(const TopK<T>& codec, const std::vector<T>& x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return larger(x[a], x[b]); });
  std::vector<T> y(x.size(), to_element<T>(0));
  for (std::size_t j = 0; j < codec.selected(x.size()); ++j) y[order[j]] = x[order[j]];
  return y;
}
template <class T> std::vector<T> sent(const Threshold<T>& codec, std::vector<T> x) {
  for (T& v : x)
    if (std::fabs(as_double(v)) < codec.threshold()) v = to_element<T>(0);
  return x;
}

/// Whole numbers, whose sums are exact: so that the result is that of what was sent, in every bit but the sign of zeros.
template <class Codec> void collect_what_was_sent(const Codec& codec, unsigned every, auto lengths) {
  using T = typename Codec::value_type;
  const auto check = [](Call<Codec>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                        bool uneven) {
    const auto inputs = make_inputs<T>(call, ranks, n, uneven, whole_numbers<T>);
    PerRank<T> selected;
    for (const auto& input : inputs) selected.push_back(sent(call.codec, input));
    const auto got = collect(algorithm, call, inputs);
    INFO(describe(call, ranks, algorithm, n));
    const double bound =
        call.options.operation == wring::mean ? 16 * wring::FloatTraits<T>::unit_roundoff : 0;
    REQUIRE(judge(call, selected, got, bound) == "");
    const bool sums = wring::reduces(call.collective) && wring::adds(call.options.operation);
    REQUIRE(got.outcomes[0].report.reproducible == (!sums || ranks <= 2));
  };
  for_each_case(codec, 8, lengths, every, true, check);
}

Lengths long_lengths(int) { return {5000, 70000}; }

template <class T> PerRank<T> reduced(const Call<TopK<T>>& call, const PerRank<T>& inputs,
                                      const AnyAlgorithm& algorithm) {
  const auto got = collect(algorithm, call, inputs);
  INFO(describe(call, static_cast<int>(inputs.size()), algorithm, inputs[0].size())
       << describe(got.outcomes));
  REQUIRE((all_ok(got.outcomes) && got.intact));
  return got.results;
}

}  // namespace

TEST_CASE("top k: what each rank selects is what is collected", "[collective]") {
  collect_what_was_sent(TopK<float>({.ratio = 0.1}), 4, small_lengths);
  collect_what_was_sent(TopK<float>({.k = 700}), 24, long_lengths);
  collect_what_was_sent(TopK<wring::half_t>({.k = 3}), 24, small_lengths);
}
TEST_CASE("threshold: what is not below it is what is collected", "[collective]") {
  collect_what_was_sent(Threshold<float>({.threshold = 6}), 8, small_lengths);
  collect_what_was_sent(Threshold<double>({.threshold = 7}), 32, long_lengths);
}

TEST_CASE("threshold: a bound on the result is kept, and most values are not sent", "[collective]") {
  std::uint64_t given = 0, sent = 0;
  const auto check = [&](Call<Threshold<float>>& call, int ranks, const AnyAlgorithm& algorithm,
                         std::size_t n, bool uneven) {
    const auto inputs = make_inputs<float>(call, ranks, n, uneven, [](std::size_t k, std::uint64_t seed) {
      return real_numbers<float>(k, seed);
    });
    call.bound = wring::absolute(2);
    const auto got = collect(algorithm, call, inputs);
    INFO(describe(call, ranks, algorithm, n));
    REQUIRE(judge(call, inputs, got, 2) == "");
    REQUIRE(got.outcomes[0].report.bound == 2);
    if (n == 20000 && ranks == 2 && call.options.operation == wring::sum)
      given += got.outcomes[0].report.bytes_raw, sent += got.outcomes[0].report.bytes_sent;
  };
  for_each_case(Threshold<float>{}, 8, small_lengths, 6, true, check);
  for_each_case(Threshold<float>{}, 2, [](int) { return Lengths{20000}; }, 1, true, check);
  CHECK(sent < given * 2 / 3);
}

// The greatest value that is not sent, on all ranks, with one sign: the bound is used up, and not exceeded.
TEST_CASE("threshold: the bound is no larger than it must be", "[collective]") {
  for (const wring::Operation operation : {wring::sum, wring::mean, wring::max})
    for (const int ranks : {2, 3, 8}) {
      const wring::Agreed agreed{.operation = operation,
                                 .ranks = ranks,
                                 .total = 600,
                                 .max_abs = 1,
                                 .allowed_error = 0.25,
                                 .measured = true};
      Threshold<float> codec;
      codec.prepare(agreed);
      std::vector<float> x(600, static_cast<float>(codec.threshold()));
      for (std::size_t i = 0; i < x.size(); i += 2)
        while (static_cast<double>(x[i]) >= codec.threshold()) x[i] = std::nextafter(x[i], 0.0f);
      x[1] = 1;
      Call<Threshold<float>> call{.bound = wring::absolute(0.25)};
      call.options.operation = operation;
      const PerRank<float> inputs(static_cast<std::size_t>(ranks), x);
      for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
        const auto got = collect(algorithm, call, inputs);
        INFO(describe(call, ranks, algorithm, x.size()));
        REQUIRE(judge(call, inputs, got, 0.25) == "");
        REQUIRE(judge(call, inputs, got, 0.2499) != "");
        REQUIRE(got.results[0][0] == 0);
      }
    }
}

TEST_CASE("threshold: a bound below the rounding of the sum is refused on all ranks", "[collective]") {
  Call<Threshold<float>> call{.bound = wring::absolute(1e-9)};
  const auto got = collect(wring::Ring{}, call, PerRank<float>(3, real_numbers<float>(1000, 1)));
  CHECK(all_failed(got.outcomes, wring::Cause::unattainable));
  CHECK(got.intact);
}

// apple/pfl-research#65
TEST_CASE("top k: the greatest magnitude, not the greatest value", "[collective][cases]") {
  const Call<TopK<float>> call{TopK<float>({.k = 1})};
  for (const AnyAlgorithm& algorithm : all_algorithms(1))
    CHECK(reduced(call, {{-5, 1, 2, -0.5f}}, algorithm)[0] == std::vector<float>{-5, 0, 0, 0});
}

// bytedance/byteps#299
TEST_CASE("top k: places need no more room than there is in a value", "[collective][cases]") {
  std::vector<wring::half_t> x(70000, to_element<wring::half_t>(0)), expected = x;
  x[69999] = to_element<wring::half_t>(3), expected[69999] = to_element<wring::half_t>(6);
  const Call<TopK<wring::half_t>> call{TopK<wring::half_t>({.k = 1})};
  for (const AnyAlgorithm& algorithm : all_algorithms(2))
    for (const auto& result : reduced(call, {x, x}, algorithm)) CHECK(same_bits(result, expected));
}

// pytorch/pytorch#31413, pytorch/pytorch#111422
TEST_CASE("top k: ranks with other places, and with none, get one sum", "[collective][cases]") {
  const PerRank<float> inputs{{1, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, {2, 0, 0, 0, 3}};
  for (const AnyAlgorithm& algorithm : all_algorithms(3))
    for (const std::size_t ride : {std::size_t{0}, std::size_t{65536}})
      for (const std::size_t k : {std::size_t{2}, std::size_t{5}, std::size_t{100}}) {
        Call<TopK<float>> call{TopK<float>({.k = k})};
        call.options.ride_along_bytes = ride;
        for (const auto& result : reduced(call, inputs, algorithm))
          CHECK(result == std::vector<float>{3, 0, 0, 0, 3});
      }
}

TEST_CASE("top k: NaN and infinities take the first places and arrive", "[collective][cases]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  const PerRank<float> inputs{{9, nan, infinity, 8, 1}, {infinity, 7, -infinity, 8, 1}};
  for (const AnyAlgorithm& algorithm : all_algorithms(2))
    for (const auto& y : reduced(Call<TopK<float>>{TopK<float>({.k = 3})}, inputs, algorithm)) {
      CHECK((y[0] == infinity && std::isnan(y[1]) && std::isnan(y[2]) && y[3] == 8 && y[4] == 0));
    }
}

TEST_CASE("top k: each tensor of a group is selected from by itself", "[collective]") {
  wring::InProcess world(3, {});
  PerRank<float> a(3), b(3);
  for (std::size_t r = 0; r < 3; ++r)
    a[r] = whole_numbers<float>(2000, r + 1), b[r] = whole_numbers<float>(77, r + 9);
  const TopK<float> codec({.ratio = 0.25});
  PerRank<float> expected_a, expected_b;
  for (std::size_t r = 0; r < 3; ++r)
    expected_a.push_back(sent(codec, a[r])), expected_b.push_back(sent(codec, b[r]));
  std::deque<wring::Allreduce<TopK<float>, wring::InProcessTransport, wring::Ring>> sums;
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums.emplace_back(codec, world.link(rank), wring::Ring{}, wring::Options{.segment_bytes = 4096})
        .start(Exec{}, wring::group(wring::item(Values<float>(a[r].data(), a[r].size())),
                                    wring::item(Values<float>(b[r].data(), b[r].size()))));
  });
  REQUIRE(all_ok(outcomes));
  for (std::size_t i = 0; i < 2000; ++i)
    REQUIRE(a[1][i] == expected_a[0][i] + expected_a[1][i] + expected_a[2][i]);
  for (std::size_t i = 0; i < 77; ++i)
    REQUIRE(b[1][i] == expected_b[0][i] + expected_b[1][i] + expected_b[2][i]);
}

// What is selected from is the input and all that was not sent before, of the whole tensor, wherever it is cut.
TEST_CASE("top k: with error feedback exactly k values of each rank are sent, and nothing is lost",
          "[collective]") {
  using Codec = wring::ErrorFeedback<TopK<float>>;
  constexpr std::size_t n = 3000, ranks = 3;
  const TopK<float> inner({.k = 40});
  for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
    wring::InProcess world(ranks, {});
    std::deque<wring::FeedbackState<float>> states(ranks);
    std::deque<wring::Allreduce<Codec, wring::InProcessTransport, AnyAlgorithm>> sums;
    for (std::size_t r = 0; r < ranks; ++r)
      sums.emplace_back(Codec(inner, states[r]), world.link(static_cast<int>(r)), algorithm,
                        wring::Options{.segment_bytes = 2048});
    PerRank<float> owed(ranks, std::vector<float>(n, 0)), results(ranks, std::vector<float>(n));
    for (std::uint64_t step = 0; step < 5; ++step) {
      PerRank<float> inputs;
      std::vector<float> expected(n, 0);
      for (std::size_t r = 0; r < ranks; ++r) {
        inputs.push_back(whole_numbers<float>(n, 10 * step + r));
        for (std::size_t i = 0; i < n; ++i) owed[r][i] += inputs[r][i];
        const std::vector<float> now = sent(inner, owed[r]);
        for (std::size_t i = 0; i < n; ++i) expected[i] += now[i], owed[r][i] -= now[i];
      }
      const auto outcomes = on_all_ranks(world, [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        return sums[r].start(Exec{}, wring::group(wring::item(Values<const float>(inputs[r].data(), n),
                                                              Values<float>(results[r].data(), n))));
      });
      INFO(algorithm.name() << ", step " << step << describe(outcomes));
      REQUIRE(all_ok(outcomes));
      for (const auto& result : results) REQUIRE(result == expected);
    }
  }
}

TEST_CASE("top k: one value of a hundred takes a fortieth of the bytes", "[collective]") {
  Call<TopK<float>> call{TopK<float>({.ratio = 0.01})};
  call.options.ride_along_bytes = 0;
  const auto got = collect(wring::Ring{}, call, PerRank<float>(2, real_numbers<float>(100000, 1)));
  REQUIRE(all_ok(got.outcomes));
  const wring::Report& report = got.outcomes[0].report;
  CHECK(report.bytes_raw == 400000);
  CHECK(report.bytes_sent < report.bytes_raw / 40);
}
