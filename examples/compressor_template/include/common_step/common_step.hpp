// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <wring/compressor/concept.hpp>
#include <wring/error.hpp>

#include "quanta.hpp"

namespace common_step {

/// Values rounded to multiples of a step that all ranks share, each in 1, 2 or 4 bytes, whatever sums of them need. Pieces are added
/// as they are, so that a value is rounded once, however many ranks it meets on its way.
///
/// The step follows from the bound on the result and from what all ranks' inputs are like (`prepare`). NaN and infinities arrive as
/// IEEE arithmetic has them. Runs in every execution space of Kokkos. No memory of its own.
template <std::floating_point T> class CommonStep {
 public:
  using value_type = T;

  wring::Identity identity() const {
    return {"common_step", 1, sizeof(T) == 4 ? "element=float" : "element=double"};
  }

  /// Chooses step and width, from what is the same on all ranks.
  void prepare(const wring::Agreed& agreed) {
    if (!agreed.allowed_error) throw wring::InvalidArgument("common_step: ask for a bound on the result");
    const bool adds = wring::reduces(agreed.collective) && wring::adds(agreed.operation);
    const bool averages = adds && agreed.operation == wring::mean;
    const double terms = adds ? agreed.ranks : 1, most = agreed.max_abs, bound = *agreed.allowed_error;
    const double left = bound - rounding((averages ? 1 : terms) * most + bound);
    if (most > 0 && !(left > 0)) throw wring::BoundUnattainable("common_step: the result is rounded by more");
    // Half a step for each term; a mean divides their sum by as many.
    step_ = most > 0 ? 2 * left / (averages ? 1 : terms) * (1 - margin) : 1;
    const double greatest = terms * (most / step_ + 2);
    if (!(greatest < Quanta<std::int32_t>::most))
      throw wring::BoundUnattainable("common_step: sums would need more than 32 bits");
    width_ = greatest < Quanta<std::int8_t>::most ? 1 : greatest < Quanta<std::int16_t>::most ? 2 : 4;
  }

  /// Of one encoding with the step that was chosen; before that 0, since any can be chosen.
  double error(double max_abs) const {
    return step_ > 0 ? step_ / 2 * (1 + margin) + rounding(max_abs + step_ / 2) : 0;
  }

  std::size_t max_compressed_bytes(std::size_t n) const {
    if (n > std::numeric_limits<std::size_t>::max() / 4)
      throw wring::InvalidArgument("common_step: the size does not fit into 64 bits");
    return width_ * n;
  }
  std::size_t max_combined_bytes(std::size_t n, int /*terms*/) const { return max_compressed_bytes(n); }

  /// Integers add exactly: the same bits in any order.
  bool reproducible() const { return true; }

  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> x, std::span<std::byte> bytes,
                       const wring::Context&) const {
    with_width([&]<class Q>(Q) {
      for_each("common_step::encode", exec, x.size(), Encode<T, Q>{x.data(), bytes.data(), step_});
    });
    return width_ * x.size();
  }

  template <class Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> x,
                  const wring::Context& context) const {
    expect_size(bytes, x.size());
    const bool complete = wring::reduces(context.collective) && context.phase == wring::Phase::final;
    const double terms = complete && context.operation == wring::mean ? context.ranks : 1;
    with_width([&]<class Q>(Q) {
      for_each("common_step::decode", exec, x.size(), Decode<T, Q>{bytes.data(), x.data(), step_, terms});
    });
  }

  template <class Exec>
  std::size_t combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                      std::span<std::byte> out, const wring::Context& context) const {
    expect_size(a, context.count), expect_size(b, context.count);
    with_width([&]<class Q>(Q) {
      for_each("common_step::add", exec, context.count,
               Combine<Q>{a.data(), b.data(), out.data(), context.operation});
    });
    return width_ * context.count;
  }

 private:
  static constexpr double margin = 0x1p-20;  ///< outweighs the rounding of the arithmetic on steps

  /// The most by which decoding rounds a result: to the element type, and for doubles twice on the way.
  static double rounding(double magnitude) {
    constexpr double unit = std::numeric_limits<T>::epsilon() / 2 * (sizeof(T) == 8 ? 3 : 1);
    return unit * magnitude * (1 + margin) + static_cast<double>(std::numeric_limits<T>::denorm_min());
  }

  /// Whatever bytes of the right number are, they are quanta.
  void expect_size(std::span<const std::byte> bytes, std::size_t n) const {
    if (bytes.size() != width_ * n) throw wring::CodecError("common_step: a piece has the wrong size");
  }

  template <class Action> void with_width(const Action& action) const {
    if (width_ == 1)
      action(std::int8_t());
    else if (width_ == 2)
      action(std::int16_t());
    else
      action(std::int32_t());
  }

  template <class Exec, class Functor>
  static void for_each(const char* label, const Exec& exec, std::size_t n, const Functor& functor) {
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, n),
                         functor);
  }

  double step_ = 0;        ///< 0 until `prepare`
  std::size_t width_ = 4;  ///< bytes of a quantum
};

static_assert(wring::BoundedCompressor<CommonStep<float>> && wring::CombiningCompressor<CommonStep<double>>);

}  // namespace common_step
