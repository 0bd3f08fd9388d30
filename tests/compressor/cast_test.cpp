// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/cast.hpp>
#include <wring/testing/compressor_laws.hpp>

using namespace wring;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity(),
                not_a_number = std::numeric_limits<float>::quiet_NaN();
Kokkos::DefaultHostExecutionSpace exec() { return {}; }

template <class Codec> using Values = std::vector<typename Codec::value_type>;

/// The 16-bit patterns that values are encoded as.
template <class Codec> std::vector<std::uint16_t> patterns(const Codec& codec, const Values<Codec>& values) {
  std::vector<std::uint16_t> result(values.size());
  CHECK(codec.compress(exec(), std::span(values), std::as_writable_bytes(std::span(result)), Context{}) ==
        2 * values.size());
  exec().fence();
  return result;
}

template <class Codec> Values<Codec> decoded(const Codec& codec, const std::vector<std::uint16_t>& from) {
  Values<Codec> result(from.size());
  codec.decompress(exec(), std::as_bytes(std::span(from)), std::span(result), Context{});
  exec().fence();
  return result;
}

template <class T> std::vector<T> elements(const std::vector<float>& from) {
  std::vector<T> result;
  for (const float x : from) result.push_back(static_cast<T>(x));
  return result;
}

using Patterns = std::vector<std::uint16_t>;

}  // namespace

TEMPLATE_TEST_CASE("Cast keeps the laws", "[compressor][cast]", (Cast<half_t>), (Cast<bhalf_t>),
                   (Cast<half_t, double>), (Cast<bhalf_t, double>), (Cast<half_t, bhalf_t>),
                   (Cast<bhalf_t, half_t>)) {
  CHECK(testing::check_compressor_laws(TestType{}) == std::vector<std::string>{});
  CHECK(testing::check_compressor_laws(TestType{Overflow::infinity}, exec(), {.saturates = false}) ==
        std::vector<std::string>{});
}

TEST_CASE("Cast rounds to nearest as the 16-bit types do", "[compressor][cast]") {
  std::vector<float> values;
  for (std::uint64_t u = 0; u <= 0xffffffffu; u += 60013)
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(u)));
  const Patterns half = patterns(Cast<half_t>(Overflow::infinity), values),
                 bfloat = patterns(Cast<bhalf_t>(Overflow::infinity), values);
  long wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]))
      wrong += half[i] != 0x7e00 || bfloat[i] != 0x7fc0;
    else
      wrong += half[i] != half_t(values[i]).bits || bfloat[i] != bhalf_t(values[i]).bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("Cast decodes every pattern, NaN as the canonical one", "[compressor][cast]") {
  Patterns all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  const auto half = decoded(Cast<half_t>{}, all), bfloat = decoded(Cast<bhalf_t>{}, all);
  const auto wide = decoded(Cast<half_t, double>{}, all);
  long wrong = 0;
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  for (std::size_t i = 0; i < all.size(); ++i) {
    half_t h;
    h.bits = all[i];
    bhalf_t b;
    b.bits = all[i];
    const auto expected = static_cast<float>(h), expected_bfloat = static_cast<float>(b);
    wrong += std::isnan(expected) ? bits(half[i]) != 0x7fc00000u || !std::isnan(wide[i])
                                  : bits(half[i]) != bits(expected) || wide[i] != expected;
    wrong += std::isnan(expected_bfloat) ? bits(bfloat[i]) != 0x7fc00000u
                                         : bits(bfloat[i]) != bits(expected_bfloat);
  }
  CHECK(wrong == 0);
}

TEST_CASE("finite values beyond the range saturate, infinities and NaN stay what they are",
          "[compressor][cast]") {
  const std::vector<float> values{65504,  65519.996f, 65520,     1e5f,         -1e5f,         3e38f,
                                  -65536, infinity,   -infinity, not_a_number, -not_a_number, -0.0f};
  CHECK(patterns(Cast<half_t>{}, values) == Patterns{0x7bff, 0x7bff, 0x7bff, 0x7bff, 0xfbff, 0x7bff, 0xfbff,
                                                     0x7c00, 0xfc00, 0x7e00, 0x7e00, 0x8000});
  CHECK(patterns(Cast<half_t>{Overflow::infinity}, values) == Patterns{0x7bff, 0x7bff, 0x7c00, 0x7c00, 0xfc00,
                                                                       0x7c00, 0xfc00, 0x7c00, 0xfc00, 0x7e00,
                                                                       0x7e00, 0x8000});
  const std::vector<float> large{
      0x1.fep127f, 0x1.fefffep127f, 0x1.ffp127f, -std::numeric_limits<float>::max(), infinity, not_a_number};
  CHECK(patterns(Cast<bhalf_t>{}, large) == Patterns{0x7f7f, 0x7f7f, 0x7f7f, 0xff7f, 0x7f80, 0x7fc0});
  CHECK(patterns(Cast<bhalf_t>{Overflow::infinity}, large) ==
        Patterns{0x7f7f, 0x7f7f, 0x7f80, 0xff80, 0x7f80, 0x7fc0});
}

TEST_CASE("a finite double beyond the range of float is still finite", "[compressor][cast]") {
  const std::vector<double> values{1e300, -1e300, std::numeric_limits<double>::infinity(), 5e-324,
                                   not_a_number};
  CHECK(patterns(Cast<half_t, double>{}, values) == Patterns{0x7bff, 0xfbff, 0x7c00, 0, 0x7e00});
  CHECK(patterns(Cast<bhalf_t, double>{}, values) == Patterns{0x7f7f, 0xff7f, 0x7f80, 0, 0x7fc0});
  CHECK(patterns(Cast<bhalf_t, double>{Overflow::infinity}, values) ==
        Patterns{0x7f80, 0xff80, 0x7f80, 0, 0x7fc0});
}

// A bfloat16 has eight times the exponents of a binary16: what is beyond saturates, and NaN is not hidden by that.
TEST_CASE("bfloat16 sent as binary16 saturates without infinities", "[compressor][cast]") {
  const Cast<half_t, bhalf_t> codec;
  const auto sent = patterns(codec, elements<bhalf_t>({1e5f, -1e5f, 1, not_a_number}));
  CHECK(sent == Patterns{0x7bff, 0xfbff, 0x3c00, 0x7e00});
  const auto back = decoded(codec, sent);
  CHECK(static_cast<float>(back[0]) == 65536);  // the bfloat16 nearest to 65504
  CHECK(static_cast<float>(back[1]) == -65536);
  CHECK(static_cast<float>(back[2]) == 1);
  CHECK(std::isnan(static_cast<float>(back[3])));
}

// The bfloat16 nearest to 65504 is 65536, which is beyond binary16 when it comes back.
TEST_CASE("binary16 sent as bfloat16 comes back finite", "[compressor][cast]") {
  const auto values = elements<half_t>({65504, -65504, infinity});
  const auto back = decoded(Cast<bhalf_t, half_t>{}, patterns(Cast<bhalf_t, half_t>{}, values));
  CHECK(back[0].bits == 0x7bff);
  CHECK(back[1].bits == 0xfbff);
  CHECK(back[2].bits == 0x7c00);
  const Cast<bhalf_t, half_t> unbounded{Overflow::infinity};
  CHECK(decoded(unbounded, patterns(unbounded, values))[0].bits == 0x7c00);
}

TEST_CASE("sums accumulate in the computation type of the values", "[compressor][cast]") {
  const Patterns ones(1000, half_t(1.0f).bits);
  std::vector<float> sums(1000, 0x1p-20f);  // far below the last place of a binary16 near 1
  const Cast<half_t> codec;
  for (int i = 0; i < 3; ++i)
    codec.decompress_add(exec(), std::as_bytes(std::span(ones)), std::span(sums), Context{});
  exec().fence();
  CHECK(sums == std::vector<float>(1000, 3 + 0x1p-20f));
}

TEST_CASE("Cast halves the bytes and knows how many there are", "[compressor][cast]") {
  CHECK(Cast<half_t>::compressed_bytes(65536) == 131072);
  CHECK(Cast<bhalf_t, double>::max_compressed_bytes((std::size_t{1} << 32) + 1) ==
        (std::size_t{1} << 33) + 2);
  CHECK_THROWS_AS(Cast<half_t>::max_compressed_bytes(std::size_t{1} << 63), InvalidArgument);
  CHECK(Cast<half_t>{}.identity().name == "fp16");
  CHECK(Cast<bhalf_t>{}.identity().name == "bf16");
  CHECK(Cast<half_t>{}.identity().options != Cast<half_t>{Overflow::infinity}.identity().options);
}

TEST_CASE("Cast refuses bytes of another length and writes at any address", "[compressor][cast]") {
  const Cast<bhalf_t> codec;
  std::vector<std::byte> bytes(2003);
  std::vector<float> values(1000, 1.0f), back(1000);
  CHECK_THROWS_AS(
      codec.compress(exec(), std::span<const float>(values), std::span(bytes).first(1999), Context{}),
      CodecError);
  for (const std::size_t size : {0, 1, 1998, 1999, 2001, 2002}) {
    const auto wrong = std::span<const std::byte>(bytes).first(size);
    CHECK_THROWS_AS(codec.decompress(exec(), wrong, std::span(back), Context{}), CodecError);
    CHECK_THROWS_AS(codec.decompress_add(exec(), wrong, std::span(back), Context{}), CodecError);
  }
  CHECK(codec.compress(exec(), std::span<const float>(values), std::span(bytes).subspan(1, 2000),
                       Context{}) == 2000);
  codec.decompress(exec(), std::span<const std::byte>(bytes).subspan(1, 2000), std::span(back), Context{});
  exec().fence();
  CHECK(back == values);
}
