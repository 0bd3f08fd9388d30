// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/processor.hpp>
#include <wring/narrow.hpp>

/// Conversions of many elements at once.
namespace wring::inline v0::detail {

/// The two 16-bit formats.
template <class To> struct Format16;

template <> struct Format16<half_t> {
  static constexpr const char* name = "fp16";
  static constexpr std::uint32_t greatest = 0x7bff, infinity = 0x7c00, nan = 0x7e00;
  KOKKOS_INLINE_FUNCTION static std::uint32_t from_float(float x) { return binary16_from_float(x); }
  KOKKOS_INLINE_FUNCTION static float to_float(std::uint32_t bits) {
    return float_from_binary16(static_cast<std::uint16_t>(bits));
  }
};

template <> struct Format16<bhalf_t> {
  static constexpr const char* name = "bf16";
  static constexpr std::uint32_t greatest = 0x7f7f, infinity = 0x7f80, nan = 0x7fc0;
  KOKKOS_INLINE_FUNCTION static std::uint32_t from_float(float x) { return bfloat16_from_float(x); }
  KOKKOS_INLINE_FUNCTION static float to_float(std::uint32_t bits) {
    return float_from_bfloat16(static_cast<std::uint16_t>(bits));
  }
};

/// Which of the two a 16-bit element type is: Kokkos' own types have the same bits as ours.
template <class T> using Element16 = std::conditional_t<(FloatTraits<T>::greatest < 1e5), half_t, bhalf_t>;

/// An element in its computation type, and back, through plain integers: compilers vectorise those, but not structs.
template <class T> KOKKOS_INLINE_FUNCTION typename FloatTraits<T>::Wide load_element(const T& from) {
  if constexpr (sizeof(T) == 2) {
    std::uint16_t bits;
    std::memcpy(&bits, &from, 2);
    return Format16<Element16<T>>::to_float(bits);
  } else {
    return from;
  }
}
template <class T> KOKKOS_INLINE_FUNCTION void store_element(T& to, typename FloatTraits<T>::Wide x) {
  if constexpr (sizeof(T) == 2) {
    const auto bits = static_cast<std::uint16_t>(Format16<Element16<T>>::from_float(x));
    std::memcpy(static_cast<void*>(&to), &bits, 2);
  } else {
    to = x;
  }
}

/// Calls `element(from[i], to[i])` for a run of values: a loop of constant length, which CPU compilers vectorise. The runs do not overlap.
template <class Element, class In, class Out, int run> struct ConvertRun {
  KOKKOS_INLINE_FUNCTION static void convert(const Element element, const In* from, Out* to) {
#if WRING_X86_64
    best_compiled<each>()(element, from, to);
#else
    each(element, from, to);
#endif
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static void each(const Element element, const In* KOKKOS_RESTRICT from,
                                               Out* KOKKOS_RESTRICT to) {
    for (int i = 0; i < run; ++i) element(from[i], to[i]);
  }
};

/// Sets and returns `wide`: an element in its computation type.
template <class T> struct Widen {
  using Wide = typename FloatTraits<T>::Wide;
  KOKKOS_INLINE_FUNCTION Wide& operator()(const T& value, Wide& wide) const {
    return wide = load_element(value);
  }
};

/// Sets and returns `value`: the element nearest to a value in its computation type.
template <class T> struct Narrow {
  KOKKOS_INLINE_FUNCTION T& operator()(const typename FloatTraits<T>::Wide& wide, T& value) const {
    store_element(value, wide);
    return value;
  }
};

}  // namespace wring::inline v0::detail
