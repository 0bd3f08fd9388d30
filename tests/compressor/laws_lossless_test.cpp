// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/lossless.hpp>
#include <wring/testing/compressor_laws.hpp>

using namespace wring;

TEMPLATE_TEST_CASE("Lossless keeps the laws", "[compressor][lossless][laws]", float, double, half_t, bhalf_t,
                   std::int8_t, std::uint16_t, std::int32_t, std::int64_t) {
  CHECK(testing::check_compressor_laws(Lossless<TestType>{}) == std::vector<std::string>{});
}
