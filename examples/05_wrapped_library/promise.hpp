// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "zfp.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <span>
#include <vector>

/// The largest error of single blocks of four values, as a part of the tolerance: random and extreme values of all magnitudes, with
/// tolerances from the least that Zfp leaves to zfp to far more than the values. The block is followed by zeros, so that it
/// shrinks, and is coded by zfp. README.md says what to expect.
template <class T> double worst_part_of_tolerance() {
  constexpr int exponents = std::numeric_limits<T>::max_exponent;
  const Zfp<T> codec;
  const Kokkos::DefaultHostExecutionSpace exec;
  std::mt19937_64 random(1);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<T> values(64), decoded(64);
  std::vector<std::byte> bytes(codec.max_compressed_bytes(64)), scratch(codec.scratch_bytes(64));
  double worst = 0;
  for (int trial = 0; trial < 200000; ++trial) {
    const int exponent = below(2 * exponents) - exponents, kind = below(4);
    for (std::size_t i = 0; i < 4; ++i) {
      const double part = 1 - 0x1p-20 * below(1 << 21);
      const std::array<double, 4> mantissas{part, std::copysign(1 - 0x1p-30, part),
                                            std::copysign(2.0 / 3, part), std::ldexp(part, -below(40))};
      values[i] = static_cast<T>(std::ldexp(mantissas[static_cast<std::size_t>(kind)], exponent));
    }
    wring::Context context;
    context.count = context.total = 64, context.scratch = scratch;
    context.allowed_error = std::ldexp(1 + 0.5 * below(2), exponent + below(30) - 22);
    const std::size_t size = codec.compress(exec, std::span<const T>(values), bytes, context);
    codec.decompress(exec, std::span<const std::byte>(bytes).first(size), std::span<T>(decoded), context);
    for (std::size_t i = 0; i < 64; ++i)
      if (values[i] != decoded[i])
        worst = std::max(worst, std::fabs(double{values[i]} - double{decoded[i]}) / context.allowed_error);
  }
  return worst;
}
