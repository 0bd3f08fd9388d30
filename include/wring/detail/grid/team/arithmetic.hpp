// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include <wring/detail/grid/arithmetic.hpp>
#include <wring/detail/grid/parameters.hpp>
#include <wring/narrow.hpp>

/// The arithmetic of one value for a thread of any backend, with the parameters in the form that threads use.
namespace wring::inline v0::detail::grid_team {

/// x -> q(x), a function of x and the step alone: the nearest integer to x / D; ties go to the even one where
/// D is a power of two, else down (the remainder x - qD lies in (-D/2, D/2]). The remainder of a candidate
/// that is off by one at most is exact by fma, so one correction is enough, and no compiler can contract
/// anything.
template <class T> class Quantiser {
 public:
  using Wide = typename FloatTraits<T>::Wide;
  /// For what is too large to have a quantum. No grid holds it.
  static constexpr std::int64_t too_large = std::int64_t(1) << 62;

  explicit Quantiser(const GridParameters& p)
      : step_(p.step), inverse_(p.inverse), step32_(static_cast<float>(p.step)),
        inverse32_(static_cast<float>(p.inverse)), limit32_(0), power_of_two_(p.multiplier == 8) {
    const bool binary32 = p.step >= 0x1p-125 && p.step <= 0x1p100;
    if (binary32) limit32_ = power_of_two_ ? 0x1p22f : 0x1p20f;
  }

  /// Finite x only.
  KOKKOS_FUNCTION std::int64_t quantum(Wide x) const {
    if constexpr (std::is_same_v<Wide, float>) {
      const float t = x * inverse32_;
      if (Kokkos::fabs(t) < limit32_) return corrected(Kokkos::nearbyint(t), x, step32_);
    }
    const double wide = static_cast<double>(x), t = wide * inverse_;
    if (Kokkos::fabs(t) < grid::largest_quotient) return corrected(Kokkos::nearbyint(t), wide, step_);
    return too_large;
  }

 private:
  template <class Real> KOKKOS_FUNCTION std::int64_t corrected(Real candidate, Real x, Real step) const {
    std::int64_t q = static_cast<std::int64_t>(candidate);
    if (power_of_two_) return q;  // x / D was exact
    const Real remainder = Kokkos::fma(-candidate, step, x), half = step * Real(0.5);
    if (remainder > half) ++q;
    if (remainder <= -half) --q;
    return q;
  }

  double step_, inverse_;
  float step32_, inverse32_, limit32_;
  bool power_of_two_;
};

/// Q -> the element nearest to Q 2^s D (divided by the number of terms for MEAN), or what its code stands
/// for.
template <class T> class Reconstruction {
 public:
  explicit Reconstruction(const GridParameters& p)
      : step_(std::ldexp(p.step, p.shift)), limit_(p.limit), divisor_(p.divisor) {}

  KOKKOS_FUNCTION T element(std::int64_t q, unsigned code) const {
    if (code != grid::finite_code) return grid::special_value<T>(code);
    return grid::element<T>(static_cast<double>(q), step_, divisor_, limit_);
  }

 private:
  double step_, limit_;
  int divisor_;
};

}  // namespace wring::inline v0::detail::grid_team
