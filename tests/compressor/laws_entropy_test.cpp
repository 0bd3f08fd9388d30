// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <string>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/entropy_grid.hpp>
#include <wring/testing/compressor_laws.hpp>

using namespace wring;

TEMPLATE_TEST_CASE("EntropyGrid keeps the laws", "[compressor][entropy][laws]", float, half_t) {
  using Codec = EntropyGrid<TestType>;
  CHECK(testing::check_compressor_laws(Codec{}) == std::vector<std::string>{});
  CHECK(testing::check_compressor_laws(Codec{{.grid = {.delta = true}}}) == std::vector<std::string>{});
  CHECK(testing::check_compressor_laws(Codec{{.stage = Codec::Stage::distribution}}) ==
        std::vector<std::string>{});
}
