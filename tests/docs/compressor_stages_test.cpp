// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compressors of docs/writing_a_compressor.md, stage by stage: each keeps the laws, and does what the page says.
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <string>
#include <vector>

#include <common_step/common_step.hpp>
#include <wring/testing/compressor_laws.hpp>

#include "docs/compressor_stages.hpp"
#include "support/matrix.hpp"

using namespace wring_test;
using common_step::CommonStep;
using wring::testing::check_compressor_laws;

TEST_CASE("every stage keeps the laws", "[docs]") {
  CHECK(check_compressor_laws(ByteScaled{}) == std::vector<std::string>{});
  CHECK(check_compressor_laws(stages::ByteAdded{}) == std::vector<std::string>{});
  CHECK(check_compressor_laws(stages::ByteRounded(7)) == std::vector<std::string>{});
  CHECK(check_compressor_laws(CommonStep<float>{}) == std::vector<std::string>{});
}

TEST_CASE("a law that is broken is named in a sentence", "[docs]") {
  const std::vector<std::string> broken = check_compressor_laws(stages::Forgetful{});
  REQUIRE(!broken.empty());
  CHECK(broken[0] == "bounds: compress of 0 values (zeros) wrote outside its space of 0 bytes");
}

TEST_CASE("rounding at random is right on average, and the same again", "[docs]") {
  constexpr std::size_t n = 1000, steps = 400;
  std::vector<float> x(n, 0.3F), y(n);
  x[0] = 125;  // the scale is 1
  const stages::ByteRounded codec(7);
  std::vector<std::byte> bytes(codec.max_compressed_bytes(n)), again = bytes;
  double sum = 0;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const wring::Context context{.step = step, .count = n};
    codec.compress(Exec{}, x, bytes, context);
    codec.compress(Exec{}, x, again, context);
    REQUIRE(bytes == again);
    codec.decompress(Exec{}, bytes, std::span(y), context);
    for (std::size_t i = 1; i < n; ++i) {
      REQUIRE((y[i] == 0 || y[i] == 1));
      sum += y[i];
    }
  }
  const double draws = static_cast<double>(steps * (n - 1));
  CHECK(std::fabs(sum / draws - static_cast<double>(0.3F)) <= 5 * std::sqrt(0.3 * 0.7 / draws));
}

TEST_CASE("the combining stage keeps its bound and its bits in every collective and algorithm", "[docs]") {
  const auto check = [&](Call<CommonStep<float>>& call, int ranks, const AnyAlgorithm& algorithm,
                         std::size_t n, bool uneven) {
    auto inputs = make_inputs<float>(call, ranks, n, uneven, [](std::size_t k, std::uint64_t seed) {
      std::vector<float> x = real_numbers<float>(k, seed);
      for (std::size_t i = 5; i < k; i += 97)
        x[i] = (i + seed) % 3 == 0 ? NAN : (i + seed) % 3 == 1 ? INFINITY : -INFINITY;
      return x;
    });
    call.bound = wring::absolute(n % 2 == 0 ? 0.5 : 1e-3);
    const auto got = collect(algorithm, call, inputs);
    INFO(describe(call, ranks, algorithm, n));
    REQUIRE(judge(call, inputs, got, call.bound->value) == "");
    REQUIRE(got.outcomes[0].report.reproducible);
  };
  for_each_case(CommonStep<float>{}, 8, [](int) { return Lengths{0, 1, 600, 1301}; }, 3, true, check);
}
