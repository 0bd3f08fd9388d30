// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <type_traits>

#include <wring/bound.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>
#include <wring/view/scaled.hpp>

/// Block scaling whose codes add without being decoded: scales that all ranks have in common, found by one MAX beforehand, so that what
/// travels are whole numbers of them.
///
///     Kokkos::View<float*> scales("scales", wring::common_scales(gradient.extent(0)));
///     wring::measure_scales<4>(exec, gradient, scales);                      // of this rank's values
///     wring::Allreduce greatest(wring::None<float>{}, link, wring::Ring{}, {.operation = wring::max});
///     greatest(exec, scales);                                               // of all ranks'
///     wring::Allreduce sum(wring::PackedWords<float>{}, link, wring::Native{});
///     sum(exec, wring::scaled(gradient, scales, wring::common_scale_group), wring::common_scale_bound(ranks));
///
/// With b bits each rank's values are whole numbers from -L to L, L = 2^(b-1) - 1, of their group's scale s. The result is within
/// p s / 2 of the exact sum on up to 4 ranks; beyond, where Grid and PackedWords round the sum of an allreduce as well, within p s; the
/// roundings of the scaling are 6 % at most on top. All else is as `scaled` and the compressor have it: one answer, NaN and infinities as IEEE
/// has them, groups of zeros exact; a group with a scale below 1e-35 arrives as zeros.
///
/// Whole numbers of scales can be drawn, too: by `Gradient` with StochasticRounding under twice that bound. Sums are then right on
/// average, and within p s on up to 4 ranks.
namespace wring::inline v0 {

/// Values that have a scale in common, as in BlockScaled.
inline constexpr std::size_t common_scale_group = 128;

/// How many scales n values have.
constexpr std::size_t common_scales(std::size_t n) {
  return n / common_scale_group + (n % common_scale_group != 0 ? 1 : 0);
}

/// The bound in scales with which a compressor on the integer grid sends whole numbers of scales, for a SUM or MEAN over so many ranks of floats
/// or doubles; with half types and many bits their own roundings leave less for the grid, whose step is then smaller.
inline Bound common_scale_bound(int ranks, Operation operation = sum) {
  int rounding = 0;  // of the sum: Grid's shift
  if (ranks > 4)
    for (rounding = 1; 2 * rounding <= ranks;) rounding *= 2;
  return absolute(0.53 * (ranks + rounding) / (operation == Operation::mean ? ranks : 1));
}

namespace detail {

template <class T> struct MeasureScales {
  using Wide = typename ScaleOf<T>::type;
  const T* x;
  Wide* scales;
  std::size_t n;
  Wide levels;

  KOKKOS_FUNCTION void operator()(std::size_t group) const {
    const std::size_t first = group * common_scale_group;
    const std::size_t last = first + common_scale_group < n ? first + common_scale_group : n;
    Wide most = 0;
    for (std::size_t i = first; i < last; ++i) {
      const Wide magnitude = Kokkos::fabs(widen(x[i]));
      if (is_number(magnitude) && magnitude > most) most = magnitude;
    }
    scales[group] = most / levels;
  }
};

}  // namespace detail

/// The scale of each group: the greatest finite |x| / L. `view`: contiguous, of
/// one dimension. `scales`: common_scales(n) elements, float, for double elements double. Asynchronous; reads the view once.
template <int Bits, class Exec, class V, class S> void measure_scales(const Exec& exec, const V& view,
                                                                      const S& scales) {
  using T = std::remove_const_t<typename V::value_type>;
  static_assert(Bits >= 2 && Bits <= 16, "wring: measure_scales takes 2 to 16 bits");
  static_assert(V::rank() == 1 && S::rank() == 1, "wring: measure_scales takes views of one dimension");
  static_assert(std::is_same_v<typename S::value_type, typename detail::ScaleOf<T>::type>,
                "wring: scales are float, for double elements double");
  const std::size_t n = view.extent(0);
  if (scales.extent(0) != common_scales(n))
    throw InvalidArgument("measure_scales: there must be one scale for each 128 values");
  if (!view.span_is_contiguous() || !scales.span_is_contiguous())
    throw InvalidArgument("measure_scales: the views must be contiguous");
  constexpr auto levels = static_cast<typename S::value_type>((1 << (Bits - 1)) - 1);
  const Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>> policy(exec, 0, scales.extent(0));
  Kokkos::parallel_for("wring::scales", policy,
                       detail::MeasureScales<T>{view.data(), scales.data(), n, levels});
}

}  // namespace wring::inline v0
