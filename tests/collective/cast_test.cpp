// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives with 16 bits on the wire: every encoding is within half an ulp of the narrow format, all ranks agree.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/cast.hpp>

#include "support/matrix.hpp"

using namespace wring_test;
using wring::Cast;

namespace {

/// Values up to 4 per rank: no partial sum exceeds 4 p, and at most 2 p encodings round a value, each by u * 4 p.
template <class To> void narrow_on_the_wire(unsigned every) {
  const auto check = [](Call<Cast<To>>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                        bool uneven) {
    const auto inputs = make_inputs<float>(call, ranks, n, uneven, [](std::size_t k, std::uint64_t seed) {
      return real_numbers<float>(k, seed);
    });
    const bool adds = wring::reduces(call.collective) && wring::adds(call.options.operation);
    const double u = wring::FloatTraits<To>::unit_roundoff, encodings = adds ? 2 * ranks
                                                                        : wring::reduces(call.collective) ? 2
                                                                                                          : 1;
    const double bound =
        encodings * u * 1.1 * 4 * (adds && call.options.operation == wring::sum ? ranks : 1) + 0x1p-24;
    const auto got = collect(algorithm, call, inputs);
    INFO(describe(call, ranks, algorithm, n));
    REQUIRE(judge(call, inputs, got, bound) == "");
    REQUIRE(!got.outcomes[0].report.bound.has_value());
  };
  for_each_case(Cast<To>{}, 9, small_lengths, every, true, check);
}

}  // namespace

TEST_CASE("cast: bf16 on the wire", "[collective]") { narrow_on_the_wire<wring::bhalf_t>(2); }
TEST_CASE("cast: fp16 on the wire", "[collective]") { narrow_on_the_wire<wring::half_t>(2); }

TEST_CASE("cast: whole numbers that the narrow format holds are exact", "[collective]") {
  const auto check = [](Call<Cast<wring::half_t>>& call, int ranks, const AnyAlgorithm& algorithm,
                        std::size_t n, bool uneven) {
    if (call.options.operation == wring::mean) call.options.operation = wring::sum;
    const auto inputs = make_inputs<float>(call, ranks, n, uneven, whole_numbers<float>);
    INFO(describe(call, ranks, algorithm, n));
    REQUIRE(judge(call, inputs, collect(algorithm, call, inputs), 0) == "");
  };
  for_each_case(Cast<wring::half_t>{}, 9, [](int) { return Lengths{513, 5000}; }, 4, true, check);
}

TEST_CASE("narrow formats: a mean divides after the sum, so that small gradients do not underflow",
          "[collective]") {
  Call<Cast<wring::half_t>> call;
  call.options.operation = wring::mean;
  const PerRank<float> inputs(4, std::vector<float>(10, 6e-8f));
  for (const std::size_t ride : {0, 65536})
    for (const AnyAlgorithm& algorithm : all_algorithms(4)) {
      call.options.ride_along_bytes = ride;
      INFO(describe(call, 4, algorithm, 10));
      const auto got = collect(algorithm, call, inputs);
      REQUIRE(all_ok(got.outcomes));
      REQUIRE(std::abs(got.results[0][0] - 6e-8f) <=
              0x1p-25f);  // one rounding to a multiple of 2^-24 at most
    }
}

TEST_CASE("narrow formats: fp16 on the wire halves the bytes", "[collective]") {
  Call<Cast<wring::half_t>> call;
  call.options.ride_along_bytes = 0;
  const PerRank<float> inputs(2, real_numbers<float>(65536, 1));
  const auto got = collect(wring::Ring{}, call, inputs);
  REQUIRE(all_ok(got.outcomes));
  const wring::Report& report = got.outcomes[0].report;
  REQUIRE(report.bytes_raw == 65536 * 4);  // two phases, half the vector each
  REQUIRE(report.bytes_sent >= 65536 * 2);
  REQUIRE(report.bytes_sent <= 65536 * 2 + report.messages * 128 + 1024);
}
