// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums by the transport: the bits of Grid, whatever adds the words up; and nobody hangs, whatever fails.
#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>

#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/compressor/packed_words.hpp>
#include <wring/testing/faulty_transport.hpp>
#include <wring/transport/simulated.hpp>
#include <wring/view.hpp>

#include "support/matrix.hpp"

using namespace wring_test;
using wring::Cause;
using wring::Collective;
using wring::Grid;
using wring::InProcess;
using wring::Native;
using wring::PackedWords;
using wring::testing::FaultKind;
using wring::testing::FaultPlan;
using wring::testing::MessageKind;
using FaultyLink = wring::testing::FaultyTransport<wring::InProcessTransport>;

namespace {

/// What Grid makes of the same call; of a copy, for which Grid may store values as they are, PackedWords on another way.
template <class T> PerRank<T> expected(const Call<PackedWords<T>>& call, const PerRank<T>& inputs) {
  if (!wring::reduces(call.collective)) return collect(wring::Direct{}, call, inputs).results;
  Call<Grid<T>> plain{{},        call.collective, call.options, call.bound,
                      call.root, call.in_place,   call.counts,  call.world};
  plain.options.ride_along_bytes = 0;
  const auto got = collect(wring::Ring{}, plain, inputs);
  REQUIRE(all_ok(got.outcomes));
  return got.results;
}

template <class T> void as_grid(unsigned every, bool specials) {
  const auto check = [specials](Call<PackedWords<T>>& call, int ranks, const AnyAlgorithm& algorithm,
                                std::size_t n, bool uneven) {
    if (!wring::adds(call.options.operation)) call.options.operation = wring::sum;
    constexpr double coarse = sizeof(T) == 2 ? 20 : 1;
    call.bound = wring::absolute(n % 3 == 0 ? 0.7 : 0.02 * coarse);
    if (n % 5 == 0) call.bound = wring::relative_to_rms(0.02 * coarse);
    auto inputs = make_inputs<T>(call, ranks, n, uneven,
                                 [](std::size_t k, std::uint64_t seed) { return real_numbers<T>(k, seed); });
    constexpr auto inf = std::numeric_limits<float>::infinity();
    for (std::size_t r = 0; specials && r < inputs.size(); ++r)
      for (std::size_t i = r; i < inputs[r].size(); i += 5)
        inputs[r][i] = T(std::array{inf, -inf, std::nanf(""), 1.0f}[(i / 5 + r) % 4]);
    const PerRank<T> wanted = expected(call, inputs);
    for (const AnyAlgorithm& one : {algorithm, AnyAlgorithm(Native{})}) {
      const auto got = collect(one, call, inputs);
      INFO(describe(call, ranks, one, n) << describe(got.outcomes));
      REQUIRE((all_ok(got.outcomes) && got.intact));
      for (std::size_t r = 0; r < inputs.size(); ++r) REQUIRE(same_bits(got.results[r], wanted[r]));
      REQUIRE(got.outcomes[0].report.reproducible);
    }
  };
  const unsigned rare = 4 * every;
  for_each_case(PackedWords<T>{}, 8, small_lengths, every, false, check);
  for_each_case(PackedWords<T>{}, 5, [](int) { return Lengths{5000, 70000}; }, rare, false, check);
}

}  // namespace

TEST_CASE("native: sums of words by a transport: in order, in place, given up, of unequal lengths",
          "[transport][native]") {
  constexpr int ranks = 3;
  InProcess world(ranks, {.eager_limit = 0, .delay = 2, .seed = 3});
  std::array<std::array<std::vector<std::uint64_t>, 4>, ranks> words;
  std::array<std::array<wring::InProcessTransport::Request, 4>, ranks> requests;
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t k = 0; k < 4; ++k) {
      words[r][k].assign(k == 3 ? 10 + r : 10 * k + 1, (r + 1) << (62 - k));
      requests[r][k] = world.link(static_cast<int>(r)).sum_words(words[r][k]);
      if (r == 1 && k == 1) {  // what it has given still counts
        REQUIRE(world.link(1).cancel(requests[r][k]));
        words[r][k].assign(11, 99);
      }
    }
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t k = 4; k-- > 0;) {
      auto& link = world.link(static_cast<int>(r));
      if (r == 1 && k == 1) continue;
      const auto test = [&] {
        std::optional<std::size_t> bytes;
        while (!bytes) bytes = link.test(requests[r][k]);
        return *bytes;
      };
      if (k == 3) {
        REQUIRE_THROWS_AS(test(), wring::TransportError);
        continue;
      }
      REQUIRE(test() == words[r][k].size() * 8);
      for (const std::uint64_t word : words[r][k]) REQUIRE(word == std::uint64_t{6} << (62 - k));
    }
  REQUIRE(words[1][1] == std::vector<std::uint64_t>(11, 99));
}

TEST_CASE("native: the bits of Grid, float", "[collective][native]") { as_grid<float>(4, false); }
TEST_CASE("native: the bits of Grid, with special values", "[collective][native]") {
  as_grid<float>(9, true);
}
TEST_CASE("native: the bits of Grid, double", "[collective][native]") { as_grid<double>(17, false); }
TEST_CASE("native: the bits of Grid, bhalf_t", "[collective][native]") { as_grid<wring::bhalf_t>(17, true); }

TEST_CASE("native: one sum for each segment, of as many bytes as fields need", "[collective][native]") {
  Call<PackedWords<float>> call{.bound = wring::absolute(0.05)};
  call.options.ride_along_bytes = 0, call.options.segment_bytes = 16384;
  const PerRank<float> inputs(4, real_numbers<float>(131072, 3));
  const auto got = collect(Native{}, call, inputs);
  REQUIRE(all_ok(got.outcomes));
  const wring::Report& report = got.outcomes[0].report;
  REQUIRE(report.segments == 4);
  REQUIRE(report.messages == 4);
  REQUIRE(report.bytes_raw == 131072 * 4);
  REQUIRE(report.bytes_sent < 131072 * 2);
}

namespace {

/// PackedWords that throws in its n-th call of compress.
struct Fragile : PackedWords<float> {
  std::shared_ptr<int> left = std::make_shared<int>(-1);
  template <class E> std::size_t compress(const E& exec, std::span<const float> x, std::span<std::byte> bytes,
                                          const wring::Context& context) {
    if ((*left)-- == 0) throw std::runtime_error("the compressor broke");
    return PackedWords<float>::compress(exec, x, bytes, context);
  }
};

/// Adds to one word of the n-th sum of its rank, behind everybody's back.
class Damaging : public FaultyLink {
 public:
  Damaging(wring::InProcessTransport& link, const FaultPlan& plan, int sum, std::size_t word)
      : FaultyLink(link, plan), sum_(sum), word_(word) {}
  Request sum_words(std::span<std::uint64_t> words) {
    if (sum_-- == 0) words[word_ % words.size()] += 1u << 20;
    return FaultyLink::sum_words(words);
  }

 private:
  int sum_;
  std::size_t word_;
};

/// Allreduces by Native on every rank of a world with faults.
struct Run {
  static constexpr std::size_t length = 20000;

  Run(int ranks, const FaultPlan& plan, wring::Options options = {}, int damaged_rank = -1,
      std::size_t word = 0)
      : world(ranks, {.eager_limit = 0, .delay = 2, .seed = 5}) {
    options.ride_along_bytes = 0, options.segment_bytes = 4096;
    for (int r = 0; r < ranks; ++r) {
      links.emplace_back(world.link(r), plan, r == damaged_rank ? 1 : -1, word);
      Fragile codec;
      codec.left = std::make_shared<int>(-1);
      fuses.push_back(codec.left);
      sums.emplace_back(codec, links.back(), Native{}, options);
      inputs.push_back(whole_numbers<float>(length, static_cast<std::uint64_t>(r)));
      results.emplace_back(length);
    }
  }

  std::vector<Outcome> operator()() {
    return on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const Values<const float> in(inputs[r].data(), length);
      const Values<float> out(results[r].data(), length);
      return sums[r].start(Exec{}, in, out, wring::absolute(0.4));
    });
  }

  /// Ranks that report success hold the right result.
  bool right(const std::vector<Outcome>& outcomes) const {
    for (std::size_t r = 0; r < outcomes.size(); ++r)
      for (std::size_t i = 0; outcomes[r].ok() && i < length; ++i) {
        float sum = 0;
        for (const auto& input : inputs) sum += input[i];
        if (!(std::fabs(results[r][i] - sum) <= 0.4f)) return false;
      }
    return true;
  }

  InProcess world;
  std::deque<Damaging> links;
  std::vector<std::shared_ptr<int>> fuses;
  std::deque<wring::Allreduce<Fragile, Damaging, Native>> sums;
  std::vector<std::vector<float>> inputs, results;
};

bool nobody_hangs(const std::vector<Outcome>& outcomes) {
  for (const Outcome& o : outcomes)
    if (o.hangs) return false;
  return true;
}

}  // namespace

TEST_CASE("native: a rank that fails to encode is named on all ranks, and the link lives on",
          "[collective][native][failure]") {
  for (const int ranks : {2, 3, 5})
    for (const int call : {0, 3, 17})
      for (const bool confirm : {false, true}) {
        Run run(ranks, {}, {.confirm = confirm});
        *run.fuses[1] = call;
        const auto outcomes = run();
        INFO(ranks << " ranks, call " << call << describe(outcomes));
        REQUIRE(all_failed(outcomes, Cause::codec, 1));
        if (!confirm) REQUIRE(all_failed(run(), Cause::abandoned));
        const auto again = run();
        INFO(describe(again));
        REQUIRE((all_ok(again) && run.right(again)));
      }
}

TEST_CASE("native: several ranks fail at once", "[collective][native][failure]") {
  Run run(4, {});
  *run.fuses[0] = *run.fuses[2] = 0;
  const auto outcomes = run();
  INFO(describe(outcomes));
  for (const Outcome& o : outcomes) REQUIRE((!o.hangs && !o.ok()));
}

TEST_CASE("native: a sum that is damaged is an error on all ranks", "[collective][native][failure]") {
  for (const std::size_t word : {0, 1, 3, 4, 7, 8, 40, 200}) {
    Run run(3, {}, {}, 1, word);
    const auto outcomes = run();
    INFO("word " << word << describe(outcomes));
    for (const Outcome& o : outcomes) REQUIRE(o == Cause::transport);
  }
}

TEST_CASE("native: whatever happens to a message of the agreement or of the consent, nobody hangs",
          "[collective][native][failure]") {
  int faults = 0, failed = 0;
  for (const int ranks : {2, 3, 4, 5})
    for (int rank = 0; rank < ranks; ++rank)
      for (const FaultKind kind : {FaultKind::flip, FaultKind::truncate, FaultKind::extend, FaultKind::noise,
                                   FaultKind::throw_at_test, FaultKind::throw_at_start, FaultKind::delay})
        for (std::uint64_t number = 0; number < 8; ++number) {
          const FaultPlan plan{.faults = {{.kind = kind, .rank = rank, .number = number, .amount = 1000}}};
          Run run(ranks, plan);
          const auto outcomes = run();
          INFO(ranks << " ranks, " << wring::testing::describe(plan.faults[0]) << describe(outcomes));
          REQUIRE(nobody_hangs(outcomes));
          REQUIRE(run.right(outcomes));
          faults += !run.links[static_cast<std::size_t>(rank)].injected().empty();
          bool any = false;
          for (const Outcome& o : outcomes) any = any || !o.ok();
          failed += any;
          const auto later = run();  // whatever it makes of it, on all ranks
          INFO("later:" << describe(later));
          REQUIRE(nobody_hangs(later));
          REQUIRE(run.right(later));
        }
  REQUIRE(faults > 300);
  REQUIRE(failed > 200);
}

TEST_CASE("native: operations that overlap sum in the order of their starts", "[collective][native]") {
  using Sum = wring::Allreduce<PackedWords<float>, wring::InProcessTransport, Native>;
  constexpr int ranks = 4, operations = 3;
  InProcess world(ranks, {.eager_limit = 0, .delay = 3, .seed = 9});
  std::deque<Sum> sums;
  std::deque<std::vector<float>> data;
  std::vector<wring::Request> requests;
  for (int r = 0; r < ranks; ++r)
    for (int o = 0; o < operations; ++o) {
      auto& x = data.emplace_back(30000u + 5000u * static_cast<std::size_t>(o),
                                  static_cast<float>(r + 1) * (o + 1));
      sums.emplace_back(PackedWords<float>{}, world.link(r), Native{},
                        wring::Options{.segment_bytes = 4096u << o, .ride_along_bytes = 0});
      requests.push_back(sums.back().start(Exec{}, Values<float>(x.data(), x.size()), wring::absolute(0.1)));
    }
  const auto outcomes = complete(world, requests);
  INFO(describe(outcomes));
  REQUIRE(all_ok(outcomes));
  for (std::size_t k = 0; k < data.size(); ++k)
    for (const float x : data[k])
      REQUIRE(std::fabs(x - 10.0f * static_cast<float>(k % operations + 1)) <= 0.1f);
}

TEST_CASE("native: groups, with a bound for each tensor", "[collective][native]") {
  using Sum = wring::Allreduce<PackedWords<float>, wring::InProcessTransport, Native>;
  constexpr int ranks = 3;
  InProcess world(ranks);
  std::deque<Sum> sums;
  std::deque<std::vector<float>> data;
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    sums.emplace_back(PackedWords<float>{}, world.link(rank), Native{});
    std::vector<float>* x[3];
    for (std::size_t k = 0; k < 3; ++k)
      x[k] = &data.emplace_back(real_numbers<float>(100 + 700 * k, static_cast<std::uint64_t>(rank) + 9 * k));
    if (rank == 1) (*x[1])[5] = std::numeric_limits<float>::infinity();
    return sums.back().start(
        Exec{},
        wring::group(wring::item(Values<float>(x[0]->data(), x[0]->size()), wring::absolute(1)),
                     wring::item(Values<float>(x[1]->data(), x[1]->size()), wring::absolute(0.01)),
                     wring::item(Values<float>(x[2]->data(), x[2]->size()), wring::relative_to_range(1e-3))));
  });
  INFO(describe(outcomes));
  REQUIRE(all_ok(outcomes));
  for (std::size_t k = 0; k < 3; ++k) {
    const double bound = k == 0 ? 1 : k == 1 ? 0.01 : 24e-3;
    for (std::size_t i = 0; i < data[k].size(); ++i) {
      double sum = 0;
      for (std::uint64_t r = 0; r < ranks; ++r) sum += real_numbers<float>(100 + 700 * k, r + 9 * k)[i];
      if (k == 1 && i == 5) sum = std::numeric_limits<double>::infinity();
      const double got = static_cast<double>(data[k][i]);
      REQUIRE((got == sum || std::fabs(got - sum) <= bound));
      for (std::size_t r = 1; r < ranks; ++r)
        REQUIRE(std::memcmp(&data[3 * r + k][i], &data[k][i], sizeof(float)) == 0);
    }
  }
}

TEST_CASE("native: with a compressor that does not sum words it is refused on all ranks",
          "[collective][native]") {
  Call<wring::None<float>> call;
  const auto got = collect(AnyAlgorithm(Native{}), call, PerRank<float>(3, std::vector<float>(1000)));
  INFO(describe(got.outcomes));
  REQUIRE(all_failed(got.outcomes, Cause::argument));
}

TEST_CASE("native: MIN is refused on all ranks, before anything moves", "[collective][native]") {
  Call<PackedWords<float>> call{.bound = wring::absolute(1)};
  call.options.operation = wring::min;
  const auto got = collect(Native{}, call, PerRank<float>(3, std::vector<float>(1000)));
  INFO(describe(got.outcomes));
  REQUIRE(all_failed(got.outcomes, Cause::argument));
}

TEST_CASE("native: requests that are dropped, and ranks that come late", "[collective][native]") {
  Run run(4, {});
  {
    std::vector<wring::Request> requests;
    for (std::size_t r = 0; r < 4; ++r)
      requests.push_back(run.sums[r].start(Exec{}, Values<const float>(run.inputs[r].data(), Run::length),
                                           Values<float>(run.results[r].data(), Run::length),
                                           wring::absolute(0.4)));
    for (int i = 0; i < 4; ++i) run.world.progress();
    requests[2] = {};
    requests.erase(requests.begin() + 2);
    const auto outcomes = complete(run.world, requests);
    INFO(describe(outcomes));
    for (const Outcome& o : outcomes) REQUIRE((!o.hangs && !o.ok()));
  }
  for (int i = 0; i < 1000; ++i) run.world.progress();
  static_cast<void>(run());
  const auto again = run();
  INFO(describe(again));
  REQUIRE((all_ok(again) && run.right(again)));
}

TEST_CASE("native: in virtual time", "[collective][native]") {
  wring::SimulatedNetwork network(8);
  using Sum = wring::Allreduce<PackedWords<float>, wring::SimulatedTransport, Native>;
  std::deque<Sum> sums;
  std::deque<std::vector<float>> data;
  std::size_t packed_bytes = 0;
  {
    PackedWords<float> codec;
    codec.prepare(
        {.ranks = 8, .total = 200000, .max_abs = 7, .allowed_error = 0.1, .measured = true, .finite = true});
    packed_bytes = codec.max_compressed_bytes(200000);
  }
  const double seconds = wring::simulate(network, [&](wring::SimulatedTransport& link) {
    auto& x = data.emplace_back(200000, static_cast<float>(link.rank()));
    sums.emplace_back(PackedWords<float>{}, link, Native{}, wring::Options{.ride_along_bytes = 0});
    return sums.back().start(Exec{}, Values<float>(x.data(), x.size()), wring::absolute(0.1));
  });
  for (const auto& x : data) REQUIRE(std::fabs(x[777] - 28) <= 0.1f);
  const double ratio = 800000.0 / static_cast<double>(packed_bytes);
  const wring::Load load{.bytes = 800000, .ratio = ratio, .combines = true, .measured = true};
  const wring::Prediction predicted = wring::predict(Native{}, {}, 8, load, network.machine());
  INFO(seconds << " s, " << predicted.seconds << " predicted");
  REQUIRE(std::fabs(predicted.seconds / seconds - 1) < 0.05);
}

namespace {

/// SUM of `inputs` in whole numbers of scales that all ranks have in common, by every algorithm; the scales.
std::vector<float> on_common_scales(const PerRank<float>& inputs, const AnyAlgorithm& algorithm,
                                    PerRank<float>& results) {
  const int ranks = static_cast<int>(inputs.size());
  const std::size_t n = inputs[0].size();
  InProcess world(ranks);
  using Greatest = wring::Allreduce<wring::None<float>, wring::InProcessTransport, AnyAlgorithm>;
  using Sum = wring::Allreduce<PackedWords<float>, wring::InProcessTransport, AnyAlgorithm>;
  std::deque<Greatest> greatest;
  std::deque<Sum> sums;
  PerRank<float> scales(inputs.size(), std::vector<float>(wring::common_scales(n)));
  results.assign(inputs.size(), std::vector<float>(n));
  const auto agreed = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Values<float> s(scales[r].data(), scales[r].size());
    wring::measure_scales<4>(Exec{}, Values<const float>(inputs[r].data(), n), s);
    greatest.emplace_back(wring::None<float>{}, world.link(rank), wring::Ring{},
                          wring::Options{.operation = wring::max});
    return greatest.back().start(Exec{}, s);
  });
  REQUIRE(all_ok(agreed));
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    const Values<const float> s(scales[r].data(), scales[r].size());
    sums.emplace_back(PackedWords<float>{}, world.link(rank), algorithm,
                      wring::Options{.ride_along_bytes = 0});
    return sums.back().start(
        Exec{}, wring::scaled(Values<const float>(inputs[r].data(), n), s, wring::common_scale_group),
        wring::scaled(Values<float>(results[r].data(), n), s, wring::common_scale_group),
        wring::common_scale_bound(ranks));
  });
  INFO(describe(outcomes));
  REQUIRE(all_ok(outcomes));
  return scales[0];
}

}  // namespace

TEST_CASE("native: common scales, whose codes add without being decoded", "[collective][native]") {
  for (const int ranks : {1, 2, 3, 4, 7})
    for (const std::size_t n : {1, 128, 129, 5000}) {
      PerRank<float> inputs, results;
      for (int r = 0; r < ranks; ++r)
        inputs.push_back(real_numbers<float>(n, static_cast<std::uint64_t>(r) + n));
      for (auto& x : inputs)  // a group of zeros, one of small numbers, special values
        for (std::size_t i = 256; i < n && i < 512; ++i) x[i] = i < 384 ? 0 : x[i] * 1e-6f;
      if (n > 600) inputs[0][600] = std::numeric_limits<float>::infinity();
      PerRank<float> first;
      for (const AnyAlgorithm& algorithm :
           {AnyAlgorithm(Native{}), AnyAlgorithm(wring::Ring{}), AnyAlgorithm(wring::RecursiveDoubling{})}) {
        INFO(ranks << " ranks, " << n << " values, " << algorithm.name());
        const std::vector<float> scales = on_common_scales(inputs, algorithm, results);
        if (first.empty()) first = results;
        for (const auto& result : results) REQUIRE(same_bits(result, first[0]));
        for (std::size_t i = 0; i < n; ++i) {
          double exact = 0, codes = 0, most = 0;
          for (const auto& x : inputs) exact += x[i];
          const std::size_t group = i / 128;
          for (const auto& x : inputs)
            for (std::size_t k = 128 * group; k < n && k < 128 * group + 128; ++k)
              if (std::isfinite(x[k])) most = std::max(most, std::fabs(static_cast<double>(x[k])));
          const double s = scales[group];
          REQUIRE(std::fabs(7 * s - most) <= 1e-6 * most);
          if (!std::isfinite(exact)) {
            REQUIRE(static_cast<double>(first[0][i]) == exact);
            continue;
          }
          for (const auto& x : inputs) codes += s > 0 ? std::nearbyint(static_cast<double>(x[i]) / s) : 0;
          const double got = static_cast<double>(first[0][i]);
          REQUIRE(std::fabs(got - exact) <= (ranks <= 4 ? 0.53 : 1.06) * ranks * s);
          if (ranks <= 4) REQUIRE(std::fabs(got - codes * s) <= s * (1 + 1e-5));  // a tie may go either way
        }
      }
    }
}
