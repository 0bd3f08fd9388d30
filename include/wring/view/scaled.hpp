// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <wring/detail/mix.hpp>
#include <wring/detail/reduce.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/narrow.hpp>
#include <wring/view/adaptor.hpp>
#include <wring/view/symmetric.hpp>

namespace wring::inline v0 {

/// A view each of whose elements has a scale: see `scaled`.
template <class V, class S> struct Scaled {
  static constexpr bool adapts_view = true;
  using value_type = typename V::value_type;
  using non_const_value_type = std::remove_const_t<value_type>;
  using memory_space = typename V::memory_space;
  static constexpr std::size_t rank() { return V::rank(); }

  V view;
  S scale;
  std::size_t group = 1;
  template <class T> void adapt(detail::Adaptor<T>& adaptor) const {
    adaptor.scaled = true, adaptor.scale = scale.data(), adaptor.scale_shape = detail::shape_of(scale);
    adaptor.scale_group = group;
  }
};

/// Divides each element by its own scale before it is encoded, and multiplies the result by it: with a bound E, element i of the result
/// is within scale_i E of the exact one, or within half the least subnormal number of it. The three roundings of each
/// element are a part of E. A relative bound is relative to the quotients.
///
/// `view`: a Kokkos::View of floating-point elements. `scale`: one of the same extents, in memory that the execution space can access, of
/// the type in which elements are computed with: float, for double elements double. Its values are equal on all ranks: they are
/// never sent, but a hash of them is compared in the agreement, and ranks with other scales all get a MismatchError. So must be what the
/// operation computes them from: Adam's second moments of *reduced* gradients are, those of a rank's own are not. Neither view nor
/// scale may change until the request has completed.
///
/// Scales that are negative, infinite or NaN are refused on all ranks (InvalidArgument), and so is a finite element whose quotient the
/// type cannot hold. A scale below 1e-35, zero included, counts as zero: nothing but infinities and NaN is sent of its
/// elements, which arrive as 0; no bound is kept there.
///
/// Input and output have the same scale. For allreduce and broadcast, by itself or in groups, and within `symmetric`.
/// Cost: one copy of the elements, one of scales that are not row-major; three passes over the scales.
template <class V, class S>
  requires(Kokkos::is_view_v<V> && Kokkos::is_view_v<S>)
Scaled<V, S> scaled(const V& view, const S& scale) {
  using T = std::remove_const_t<typename V::value_type>;
  static_assert(FloatElement<T>, "wring: scaled takes floating-point elements");
  static_assert(
      std::is_same_v<std::remove_const_t<typename S::value_type>, typename detail::ScaleOf<T>::type>,
      "wring: the scales of scaled are float, for double elements double");
  static_assert(V::rank() == S::rank(), "wring: view and scale of scaled have as many dimensions");
  return {view, scale};
}

/// The same with one scale for each `group` elements, counted row by row: those from group * k on have scale(k). `scale` has one dimension,
/// no gaps, and as many elements as there are groups, begun ones included.
template <class V, class S>
  requires(Kokkos::is_view_v<V> && Kokkos::is_view_v<S>)
Scaled<V, S> scaled(const V& view, const S& scale, std::size_t group) {
  using T = std::remove_const_t<typename V::value_type>;
  static_assert(FloatElement<T>, "wring: scaled takes floating-point elements");
  static_assert(
      std::is_same_v<std::remove_const_t<typename S::value_type>, typename detail::ScaleOf<T>::type>,
      "wring: the scales of scaled are float, for double elements double");
  static_assert(S::rank() == 1, "wring: the scales of groups have one dimension");
  return {view, scale, group};
}

/// The same as symmetric(scaled(view, scale)).
template <class V, class S> auto scaled(const Symmetric<V>& matrix, const S& scale) {
  return symmetric(scaled(matrix.view, scale));
}

namespace detail {

/// Scales below it count as zero: their reciprocals, and products with them, come near the ends of the range.
inline constexpr double least_scale = 1e-35;

template <class Wide> KOKKOS_INLINE_FUNCTION bool is_number(Wide x) { return x - x == 0; }

/// What is to be known of the scales of all elements: whether they are equal on all ranks, and whether they are scales.
struct ScaleSummary {
  std::uint64_t hash = 0, refused = 0;
};
template <class T> struct InspectScales {
  using value_type = ScaleSummary;
  using Wide = typename ScaleOf<T>::type;
  const Wide* scale;

  KOKKOS_FUNCTION void operator()(std::size_t i, ScaleSummary& summary) const {
    std::conditional_t<sizeof(Wide) == 8, std::uint64_t, std::uint32_t> bits;
    memcpy(&bits, scale + i, sizeof bits);
    summary.hash += mix(mix(i + 1) ^ bits);
    summary.refused += !(scale[i] >= 0) || !is_number(scale[i]);
  }
  KOKKOS_FUNCTION void init(ScaleSummary& summary) const { summary = ScaleSummary{}; }
  KOKKOS_FUNCTION void join(ScaleSummary& into, const ScaleSummary& from) const {
    into.hash += from.hash, into.refused += from.refused;
  }
};

/// The scales of elements, by their index.
template <class T> struct Scales {
  using Wide = typename ScaleOf<T>::type;
  const Wide* scale = nullptr;
  std::size_t group = 1;
  KOKKOS_FUNCTION Wide operator[](std::size_t i) const { return scale[group == 1 ? i : i / group]; }
};

/// quotients[i] = x[i] / scale[i]; counts finite elements whose quotient is not. `quotients` may be x.
template <class T> struct DivideByScale : SumOf<std::size_t> {
  using Wide = typename ScaleOf<T>::type;
  const T* x;
  Scales<T> scale;
  T* quotients;
  DivideByScale(const T* values, const Scales<T>& scales, T* to) : x(values), scale(scales), quotients(to) {}

  KOKKOS_FUNCTION void operator()(std::size_t i, std::size_t& overflows) const {
    const Wide wide = widen(x[i]);
    if (!is_number(wide)) {
      quotients[i] = x[i];
    } else if (static_cast<double>(scale[i]) < least_scale) {
      quotients[i] = T();
    } else {
      quotients[i] = T(wide / scale[i]);
      if (!is_number(widen(quotients[i]))) ++overflows;
    }
  }
};

/// y[i] = quotients[i] * scale[i]. Where that overflows though the exact result need not, by the error that is allowed, it saturates.
template <class T> struct MultiplyByScale {
  using Wide = typename ScaleOf<T>::type;
  T* values;
  Scales<T> scale;
  double error;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    const Wide wide = widen(values[i]);
    if (!is_number(wide)) return;
    if (static_cast<double>(scale[i]) < least_scale) {
      values[i] = T();
      return;
    }
    values[i] = T(wide * scale[i]);
    if (is_number(widen(values[i]))) return;
    const double smaller = static_cast<double>(scale[i]) * 0x1p-64,
                 product = static_cast<double>(wide) * smaller;
    const double greatest = FloatTraits<T>::greatest, most = greatest * 0x1p-64 + smaller * error;
    if (product <= most && product >= -most) values[i] = narrow<T>(product > 0 ? greatest : -greatest);
  }
};

/// Of the scales of elements of T.
template <class T, class Exec>
ScaleSummary inspect_scales(const Exec& exec, std::span<const typename ScaleOf<T>::type> scale) {
  return reduce("wring::scales", exec, scale.size(), InspectScales<T>{scale.data()});
}

/// Returns how many finite elements have no finite quotient.
template <class T, class Exec>
std::size_t divide_by_scale(const Exec& exec, const T* x, const Scales<T>& scale, std::span<T> quotients) {
  return reduce("wring::divide", exec, quotients.size(), DivideByScale<T>(x, scale, quotients.data()));
}

template <class T, class Exec>
void multiply_by_scale(const Exec& exec, std::span<T> values, const Scales<T>& scale, double error) {
  for_each_value("wring::multiply", exec, values.size(), MultiplyByScale<T>{values.data(), scale, error});
}

}  // namespace detail
}  // namespace wring::inline v0
