// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include <wring/compressor/concept.hpp>
#include <wring/detail/convert.hpp>
#include <wring/detail/random/philox.hpp>
#include <wring/detail/reduce.hpp>
#include <wring/detail/spaces.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/narrow.hpp>

/// The arithmetic of error feedback. One rounded operation at a time, or an explicit fma: the bits do not depend on the compiler's
/// flags.
namespace wring::inline v0::detail::feedback {

/// Either of two values, by masks: compilers neither branch on it nor move what it chooses from behind a branch.
template <class Wide> KOKKOS_FORCEINLINE_FUNCTION Wide either(bool first, Wide a, Wide b) {
  using Bits = std::conditional_t<sizeof(Wide) == 4, std::uint32_t, std::uint64_t>;
  const Bits mask = Bits(0) - static_cast<Bits>(first);
  return Kokkos::bit_cast<Wide>((Kokkos::bit_cast<Bits>(a) & mask) | (Kokkos::bit_cast<Bits>(b) & ~mask));
}

/// x between -most and most.
template <class Wide> KOKKOS_FORCEINLINE_FUNCTION Wide within(Wide x, Wide most) {
  return either(x < most, either(x > -most, x, -most), most);
}

/// out[i] = values[i] and what is owed to it, as far as `limit` allows: |out[i] - values[i]| <= limit, the rounding of the sum included.
/// What is not finite goes as it is, and what is finite stays so. Without branches: hosts run it in vectors.
template <class T, bool limited, bool whole> struct Compensate {
  using Wide = typename FloatTraits<T>::Wide;
  const T* values;
  const Wide* owed;
  T* out;
  Wide limit;
  Wide unit;  ///< what is owed is in units of this part of a value; 1 if `whole`

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::size_t i) const {
    constexpr Wide greatest = static_cast<Wide>(FloatTraits<T>::greatest);
    const Wide v = load_element(values[i]), e = owed[i], magnitude = Kokkos::abs(v);
    Wide pay = whole ? e : e / unit;
    if constexpr (limited) pay = within(pay, room(magnitude));
    const bool changes = (magnitude <= greatest) & (e != 0);
    store_element(out[i], either(changes, within(v + pay, greatest), v));
  }

 private:
  /// The limit without the rounding of the sum to T (the factor is a power of two, so that a contraction changes nothing).
  KOKKOS_FORCEINLINE_FUNCTION Wide room(Wide magnitude) const {
    constexpr Wide ulp = static_cast<Wide>(2 * FloatTraits<T>::unit_roundoff),
                   tiny = static_cast<Wide>(FloatTraits<T>::least_subnormal);
    const Wide left = limit - ulp * (magnitude + limit) - tiny;
    return either(left > 0, left, Wide(0));
  }
};

/// owed[i] += unit (meant[i] - arrived[i]). Nothing is owed for what is not finite: what was owed before stays so. What arrives as an
/// infinity, though a finite value was meant, clears the debt.
template <class T, bool whole> struct Remember {
  using Wide = typename FloatTraits<T>::Wide;
  const T *meant, *arrived;
  Wide* owed;
  Wide unit;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::size_t i) const {
    constexpr Wide most = std::numeric_limits<Wide>::max();
    const Wide v = load_element(meant[i]), before = owed[i];
    const Wide e = sum(before, v - load_element(arrived[i]));
    const Wide finite = either(Kokkos::abs(e) <= most, e, Wide(0));
    owed[i] = either(Kokkos::abs(v) <= most, finite, before);
  }

 private:
  /// The product is exact in double, or part of an fma, so that a contraction changes nothing.
  KOKKOS_FORCEINLINE_FUNCTION Wide sum(Wide before, Wide lost) const {
    if constexpr (whole)
      return before + lost;
    else if constexpr (std::is_same_v<Wide, float>)
      return static_cast<float>(static_cast<double>(before) +
                                static_cast<double>(unit) * static_cast<double>(lost));
    else
      return Kokkos::fma(unit, lost, before);
  }
};

/// out[i]: what is owed, within the limit.
template <class T> struct PayBack {
  using Wide = typename FloatTraits<T>::Wide;
  const Wide* owed;
  T* out;
  Wide limit;  ///< no more than the greatest value

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::size_t i) const {
    store_element(out[i], within(owed[i], limit));
  }
};

/// Residuals in 8 bits: groups of 128 with a scale, the greatest magnitude by 127. Rounded at random, so that what is lost is zero on
/// average: upwards with the probability of the remainder. Draws are those of the encoding: the same on all ranks that encode the same
/// sum, for own values other ones on each. Groups with a scale below 2^-116 are zeros.
inline constexpr std::size_t residual_group = 128;

/// The draws of an encoding in the operation `step` of its tensor.
inline RandomStream residual_draws(Context context, std::uint64_t step) {
  context.step = step;
  return RandomStream::of_encoding(0, Purpose::residuals, context);
}

template <class T> struct ExpandResiduals {
  using Wide = typename FloatTraits<T>::Wide;
  const std::int8_t* codes;
  const Wide* scales;
  Wide* out;
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::size_t i) const {
    out[i] = static_cast<Wide>(codes[i]) * scales[i / residual_group];
  }
};

template <class T> struct PackResiduals {
  using Wide = typename FloatTraits<T>::Wide;
  const Wide* owed;
  std::int8_t* codes;
  Wide* scales;
  std::size_t count, first;  ///< of the values; where they begin in the tensor
  RandomStream draws;
  std::uint32_t encoding;

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
      if (i == begin || at % 4 == 0) words = draws.words(at / 4, encoding);
      codes[i] = scale < least ? std::int8_t(0) : rounded(owed[i] / scale, words.word[at % 4]);
    }
  }

 private:
  /// |x| is below 127 by 2^-22 of it, so that nothing rounds up to 128.
  KOKKOS_FUNCTION static std::int8_t rounded(Wide x, std::uint32_t bits) {
    const Wide unit = static_cast<Wide>(bits >> 8) * Wide(0x1p-24), shifted = x + Wide(128);
    return static_cast<std::int8_t>(static_cast<std::int32_t>(shifted + unit) - 128);
  }
};

template <class T> struct GreatestMagnitude : GreatestOf<typename FloatTraits<T>::Wide> {
  using Wide = typename FloatTraits<T>::Wide;
  const Wide* owed;
  explicit GreatestMagnitude(const Wide* values) : owed(values) {}
  KOKKOS_FUNCTION void operator()(std::size_t i, Wide& greatest) const {
    const Wide magnitude = Kokkos::abs(owed[i]);
    if (magnitude > greatest) greatest = magnitude;
  }
};

/// Runs of values on a host: a loop of constant length, which compilers vectorise.
template <class Kernel> struct HostRuns {
  static constexpr std::size_t run = 512;
  Kernel kernel;
  std::size_t count;

  void operator()(std::size_t task) const {
    const std::size_t first = task * values_per_task,
                      last = first + values_per_task < count ? first + values_per_task : count;
    const auto run_from = best_compiled<HostRuns::run_kernel>();
    std::size_t i = first;
    for (; i + run <= last; i += run) run_from(kernel, i);
    for (; i < last; ++i) kernel(i);
  }

 private:
  WRING_ALWAYS_INLINE static void run_kernel(const Kernel& given, std::size_t first) {
    const Kernel kernel = given;  // a copy, which no store can change
    WRING_INDEPENDENT for (std::size_t i = 0; i < run; ++i) kernel(first + i);
  }
};

template <class Exec, class Kernel> void for_each(const Exec& exec, std::size_t count, const Kernel& kernel) {
  if constexpr (RunsOnHost<Exec>)
    for_each_task("wring::feedback", exec, count, HostRuns<Kernel>{kernel, count});
  else
    for_each_value("wring::feedback", exec, count, kernel);
}

template <class T, class Exec>
void compensate(const Exec& exec, std::span<const T> values, const typename FloatTraits<T>::Wide* owed,
                std::span<T> out, typename FloatTraits<T>::Wide limit, typename FloatTraits<T>::Wide unit) {
  using Wide = typename FloatTraits<T>::Wide;
  const auto with = [&]<bool limited, bool whole>() {
    for_each(exec, values.size(),
             Compensate<T, limited, whole>{values.data(), owed, out.data(), limit, unit});
  };
  const bool limited = limit < std::numeric_limits<Wide>::infinity();
  if (unit == 1)
    return limited ? with.template operator()<true, true>() : with.template operator()<false, true>();
  return limited ? with.template operator()<true, false>() : with.template operator()<false, false>();
}

template <class T, class Exec>
void remember(const Exec& exec, std::span<const T> meant, std::span<const T> arrived,
              typename FloatTraits<T>::Wide* owed, typename FloatTraits<T>::Wide unit) {
  if (unit == 1)
    for_each(exec, meant.size(), Remember<T, true>{meant.data(), arrived.data(), owed, unit});
  else
    for_each(exec, meant.size(), Remember<T, false>{meant.data(), arrived.data(), owed, unit});
}

template <class T, class Exec>
void pay_back(const Exec& exec, const typename FloatTraits<T>::Wide* owed, std::span<T> out,
              typename FloatTraits<T>::Wide limit) {
  using Wide = typename FloatTraits<T>::Wide;
  const Wide most = std::min(limit, static_cast<Wide>(FloatTraits<T>::greatest));
  for_each(exec, out.size(), PayBack<T>{owed, out.data(), most});
}

template <class T, class Exec>
void expand(const Exec& exec, const std::int8_t* codes, const typename FloatTraits<T>::Wide* scales,
            std::span<typename FloatTraits<T>::Wide> out) {
  for_each(exec, out.size(), ExpandResiduals<T>{codes, scales, out.data()});
}

template <class T, class Exec> void pack(const Exec& exec, const PackResiduals<T>& kernel) {
  for_each_value("wring::feedback", exec, (kernel.count + residual_group - 1) / residual_group, kernel);
}

template <class T, class Exec>
double greatest_magnitude(const Exec& exec, std::span<const typename FloatTraits<T>::Wide> owed) {
  return static_cast<double>(reduce("wring::feedback", exec, owed.size(), GreatestMagnitude<T>(owed.data())));
}

}  // namespace wring::inline v0::detail::feedback
