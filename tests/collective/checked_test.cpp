// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checked collectives: the first wrong element is named, the same on every rank.
#include <catch2/catch_test_macros.hpp>

#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include <wring/compressor/grid.hpp>

#include "support/checked.hpp"
#include "support/checked_codecs.hpp"

using namespace wring_test;
using wring::Cause;
using wring::Checked;
using wring::Collective;
using wring::VerificationError;

namespace {

/// Claims to lose nothing.
struct Claims : Lying {
  static constexpr bool lossless = true;
};

}  // namespace

TEST_CASE("checked: a broken promise is named on every rank, with its figures", "[collective][checked]") {
  for (const std::size_t element : {std::size_t{0}, std::size_t{39}, std::size_t{40}, std::size_t{98}})
    for_each_collective(3, Lying(), 99, [&](Call<Lying> call, const PerRank<float>& inputs) {
      call.bound = wring::absolute(0.25);
      call.codec.element = element;
      require_right(run(call, inputs, [](int) { return Lying(); }));
      const auto got = run(call, inputs);
      const auto& [tensor, index, value, exact, bound] = got[0].element.value();
      int owner = 0;  // of the element, for reduce-scatter
      for (std::size_t end = call.counts.empty() ? 0 : call.counts[0]; !call.counts.empty() && element >= end;
           end += call.counts[static_cast<std::size_t>(owner)])
        ++owner;
      require_wrong(got, element, call.collective == Collective::reduce_scatter ? owner : 0,
                    "exactly, the bound is 0.25");
      double sum = 0;
      for (const float x : terms_of(call.collective, call.root, inputs, element)) sum += x;
      REQUIRE(exact == sum);
      REQUIRE(value > sum + 0.25);
      REQUIRE(bound == 0.25);
    });
}

TEST_CASE("checked: the lowest of several violations is named", "[collective][checked]") {
  const PerRank<float> inputs(3, whole_numbers<float>(70, 1));
  Call<Lying> call{
      .collective = Collective::allgather, .bound = wring::absolute(0.5), .counts = {70, 70, 70}};
  const auto two_faults = [](int rank) {
    Lying codec;
    codec.element = rank == 1 ? 77 : rank == 2 ? 150 : Faulty::nowhere;
    return codec;
  };
  for (const AnyAlgorithm& algorithm : all_algorithms(3))
    require_wrong(run(call, inputs, two_faults, algorithm), 77, 0,
                  ("allgather by faulty over " + algorithm.name() + ": element 77 of tensor 0").c_str());
}

TEST_CASE("checked: a rank that holds other bits is named, within the bound or not",
          "[collective][checked]") {
  for (const float by : {0.0f, 9.0f})
    for (const int odd : {0, 1, 2})
      for (const Collective collective :
           {Collective::allreduce, Collective::allgather, Collective::broadcast}) {
        Call<Lying> call{.collective = collective, .bound = wring::absolute(1)};
        const auto inputs = make_inputs<float>(
            call, 3, 120, false, [](std::size_t k, std::uint64_t) { return std::vector<float>(k, 1); });
        const auto got = run(call, inputs, [&](int rank) {
          Lying codec;
          if (rank == odd) codec.element = 55, codec.encodes = false, codec.by = by;
          return codec;
        });
        INFO(wring::name_of(collective) << ", rank " << odd);
        require_wrong(got, 55, odd, by == 0 ? "the ranks hold different bits" : "exactly, the bound is 1");
      }
}

TEST_CASE("checked: special values that are lost, without a bound", "[collective][checked]") {
  for (const float special : {NAN, INFINITY, -INFINITY})
    for_each_collective(2, Faulty(), 60, [&](Call<Faulty> call, PerRank<float> inputs) {
      for (auto& x : inputs) x.assign(x.size(), special);
      require_right(run(call, inputs));
      call.codec.element = 41, call.codec.encodes = false, call.codec.by = NAN;
      const auto got = run(call, inputs);
      require_wrong(got, 41, got[0].outcome.rank, "is 0 on");
      REQUIRE_FALSE(got[0].element->bound);
    });
}

TEST_CASE("checked: a lossless compressor is compared exactly where nothing is added",
          "[collective][checked]") {
  for_each_collective(2, Claims(), 60, [&](Call<Claims> call, const PerRank<float>& inputs) {
    call.options.operation = wring::max;
    call.codec.element = 12, call.codec.by = 16;
    const auto got = run(call, inputs);
    REQUIRE(got[0].element);
    REQUIRE(got[0].element->index == 12);
    REQUIRE(got[0].element->bound == 0);
  });
}

TEST_CASE("checked: in a group, each tensor has its own bound", "[collective][checked]") {
  using namespace wring;
  using View = Kokkos::View<float*, Kokkos::HostSpace>;
  for (const Bound second : {absolute(0.5), relative_to_range(0.01), relative_to_rms(0.01)})
    for (const bool wrong : {false, true}) {
      InProcess world(2);
      std::deque<Checked<Allreduce<Lying, InProcessTransport>>> sums;
      std::vector<CheckedRequest> requests;
      for (int r = 0; r < 2; ++r) {
        Lying codec;
        codec.item = 1, codec.element = wrong ? 30 : Faulty::nowhere;
        const View a("a", 100), b("b", 70);
        Kokkos::deep_copy(a, 3), Kokkos::deep_copy(b, 1);
        b(0) = 0;
        sums.emplace_back(Allreduce(codec, world.link(r)), small_piece);
        requests.push_back(sums.back().start(Exec{}, group(item(a, absolute(100)), item(b, second))));
      }
      const auto got = complete(world, requests);
      INFO(describe(got));
      for (const Judged& v : got) {
        REQUIRE(v.outcome.ok() != wrong);
        REQUIRE(v.element.has_value() == wrong);
        if (!wrong) continue;
        REQUIRE((v.element->tensor == 1 && v.element->index == 30));
        REQUIRE((v.element->value == 3 && v.element->exact == 2));
        REQUIRE(v.element->bound.value() <= 0.5);
      }
    }
}

TEST_CASE("checked: strided views, input and output of different layouts", "[collective][checked]") {
  using namespace wring;
  using In = Kokkos::View<float**, Kokkos::LayoutLeft, Kokkos::HostSpace>;
  using Out = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace>;
  for (const std::size_t element : {Faulty::nowhere, std::size_t{23}}) {
    InProcess world(2);
    std::deque<Checked<Allreduce<Lying, InProcessTransport>>> sums;
    std::vector<CheckedRequest> requests;
    for (int r = 0; r < 2; ++r) {
      const In in("in", 10, 7);
      const Out out("out", 10, 7);
      for (std::size_t i = 0; i < 70; ++i) in(i / 7, i % 7) = static_cast<float>(i);
      Lying codec;
      codec.element = element;
      sums.emplace_back(Allreduce(codec, world.link(r)), small_piece);
      requests.push_back(r == 0 ? sums.back().start(Exec{}, in, out, absolute(0.1))
                                : sums.back().start(Exec{}, in, absolute(0.1)));
    }
    const auto got = complete(world, requests);
    if (element == Faulty::nowhere)
      require_right(got);
    else
      require_wrong(got, 23, 0, "is 47 on all ranks and 46 exactly");
  }
}

TEST_CASE("checked: errors of the operation come through, and the object can be used again",
          "[collective][checked]") {
  using namespace wring;
  InProcess world(2);
  std::vector<float> x(100, 1), y(100, 1);
  std::deque<Checked<Allreduce<Grid<float>, InProcessTransport>>> sums;
  for (int r = 0; r < 2; ++r) sums.emplace_back(Allreduce(Grid<float>(), world.link(r)), small_piece);
  const auto sum = [&](std::size_t n, Bound bound) {
    std::vector<CheckedRequest> requests;
    requests.push_back(sums[0].start(Exec{}, Values<float>(x.data(), 100), bound));
    requests.push_back(sums[1].start(Exec{}, Values<float>(y.data(), n), bound));
    REQUIRE_THROWS_AS(sums[0].start(Exec{}, Values<float>(x.data(), 100), bound), InvalidArgument);
    return complete(world, requests);
  };
  for (const Judged& v : sum(99, absolute(1))) REQUIRE(v.outcome == Cause::mismatch);
  for (const Judged& v : sum(100, absolute(1e-30))) REQUIRE(v.outcome == Cause::unattainable);
  for (const Judged& v : sum(100, absolute(-1))) REQUIRE(v.outcome == Cause::argument);
  require_right(sum(100, absolute(0.5)));
  REQUIRE(sums[0].collective().options().confirm);
  REQUIRE_THROWS_AS(CheckedRequest().test(), InvalidArgument);
}

TEST_CASE("checked: pieces of different sizes are a mismatch, an operation given up is an error",
          "[collective][checked]") {
  using namespace wring;
  for (const bool destroyed : {false, true}) {
    InProcess world(2);
    std::vector<float> x(20000, 1), y(20000, 1);
    Checked sum0(Allreduce(Grid<float>(), world.link(0)), 160);
    Checked sum1(Allreduce(Grid<float>(), world.link(1)), destroyed ? 160 : 320);
    std::vector<CheckedRequest> requests;
    requests.push_back(sum0.start(Exec{}, Values<float>(x.data(), x.size()), absolute(0.5)));
    requests.push_back(sum1.start(Exec{}, Values<float>(y.data(), y.size()), absolute(0.5)));
    if (destroyed) requests[1] = CheckedRequest();
    const auto got = complete(world, requests);
    INFO(describe(got));
    REQUIRE(got[0].outcome.cause == (destroyed ? Cause::abandoned : Cause::mismatch));
    REQUIRE_FALSE(got[0].outcome.hangs);
  }
}

TEST_CASE("checked: given up at any time, nobody waits for ever", "[collective][checked]") {
  using namespace wring;
  for (const std::size_t n : {std::size_t{20}, std::size_t{3000}})
    for (const int ranks : {2, 3, 4}) {
      bool in_time = true, last_ok = false;
      int failures = 0;
      for (int polls = 0; in_time; ++polls) {
        InProcess world(ranks, {.eager_limit = 0, .delay = 1, .seed = 3});
        std::deque<Checked<Allreduce<Grid<float>, InProcessTransport>>> sums;
        std::vector<std::vector<float>> data(static_cast<std::size_t>(ranks), std::vector<float>(n, 1));
        std::vector<CheckedRequest> requests;
        const auto start = [&] {
          for (int r = 0; r < ranks; ++r) {
            auto& mine = data[static_cast<std::size_t>(r)];
            requests.push_back(sums[static_cast<std::size_t>(r)].start(
                Exec{}, Values<float>(mine.data(), mine.size()), absolute(0.5)));
          }
        };
        for (int r = 0; r < ranks; ++r) sums.emplace_back(Allreduce(Grid<float>(), world.link(r)), 1000);
        start();
        for (int i = 0; i < polls; ++i)
          for (CheckedRequest& request : requests)
            if (request.valid() && request.test()) in_time = false, request = CheckedRequest();
        requests.back() = CheckedRequest();
        data.back().assign(n, 7);
        data.back().shrink_to_fit();
        const auto got = complete(world, requests);
        INFO(n << " values, " << ranks << " ranks, after " << polls << " polls" << describe(got));
        for (std::size_t r = 0; r + 1 < got.size(); ++r) {
          REQUIRE_FALSE(got[r].outcome.hangs);
          REQUIRE(got[r].outcome.ok() ==
                  got[0].outcome.ok());  // ok: nothing was left to do but to hear of it
        }
        failures += got[0].outcome.ok() ? 0 : 1;
        REQUIRE(std::exchange(last_ok, got[0].outcome.ok()) <= got[0].outcome.ok());
        while (world.progress() != Progress::blocked) {
        }
        for (int r = 0; r < ranks; ++r) REQUIRE(world.link(r).session().in_flight() == 0);
      }
      REQUIRE(failures > 2);
    }
}

TEST_CASE("checked: given up between the operation and its check, the others learn of it",
          "[collective][checked]") {
  using namespace wring;
  InProcess world(2);
  std::vector<float> x(20, 1), y(20, 1);
  Checked sum0(Allreduce(Grid<float>(), world.link(0)), 160),
      sum1(Allreduce(Grid<float>(), world.link(1)), 160);
  std::vector<CheckedRequest> requests;
  requests.push_back(sum0.start(Exec{}, Values<float>(x.data(), x.size()), absolute(0.5)));
  requests.push_back(sum1.start(Exec{}, Values<float>(y.data(), y.size()), absolute(0.5)));
  while (world.progress() != Progress::blocked) {
  }
  requests[1] = CheckedRequest();
  const auto got = complete(world, requests);
  INFO(describe(got));
  REQUIRE(got[0].outcome == Cause::abandoned);
}
