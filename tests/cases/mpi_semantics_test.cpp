// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// In place, one root, requests, complex numbers: what MPI's collectives mean by them, with ranks in one process.
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>

#include <complex>

#include "cases/compressors.hpp"

using namespace wring_test;
using wring::absolute;
using wring::Cause;
using wring::Collective;
using wring::InProcess;
using wring::InProcessTransport;

namespace {

/// Three values whose order of addition and whose sign matter; further ranks hold zeros.
PerRank<double> three_values(int ranks) {
  PerRank<double> inputs(static_cast<std::size_t>(ranks), {0});
  inputs[0] = {10}, inputs[1] = {-300}, inputs[2] = {-150};
  return inputs;
}

template <class Codec> using Sum = wring::Allreduce<Codec, InProcessTransport>;
template <class Codec> using Scatter = wring::ReduceScatter<Codec, InProcessTransport, AnyAlgorithm>;
using View = Kokkos::View<float*, Kokkos::HostSpace>;

std::optional<wring::Bound> bound_for(bool bounded) {
  return bounded ? std::optional(absolute(0.25)) : std::nullopt;
}

/// One tensor on every rank and the operation that sums it.
template <class Codec> struct Job {
  Job(InProcess& world, const Codec& codec, std::size_t n) {
    for (int r = 0; r < world.size(); ++r) {
      sums.emplace_back(codec, world.link(r));
      data.emplace_back("data", n);
      Kokkos::deep_copy(data.back(), static_cast<float>(r + 1));
      requests.push_back(sums.back().start(
          Exec{}, wring::group(wring::item(data.back(), bound_for(wring::BoundedCompressor<Codec>)))));
    }
  }
  bool right(float exact) const {
    for (const View& view : data)
      for (std::size_t i = 0; i < view.extent(0); ++i)
        if (std::abs(view(i) - exact) > 0.25f) return false;
    return true;
  }
  std::deque<Sum<Codec>> sums;
  std::vector<View> data;
  std::vector<wring::Request> requests;
};

template <class Codec> void in_flight_together(const Codec& codec) {
  for (const std::uint64_t seed : {0, 1, 2}) {
    InProcess world(3, {.eager_limit = 0, .delay = 3, .seed = seed});
    Job a(world, codec, 1000), b(world, codec, 10);
    for (std::size_t r = 0; r < 3; ++r) b.requests[r].wait();
    for (std::size_t r = 3; r-- > 0;) a.requests[r].wait();
    REQUIRE((a.right(6) && b.right(6)));
  }
}

template <class Codec> void destroyed_without_wait(const Codec& codec) {
  for (const std::size_t n : {10, 1000, 40000}) {
    InProcess world(3, {.eager_limit = 0, .delay = 2, .seed = 4});
    {
      Job job(world, codec, n);
      job.requests[1] = {};
      const auto outcomes = complete(world, job.requests);
      INFO(describe(outcomes));
      for (const int r : {0, 2})
        REQUIRE((outcomes[static_cast<std::size_t>(r)].ok() ||
                 outcomes[static_cast<std::size_t>(r)] == Cause::abandoned));
    }
    for (int turn = 0; turn < 2; ++turn) {  // it is reported once at most, then the link works
      Job job(world, codec, n);
      const auto outcomes = complete(world, job.requests);
      INFO("turn " << turn << describe(outcomes));
      const bool told = turn == 0 && all_failed(outcomes, Cause::abandoned);
      REQUIRE((told || (all_ok(outcomes) && job.right(6))));
    }
  }
}

/// A reduction to one rank, twice in a row with the same objects.
template <class Codec> void reduced_to_one(const Codec& codec) {
  const int root = 2;
  for (const AnyAlgorithm& algorithm : all_algorithms(4))
    for (const std::size_t n : {5, 3000}) {
      InProcess world(4, {.eager_limit = 0, .delay = 1, .seed = 3});
      std::deque<Scatter<Codec>> reduces;
      std::vector<View> in, memory;
      for (int r = 0; r < 4; ++r) {
        reduces.emplace_back(codec, world.link(r), algorithm);
        in.emplace_back("in", n), memory.emplace_back("memory", n);
        Kokkos::deep_copy(in.back(), static_cast<float>(r + 1)), Kokkos::deep_copy(memory.back(), 77);
      }
      const std::vector<std::size_t> counts{0, 0, n, 0};
      for (int turn = 0; turn < 2; ++turn) {
        const auto outcomes = on_all_ranks(world, [&](int rank) {
          const auto r = static_cast<std::size_t>(rank);
          const Kokkos::View<const float*, Kokkos::HostSpace> from = in[r];
          const View to = Kokkos::subview(memory[r], std::pair<std::size_t, std::size_t>(0, counts[r]));
          return reduces[r].start(Exec{}, wring::group(wring::item(
                                              from, to, bound_for(wring::BoundedCompressor<Codec>), counts)));
        });
        INFO(algorithm.name() << ", turn " << turn << describe(outcomes));
        REQUIRE(all_ok(outcomes));  // each rank has waited
        for (std::size_t r = 0; r < 4; ++r)
          for (std::size_t i = 0; i < n; ++i) {
            REQUIRE(in[r](i) == static_cast<float>(r + 1));
            if (static_cast<int>(r) == root)
              REQUIRE(std::abs(memory[r](i) - 10) <= 0.25f);
            else
              REQUIRE(memory[r](i) == 77);
          }
      }
    }
}

template <class C> void complex_sums() {
  const PerRank<C> inputs{{C(1, 2), C(-3, 5), C(0, 1)}, {C(3, -1), C(4, 4), C(1, 0)}};
  for (const AnyAlgorithm& algorithm : all_algorithms(2))
    for (const Collective collective : {Collective::allreduce, Collective::reduce_scatter}) {
      Call<wring::None<C>> call{.collective = collective};
      if (collective == Collective::reduce_scatter) call.counts = {1, 2};
      INFO(algorithm.name() << " " << name_of(collective));
      auto got = collect(algorithm, call, inputs);
      REQUIRE((all_ok(got.outcomes) && got.intact));
      const std::vector<C> sums{C(4, 1), C(1, 9), C(1, 1)};
      if (collective == Collective::allreduce)
        for (const auto& y : got.results) REQUIRE(y == sums);
      else
        REQUIRE((got.results[0] == std::vector<C>{sums[0]} &&
                 got.results[1] == std::vector<C>{sums[1], sums[2]}));
      for (const wring::Operation operation : {wring::max, wring::min}) {
        call.options.operation = operation;
        got = collect(algorithm, call, inputs);
        INFO(describe(got.outcomes));
        REQUIRE((all_failed(got.outcomes, Cause::argument) && got.intact));
      }
    }
}

}  // namespace

TEST_CASE("in place: the minimum is the minimum and the sum the sum, on 3, 4 and 16 ranks", "[cases][mpi]") {
  for (const int ranks : {3, 4, 16}) {
    const PerRank<double> inputs = three_values(ranks);
    for (const AnyCompressor<double>& compressor : all_compressors<double>())
      for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
        for (const wring::Operation operation : {wring::min, wring::max, wring::sum})
          for (const std::size_t ride : {0, 4096}) {
            AnyCall<double> call{.in_place = true};
            call.options.operation = operation, call.options.ride_along_bytes = ride;
            if (compressor.bounded) call.bound = absolute(1e-9);
            const auto got = compressor.collect(algorithm, call, inputs);
            INFO(compressor.name << ", " << describe(call, ranks, algorithm, 1) << describe(got.outcomes));
            const double exact = operation == wring::min ? -300 : operation == wring::max ? 10 : -440;
            REQUIRE(all_ok(got.outcomes));
            const double allowed = compressor.bounded ? 1e-9 : unasked_error(compressor, call, inputs);
            REQUIRE(judge(call, inputs, got, allowed) == "");
            for (const auto& y : got.results) REQUIRE(std::abs(y[0] - exact) <= allowed);
            if (compressor.name.starts_with("none")) REQUIRE(got.results[0][0] == exact);
          }
  }
}

TEST_CASE("a reduction to one rank: inputs and other ranks' memory stay, twice in a row, everyone can wait",
          "[cases][mpi]") {
  reduced_to_one(wring::None<float>{});
  reduced_to_one(wring::Grid<float>{});
  reduced_to_one(wring::Cast<wring::half_t>{});
}

TEST_CASE("two operations in flight, waited for in reverse order", "[cases][mpi]") {
  in_flight_together(wring::Grid<float>{});
  in_flight_together(wring::Cast<wring::bhalf_t>{});
}

TEST_CASE("an operation destroyed without a wait: the others end, it is reported, the link works on",
          "[cases][mpi]") {
  destroyed_without_wait(wring::Grid<float>{});
  destroyed_without_wait(wring::Cast<wring::bhalf_t>{});
}

TEST_CASE("complex numbers are added as numbers; they have no minimum or maximum", "[cases][mpi]") {
  complex_sums<std::complex<float>>();
}
