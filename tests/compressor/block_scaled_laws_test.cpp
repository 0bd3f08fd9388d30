// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <string>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/block_scaled.hpp>
#include <wring/testing/compressor_laws.hpp>

using namespace wring;

namespace {

template <class Codec> void keeps_the_laws() {
  for (const Rounding& rounding : {Rounding(NearestRounding{}), Rounding(StochasticRounding{5})})
    for (const auto& rotation : {std::optional<RandomRotation>(), std::optional(RandomRotation{3})}) {
      const Codec codec(typename Codec::Options{rounding, rotation});
      INFO(codec.identity().options);
      CHECK(testing::check_compressor_laws(codec) == std::vector<std::string>{});
    }
}

}  // namespace

TEMPLATE_TEST_CASE("BlockScaled keeps the laws", "[compressor][block_scaled][laws]", (BlockScaled<float, 8>),
                   (BlockScaled<float, 6>), (BlockScaled<double, 5>), (BlockScaled<half_t, 4>),
                   (BlockScaled<bhalf_t, 3>), (BlockScaled<float, 2>)) {
  keeps_the_laws<TestType>();
}
