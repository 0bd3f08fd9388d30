// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The code that README.md and other documents show.
#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <wring/wring.hpp>

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Vector = Kokkos::View<float*, Kokkos::HostSpace>;

constexpr std::size_t length = 10000;

/// Something to compute while an operation is in flight.
struct Work {
  Vector values;
  KOKKOS_FUNCTION void operator()(std::size_t i) const { values(i) *= 0.5F; }
};

Vector filled(const char* name, std::size_t count, float value) {
  Vector view(name, count);
  Kokkos::deep_copy(view, value);
  return view;
}

bool all_within(const Vector& view, double expected, double bound) {
  for (std::size_t i = 0; i < view.size(); ++i)
    if (!(std::fabs(static_cast<double>(view(i)) - expected) <= bound)) return false;
  return true;
}

}  // namespace

TEST_CASE("the code of README.md does what it says") {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const MPI_Comm communicator = MPI_COMM_WORLD;
  const Exec exec;
  const double sum = ranks * (ranks + 1) / 2.0, average = sum / ranks;
  const float own = static_cast<float>(rank + 1);
  const Vector gradient = filled("gradient", length, own), in = filled("in", length, own),
               out = filled("out", length, 0);
  const Vector weights = filled("weights", length, own), biases = filled("biases", 100, own);
  const std::size_t parts = static_cast<std::size_t>(ranks);
  const Vector flat = filled("flat", 1000 * parts, own), mine = filled("mine", 1000, 0);
  const std::vector<std::size_t> counts(parts, 1000);
  const Kokkos::RangePolicy<Exec> policy(exec, 0, length);
  const Work work{filled("work", length, 1)};

  wring::MpiTransport link(communicator);  // collective; duplicates the communicator
  wring::Allreduce mean(wring::Grid<float>{}, link, wring::Ring{}, {.operation = wring::mean});
  wring::Report report = mean(exec, gradient, wring::absolute(1e-4));  // in place, blocking
  REQUIRE(all_within(gradient, average, 1e-4));

  wring::Request request = mean.start(exec, in, out, wring::relative_to_rms(0.01));  // nonblocking
  Kokkos::parallel_for(policy, work);
  wring::progress(link);  // moves whatever is in flight on this link; so do test() and wait()
  report = request.wait();
  REQUIRE(all_within(out, average, *report.bound));
  REQUIRE(all_within(work.values, 0.5, 0));

  wring::ReduceScatter shard(wring::Grid<float>{}, link, wring::Direct{});
  shard(exec, flat, mine, counts, wring::absolute(1e-4));  // counts[r] elements go to rank r
  REQUIRE(all_within(mine, sum, 1e-4));

  // Several tensors in one set of messages, each with its own bound; everything chosen for you.
  mean(exec,
       wring::group(wring::item(weights, wring::absolute(1e-4)), wring::item(biases, wring::absolute(1e-6))));
  wring::allreduce(exec, in, wring::absolute(1e-4), link);
  REQUIRE(all_within(weights, average, 1e-4));

  const Vector field = filled("field", 5000, own);
  const wring::Grid<float> smooth({.delta = true});
  const auto tensors =
      wring::group(wring::item(weights, wring::absolute(1e-4)),              // the compressor of `mean`
                   wring::item(field, wring::absolute(1e-6)).with(smooth));  // one of its own
  report = mean(exec, tensors);
  REQUIRE(all_within(field, average, 1e-6));

  REQUIRE(all_within(biases, average, 1e-6));
  REQUIRE(all_within(in, sum, 1e-4));
}

TEST_CASE("the options of compressors in README.md are what they say") {
  const wring::BlockScaled<float, 4> random({.rounding = wring::StochasticRounding{.seed = 7}});
  const wring::Gradient<float> packed({.target = 0.1, .form = wring::Gradient<float>::Form::packed});
  const wring::TopK<float> largest({.ratio = 0.01});  // or {.k = 1000}

  CHECK(random.options().rounding != wring::Rounding{});
  CHECK(packed.options().form == wring::Gradient<float>::Form::packed);
  CHECK(largest.selected(1000) == 10);
  CHECK_THROWS_WITH(wring::TopK<float>({.k = 1000, .ratio = 0.01}),
                    "TopK: give one of the options k and ratio, not both");
}

TEST_CASE("the code of docs/algorithms.md does what it says") {
  wring::MpiTransport link(MPI_COMM_WORLD);
  const Exec exec;
  const Vector gradient = filled("gradient", length, 0.1F);

  wring::Allreduce mean(wring::Grid<float>{}, link, wring::Automatic{}, {.operation = wring::mean});
  const wring::Machine machine = mean.calibrate(exec);  // all ranks, once
  const wring::Report report = mean(exec, gradient, wring::relative_to_rms(0.1));
  fmt::print("{}: {}\n", report.algorithm, report.reason);

  REQUIRE(all_within(gradient, 0.1, *report.bound));
  REQUIRE(mean.algorithm().machine() == machine);
  REQUIRE(report.algorithm.str().starts_with("automatic: "));
}

TEST_CASE("the code of docs/performance.md on calibrations that are kept does what it says") {
  wring::MpiTransport link(MPI_COMM_WORLD);
  const Exec exec;
  const Vector gradient = filled("gradient", length, 0.1F);
  const std::string path = fmt::format("machine_of_{}_ranks.txt", link.size());
  wring::Allreduce mean(wring::Grid<float>{}, link, wring::Automatic{}, {.operation = wring::mean});

  const wring::Machine machine = mean.calibrate(exec);
  if (link.rank() == 0) std::ofstream(path) << wring::to_string(machine);

  MPI_Barrier(MPI_COMM_WORLD);
  // In later runs, on every rank:
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  wring::Allreduce later(wring::Grid<float>{}, link, wring::Automatic{wring::machine_from(text)});

  REQUIRE(later.algorithm().machine() == machine);
  later(exec, gradient, wring::absolute(1e-3));
  MPI_Barrier(MPI_COMM_WORLD);
  if (link.rank() == 0) std::remove(path.c_str());
}

TEST_CASE("the code of docs/errors.md does what it says") {
  wring::MpiTransport link(MPI_COMM_WORLD);
  const Exec exec;
  wring::Allreduce sum(wring::Grid<float>{}, link);
  const Vector gradient = filled("gradient", length, 0.1F);
  bool refused = false, complete = false;

  try {
    sum(exec, gradient, wring::absolute(1e-12));
  } catch (const wring::BoundUnattainable& error) {
    refused = true;  // on every rank, and gradient is what it was: ask for more, or send it uncompressed
    wring::Allreduce exact(wring::None<float>{}, link);
    exact(exec, gradient);
  } catch (const wring::Error& error) {  // the base of all: error.what(), error.rank(), error.cause()
    FAIL(error.what());
  }
  REQUIRE(refused == (link.size() > 1));

  using namespace std::chrono_literals;
  const wring::Deadline deadline = std::chrono::steady_clock::now() + 60s;
  const wring::Report report = sum(exec, gradient, wring::relative_to_rms(0.01), deadline);
  complete = report.bound.has_value();
  REQUIRE(complete);
}
