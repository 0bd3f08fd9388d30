// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Error feedback: what each encoding loses is kept and made good; the state is kept whole, or refused.
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/entropy_grid.hpp>
#include <wring/compressor/error_feedback.hpp>
#include <wring/compressor/gradient.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/lossless.hpp>
#include <wring/compressor/threshold.hpp>
#include <wring/compressor/top_k.hpp>
#include <wring/testing/compressor_laws.hpp>
#include <wring/view.hpp>

#include "support/feedback_team.hpp"
#include "support/matrix.hpp"

using namespace wring_test;
using namespace wring;

namespace {

using Failures = std::vector<std::string>;

/// Keeps whole numbers, by chopping: far from right on average. A bounded compressor as users write them, which can be told to fail.
struct Whole {
  using value_type = double;
  std::shared_ptr<bool> broken = std::make_shared<bool>(false);
  Identity identity() const { return {"whole", 1, {}}; }
  std::size_t max_compressed_bytes(std::size_t n) const { return detail::checked_bytes(n, 8); }
  double error(double) const { return 1; }
  std::size_t compress(const auto&, std::span<const double> x, std::span<std::byte> bytes, const Context&) {
    if (*broken) throw CodecError("whole: broken");
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double chopped = std::trunc(x[i]);
      std::memcpy(bytes.data() + 8 * i, &chopped, 8);
    }
    return 8 * x.size();
  }
  void decompress(const auto&, std::span<const std::byte> bytes, std::span<double> x, const Context&) {
    if (bytes.size() != x.size_bytes()) throw CodecError("whole: wrong size");
    if (!x.empty()) std::memcpy(x.data(), bytes.data(), bytes.size());
  }
};

/// Works in one execution space alone.
struct HostOnly {
  using value_type = float;
  template <class Exec> static constexpr bool here = std::same_as<Exec, Kokkos::DefaultHostExecutionSpace>;
  Identity identity() const { return {"host_only", 1, {}}; }
  std::size_t max_compressed_bytes(std::size_t n) const { return 4 * n; }
  void prepare(const Agreed&) {}
  template <class Exec>
    requires here<Exec>
  std::size_t compress(const Exec&, std::span<const float> x, std::span<std::byte>, const Context&) {
    return 4 * x.size();
  }
  template <class Exec>
    requires here<Exec>
  void decompress(const Exec&, std::span<const std::byte>, std::span<float>, const Context&) {}
};
/// The same in every space, with abilities in one alone.
struct AbleOnHost : HostOnly {
  std::size_t compress(const auto&, std::span<const float> x, std::span<std::byte>, const Context&) {
    return 4 * x.size();
  }
  void decompress(const auto&, std::span<const std::byte>, std::span<float>, const Context&) {}
  template <class Exec>
    requires here<Exec>
  void decompress_add(const Exec&, std::span<const std::byte>, std::span<float>, const Context&) {}
  template <class Exec>
    requires here<Exec>
  void inspect(const Exec&, std::span<const float>, const Context&) {}
  template <class Exec>
    requires here<Exec>
  double survey(const Exec&, std::span<const float>, double) const {
    return 1;
  }
};
struct Elsewhere {};  ///< an execution space

/// One encoding after the other of a rank's own values, without a collective.
template <class Inner> struct Alone {
  using T = typename Inner::value_type;
  FeedbackState<T> state;
  ErrorFeedback<Inner> codec;
  std::vector<std::byte> scratch, bytes;
  Context context;

  explicit Alone(std::size_t n, const Inner& inner = Inner()) : codec(inner, state) {
    context.count = context.total = n;
    scratch.resize(codec.scratch_bytes(n) + 64);
    context.scratch = {scratch.data(), codec.scratch_bytes(n)};
  }
  std::vector<T> send(const std::vector<T>& values) {
    const Exec exec;
    codec.open({.rank = 0, .ranks = 1, .total = values.size(), .count = values.size()});
    bytes.resize(codec.max_compressed_bytes(values.size()));
    std::vector<T> arrived(values.size());
    const std::size_t size = codec.compress(exec, std::span<const T>(values), bytes, context);
    codec.decompress(exec, std::span<const std::byte>(bytes).first(size), arrived, context);
    codec.close(true);
    return arrived;
  }
};

/// Sums of results and of exact sums over several steps, and the worst single result.
template <class T> struct Balance {
  std::vector<double> results, exact;
  double worst = 0;

  void add(const PerRank<T>& inputs, const std::vector<T>& result, double factor) {
    const std::vector<double> sums = exact_sums(inputs);
    results.resize(sums.size()), exact.resize(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      results[i] += factor * as_double(result[i]), exact[i] += sums[i];
      worst = std::max(worst, std::fabs(factor * as_double(result[i]) - sums[i]));
    }
  }
  /// The greatest |results - exact + owed|.
  double gap(const std::vector<double>& owed = {}) const {
    double most = 0;
    for (std::size_t i = 0; i < exact.size(); ++i)
      most = std::max(most, std::fabs(results[i] - exact[i] + (owed.empty() ? 0 : owed[i])));
    return most;
  }
};

template <class T> PerRank<T> inputs_of(int ranks, std::size_t n, std::uint64_t step) {
  PerRank<T> inputs;
  for (int r = 0; r < ranks; ++r)
    inputs.push_back(real_numbers<T>(n, 50 * step + static_cast<std::uint64_t>(r)));
  return inputs;
}

/// With every algorithm and 1 to 8 ranks: the sum of results is the sum of exact sums without what the states hold, to rounding, and all
/// ranks have one answer.
template <class Inner> void balances(const Inner& inner, std::optional<Bound> bound, bool finishes) {
  using T = typename Inner::value_type;
  constexpr std::size_t n = 700;
  constexpr int steps = 3;
  for (int ranks = 1; ranks <= 8; ++ranks) {
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
      const Operation operation = ranks % 2 == 0 ? mean : sum;
      const double factor = operation == mean ? ranks : 1;
      FeedbackTeam<Inner> team(ranks, algorithm, operation, inner);
      const EncodingTrace trace(algorithm, ranks, CombiningCompressor<Inner>, finishes && ranks > 4);
      Balance<T> balance;
      INFO(ranks << " ranks, " << algorithm.name() << ", " << name_of(operation));
      for (int t = 0; t < steps; ++t) {
        const auto inputs = inputs_of<T>(ranks, n, static_cast<std::uint64_t>(t));
        const auto outcomes = team.step(inputs, bound);
        INFO(describe(outcomes));
        REQUIRE(all_ok(outcomes));
        REQUIRE(team.one_answer());
        REQUIRE(!outcomes[0].report.rode_along);
        balance.add(inputs, team.results[0], factor);
      }
      const std::vector<double> owing = owed(team, trace, n);
      REQUIRE(!owing.empty());
      REQUIRE(balance.gap(owing) <= 1e-12 * 4 * ranks * steps * (ranks + 1));
      if (bound) REQUIRE(balance.worst <= factor * bound->value);
    }
  }
}

}  // namespace

TEST_CASE("feedback: the laws hold outside of an operation", "[compressor][feedback]") {
  const Exec exec;
  FeedbackState<double> state(ResidualStorage::eight_bits);
  CHECK(testing::check_compressor_laws(ErrorFeedback(Grid<double>(), state), exec) == Failures{});
  CHECK(testing::check_compressor_laws(ErrorFeedback(Whole(), state), exec) == Failures{});
}

TEST_CASE("feedback: abilities are those of the compressor inside", "[compressor][feedback]") {
  using E = ErrorFeedback<EntropyGrid<float>>;
  static_assert(BoundedCompressor<E> && FinishingCompressor<E> && CountsFallbacks<E> &&
                ScratchCompressor<E> && RememberingCompressor<E>);
  static_assert(!AnticipatingCompressor<ErrorFeedback<Grid<float>>> &&
                !MeasuringCompressor<ErrorFeedback<Grid<float>>> &&
                !AccumulatingCompressor<ErrorFeedback<Grid<float>>>);
  using B = ErrorFeedback<BlockScaled<float, 2>>;
  static_assert(FixedSizeCompressor<B> && AddingCompressor<B> && !BoundedCompressor<B> &&
                !PreparedCompressor<B>);
  static_assert(LosslessCompressor<ErrorFeedback<Lossless<float>>> && !LosslessCompressor<E>);
  static_assert(WideFormCompressor<E> && !WideFormCompressor<ErrorFeedback<TopK<float>>>);
  static_assert(Compressor<ErrorFeedback<HostOnly>> && !Compressor<ErrorFeedback<HostOnly>, Elsewhere>);
  using A = ErrorFeedback<AbleOnHost>;
  static_assert(AddingCompressor<A> && InspectingCompressor<A> && SurveyingCompressor<A>);
  static_assert(Compressor<A, Elsewhere> && !AddingCompressor<A, Elsewhere> &&
                !InspectingCompressor<A, Elsewhere> && !SurveyingCompressor<A, Elsewhere>);
  detail::explain_compressor<E>(), detail::explain_compressor<B>(), detail::explain_compressor<A>();
  FeedbackState<float> state;
  CHECK(B({}, state).identity().options.starts_with("block_scaled version=1 element=float bits=2"));
}

TEST_CASE("feedback: scratch memory is what the calls need", "[compressor][feedback]") {
  FeedbackState<float> full, small(ResidualStorage::eight_bits);
  const TopK<float> select({.k = 1});
  CHECK(ErrorFeedback(select, full).scratch_bytes(1024) == 4096);  // values with what is owed to them
  CHECK(ErrorFeedback(select, small).scratch_bytes(1024) == 8192);
  CHECK(ErrorFeedback(Lossless<float>(), small).scratch_bytes(1024) == 0);
  const Grid<float> grid;
  const std::size_t pieces = grid.max_compressed_bytes(1024) + grid.max_combined_bytes(1024, 2);
  const std::size_t both = ErrorFeedback(grid, full).scratch_bytes(1024);
  CHECK((both >= 8192 + pieces && both < 8192 + pieces + 128));
}

TEST_CASE("feedback: one encoding, by hand", "[compressor][feedback]") {
  Alone<Whole> alone(3);
  CHECK(alone.send({0.75, -0.75, 5}) == std::vector<double>{0, 0, 5});
  CHECK(alone.send({0.75, -0.75, 5}) == std::vector<double>{1, -1, 5});  // 1.5
  CHECK(alone.state.residuals() == std::vector<double>{0.5, -0.5, 0});
  CHECK(alone.send({0.25, 0.25, 0.5}) == std::vector<double>{0, 0, 0});
  CHECK(alone.send({0.25, 1.25, 0.5}) == std::vector<double>{1, 1, 1});
  CHECK(alone.state.residuals() == std::vector<double>{0, 0, 0});
  CHECK(alone.state.steps() == 4);
  CHECK(alone.state.residuals(0, 1).empty());
  CHECK(alone.state.residuals(1).empty());
}

TEST_CASE("feedback: special values pass, and leave what is owed alone", "[compressor][feedback]") {
  const double inf = INFINITY;
  Alone<Cast<half_t, float>> alone(4);
  const float tenth = 0.1f;
  alone.send({tenth, tenth, tenth, tenth});
  const std::vector<double> before = alone.state.residuals();
  REQUIRE(before[0] != 0);
  const auto arrived = alone.send({NAN, INFINITY, -INFINITY, 0});
  CHECK((std::isnan(arrived[0]) && arrived[1] == inf && arrived[2] == -inf));
  CHECK(std::fabs(arrived[3] - before[3]) < 1e-7);
  const std::vector<double> after = alone.state.residuals();
  CHECK((after[0] == before[0] && after[1] == before[1] && after[2] == before[2]));
  const auto clipped = alone.send({1e6f, -1e6f, 0, 0});  // beyond fp16: what is lost is kept
  CHECK((clipped[0] == 65504 && clipped[1] == -65504));
  CHECK(alone.send({0, 0, 0, 0})[0] == 65504);

  Alone<BlockScaled<float, 4>> largest(2);
  const float greatest = std::numeric_limits<float>::max();
  for (int t = 0; t < 5; ++t)
    for (const float x : largest.send({greatest, -greatest / 3})) CHECK(std::isfinite(x));
  Alone<BlockScaled<float, 4>> zeros(2);
  CHECK(std::signbit(zeros.send({-0.0f, 1})[0]) ==
        std::signbit(Alone<BlockScaled<float, 4>>(2).send({-0.0f, 1})[0]));
}

// Residuals of a dead unit shrink from step to step: they end as zeros, and nothing becomes an infinity or NaN on the way.
TEST_CASE("feedback: residuals of dead units fade", "[compressor][feedback]") {
  Alone<BlockScaled<float, 2>> alone(256);
  std::vector<float> values = real_numbers<float>(256, 5);
  alone.send(values);
  for (float& x : values) x = 0;
  for (int t = 0; t < 600; ++t)
    for (const float x : alone.send(values)) REQUIRE(std::isfinite(x));
  for (const double e : alone.state.residuals()) REQUIRE(std::fabs(e) < 0x1p-110);
}

TEST_CASE("feedback: every algorithm makes good what it has lost", "[compressor][feedback]") {
  balances(Whole(), {}, false);
}
TEST_CASE("feedback: every algorithm, with pieces that combine", "[compressor][feedback]") {
  balances(Grid<double>(), absolute(0.25), true);
}
// Its step follows from the values: with residuals of either size it finds one, and with zeros for values nothing is paid back.
TEST_CASE("feedback: with the compressor for gradients, no bound asked for", "[compressor][feedback]") {
  for (const ResidualStorage storage : {ResidualStorage::full, ResidualStorage::eight_bits}) {
    FeedbackTeam<Gradient<double>> team(5, Ring{}, sum, Gradient<double>({.target = 0.1}), storage);
    Balance<double> balance;
    double gap_at_10 = 0;
    for (std::uint64_t t = 0; t < 60; ++t) {
      const auto inputs = t == 20 ? PerRank<double>(5, std::vector<double>(3000))
                                  : inputs_of<double>(5, 3000, t % 3);  // what is small stays so
      const auto outcomes = team.step(inputs);
      INFO(describe(outcomes));
      REQUIRE(all_ok(outcomes));
      REQUIRE(team.one_answer());
      if (t == 20)
        for (const double x : team.results[0]) REQUIRE(x == 0);
      balance.add(inputs, team.results[0], 1);
      if (t == 9) gap_at_10 = balance.gap();
    }
    CHECK(balance.gap() < 2 * gap_at_10);
  }
}

TEST_CASE("feedback: each value is encoded once, and small ones do not ride along",
          "[compressor][feedback]") {
  FeedbackTeam<Grid<double>> team(2, Direct{}, sum);
  const auto outcomes = team.step(inputs_of<double>(2, 512, 0), absolute(0.1));
  REQUIRE(all_ok(outcomes));
  CHECK(outcomes[0].report.encodings == 1);
  CHECK(!outcomes[0].report.rode_along);
}

TEST_CASE("feedback: a bound holds for single results and for their sum", "[compressor][feedback]") {
  for (const int ranks : {1, 3, 8}) {
    for (const Operation operation : {sum, mean}) {
      const double factor = operation == mean ? ranks : 1;
      FeedbackTeam<Grid<double>> team(ranks, RecursiveDoubling{}, operation);
      Balance<double> balance;
      for (std::uint64_t t = 0; t < 60; ++t) {
        const auto inputs = inputs_of<double>(ranks, 600, t % 7);
        REQUIRE(all_ok(team.step(inputs, absolute(0.5))));
        balance.add(inputs, team.results[0], factor);
      }
      CHECK(balance.worst <= factor * 0.5);
      CHECK(balance.gap() <= factor * 0.5);
    }
  }
}

TEST_CASE("feedback: a bound that shrinks holds, and what is owed is paid back later",
          "[compressor][feedback]") {
  FeedbackTeam<Grid<double>> grid(5, Ring{}, sum);
  FeedbackTeam<Whole> whole(5, Ring{}, sum);
  const auto run = [](auto& team, double bound, int steps) {
    double worst = 0;
    for (int t = 0; t < steps; ++t) {
      Balance<double> balance;
      auto inputs = inputs_of<double>(5, 600, static_cast<std::uint64_t>(t));
      const auto outcomes = team.step(inputs, absolute(bound));
      INFO(describe(outcomes));
      REQUIRE(all_ok(outcomes));
      balance.add(inputs, team.results[0], 1);
      worst = std::max(worst, balance.worst);
    }
    CHECK(worst <= bound);
  };
  run(grid, 8, 3), run(grid, 0.05, 400), run(grid, 2, 3);
  run(whole, 60, 3), run(whole, 20, 20);
  for (int r = 0; r < 5; ++r)  // the first bound left up to 0.5 to each
    for (const double e : grid.state(r).residuals()) REQUIRE(std::fabs(e) < 0.5);
}

TEST_CASE("feedback: inputs of zeros give zeros where the bound is relative to them",
          "[compressor][feedback]") {
  for (const Bound& bound : {relative_to_rms(0.3), relative_to_range(0.05)}) {
    FeedbackTeam<Grid<double>> team(3, Ring{}, mean);
    REQUIRE(all_ok(team.step(inputs_of<double>(3, 600, 1), bound)));
    const std::vector<double> before = team.state(0).residuals();
    const auto outcomes = team.step(PerRank<double>(3, std::vector<double>(600)), bound);
    INFO(describe(outcomes));
    REQUIRE(all_ok(outcomes));
    for (const double x : team.results[0]) REQUIRE(x == 0);
    CHECK(team.state(0).residuals() == before);
  }
}

TEST_CASE("feedback: zeros of either sign are the same history on all ranks", "[compressor][feedback]") {
  FeedbackTeam<Grid<double>> team(2, Ring{}, sum);
  const PerRank<double> inputs{{+0.0, 1, 0.3}, {-0.0, 1, 0.7}};
  for (int t = 0; t < 3; ++t) {
    const auto outcomes = team.step(inputs, relative_to_range(0.05));
    INFO(describe(outcomes));
    REQUIRE(all_ok(outcomes));
  }
}

TEST_CASE("feedback: sums at the edge of the type keep their bound", "[compressor][feedback]") {
  FeedbackTeam<Grid<double>> team(2, Ring{}, sum);
  const double bound = 1e305, half = std::numeric_limits<double>::max() / 2 - 1e304;
  for (int t = 0; t < 6; ++t) {
    const std::vector<double> values{half, -half, half / 2, 1e305, 3e304 * t};
    const PerRank<double> inputs{values, values};
    REQUIRE(all_ok(team.step(inputs, absolute(bound))));
    Balance<double> balance;
    balance.add(inputs, team.results[0], 1);
    CHECK(balance.worst <= bound);
  }
}

TEMPLATE_TEST_CASE("feedback: the greatest values of a type have the bound that they have without",
                   "[compressor][feedback]", double, float, half_t) {
  const double greatest = FloatTraits<TestType>::greatest, bound = 0.01 * greatest;
  for (const Operation operation : {sum, mean}) {
    FeedbackTeam<Grid<TestType>> team(2, Ring{}, operation);
    for (int t = 0; t < 3; ++t) {
      const auto values = [&](double a, double b, double c) {
        return std::vector<TestType>{to_element<TestType>(a * greatest), to_element<TestType>(b * greatest),
                                     to_element<TestType>(c * greatest)};
      };
      const PerRank<TestType> inputs{values(1, -1, 0.3), values(1, -0.7, -1)};
      const auto outcomes = team.step(inputs, absolute(bound));
      INFO(describe(outcomes));
      REQUIRE(all_ok(outcomes));
      CHECK(team.one_answer());
      for (std::size_t i = 0; i < 3; ++i)
        CHECK(reduced_within<TestType>(operation, {inputs[0][i], inputs[1][i]}, team.results[0][i], bound));
    }
  }
}

TEST_CASE("feedback: minimum and maximum are refused on all ranks", "[compressor][feedback]") {
  for (const Operation operation : {min, max}) {
    FeedbackTeam<Grid<double>> team(3, Ring{}, operation);
    const auto outcomes = team.step(inputs_of<double>(3, 100, 1), absolute(0.1));
    CHECK(all_failed(outcomes, Cause::argument));
    CHECK(outcomes[0].text.find("minimum") != std::string::npos);
  }
}

TEST_CASE("feedback: copies are compensated by who encodes them", "[compressor][feedback]") {
  using Codec = ErrorFeedback<Whole>;
  constexpr std::size_t n = 300;
  constexpr int ranks = 3;
  for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
    InProcess world(ranks);
    std::deque<FeedbackState<double>> states(ranks), sources(ranks);
    std::deque<Allgather<Codec, InProcessTransport, AnyAlgorithm>> gathers;
    std::deque<Broadcast<Codec, InProcessTransport, AnyAlgorithm>> casts;
    for (int r = 0; r < ranks; ++r) {
      const auto i = static_cast<std::size_t>(r);
      gathers.emplace_back(Codec({}, states[i]), world.link(r), algorithm);
      casts.emplace_back(Codec({}, sources[i]), world.link(r), algorithm);
    }
    std::vector<double> all(ranks * n), sent(n);
    for (std::uint64_t t = 0; t < 8; ++t) {
      const auto inputs = inputs_of<double>(ranks, n, t);
      PerRank<double> whole(ranks, std::vector<double>(ranks * n)), copies(ranks, inputs[1]);
      REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
        const auto i = static_cast<std::size_t>(r);
        return gathers[i].start(Exec{}, Values<const double>(inputs[i].data(), n),
                                Values<double>(whole[i].data(), ranks * n));
      })));
      REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
        const auto i = static_cast<std::size_t>(r);
        return casts[i].start(Exec{}, Values<double>(copies[i].data(), n), 1);
      })));
      for (std::size_t i = 0; i < ranks * n; ++i) all[i] += whole[0][i] - inputs[i / n][i % n];
      for (std::size_t i = 0; i < n; ++i) sent[i] += copies[0][i] - inputs[1][i];
    }
    const std::vector<double> owed = sources[1].residuals();
    for (std::size_t i = 0; i < n; ++i) REQUIRE(std::fabs(sent[i] + owed[i]) < 1e-12);
    for (std::size_t r = 0; r < ranks; ++r) {
      const std::vector<double> residual = states[r].residuals();
      for (std::size_t i = r * n; i < (r + 1) * n; ++i) REQUIRE(std::fabs(all[i] + residual[i]) < 1e-12);
    }
    CHECK(sources[0].residuals().empty());
  }
}

TEST_CASE("feedback: groups, triangles and scaled views", "[compressor][feedback]") {
  using Codec = ErrorFeedback<Grid<double>>;
  constexpr int ranks = 3, d = 20;
  InProcess world(ranks);
  std::deque<FeedbackState<double>> states(ranks);
  std::deque<Allreduce<Codec, InProcessTransport, Ring>> ops;
  for (int r = 0; r < ranks; ++r)
    ops.emplace_back(Codec({}, states[static_cast<std::size_t>(r)]), world.link(r), Ring{});
  using View = Kokkos::View<double*, Kokkos::HostSpace>;
  using Square = Kokkos::View<double**, Kokkos::HostSpace>;
  const View scale("scale", 700);
  for (std::size_t i = 0; i < 700; ++i) scale(i) = std::ldexp(1.0, static_cast<int>(i % 9) - 4);
  std::vector<double> gaps(700 + d * d + 90);
  for (std::uint64_t t = 0; t < 25; ++t) {
    std::vector<View> scaled_in, small;
    std::vector<Square> square;
    std::vector<double> exact(gaps.size());
    for (std::uint64_t r = 0; r < ranks; ++r) {
      const auto x = real_numbers<double>(1000, 10 * t + r);
      scaled_in.emplace_back("a", 700), square.emplace_back("b", d, d), small.emplace_back("c", 90);
      for (std::size_t i = 0; i < 700; ++i) exact[i] += scaled_in[r](i) = x[i] * scale(i);
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < d; ++j)
          exact[700 + i * d + j] += square[r](i, j) = x[std::min(i, j) * d + std::max(i, j)];
      for (std::size_t i = 0; i < 90; ++i) exact[700 + d * d + i] += small[r](i) = x[i + 900];
    }
    const auto outcomes = on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      return ops[r].start(Exec{},
                          group(item(scaled(scaled_in[r], scale), absolute(0.1)),
                                item(symmetric(square[r]), absolute(0.1)), item(small[r], absolute(0.4))));
    });
    INFO(describe(outcomes));
    REQUIRE(all_ok(outcomes));
    const auto check = [&](std::size_t at, double result, double bound) {
      REQUIRE(std::fabs(result - exact[at]) <= bound);
      gaps[at] += result - exact[at];
      REQUIRE(std::fabs(gaps[at]) <= bound + 1e-12);
    };
    for (std::size_t i = 0; i < 700; ++i) check(i, scaled_in[2](i), 0.1 * scale(i));
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = 0; j < d; ++j) check(700 + i * d + j, square[2](i, j), 0.1);
    for (std::size_t i = 0; i < 90; ++i) check(700 + d * d + i, small[2](i), 0.4);
  }
  CHECK((states[0].steps(0) == 25 && states[0].steps(2) == 25 && states[0].steps(3) == 0));
}

TEST_CASE("feedback: residuals in 8 bits are right on average", "[compressor][feedback]") {
  FeedbackState<double> state(ResidualStorage::eight_bits);
  const Whole inner;
  ErrorFeedback<Whole> codec(inner, state);
  constexpr std::size_t n = 1000;
  std::vector<std::byte> bytes(8 * n), scratch(codec.scratch_bytes(n));
  Context context{.count = n, .total = n, .scratch = scratch};
  const std::vector<double> values = real_numbers<double>(n, 3, 0.5);
  std::vector<double> sum(n), arrived(n);
  constexpr int steps = 2000;
  for (int t = 0; t < steps; ++t) {
    codec.open({.rank = 0, .ranks = 1, .total = n, .count = n});
    codec.compress(Exec{}, std::span<const double>(values), bytes, context);
    codec.decompress(Exec{}, std::span<const std::byte>(bytes), arrived, context);
    codec.close(true);
    for (std::size_t i = 0; i < n; ++i) sum[i] += arrived[i];
  }
  double all = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double gap = sum[i] - steps * values[i];
    all += gap;
    REQUIRE(std::fabs(gap) <
            1 + 6 * std::sqrt(steps) / 127);  // six deviations of a walk of steps up to 1/127
  }
  CHECK(std::fabs(all / n) < 0.5);
  const auto saved = state.save();
  CHECK(saved.size() < 1.1 * n + 300);
  FeedbackState<double> again(ResidualStorage::eight_bits), full;
  again.restore(saved);
  CHECK((again.save() == saved));
  CHECK_THROWS_AS(full.restore(saved), InvalidArgument);
}

TEST_CASE("feedback: residuals in 8 bits are rounded alike where ranks hold the same sum, for own values not",
          "[compressor][feedback]") {
  constexpr std::size_t n = 200;
  const std::vector<double> values = real_numbers<double>(n, 3, 0.5);
  const auto residuals = [&](int rank, Phase phase) {
    FeedbackState<double> state(ResidualStorage::eight_bits);
    const Whole inner;
    ErrorFeedback<Whole> codec(inner, state);
    std::vector<std::byte> bytes(8 * n), scratch(codec.scratch_bytes(n));
    codec.open({.rank = rank, .ranks = 2, .total = n, .count = n});
    codec.compress(Exec{}, std::span<const double>(values), bytes,
                   Context{.phase = phase, .rank = rank, .count = n, .total = n, .scratch = scratch});
    codec.close(true);
    return state.residuals();
  };
  CHECK(residuals(0, Phase::hop) == residuals(1, Phase::hop));
  CHECK(residuals(0, Phase::own) == residuals(0, Phase::own));
  CHECK(residuals(0, Phase::own) != residuals(1, Phase::own));
}

TEST_CASE("feedback: residuals in 8 bits give one answer and keep the bound", "[compressor][feedback]") {
  for (const AnyAlgorithm& algorithm : all_algorithms(6)) {
    FeedbackTeam<Grid<double>> team(6, algorithm, mean, {}, ResidualStorage::eight_bits);
    FeedbackTeam<Whole> whole(6, algorithm, sum, {}, ResidualStorage::eight_bits);
    for (std::uint64_t t = 0; t < 6; ++t) {
      const auto inputs = inputs_of<double>(6, 1300, t);
      REQUIRE(all_ok(team.step(inputs, absolute(0.2))));
      Balance<double> balance;
      balance.add(inputs, team.results[0], 6);
      REQUIRE(balance.worst <= 6 * 0.2);
      REQUIRE(all_ok(whole.step(inputs)));
      REQUIRE((team.one_answer() && whole.one_answer()));
    }
  }
}

// Counts that are no multiples of the groups: each rank's part has groups of its own.
TEST_CASE("feedback: parts of uneven length", "[compressor][feedback]") {
  using Codec = ErrorFeedback<Whole>;
  for (const ResidualStorage storage : {ResidualStorage::full, ResidualStorage::eight_bits}) {
    for (const AnyAlgorithm& algorithm : all_algorithms(4)) {
      InProcess world(4);
      const Lengths counts{1, 129, 0, 700};
      std::deque<FeedbackState<double>> states;
      std::deque<ReduceScatter<Codec, InProcessTransport, AnyAlgorithm>> ops;
      for (int r = 0; r < 4; ++r)
        ops.emplace_back(Codec({}, states.emplace_back(storage)), world.link(r), algorithm);
      std::vector<double> gaps(830);
      for (std::uint64_t t = 0; t < 40; ++t) {
        const auto inputs = inputs_of<double>(4, 830, t);
        PerRank<double> parts;
        for (const std::size_t n : counts) parts.emplace_back(n);
        REQUIRE(all_ok(on_all_ranks(world, [&](int rank) {
          const auto r = static_cast<std::size_t>(rank);
          return ops[r].start(Exec{}, group(item(Values<const double>(inputs[r].data(), 830),
                                                 Values<double>(parts[r].data(), counts[r]), {},
                                                 std::span<const std::size_t>(counts))));
        })));
        const auto sums = exact_sums(inputs);
        std::size_t at = 0;
        for (const auto& part : parts)
          for (const double x : part) gaps[at] += x - sums[at], ++at;
      }
      for (const double gap : gaps) REQUIRE(std::fabs(gap) < 5 + (storage == ResidualStorage::full ? 0 : 1));
    }
  }
}

// What one way of moving the tensor has left is paid back in the next: with three ways in turn no more is owed than with one, nor kept.
TEST_CASE("feedback: what is owed follows a tensor that is moved in another way", "[compressor][feedback]") {
  constexpr std::size_t n = 700;
  const std::vector<AnyAlgorithm> ways{Ring{}, Direct{}, HalvingDoubling{}};
  for (const ResidualStorage storage : {ResidualStorage::full, ResidualStorage::eight_bits}) {
    const double noise = storage == ResidualStorage::full ? 1e-11 : 0.05;
    FeedbackTeam<Whole> whole(4, Ring{}, sum, {}, storage);
    FeedbackTeam<Grid<double>> grid(5, Ring{}, sum, {}, storage);
    Balance<double> wholes, grids;
    for (std::size_t t = 0; t < 24; ++t) {
      whole.move_by(ways[t % 3]), grid.move_by(ways[t % 3]);
      const auto four = inputs_of<double>(4, n, t), five = inputs_of<double>(5, n, t);
      REQUIRE(all_ok(whole.step(four)));
      REQUIRE(all_ok(grid.step(five, absolute(0.25))));
      REQUIRE((whole.one_answer() && grid.one_answer()));
      wholes.add(four, whole.results[0], 1), grids.add(five, grid.results[0], 1);
      REQUIRE(wholes.gap() < 4 + 20 * noise);  // four encodings, each of which chops less than 1
      REQUIRE(wholes.gap(all_residuals(whole, n)) < 10 * noise);
      REQUIRE(grids.gap(all_residuals(grid, n)) < 10 * noise);
    }
    CHECK(grids.worst <= 0.25);
    CHECK(whole.state(0).save().size() < 9 * n);
  }
}

// Sums that two ranks encode alike stay owed by both: each of them pays back, and they count once.
TEST_CASE("feedback: what ranks owe in common waits for its own way", "[compressor][feedback]") {
  constexpr std::size_t n = 700;
  FeedbackTeam<Whole> team(4, RecursiveDoubling{}, sum);
  const EncodingTrace doubling(RecursiveDoubling{}, 4, false, false);
  Balance<double> balance;
  for (std::size_t t = 0; t < 9; ++t) {
    if (t % 3 == 1) team.move_by(Ring{});
    if (t % 3 == 2) team.move_by(RecursiveDoubling{});
    const auto inputs = inputs_of<double>(4, n, t);
    REQUIRE(all_ok(team.step(inputs)));
    REQUIRE(team.one_answer());
    balance.add(inputs, team.results[0], 1);
    const std::vector<double> owing = owed(team, doubling, n);
    REQUIRE(!owing.empty());  // alike on both ranks
    CHECK(balance.gap(owing) < 1e-11);
  }
}

TEST_CASE("feedback: a group that grows leaves nothing behind", "[compressor][feedback]") {
  using Codec = ErrorFeedback<Whole>;
  constexpr std::size_t n = 700, ranks = 3;
  for (const AnyAlgorithm& algorithm : all_algorithms(3)) {
    InProcess world(3);
    std::deque<FeedbackState<double>> states(ranks);
    std::deque<Allreduce<Codec, InProcessTransport, AnyAlgorithm>> ops;
    for (std::size_t r = 0; r < ranks; ++r)
      ops.emplace_back(Codec({}, states[r]), world.link(static_cast<int>(r)), algorithm);
    Balance<double> balance;
    for (std::size_t t = 0; t < 24; ++t) {
      const auto inputs = inputs_of<double>(3, n, t);
      PerRank<double> results = inputs, others(ranks, std::vector<double>(150, 0.3));
      const auto outcomes = on_all_ranks(world, [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        std::vector items{item(Values<double>(results[r].data(), n))};
        if (t % 3 > 0) items.push_back(item(Values<double>(others[r].data(), 100)));
        if (t % 3 > 1) items.push_back(item(Values<double>(others[r].data() + 100, 50)));
        return ops[r].start(Exec{}, group(std::move(items)));
      });
      INFO(algorithm.name() << describe(outcomes));
      REQUIRE(all_ok(outcomes));
      balance.add(inputs, results[0], 1);
      REQUIRE(balance.gap() <
              4);  // no more than four encodings are in a result, each of which chops less than 1
    }
  }
}

TEST_CASE("feedback: with an entropy stage, the bits and debts of Grid", "[compressor][feedback]") {
  for (const ResidualStorage storage : {ResidualStorage::full, ResidualStorage::eight_bits}) {
    FeedbackTeam<Grid<double>> grid(5, Ring{}, mean, {}, storage);
    FeedbackTeam<EntropyGrid<double>> coded(5, Ring{}, mean, {}, storage);
    for (std::uint64_t t = 0; t < 4; ++t) {
      const auto inputs = inputs_of<double>(5, 3000, t);
      REQUIRE(all_ok(grid.step(inputs, absolute(0.2))));
      REQUIRE(all_ok(coded.step(inputs, absolute(0.2))));
      for (std::size_t r = 0; r < 5; ++r) {
        REQUIRE(same_bits(coded.results[r], grid.results[r]));
        for (const int encoding : {0, 1})
          REQUIRE(coded.states[r].residuals(0, encoding) == grid.states[r].residuals(0, encoding));
      }
    }
  }
}

TEST_CASE("feedback: with a threshold, what is not sent adds up until it is", "[compressor][feedback]") {
  for (const Operation operation : {sum, mean}) {
    const double factor = operation == mean ? 3 : 1;
    FeedbackTeam<Threshold<double>> bounded(3, Direct{}, operation),
        chosen(3, Direct{}, operation, Threshold<double>({.threshold = 1.5}));
    Balance<double> one, other;
    for (std::uint64_t t = 0; t < 30; ++t) {
      const auto inputs = inputs_of<double>(3, 700, t % 7);
      REQUIRE(all_ok(bounded.step(inputs, absolute(0.5))));
      REQUIRE(all_ok(chosen.step(inputs)));
      one.add(inputs, bounded.results[0], factor), other.add(inputs, chosen.results[0], factor);
    }
    CHECK((one.worst <= factor * 0.5 && one.gap() <= factor * 0.5));
    CHECK(other.worst > 0.5);
    CHECK(other.gap() <= 3 * 1.5);
    CHECK(other.gap(all_residuals(chosen, 700)) < 1e-11);
  }
}

// Residuals are float; what each result loses in its own rounding is not made good.
TEST_CASE("feedback: 16-bit values", "[compressor][feedback]") {
  FeedbackTeam<Grid<half_t>> team(3, Ring{}, mean);
  Balance<half_t> balance;
  constexpr int steps = 40;
  for (std::uint64_t t = 0; t < steps; ++t) {
    const auto inputs = inputs_of<half_t>(3, 700, t % 7);
    REQUIRE(all_ok(team.step(inputs, absolute(0.25))));
    REQUIRE(team.one_answer());
    balance.add(inputs, team.results[0], 3);
  }
  double greatest = 0;
  for (const double x : balance.exact) greatest = std::max(greatest, std::fabs(x));
  CHECK(balance.worst <= 3 * 0.25);
  CHECK(balance.gap() <=
        3 * 0.25 + 3 * steps * FloatTraits<half_t>::unit_roundoff * 8);  // results are below 8
  CHECK(greatest > 10 * balance.gap());
}

// Links for which another way is best each time, and on one of which nothing is encoded.
TEST_CASE("feedback: with Automatic, whatever is chosen", "[compressor][feedback]") {
  using Codec = ErrorFeedback<Whole>;
  constexpr std::size_t n = 3000, ranks = 4;
  InProcess world(4);
  std::deque<FeedbackState<double>> states(ranks);
  std::deque<Allreduce<Codec, InProcessTransport, Automatic>> ops;
  for (const auto& [bandwidth, latency] :
       {std::pair(1e6, 1e-9), std::pair(1e7, 1e-3), std::pair(1e14, 1e-9)}) {
    Machine m = typical_node();
    m.bandwidth = bandwidth, m.latency = latency;
    for (std::size_t r = 0; r < ranks; ++r)
      ops.emplace_back(Codec({}, states[r]), world.link(static_cast<int>(r)), Automatic(m));
  }
  Balance<double> balance;
  std::set<std::string> chosen;
  for (std::size_t t = 0; t < 18; ++t) {
    const auto inputs = inputs_of<double>(4, n, t);
    PerRank<double> results = inputs;
    const auto outcomes = on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      return ops[t % 3 * ranks + r].start(Exec{}, Values<double>(results[r].data(), n));
    });
    INFO(describe(outcomes));
    REQUIRE(all_ok(outcomes));
    for (const auto& result : results) REQUIRE(same_bits(result, results[0]));
    const std::string reason = outcomes[0].report.reason.str();
    chosen.insert(outcomes[0].report.algorithm.str() + reason.substr(0, reason.find(',')));
    balance.add(inputs, results[0], 1);
    REQUIRE(balance.gap() < 8);
  }
  CHECK(chosen.size() >= 2);
}

// Grid's sums do not depend on what is beside them: a tensor of a group has the bits that it has alone, of its own compressor.
TEST_CASE("feedback: tensors of a group with compressors of their own", "[compressor][feedback]") {
  using Codec = ErrorFeedback<Grid<double>>;
  using Op = Allreduce<Codec, InProcessTransport, Ring>;
  constexpr std::size_t n = 1300, ranks = 3;
  const Grid<double> coarse({.step = Grid<double>::StepKind::power_of_two});
  InProcess world(3);
  std::deque<FeedbackState<double>> states(ranks), first(ranks), second(ranks);
  std::deque<Op> groups, firsts, seconds;
  for (std::size_t r = 0; r < ranks; ++r) {
    InProcessTransport& link = world.link(static_cast<int>(r));
    groups.emplace_back(Codec({}, states[r]), link, Ring{});
    firsts.emplace_back(Codec({}, first[r]), link, Ring{});
    seconds.emplace_back(Codec(coarse, second[r]), link, Ring{});
  }
  for (std::uint64_t t = 0; t < 5; ++t) {
    PerRank<double> a = inputs_of<double>(3, n, t), b = inputs_of<double>(3, n, t + 20), c = a, d = b;
    const auto view = [](PerRank<double>& of, int r) {
      return Values<double>(of[static_cast<std::size_t>(r)].data(), n);
    };
    const auto of = [&](std::deque<Op>& ops, int r) -> Op& { return ops[static_cast<std::size_t>(r)]; };
    const auto outcomes = on_all_ranks(world, [&](int r) {
      const Codec own(coarse, states[static_cast<std::size_t>(r)]);
      return of(groups, r).start(
          Exec{}, group(item(view(a, r), absolute(0.1)), item(view(b, r), absolute(0.3)).with(own)));
    });
    INFO(describe(outcomes));
    REQUIRE(all_ok(outcomes));
    REQUIRE(all_ok(on_all_ranks(
        world, [&](int r) { return of(firsts, r).start(Exec{}, group(item(view(c, r), absolute(0.1)))); })));
    REQUIRE(all_ok(on_all_ranks(
        world, [&](int r) { return of(seconds, r).start(Exec{}, group(item(view(d, r), absolute(0.3)))); })));
    for (std::size_t r = 0; r < ranks; ++r) REQUIRE((same_bits(a[r], c[r]) && same_bits(b[r], d[r])));
  }
  CHECK(states[0].steps(1) == 5);
}

// As buckets do whose order changes once a first step has shown it.
TEST_CASE("feedback: tensors of a group that have changed places are refused until the state is reset",
          "[compressor][feedback]") {
  using Codec = ErrorFeedback<Grid<double>>;
  InProcess world(3);
  std::deque<FeedbackState<double>> states(3);
  std::deque<Allreduce<Codec, InProcessTransport, Ring>> ops;
  for (int r = 0; r < 3; ++r)
    ops.emplace_back(Codec({}, states[static_cast<std::size_t>(r)]), world.link(r), Ring{});
  PerRank<double> a = inputs_of<double>(3, 700, 1), b = inputs_of<double>(3, 900, 2);
  const auto step = [&](bool swapped) {
    return on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const Values<double> first(a[r].data(), a[r].size()), second(b[r].data(), b[r].size());
      return ops[r].start(Exec{}, group(item(swapped ? second : first, absolute(0.1)),
                                        item(swapped ? first : second, absolute(0.1))));
    });
  };
  REQUIRE(all_ok(step(false)));
  const auto refused = step(true);
  INFO(describe(refused));
  CHECK(all_failed(refused, Cause::argument));
  CHECK(refused[0].text.find("reset()") != std::string::npos);
  CHECK(all_ok(step(false)));
  for (auto& state : states) state.reset();
  CHECK(all_ok(step(true)));
}

// ---- the state ----

TEST_CASE("feedback: states of two runs do not mix", "[compressor][feedback]") {
  using Codec = BlockScaled<float, 2>;
  for (const bool bounded : {false, true}) {
    const auto run = [&](auto inner, bool turned) {
      FeedbackTeam<decltype(inner)> one(4, RecursiveDoubling{}, sum, inner),
          other(4, RecursiveDoubling{}, sum, inner), mixed(4, RecursiveDoubling{}, sum, inner);
      const std::optional<Bound> bound = bounded ? std::optional<Bound>(absolute(0.3)) : std::nullopt;
      auto inputs = inputs_of<float>(4, 1500, 1);
      REQUIRE(all_ok(one.step(inputs, bound)));
      if (turned)
        for (auto& x : inputs) std::reverse(x.begin(), x.end());  // magnitudes are the same
      REQUIRE(all_ok(other.step(inputs, bound)));
      for (int r = 0; r < 4; ++r) mixed.state(r).restore((r % 2 == 0 ? one : other).state(r).save());
      return mixed.step(inputs_of<float>(4, 1500, 2), bound);
    };
    const auto turned = bounded ? run(Grid<float>(), true) : run(Codec(), true);
    INFO(describe(turned));
    CHECK(all_failed(turned, Cause::mismatch));
    CHECK(turned[0].text.find("feedback remembers") != std::string::npos);
    CHECK(all_ok(bounded ? run(Grid<float>(), false) : run(Codec(), false)));
  }
}

TEST_CASE("feedback: a tensor that has changed its shape is refused", "[compressor][feedback]") {
  using Codec = ErrorFeedback<Whole>;
  using Matrix = Kokkos::View<double**, Kokkos::HostSpace>;
  InProcess world(2);
  std::deque<FeedbackState<double>> states(2);
  std::deque<Allreduce<Codec, InProcessTransport, Ring>> ops;
  for (int r = 0; r < 2; ++r)
    ops.emplace_back(Codec({}, states[static_cast<std::size_t>(r)]), world.link(r), Ring{});
  const auto step = [&](const Matrix& a, const Matrix& b) {
    return on_all_ranks(
        world, [&](int r) { return ops[static_cast<std::size_t>(r)].start(Exec{}, r == 0 ? a : b); });
  };
  CHECK(all_ok(step(Matrix("a", 20, 30), Matrix("b", 20, 30))));
  const auto turned = step(Matrix("a", 30, 20), Matrix("b", 30, 20));
  CHECK(all_failed(turned, Cause::argument));
  CHECK(turned[0].text.find("extents") != std::string::npos);
  CHECK(all_failed(step(Matrix("a", 20, 30), Matrix("b", 30, 20)), Cause::argument));
  CHECK(all_ok(step(Matrix("a", 20, 30), Matrix("b", 20, 30))));
}

TEST_CASE("feedback: a state is refused where it does not fit", "[compressor][feedback]") {
  FeedbackTeam<Whole> team(2, Ring{}, sum);
  REQUIRE(all_ok(team.step(inputs_of<double>(2, 600, 1))));
  auto outcomes = team.step(inputs_of<double>(2, 601, 1));
  CHECK(all_failed(outcomes, Cause::argument));
  CHECK(outcomes[0].text.find("600") != std::string::npos);
  for (auto& op : team.ops) op.options().operation = mean;
  CHECK(all_failed(team.step(inputs_of<double>(2, 600, 1)), Cause::argument));
  for (auto& op : team.ops) op.options().operation = sum;
  REQUIRE(all_ok(team.step(inputs_of<double>(2, 600, 1))));
  team.state(1).reset();  // on one rank alone
  outcomes = team.step(inputs_of<double>(2, 600, 1));
  CHECK(all_failed(outcomes, Cause::mismatch));
  CHECK(outcomes[0].text.find("feedback remembers") != std::string::npos);
  team.state(0).reset();
  CHECK(all_ok(team.step(inputs_of<double>(2, 601, 1))));
}

TEST_CASE("feedback: an operation that is refused leaves the state as it was", "[compressor][feedback]") {
  FeedbackTeam<Grid<double>> team(2, Ring{}, sum);
  PerRank<double> unequal{std::vector<double>(600, 0.3), std::vector<double>(601, 0.3)};
  CHECK(all_failed(team.step(unequal, absolute(0.1)), Cause::mismatch));
  REQUIRE(all_ok(team.step(inputs_of<double>(2, 600, 1), absolute(0.1))));
  const auto before = team.state(0).save();
  CHECK(all_failed(team.step(unequal, absolute(0.1)), Cause::argument));
  CHECK(all_failed(team.step(inputs_of<double>(2, 600, 1), absolute(1e-18)), Cause::unattainable));
  CHECK((team.state(0).save() == before));
  CHECK(all_ok(team.step(inputs_of<double>(2, 600, 2), absolute(0.1))));
}

TEST_CASE("feedback: a state that a failure has left halfway is refused until it is reset",
          "[compressor][feedback]") {
  const Whole fragile;
  FeedbackTeam<Whole> team(3, Ring{}, sum, fragile);
  REQUIRE(all_ok(team.step(inputs_of<double>(3, 2000, 1))));
  *fragile.broken = true;
  for (const Outcome& o : team.step(inputs_of<double>(3, 2000, 2))) CHECK(!o.ok());
  *fragile.broken = false;
  auto outcomes = team.step(inputs_of<double>(3, 2000, 3));
  CHECK(all_failed(outcomes, Cause::argument));
  CHECK(outcomes[0].text.find("reset()") != std::string::npos);
  CHECK_THROWS_AS(team.state(0).save(), InvalidArgument);
  for (auto& state : team.states) state.reset();
  CHECK(
      all_failed(team.step(inputs_of<double>(3, 2000, 3)), Cause::abandoned));  // the link tells of it, once
  outcomes = team.step(inputs_of<double>(3, 2000, 3));
  INFO(describe(outcomes));
  CHECK(all_ok(outcomes));
}

TEST_CASE("feedback: two operations in flight with one state are refused", "[compressor][feedback]") {
  using Codec = ErrorFeedback<Whole>;
  InProcess world(2);
  std::deque<FeedbackState<double>> states(2);
  std::deque<Allreduce<Codec, InProcessTransport, Ring>> ops;
  for (int k = 0; k < 4; ++k)
    ops.emplace_back(Codec({}, states[static_cast<std::size_t>(k % 2)]), world.link(k % 2), Ring{});
  PerRank<double> values(4, real_numbers<double>(5000, 1));
  std::vector<Request> first(2), second(2);
  for (std::size_t r = 0; r < 2; ++r) first[r] = ops[r].start(Exec{}, Values<double>(values[r].data(), 5000));
  for (std::size_t r = 0; r < 2; ++r) {
    CHECK_THROWS_AS(states[r].reset(), InvalidArgument);
    second[r] = ops[2 + r].start(Exec{}, Values<double>(values[2 + r].data(), 5000));
  }
  const auto refused = complete(world, second);
  CHECK(all_failed(refused, Cause::argument));
  CHECK(refused[0].text.find("in flight") != std::string::npos);
  CHECK(all_ok(complete(world, first)));
  CHECK(states[0].steps() == 1);
  first[0] = {};
  {
    std::vector<Request> dropped(2);
    for (std::size_t r = 0; r < 2; ++r)
      dropped[r] = ops[r].start(Exec{}, Values<double>(values[r].data(), 5000));
    for (int k = 0; k < 4; ++k) world.progress();
  }  // given up halfway
  states[0].reset();
  CHECK(states[0].steps() == 0);
}
