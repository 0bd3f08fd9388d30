// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checked collectives: right results pass, for every collective and bound.
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <limits>

#include <wring/compressor.hpp>

#include "support/checked.hpp"

using namespace wring_test;

TEMPLATE_TEST_CASE("checked: right results pass", "[collective][checked]", double, wring::half_t) {
  using T = TestType;
  unsigned number = 0;
  const wring::Bound bounds[] = {wring::absolute(0.5), wring::relative_to_range(0.05),
                                 wring::relative_to_rms(0.1)};
  for (const int ranks : {1, 2, 3, 5})
    for (const std::size_t n : {std::size_t{0}, std::size_t{3}, std::size_t{700}})
      for_each_collective(ranks, wring::Grid<T>(), n, [&](Call<wring::Grid<T>> call, PerRank<T> inputs) {
        call.options.operation = operations[number % 4];
        call.bound = bounds[number / 2 % 3];
        call.options.ride_along_bytes = number % 5 == 0 ? 0 : 2048;
        call.world = {.eager_limit = 0, .delay = number % 2 ? 3 : 0, .seed = number % 3};
        for (auto& x : inputs)
          if (number % 2 && x.size() > 2) x[1] = T(std::numeric_limits<float>::infinity()), x[2] = T(NAN);
        const auto algorithms = all_algorithms(ranks);
        require_right(run(call, inputs, algorithms[number++ % algorithms.size()]));
      });
}
