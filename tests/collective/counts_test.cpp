// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counts per rank, in place and not, and what is wrong with views and counts: every rank gets the same error, nothing is written.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/none.hpp>

#include "support/executors.hpp"
#include "support/matrix.hpp"

using namespace wring_test;
using wring::Cause;
using wring::InProcess;
using wring::None;

namespace {

using View = Kokkos::View<double*, Kokkos::HostSpace>;
using Scatter = wring::ReduceScatter<None<double>, wring::InProcessTransport>;
using Gather = wring::Allgather<None<double>, wring::InProcessTransport>;
using Reduce = wring::Allreduce<None<double>, wring::InProcessTransport>;

View filled(std::size_t n, double x) {
  View view("view", n);
  Kokkos::deep_copy(view, x);
  return view;
}

bool all_are(const View& view, double x) {
  for (std::size_t i = 0; i < view.extent(0); ++i)
    if (view(i) != x) return false;
  return true;
}

/// One operation object per rank.
template <class Operation> std::deque<Operation> objects(InProcess& world, wring::Options options = {}) {
  std::deque<Operation> all;
  for (int r = 0; r < world.size(); ++r)
    all.emplace_back(None<double>{}, world.link(r), wring::Ring{}, options);
  return all;
}

template <class T> T& at(std::deque<T>& all, int rank) { return all[static_cast<std::size_t>(rank)]; }

}  // namespace

TEST_CASE("counts: any counts, zeros included, every algorithm, in place and not", "[collective]") {
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    const auto p = static_cast<std::size_t>(ranks);
    std::vector<Lengths> shapes{Lengths(p, 0), Lengths(p, 3), Lengths(p, 0), Lengths(p, 0), Lengths(p, 0)};
    shapes[2][p - 1] = 1500;                                                 // all to the last
    for (std::size_t r = 0; r < p; ++r) shapes[3][r] = r % 2 ? 0 : 700 + r;  // every second has none
    for (std::size_t r = 0; r < p; ++r) shapes[4][r] = (r * 611) % 1030;
    for (const Lengths& counts : shapes)
      for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
        for (const wring::Collective collective :
             {wring::Collective::reduce_scatter, wring::Collective::allgather})
          for (unsigned variant = 0; variant < 2; ++variant) {
            Call<None<double>> call{.collective = collective, .in_place = variant == 1, .counts = counts};
            call.options.ride_along_bytes = variant == 0 ? 4096 : 0, call.options.segment_bytes = 4096;
            std::size_t n = 0;
            for (const std::size_t c : counts) n += c;
            PerRank<double> inputs;
            for (std::size_t r = 0; r < p; ++r)
              inputs.push_back(
                  whole_numbers<double>(collective == wring::Collective::allgather ? counts[r] : n, r));
            INFO(describe(call, ranks, algorithm, n));
            REQUIRE(judge(call, inputs, collect(algorithm, call, inputs), 0) == "");
          }
  }
}

TEST_CASE("counts: equal counts need not be given", "[collective]") {
  InProcess world(3);
  auto scatters = objects<Scatter>(world);
  auto gathers = objects<Gather>(world);
  std::vector<View> part, all;
  for (int r = 0; r < 3; ++r) part.push_back(filled(4, -1)), all.push_back(filled(12, r + 1));
  auto outcomes = on_all_ranks(world, [&](int r) {
    return at(scatters, r).start(Exec{}, all[static_cast<std::size_t>(r)], part[static_cast<std::size_t>(r)]);
  });
  INFO(describe(outcomes));
  REQUIRE(all_ok(outcomes));
  for (const View& view : part) REQUIRE(all_are(view, 6));
  for (int r = 0; r < 3; ++r) Kokkos::deep_copy(part[static_cast<std::size_t>(r)], r);
  outcomes = on_all_ranks(world, [&](int r) {
    return at(gathers, r).start(Exec{}, part[static_cast<std::size_t>(r)], all[static_cast<std::size_t>(r)]);
  });
  REQUIRE(all_ok(outcomes));
  for (const View& view : all)
    for (std::size_t i = 0; i < 12; ++i) REQUIRE(view(i) == static_cast<double>(i / 4));
}

TEST_CASE("counts: wrong ones are refused on every rank, naming the rank", "[collective]") {
  struct Wrong {
    const char* what;
    Lengths counts;
    std::size_t out;
  };
  const Lengths good{2, 5, 3};
  const Wrong cases[] = {{"sum too large", {2, 5, 4}, 5},
                         {"too few", {2, 8}, 5},
                         {"too many", {2, 5, 3, 0}, 5},
                         {"own part too short", {2, 5, 3}, 4},
                         {"own part too long", {2, 5, 3}, 6},
                         {"wraps around", {std::size_t{1} << 63, std::size_t{1} << 63, 10}, 5}};
  for (const Wrong& wrong : cases) {
    INFO(wrong.what);
    InProcess world(3);
    auto scatters = objects<Scatter>(world);
    auto gathers = objects<Gather>(world);
    std::vector<View> whole, part;
    for (int r = 0; r < 3; ++r) {
      whole.push_back(filled(10, 1));
      part.push_back(filled(r == 1 ? wrong.out : good[static_cast<std::size_t>(r)], 77));
    }
    for (const bool gather : {false, true}) {
      const auto outcomes = on_all_ranks(world, [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        const Lengths& counts = rank == 1 ? wrong.counts : good;
        if (gather) return at(gathers, rank).start(Exec{}, part[r], whole[r], counts);
        return at(scatters, rank).start(Exec{}, whole[r], part[r], counts);
      });
      INFO(describe(outcomes));
      REQUIRE(all_failed(outcomes, Cause::argument, 1));
      for (int r = 0; r < 3; ++r) {
        REQUIRE(outcomes[static_cast<std::size_t>(r)].text.find("rank 1") != std::string::npos);
        REQUIRE(all_are(part[static_cast<std::size_t>(r)], 77));
        REQUIRE(all_are(whole[static_cast<std::size_t>(r)], 1));
      }
    }
    // The link is as good as before.
    const auto outcomes = on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (r == 1) part[r] = filled(5, 0);
      return at(scatters, rank).start(Exec{}, whole[r], part[r], good);
    });
    REQUIRE(all_ok(outcomes));
    REQUIRE(all_are(part[1], 3));
  }
}

TEST_CASE("views: a destination that is too small is noticed on every rank, nothing is written",
          "[collective]") {
  for (const int culprit : {0, 1}) {
    InProcess world(2);
    auto reduces = objects<Reduce>(world);
    std::vector<View> in, out;
    for (int r = 0; r < 2; ++r) in.push_back(filled(10, 1)), out.push_back(filled(r == culprit ? 8 : 10, 77));
    const auto outcomes = on_all_ranks(world, [&](int r) {
      return at(reduces, r).start(Exec{}, in[static_cast<std::size_t>(r)], out[static_cast<std::size_t>(r)]);
    });
    INFO(describe(outcomes));
    REQUIRE(all_failed(outcomes, Cause::argument, culprit));
    for (const View& view : out) REQUIRE(all_are(view, 77));
  }
}

TEST_CASE("views: input and output that overlap in part are refused on every rank", "[collective]") {
  InProcess world(2);
  auto reduces = objects<Reduce>(world);
  auto scatters = objects<Scatter>(world);
  auto gathers = objects<Gather>(world);
  const auto sub = [](const View& view, std::size_t first, std::size_t last) {
    return Kokkos::subview(view, Kokkos::make_pair(first, last));
  };
  std::vector<View> memory;
  for (int r = 0; r < 2; ++r) memory.push_back(filled(13, r + 1));
  const Lengths counts{5, 5};
  const auto refused = [&](auto start) {
    const auto outcomes = on_all_ranks(world, start);
    INFO(describe(outcomes));
    REQUIRE(all_failed(outcomes, Cause::argument, 1));
    REQUIRE(all_are(memory[0], 1));
    REQUIRE(all_are(memory[1], 2));
  };
  const View apart = filled(10, 0), part = filled(5, 0);
  SECTION("allreduce, shifted by three") {
    refused([&](int r) {
      return r == 0 ? at(reduces, r).start(Exec{}, sub(memory[0], 0, 10), View(sub(memory[0], 0, 10)))
                    : at(reduces, r).start(Exec{}, sub(memory[1], 0, 10), View(sub(memory[1], 3, 13)));
    });
  }
  SECTION("reduce-scatter into the part of another rank") {
    refused([&](int r) {
      return r == 0 ? at(scatters, r).start(Exec{}, View(sub(memory[0], 0, 10)), part, counts)
                    : at(scatters, r)
                          .start(Exec{}, View(sub(memory[1], 0, 10)), View(sub(memory[1], 0, 5)), counts);
    });
  }
  SECTION("allgather from the part of another rank") {
    refused([&](int r) {
      return r == 0 ? at(gathers, r).start(Exec{}, part, apart, counts)
                    : at(gathers, r)
                          .start(Exec{}, View(sub(memory[1], 0, 5)), View(sub(memory[1], 0, 10)), counts);
    });
  }
  SECTION("identical views are in place") {
    const auto outcomes = on_all_ranks(world, [&](int r) {
      const View& m = memory[static_cast<std::size_t>(r)];
      return at(reduces, r).start(Exec{}, m, m);
    });
    REQUIRE(all_ok(outcomes));
    for (const View& m : memory) REQUIRE(all_are(m, 3));
  }
}

TEST_CASE("gathered parts land in the slot of their rank, whatever the algorithm", "[collective]") {
  for (const int ranks : {2, 4, 7})
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
      Call<None<double>> call{.collective = wring::Collective::allgather,
                              .counts = Lengths(static_cast<std::size_t>(ranks), 10)};
      PerRank<double> inputs(static_cast<std::size_t>(ranks), std::vector<double>(10));
      for (std::size_t r = 0; r < inputs.size(); ++r)
        for (std::size_t i = 0; i < 10; ++i) inputs[r][i] = static_cast<double>(100 * r + i);
      INFO(describe(call, ranks, algorithm, 10));
      REQUIRE(judge(call, inputs, collect(algorithm, call, inputs), 0) == "");
    }
}
