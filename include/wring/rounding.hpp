// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <variant>

#include <wring/config.hpp>

/// How a codec chooses between the two levels on either side of a value.
namespace wring::inline v0 {

/// The nearer level; of two equally near ones the even one.
struct NearestRounding {
  friend bool operator==(const NearestRounding&, const NearestRounding&) = default;
};

/// The upper level with a probability equal to the value's distance from the lower one, in steps: right on average, so that errors of
/// many ranks and steps cancel, at twice the error and 4 times the squared error at worst. Draws have 16 bits: what is left of a bias
/// is at most 2^-17 of a step.
///
/// Draws are a function (Philox4x32-7) of this seed, Options::step, the rank (for its own values) or the number of terms (for sums on
/// their way, which several ranks may hold), the tensor's place in its group and the value's place in the tensor, and of nothing else:
/// the same on every backend and for any number of threads. Give every call its own `step`, or calls draw alike. The seed must be
/// equal on all ranks.
struct StochasticRounding {
  std::uint64_t seed = 0;
  friend bool operator==(const StochasticRounding&, const StochasticRounding&) = default;
};

using Rounding = std::variant<NearestRounding, StochasticRounding>;

}  // namespace wring::inline v0
