// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checked collectives: element types, and compressors without a bound.
#include <catch2/catch_test_macros.hpp>

#include <limits>

#include <wring/compressor.hpp>

#include "support/checked.hpp"

using namespace wring_test;

TEST_CASE("checked: integers, complex numbers, and compressors without a bound", "[collective][checked]") {
  for_each_collective(3, wring::None<int>(), 50, [](auto call, const auto& inputs) {
    for (const auto operation : {wring::sum, wring::min, wring::max})
      call.options.operation = operation, require_right(run(call, inputs));
  });
  for_each_collective(3, wring::None<Kokkos::complex<double>>(), 50,
                      [](const auto& call, const auto& inputs) { require_right(run(call, inputs)); });
  for_each_collective(3, wring::Cast<wring::half_t, float>(), 50, [](auto call, auto inputs) {
    inputs[1][0] = std::numeric_limits<float>::infinity();
    for (const auto operation : operations)
      call.options.operation = operation, require_right(run(call, inputs));
  });
}
