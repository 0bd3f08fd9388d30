// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <wring/detail/value_kernels.hpp>

using wring::Operation;

TEST_CASE("value kernels: two runs combined into a third leave both as they were", "[detail]") {
  const Kokkos::DefaultHostExecutionSpace exec;
  for (const std::size_t n :
       {std::size_t(0), std::size_t(1), std::size_t(15), std::size_t(16), std::size_t(10007)})
    for (const Operation operation : {Operation::sum, Operation::min, Operation::max}) {
      std::vector<float> a(n), b(n), right(n);
      for (std::size_t i = 0; i < n; ++i) {
        a[i] = static_cast<float>(i % 97) - 40, b[i] = static_cast<float>(i % 31) - 20;
        right[i] = operation == Operation::sum   ? a[i] + b[i]
                   : operation == Operation::min ? std::min(a[i], b[i])
                                                 : std::max(a[i], b[i]);
      }
      const std::vector<float> first = a, second = b;
      std::vector<float> out(n, 1e30F);
      wring::detail::combine_values<float>(exec, std::span(out), std::span<const float>(a),
                                           std::span<const float>(b), operation);
      exec.fence();
      REQUIRE((out == right && a == first && b == second));
      wring::detail::combine_values<float>(exec, std::span(a), std::span<const float>(b), operation);
      exec.fence();
      REQUIRE((a == right && b == second));
    }
}
