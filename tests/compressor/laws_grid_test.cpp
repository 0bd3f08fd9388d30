// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <string>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/grid.hpp>
#include <wring/testing/compressor_laws.hpp>

using namespace wring;

TEMPLATE_TEST_CASE("Grid keeps the laws", "[compressor][grid][laws]", float, half_t) {
  CHECK(testing::check_compressor_laws(Grid<TestType>{}) == std::vector<std::string>{});
}
