// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The 16-bit formats against their definition.
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>

#include <catch2/catch_test_macros.hpp>

#include <wring/narrow.hpp>

using namespace wring;

namespace {

/// A 16-bit format as its standard defines it: sign, exponent, mantissa.
struct Definition {
  int mantissa_bits, bias;

  int exponent_limit() const { return (1 << (15 - mantissa_bits)) - 1; }

  double value(std::uint16_t bits) const {
    const int exponent = (bits & 0x7fff) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == exponent_limit())
      return mantissa ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }

  /// The nearest value, ties to even, an infinity from half a step beyond the greatest on.
  double nearest(float x) const {
    if (!std::isfinite(x) || x == 0) return x;
    const int exponent = std::max(std::ilogb(x), 1 - bias);
    const double step = std::ldexp(1, exponent - mantissa_bits);
    const double y = std::nearbyint(x / step) * step;
    const double limit = std::ldexp(1, exponent_limit() - bias);
    return std::fabs(y) >= limit ? std::copysign(std::numeric_limits<double>::infinity(), y)
                                 : std::copysign(y, x);
  }
};
constexpr Definition binary16{10, 15}, bfloat16{7, 127};

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class T> long wrong_patterns(const Definition& format) {
  long wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    T x;
    x.bits = static_cast<std::uint16_t>(bits);
    const float value = static_cast<float>(x);
    const bool is_nan = std::isnan(format.value(x.bits));
    wrong += !same(value, format.value(x.bits));
    wrong += is_nan ? !std::isnan(static_cast<float>(T(value))) : T(value).bits != x.bits;
    wrong += is_nan && !(std::bit_cast<std::uint32_t>(static_cast<float>(T(value))) & 0x400000u);  // quiet
  }
  return wrong;
}

/// Around every boundary between two neighbouring values: the midpoint itself, and the floats next to it.
template <class T> long wrong_boundaries(const Definition& format, std::uint16_t infinity) {
  long wrong = 0;
  for (std::uint16_t bits = 0; bits < infinity; ++bits) {
    const double above = bits + 1 == infinity ? std::ldexp(1, format.exponent_limit() - format.bias)
                                              : format.value(static_cast<std::uint16_t>(bits + 1));
    const auto middle = static_cast<float>((format.value(bits) + above) / 2);
    for (const float x :
         {std::nextafter(middle, 0.0f), middle, std::nextafter(middle, std::numeric_limits<float>::max())})
      for (const float signed_x : {x, -x})
        wrong += !same(static_cast<float>(T(signed_x)), format.nearest(signed_x));
  }
  return wrong;
}

template <class T> long wrong_floats(const Definition& format, std::uint64_t step) {
  long wrong = 0;
  for (std::uint64_t u = 0; u <= 0xffffffffu; u += step) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(u));
    wrong += !same(static_cast<float>(T(x)), format.nearest(x));
  }
  return wrong;
}

}  // namespace

TEST_CASE("every 16-bit pattern has the value of its definition and comes back", "[narrow]") {
  CHECK(wrong_patterns<half_t>(binary16) == 0);
  CHECK(wrong_patterns<bhalf_t>(bfloat16) == 0);
}

TEST_CASE("floats become the nearest 16-bit value, ties to even", "[narrow]") {
  CHECK(wrong_boundaries<half_t>(binary16, 0x7c00) == 0);
  CHECK(wrong_boundaries<bhalf_t>(bfloat16, 0x7f80) == 0);
  CHECK(wrong_floats<half_t>(binary16, 9973) == 0);
  CHECK(wrong_floats<bhalf_t>(bfloat16, 9973) == 0);
}

TEST_CASE("all floats become the nearest 16-bit value", "[narrow][nightly]") {
  CHECK(wrong_floats<half_t>(binary16, 1) == 0);
  CHECK(wrong_floats<bhalf_t>(bfloat16, 1) == 0);
}

TEST_CASE("special values keep their meaning in 16 bits", "[narrow]") {
  constexpr float infinity = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  STATIC_REQUIRE(half_t(infinity).bits == 0x7c00);
  STATIC_REQUIRE(half_t(-infinity).bits == 0xfc00);
  STATIC_REQUIRE(half_t(nan).bits == 0x7e00);
  STATIC_REQUIRE(half_t(-0.0f).bits == 0x8000);
  STATIC_REQUIRE(half_t(65504.0f).bits == 0x7bff);
  STATIC_REQUIRE(half_t(65519.996f).bits == 0x7bff);
  STATIC_REQUIRE(half_t(65520.0f).bits == 0x7c00);
  STATIC_REQUIRE(half_t(0x1p-24f).bits == 1);
  STATIC_REQUIRE(half_t(0x1p-25f).bits == 0);  // a tie, to even
  STATIC_REQUIRE(half_t(0x1.000002p-25f).bits == 1);
  STATIC_REQUIRE(half_t(0x1p-149f).bits == 0);
  STATIC_REQUIRE(half_t(0x1.ffcp-15f).bits ==
                 0x400);  // the greatest subnormal and a half step: the least normal
  STATIC_REQUIRE(bhalf_t(infinity).bits == 0x7f80);
  STATIC_REQUIRE(bhalf_t(nan).bits == 0x7fc0);
  STATIC_REQUIRE(bhalf_t(std::numeric_limits<float>::max()).bits == 0x7f80);
  STATIC_REQUIRE(bhalf_t(0x1.fep127f).bits == 0x7f7f);
  STATIC_REQUIRE(bhalf_t(1.00390625f).bits == 0x3f80);  // 1 + 2^-8: a tie, to even
  STATIC_REQUIRE(static_cast<float>(half_t(infinity)) == infinity);
  const auto signalling =
      std::bit_cast<float>(0x7f800001u);  // no pattern of its own in 16 bits: must not become an infinity
  CHECK(half_t(signalling).bits == 0x7e00);
  CHECK((bhalf_t(signalling).bits & 0x7fff) == 0x7fc0);
}

TEST_CASE("what is known of each element type is true", "[narrow]") {
  CHECK(FloatTraits<float>::greatest == std::numeric_limits<float>::max());
  CHECK(FloatTraits<float>::least_subnormal == std::numeric_limits<float>::denorm_min());
  CHECK(FloatTraits<float>::unit_roundoff == std::numeric_limits<float>::epsilon() / 2);
  CHECK(FloatTraits<double>::greatest == std::numeric_limits<double>::max());
  CHECK(FloatTraits<double>::least_subnormal == std::numeric_limits<double>::denorm_min());
  CHECK(FloatTraits<double>::unit_roundoff == std::numeric_limits<double>::epsilon() / 2);
  CHECK(FloatTraits<half_t>::greatest == binary16.value(0x7bff));
  CHECK(FloatTraits<half_t>::least_subnormal == binary16.value(1));
  CHECK(FloatTraits<half_t>::unit_roundoff == (binary16.value(0x3c01) - 1) / 2);
  CHECK(FloatTraits<bhalf_t>::greatest == bfloat16.value(0x7f7f));
  CHECK(FloatTraits<bhalf_t>::least_subnormal == bfloat16.value(1));
  CHECK(FloatTraits<bhalf_t>::unit_roundoff == (bfloat16.value(0x3f81) - 1) / 2);
}

TEST_CASE("element types are told apart", "[narrow]") {
  STATIC_REQUIRE(sizeof(half_t) == 2);
  STATIC_REQUIRE(sizeof(bhalf_t) == 2);
  STATIC_REQUIRE(std::is_trivially_copyable_v<half_t>);
  STATIC_REQUIRE(
      (FloatElement<float> && FloatElement<double> && FloatElement<half_t> && FloatElement<bhalf_t>));
  STATIC_REQUIRE((!FloatElement<int> && !FloatElement<std::complex<float>> && !FloatElement<long double>));
  STATIC_REQUIRE((ElementType<float> && ElementType<std::int8_t> && ElementType<std::uint64_t>));
  STATIC_REQUIRE((ElementType<std::complex<double>> && ElementType<Kokkos::complex<float>>));
  STATIC_REQUIRE(
      (!ElementType<bool> && !ElementType<void*> && !ElementType<long double> && !ElementType<const char*>));
  STATIC_REQUIRE(FloatElement<Kokkos::Experimental::half_t>);  // a float on CPU backends, 16 bits on devices
  STATIC_REQUIRE(FloatElement<Kokkos::Experimental::bhalf_t>);
}

TEST_CASE("a double becomes a 16-bit value through float, within the bound stated", "[narrow]") {
  const double x = 1 + 0x1p-11 + 0x1p-40;  // just above a tie; as a float it is the tie, which goes to even
  CHECK(static_cast<float>(detail::narrow<half_t>(x)) == 1.0f);
  CHECK(std::fabs(1.0 - x) <= 0x1p-11 * (1 + 0x1p-12) * x);
  CHECK(detail::narrow<float>(1 + 0x1p-25) == 1.0f);
  CHECK(detail::narrow<double>(0.1) == 0.1);
}
