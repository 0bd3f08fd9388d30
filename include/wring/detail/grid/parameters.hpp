// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <limits>

namespace wring::inline v0::detail {

/// What all ranks agreed upon for one tensor. None of it is in the encoded pieces.
struct GridParameters {
  /// How quanta are kept. `values`: raw elements, combined in plan order, where even int64 sums could
  /// overflow.
  enum class Form : int { int32, int64, values };

  Form form = Form::int32;
  int multiplier =
      8;  ///< the step D is multiplier * 2^exponent, 8 <= multiplier <= 15; 8 makes it a power of two
  int exponent = 0;
  double step = 8;          ///< D
  double inverse = 0.125;   ///< the double nearest to 1 / D
  int shift = 0;            ///< `finish` rounds sums to multiples of 2^shift D
  int divisor = 1;          ///< decoding a complete sum divides by it (MEAN)
  bool delta = false;       ///< residues q_i - q_(i-1) instead of q_i
  bool raw_blocks = false;  ///< incompressible blocks are stored as they are (nothing is ever added)
  bool wide = false;        ///< every block has the greatest width
  int widest =
      62;  ///< no quantum or partial sum needs more bits (32 at most in int32): sizes are bounded by it
  double limit = std::numeric_limits<
      double>::infinity();  ///< sums up to limit 2^64 saturate where they overflow the type

  friend bool operator==(const GridParameters&, const GridParameters&) = default;

  /// Whether pieces mean the same with other parameters, bit by bit.
  bool reads_like(GridParameters other) const {
    other.widest = widest;
    return *this == other;
  }
};

}  // namespace wring::inline v0::detail
