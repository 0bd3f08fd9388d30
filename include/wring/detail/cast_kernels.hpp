// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/convert.hpp>
#include <wring/narrow.hpp>

namespace wring::inline v0::detail {

/// Two bytes at any address, as they lie in an encoded piece: little endian on every machine that this library runs on.
struct Packed16 {
  std::byte bytes[2];
  KOKKOS_INLINE_FUNCTION static std::uint16_t load(const Packed16* from) {
    std::uint16_t value;
    std::memcpy(&value, from, 2);
    return value;
  }
  KOKKOS_INLINE_FUNCTION static void store(Packed16* to, std::uint16_t value) { std::memcpy(to, &value, 2); }
};
static_assert(sizeof(Packed16) == 2 && alignof(Packed16) == 1);

/// Whether a float or double is finite, by its bits.
template <class Wide> KOKKOS_INLINE_FUNCTION bool is_finite(Wide x) {
  if constexpr (std::is_same_v<Wide, double>) {
    const auto upper = static_cast<std::uint32_t>(Kokkos::bit_cast<std::uint64_t>(x) >> 32);
    return (upper & 0x7fffffffu) < 0x7ff00000u;
  } else {
    return (float_bits(x) & 0x7fffffffu) < 0x7f800000u;
  }
}

/// The 16-bit pattern of x. A finite value beyond the format's greatest gets `beyond`, an infinity stays one, every NaN becomes
/// the canonical one, so that its bits do not depend on the backend. Without branches: the loops over it vectorise.
template <class To, class Wide> KOKKOS_INLINE_FUNCTION std::uint32_t encode16(Wide x, std::uint32_t beyond) {
  using F = Format16<To>;
  const std::uint32_t code = F::from_float(static_cast<float>(x)), magnitude = code & 0x7fffu;
  const std::uint32_t kept = choose((magnitude == F::infinity) & is_finite(x), beyond, magnitude);
  return choose(magnitude > F::infinity, F::nan, (code & 0x8000u) | kept);
}

/// The value that a pattern stands for, in the computation type of T. Where T is the other 16-bit type it is rounded to what T
/// can hold, and may overflow there: the same choice holds.
template <class To, class T> KOKKOS_INLINE_FUNCTION typename FloatTraits<T>::Wide decode16(std::uint32_t bits,
                                                                                           bool saturate) {
  const bool is_nan = (bits & 0x7fffu) > Format16<To>::infinity;
  const float x = Format16<To>::to_float(choose(is_nan, Format16<To>::nan, bits));
  if constexpr (sizeof(T) == 2) {
    using Own = Element16<T>;
    using Format = Format16<Own>;
    return Format::to_float(encode16<Own>(x, choose(saturate, Format::greatest, Format::infinity)));
  } else {
    return x;
  }
}

template <class To, class T> struct CastEncode {
  std::uint32_t beyond;
  KOKKOS_INLINE_FUNCTION void operator()(const T& value, Packed16& code) const {
    Packed16::store(&code, static_cast<std::uint16_t>(encode16<To>(load_element(value), beyond)));
  }
};

template <class To, class T> struct CastDecode {
  bool saturate;
  KOKKOS_INLINE_FUNCTION void operator()(const Packed16& code, T& value) const {
    store_element(value, decode16<To, T>(Packed16::load(&code), saturate));
  }
};

template <class To, class T> struct CastDecodeAdd {
  bool saturate;
  KOKKOS_INLINE_FUNCTION void operator()(const Packed16& code, T& value) const {
    store_element(value, load_element(value) + decode16<To, T>(Packed16::load(&code), saturate));
  }
};

/// Applies `element(in[i], out[i])` to a run of values for each index. On a GPU a run is one value, so that neighbouring threads touch
/// neighbouring addresses.
template <class Element, class In, class Out, int run> struct ConvertRuns {
  const In* in;
  Out* out;
  std::size_t count;
  Element element;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::size_t first = static_cast<std::size_t>(index) * run;
    if (count - first >= run)
      ConvertRun<Element, In, Out, run>::convert(element, in + first, out + first);
    else
      for (std::size_t i = first; i < count; ++i) element(in[i], out[i]);
  }
};

template <class Element, class In, class Out, class Exec>
void convert(const char* label, const Exec& exec, const Element& element, const In* in, Out* out,
             std::size_t count) {
  if (count == 0) return;
  constexpr int run = std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace> ? 512 : 1;
  const auto runs = static_cast<std::int64_t>(count / run + (count % run != 0));
  using Policy = Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, Policy(exec, 0, runs),
                       ConvertRuns<Element, In, Out, run>{in, out, count, element});
}

}  // namespace wring::inline v0::detail
