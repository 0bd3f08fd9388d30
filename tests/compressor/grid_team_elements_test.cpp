// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "grid_team_cases.hpp"

using namespace grid_team_cases;

TEST_CASE("team kernels write the bytes of the CPU kernels, double", "[grid][team]") {
  for (const std::size_t n : {1u, 17u, 512u, 1031u})
    for (const Form form : {Form::int32, Form::int64})
      for (const int multiplier : {8, 13})
        for (const bool delta : {false, true})
          for (int data = 0; data < static_cast<int>(Data::count); ++data)
            check_reduction<double>(static_cast<Data>(data), n, parameters(form, multiplier, -70, delta));
}

TEST_CASE("team kernels write the bytes of the CPU kernels, 16 bits", "[grid][team]") {
  for (const std::size_t n : {1u, 17u, 512u, 1031u})
    for (const Form form : {Form::int32, Form::int64})
      for (const int multiplier : {8, 13})
        for (const bool delta : {false, true})
          for (int data = 0; data < static_cast<int>(Data::count); ++data) {
            check_reduction<half_t>(static_cast<Data>(data), n, parameters(form, multiplier, -13, delta));
            check_reduction<bhalf_t>(static_cast<Data>(data), n, parameters(form, multiplier, -13, delta));
          }
}
