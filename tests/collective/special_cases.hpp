// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <initializer_list>
#include <limits>
#include <vector>

#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>

#include "support/matrix.hpp"

namespace wring_test {

inline constexpr float inf = std::numeric_limits<float>::infinity(),
                       quiet = std::numeric_limits<float>::quiet_NaN();

/// Runs allreduce and broadcast with every algorithm, riding along and not, and judges both.
template <class Codec, class T = typename Codec::value_type>
void everywhere(Call<Codec> call, const PerRank<T>& inputs, double bound) {
  const int ranks = static_cast<int>(inputs.size());
  for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
    for (const wring::Collective collective : {wring::Collective::allreduce, wring::Collective::broadcast})
      for (const std::size_t ride : {0, 65536}) {
        call.collective = collective, call.options.ride_along_bytes = ride;
        INFO(describe(call, ranks, algorithm, inputs[0].size()));
        REQUIRE(judge(call, inputs, collect(algorithm, call, inputs), bound) == "");
      }
}

template <class T> std::vector<T> elements(std::initializer_list<float> values) {
  std::vector<T> x;
  for (const float v : values) x.push_back(to_element<T>(v));
  return x;
}

template <class T> void all_pairs_of_specials() {
  std::vector<T> a, b;
  for (const float x : {1.0f, -2.0f, 0.0f, inf, -inf, quiet})
    for (const float y : {1.0f, -2.0f, 0.0f, inf, -inf, quiet})
      a.push_back(to_element<T>(x)), b.push_back(to_element<T>(y));
  const double bound = 40 * wring::FloatTraits<T>::unit_roundoff;
  for (const wring::Operation operation : operations) {
    const wring::Options options{.operation = operation};
    everywhere<wring::Grid<T>>({.options = options, .bound = wring::absolute(bound)}, {a, b}, bound);
    everywhere<wring::Grid<T>>({.options = options, .bound = wring::absolute(bound)}, {a, b, b}, bound);
    everywhere<wring::None<T>>({.options = options}, {a, b}, bound);
  }
}

}  // namespace wring_test
