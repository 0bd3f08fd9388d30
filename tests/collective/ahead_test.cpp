// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Encoding before the ranks agree: the bits are those of measuring first, whatever the inputs are like.
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include <wring/compressor/grid.hpp>

#include "support/executors.hpp"
#include "support/matrix.hpp"

namespace {

using namespace wring_test;
using wring::Grid;

/// Grid without the ability to measure while it encodes.
template <class T> class MeasuresFirst : public Grid<T> {
 public:
  using Grid<T>::Grid;
  template <class Exec>
  std::size_t compress_and_measure(const Exec&, std::span<const T>, std::span<std::byte>,
                                   const wring::Context&, double&) = delete;
};
static_assert(wring::MeasuringCompressor<Grid<float>> && wring::MeasuringCompressor<Grid<double>>);
static_assert(!wring::MeasuringCompressor<MeasuresFirst<float>> &&
              wring::AnticipatingCompressor<MeasuresFirst<float>>);

/// Grid that must have seen the whole of the input, since it was last prepared, before it encodes any of it.
class Inspected : public Grid<float> {
 public:
  void prepare(const wring::Agreed& agreed) {
    Grid<float>::prepare(agreed);
    seen_.reset();
  }
  template <class Exec>
  void inspect(const Exec&, std::span<const float> values, const wring::Context& context) {
    if (context.first != 0 || context.count != values.size() || context.phase != wring::Phase::own)
      throw wring::CodecError("inspected: this is not the input");
    seen_ = values.size();
  }
  template <class Exec> std::size_t compress(const Exec& exec, std::span<const float> values,
                                             std::span<std::byte> bytes, const wring::Context& context) {
    expect_seen(context);
    return Grid<float>::compress(exec, values, bytes, context);
  }
  template <class Exec>
  std::size_t compress_and_measure(const Exec& exec, std::span<const float> values,
                                   std::span<std::byte> bytes, const wring::Context& context,
                                   double& max_abs) {
    expect_seen(context);
    return Grid<float>::compress_and_measure(exec, values, bytes, context, max_abs);
  }

 private:
  void expect_seen(const wring::Context& context) const {
    if (context.phase == wring::Phase::own && seen_ != context.total)
      throw wring::CodecError("inspected: the input was not shown");
  }
  std::optional<std::size_t> seen_;
};
static_assert(wring::MeasuringCompressor<Inspected> && wring::InspectingCompressor<Inspected>);

/// What the inputs are like, by rank.
enum class Kind { ordinary, zeros, one_huge, one_beyond_int32, special, tiny, near_greatest };

template <class T> PerRank<T> inputs_of(Kind kind, int ranks, std::size_t n) {
  PerRank<T> inputs;
  for (int r = 0; r < ranks; ++r) {
    auto x = real_numbers<T>(n, static_cast<std::uint64_t>(r) + 3);
    const std::size_t middle = n / 2;
    const bool last = r == ranks - 1;
    if (kind == Kind::zeros) x.assign(n, T(0));
    if (kind == Kind::one_huge && last) x[middle] = T(-1500);  // its rounding shows in the step of floats
    if (kind == Kind::one_beyond_int32 && last) x[middle] = static_cast<T>(3e6);
    if (kind == Kind::special && last)
      x[0] = std::numeric_limits<T>::infinity(), x[middle] = std::numeric_limits<T>::quiet_NaN();
    if (kind == Kind::tiny)
      for (T& v : x) v = static_cast<T>(v * T(1e-20));
    if (kind == Kind::near_greatest && last) x[middle] = std::numeric_limits<T>::max() / 2;
    inputs.push_back(std::move(x));
  }
  return inputs;
}

template <class T, class Codec>
Collected<T> run(Codec codec, Kind kind, int ranks, wring::Collective collective, wring::Operation operation,
                 const AnyAlgorithm& algorithm, double bound) {
  Call<Codec> call;
  call.codec = codec, call.collective = collective, call.bound = wring::absolute(bound);
  call.options.operation = operation, call.options.segment_bytes = 4096, call.options.ride_along_bytes = 0;
  const auto inputs = inputs_of<T>(kind, ranks, 9001);
  call.counts = uneven_counts(9001, ranks);
  return collect(algorithm, call, inputs);
}

template <class T> void same_bits() {
  for (const Kind kind : {Kind::ordinary, Kind::zeros, Kind::one_huge, Kind::one_beyond_int32, Kind::special,
                          Kind::tiny, Kind::near_greatest})
    for (const auto collective : {wring::Collective::allreduce, wring::Collective::reduce_scatter})
      for (const auto operation : {wring::sum, wring::mean, wring::max})
        for (const bool delta : {false, true})
          for (const int ranks : {2, 6}) {
            const double bound = kind == Kind::near_greatest ? 1e35 : 3e-4;
            const typename Grid<T>::Options options{.delta = delta};
            const AnyAlgorithm algorithm =
                ranks == 2 ? AnyAlgorithm(wring::Direct{}) : AnyAlgorithm(wring::HalvingDoubling{});
            const auto ahead = run<T>(Grid<T>(options), kind, ranks, collective, operation, algorithm, bound);
            const auto first =
                run<T>(MeasuresFirst<T>(options), kind, ranks, collective, operation, algorithm, bound);
            CAPTURE(static_cast<int>(kind), wring::name_of(collective), wring::name_of(operation), delta,
                    ranks);
            for (std::size_t r = 0; r < ahead.results.size(); ++r) {
              REQUIRE(ahead.outcomes[r].cause == first.outcomes[r].cause);
              REQUIRE(ahead.results[r].size() == first.results[r].size());
              REQUIRE(
                  (ahead.results[r].empty() || std::memcmp(ahead.results[r].data(), first.results[r].data(),
                                                           ahead.results[r].size() * sizeof(T)) == 0));
              CHECK(ahead.outcomes[r].report.bytes_sent == first.outcomes[r].report.bytes_sent);
            }
            REQUIRE(ahead.intact);
          }
}

}  // namespace

TEST_CASE("the bits do not depend on what is encoded first: float", "[ahead]") { same_bits<float>(); }
TEST_CASE("the bits do not depend on what is encoded first: double", "[ahead]") { same_bits<double>(); }

TEST_CASE("ordinary inputs are read once, by the encoder", "[ahead]") {
  const auto ordinary = run<float>(Grid<float>{}, Kind::ordinary, 2, wring::Collective::allreduce, wring::sum,
                                   wring::Direct{}, 3e-4);
  const auto measured = run<float>(MeasuresFirst<float>{}, Kind::ordinary, 2, wring::Collective::allreduce,
                                   wring::sum, wring::Direct{}, 3e-4);
  const auto huge = run<float>(Grid<float>{}, Kind::one_huge, 2, wring::Collective::allreduce, wring::sum,
                               wring::Direct{}, 3e-4);
  CHECK(ordinary.outcomes[0].report.measure_seconds == 0);
  CHECK(measured.outcomes[0].report.measure_seconds > 0);
  const std::uint64_t sent = measured.outcomes[0].report.encodings;  // the other half is added, not encoded
  CHECK(ordinary.outcomes[0].report.encodings == 2 * sent);
  CHECK(huge.outcomes[1].report.measure_seconds > 0);  // the rank whose input is too large
  CHECK(huge.outcomes[0].report.encodings == 3 * sent);
}

TEST_CASE("what is encoded first, or summed while the ranks agree, has been shown to the compressor",
          "[ahead]") {
  for (const std::size_t n : {std::size_t{300}, std::size_t{9001}})
    for (const Kind kind : {Kind::ordinary, Kind::one_huge}) {
      Call<Inspected> call{.bound = wring::absolute(3e-4)};
      Call<Grid<float>> plain{.bound = call.bound};
      call.options.ride_along_bytes = plain.options.ride_along_bytes = 4096;
      const auto inputs = inputs_of<float>(kind, 3, n);
      const auto got = collect(wring::Ring{}, call, inputs), expected = collect(wring::Ring{}, plain, inputs);
      INFO(n << describe(got.outcomes));
      REQUIRE(all_ok(got.outcomes));
      CHECK(got.outcomes[0].report.rode_along == expected.outcomes[0].report.rode_along);
      CHECK(got.outcomes[0].report.rode_along == (n == 300 && kind == Kind::ordinary));
      for (std::size_t r = 0; r < inputs.size(); ++r) REQUIRE(same_bits(got.results[r], expected.results[r]));
    }
}

TEST_CASE("values in wide form, and bounds that depend on the inputs, are measured first", "[ahead]") {
  Call<Grid<float>> call;
  call.options.ride_along_bytes = 0;
  const auto inputs = inputs_of<float>(Kind::ordinary, 4, 5000);
  call.bound = wring::relative_to_rms(0.01);
  CHECK(collect<Grid<float>>(wring::Ring{}, call, inputs).outcomes[0].report.measure_seconds > 0);
  call.bound = wring::absolute(0.01);
  const AnyAlgorithm nodes = wring::Hierarchical<wring::Ring, wring::Ring>(2);
  CHECK(collect<Grid<float>>(nodes, call, inputs).outcomes[0].report.measure_seconds > 0);
  CHECK(collect<Grid<float>>(wring::Ring{}, call, inputs).outcomes[0].report.measure_seconds == 0);
}
