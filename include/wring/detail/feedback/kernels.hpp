// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include <wring/detail/convert.hpp>
#include <wring/detail/random/philox.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/narrow.hpp>

/// The arithmetic of error feedback. One rounded operation at a time, or an explicit fma: the bits do not depend on the compiler's
/// flags.
namespace wring::inline v0::detail::feedback {

/// out[i] = values[i] and what is owed to it, as far as `limit` allows: |out[i] - values[i]| <= limit, the rounding of the sum included.
/// What is not finite goes as it is, and what is finite stays so.
template <class T> struct Compensate {
  using Wide = typename FloatTraits<T>::Wide;
  const T* values;
  const Wide* owed;
  T* out;
  Wide limit;  ///< infinite: none
  Wide unit;   ///< what is owed is in units of this part of a value

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    const Wide v = load_element(values[i]), e = owed[i];
    if (!(Kokkos::abs(v) <= static_cast<Wide>(FloatTraits<T>::greatest)) || e == 0) {
      store_element(out[i], v);
      return;
    }
    constexpr Wide greatest = static_cast<Wide>(FloatTraits<T>::greatest);
    const Wide most = room(Kokkos::abs(v));
    const Wide pay = Kokkos::max(-most, Kokkos::min(most, e / unit));
    store_element(out[i], Kokkos::max(-greatest, Kokkos::min(greatest, v + pay)));
  }

 private:
  /// The limit without the rounding of the sum to T (the factor is a power of two).
  KOKKOS_FUNCTION Wide room(Wide magnitude) const {
    if (!(limit < Kokkos::Experimental::infinity_v<Wide>)) return limit;
    constexpr Wide ulp = static_cast<Wide>(2 * FloatTraits<T>::unit_roundoff),
                   tiny = static_cast<Wide>(FloatTraits<T>::least_subnormal);
    const Wide left = limit - ulp * (magnitude + limit) - tiny;
    return left > 0 ? left : Wide(0);
  }
};

/// owed[i] += unit (meant[i] - arrived[i]). Nothing is owed for what is not finite: what was owed before stays so. What arrives as an
/// infinity, though a finite value was meant, clears the debt.
template <class T> struct Remember {
  using Wide = typename FloatTraits<T>::Wide;
  const T *meant, *arrived;
  Wide* owed;
  Wide unit;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    constexpr Wide most = std::numeric_limits<Wide>::max();
    const Wide v = load_element(meant[i]);
    if (!(Kokkos::abs(v) <= most)) return;
    const Wide e = Kokkos::fma(unit, v - load_element(arrived[i]), owed[i]);
    owed[i] = Kokkos::abs(e) <= most ? e : Wide(0);
  }
};

/// out[i]: what is owed, within the limit.
template <class T> struct PayBack {
  using Wide = typename FloatTraits<T>::Wide;
  const Wide* owed;
  T* out;
  Wide limit;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    constexpr Wide greatest = static_cast<Wide>(FloatTraits<T>::greatest);
    const Wide most = Kokkos::min(limit, greatest);
    store_element(out[i], Kokkos::max(-most, Kokkos::min(most, owed[i])));
  }
};

/// Residuals in 8 bits: groups of 128 with a scale, the greatest magnitude by 127. Rounded at random, so that what is lost is zero on
/// average: upwards with the probability of the remainder. The random numbers depend on step, tensor, encoding and index alone: the
/// same on all ranks that encode the same sum. Groups with a scale below 2^-116 are zeros.
inline constexpr std::size_t residual_group = 128;

template <class T> struct ExpandResiduals {
  using Wide = typename FloatTraits<T>::Wide;
  const std::int8_t* codes;
  const Wide* scales;
  Wide* out;
  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    out[i] = static_cast<Wide>(codes[i]) * scales[i / residual_group];
  }
};

template <class T> struct PackResiduals {
  using Wide = typename FloatTraits<T>::Wide;
  const Wide* owed;
  std::int8_t* codes;
  Wide* scales;
  std::size_t count, first;  ///< of the values; where they begin in the tensor
  RandomKey key;
  std::uint32_t item, encoding;

  KOKKOS_FUNCTION void operator()(std::size_t group) const {
    const std::size_t begin = group * residual_group,
                      end = begin + residual_group < count ? begin + residual_group : count;
    Wide most = 0;
    for (std::size_t i = begin; i < end; ++i) most = Kokkos::max(most, Kokkos::abs(owed[i]));
    const Wide scale = most / Wide(127) * (1 + Wide(0x1p-22)), least = static_cast<Wide>(0x1p-116);
    scales[group] = scale < least ? Wide(0) : scale;
    Words4 words{};
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t at = first + i;
      if (i == begin || at % 4 == 0)
        words = philox({{low_word(at / 4), high_word(at / 4), encoding, item}}, key);
      codes[i] = scale < least ? std::int8_t(0) : rounded(owed[i] / scale, words.word[at % 4]);
    }
  }

 private:
  KOKKOS_FUNCTION static std::int8_t rounded(Wide x, std::uint32_t bits) {
    const Wide low = Kokkos::floor(x), unit = static_cast<Wide>(bits >> 8) * Wide(0x1p-24);
    return static_cast<std::int8_t>(low + (unit < x - low ? Wide(1) : Wide(0)));
  }
};

template <class T> struct GreatestMagnitude {
  using Wide = typename FloatTraits<T>::Wide;
  const Wide* owed;
  KOKKOS_FUNCTION void operator()(std::size_t i, Wide& greatest) const {
    const Wide magnitude = Kokkos::abs(owed[i]);
    if (magnitude > greatest) greatest = magnitude;
  }
};

template <class T, class Exec>
void compensate(const Exec& exec, std::span<const T> values, const typename FloatTraits<T>::Wide* owed,
                std::span<T> out, typename FloatTraits<T>::Wide limit, typename FloatTraits<T>::Wide unit) {
  for_each_value("wring::feedback", exec, values.size(),
                 Compensate<T>{values.data(), owed, out.data(), limit, unit});
}

template <class T, class Exec>
void remember(const Exec& exec, std::span<const T> meant, std::span<const T> arrived,
              typename FloatTraits<T>::Wide* owed, typename FloatTraits<T>::Wide unit) {
  for_each_value("wring::feedback", exec, meant.size(),
                 Remember<T>{meant.data(), arrived.data(), owed, unit});
}

template <class T, class Exec>
void pay_back(const Exec& exec, const typename FloatTraits<T>::Wide* owed, std::span<T> out,
              typename FloatTraits<T>::Wide limit) {
  for_each_value("wring::feedback", exec, out.size(), PayBack<T>{owed, out.data(), limit});
}

/// Synchronises.
template <class T, class Exec>
void expand(const Exec& exec, const std::int8_t* codes, const typename FloatTraits<T>::Wide* scales,
            std::span<typename FloatTraits<T>::Wide> out) {
  for_each_value("wring::feedback", exec, out.size(), ExpandResiduals<T>{codes, scales, out.data()});
}

template <class T, class Exec> void pack(const Exec& exec, const PackResiduals<T>& kernel) {
  for_each_value("wring::feedback", exec, (kernel.count + residual_group - 1) / residual_group, kernel);
}

template <class T, class Exec>
double greatest_magnitude(const Exec& exec, std::span<const typename FloatTraits<T>::Wide> owed) {
  using Wide = typename FloatTraits<T>::Wide;
  if (owed.empty()) return 0;
  Wide greatest = 0;
  Kokkos::parallel_reduce("wring::feedback",
                          Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, owed.size()),
                          GreatestMagnitude<T>{owed.data()}, Kokkos::Max<Wide>(greatest));
  exec.fence("wring::feedback");
  return static_cast<double>(greatest);
}

}  // namespace wring::inline v0::detail::feedback
