// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BlockScaled without random numbers: every scale and every code of its stream is the right one, and so is what they decode to.
#include "compressor/block_scaled_support.hpp"

#include <wring/testing/compressor_laws.hpp>

using namespace block_scaled_test;

namespace {

template <class T> Exact greatest_finite(std::span<const T> x) {
  Exact greatest = 0;
  for (const T v : x)
    if (std::isfinite(exact(v))) greatest = std::max(greatest, std::fabs(exact(v)));
  return greatest;
}

template <class T> bool all_finite(std::span<const T> x) {
  return std::all_of(x.begin(), x.end(), [](T v) { return std::isfinite(exact(v)); });
}

/// What a finite value must decode to: level times scale, no greater than the type's greatest, rounded to the type.
template <class T> Exact right_value(int level, Exact scale) {
  const Exact greatest = FloatTraits<T>::greatest, y = std::clamp(level * scale, -greatest, greatest);
  return exact(wring::detail::narrow<T>(static_cast<double>(y)));
}

/// The code that a value must get in a marked group.
template <class T> int right_marked_code(T x, Exact scale, int bits) {
  const int outermost = most_levels(bits);
  if (std::isnan(exact(x))) return -outermost - 1;
  if (std::isinf(exact(x))) return exact(x) > 0 ? outermost : -outermost;
  return right_level(exact(x), scale, outermost - 1);
}

/// What is wrong with one value of a group, if anything.
template <class T, int Bits>
std::string fault_of(T x, T y, int code, unsigned pattern, bool marked) {
  const Exact scale = scale_value(pattern);
  if (code != (marked ? right_marked_code(x, scale, Bits) : right_level(exact(x), scale, most_levels(Bits))))
    return "code " + std::to_string(code);
  if (!std::isfinite(exact(x)))
    return (std::isnan(exact(x)) ? std::isnan(exact(y)) : exact(y) == exact(x)) ? "" : "special value";
  if (exact(y) != right_value<T>(code, scale) || std::signbit(exact(y)) != (code < 0 && scale != 0))
    return "decoded";
  // The promise itself, where nothing saturates; the rounding to the type on top.
  const bool half = sizeof(T) == 2;
  const Exact rounding = half ? FloatTraits<T>::unit_roundoff * 1.001L * std::fabs(code * scale) +
                                    FloatTraits<T>::least_subnormal
                              : 0;
  if (pattern == 0 || pattern == 0x7f7f) return "";
  return std::fabs(exact(x) - exact(y)) <= scale / 2 + rounding ? "" : "error";
}

template <class T, int Bits>
void check_group(std::span<const T> x, std::span<const T> y, std::span<const int> codes, unsigned pattern,
                 bool marked) {
  REQUIRE(marked == !all_finite(x));
  REQUIRE(pattern == right_scale(greatest_finite(x), most_levels(Bits) - marked));
  for (std::size_t i = 0; i < x.size(); ++i)
    if (const std::string fault = fault_of<T, Bits>(x[i], y[i], codes[i], pattern, marked); !fault.empty())
      FAIL("value " << i << " of a group, " << static_cast<double>(exact(x[i])) << ", scale " << pattern
                    << ": " << fault);
}

template <class T, int Bits> void check_all() {
  const BlockScaled<T, Bits> codec;
  for (const std::size_t n : lengths)
    for (const std::vector<T>& x : data<T>(n, Bits)) {
      const Bytes bytes = encoded(codec, x);
      const std::vector<T> y = decoded(codec, bytes, n);
      const Piece piece(bytes, n, Bits, false);
      for (std::size_t first = 0; first < n; first += 128) {
        const std::size_t m = std::min<std::size_t>(128, n - first);
        INFO(Bits << " bits, " << n << " values, group from " << first);
        check_group<T, Bits>(std::span(x).subspan(first, m), std::span(y).subspan(first, m),
                             std::span(piece.codes).subspan(first, m), piece.scales[first / 128],
                             piece.marked[first / 128]);
      }
    }
}

}  // namespace

TEMPLATE_TEST_CASE("BlockScaled: scales, codes and values are the right ones", "[compressor][block_scaled]",
                   float, double, half_t, bhalf_t) {
  check_all<TestType, 8>();
  check_all<TestType, 6>();
  check_all<TestType, 5>();
  check_all<TestType, 4>();
  check_all<TestType, 3>();
  check_all<TestType, 2>();
}

TEST_CASE("BlockScaled: a group of zeros is exact, and no neighbour changes that",
          "[compressor][block_scaled]") {
  std::vector<float> x(512, 0.0f);
  for (std::size_t i = 128; i < 256; ++i) x[i] = 1e30f;
  x[300] = -0.0f;
  const auto y = decoded(BlockScaled<float, 4>{}, encoded(BlockScaled<float, 4>{}, x), 512);
  for (std::size_t i = 0; i < 512; ++i)
    if (i / 128 != 1) REQUIRE(std::bit_cast<std::uint32_t>(y[i]) == 0);
}

TEST_CASE("BlockScaled: what would need a scale below 2^-116 counts as zero", "[compressor][block_scaled]") {
  for (const double least : {0x1p-149, 1e-40, 1e-38, 1e-36}) {
    std::vector<float> x(128);
    for (std::size_t i = 0; i < 128; ++i)
      x[i] = static_cast<float>(least * static_cast<double>(1 + i % 8) * (i % 2 ? -1 : 1));
    CHECK(decoded(BlockScaled<float, 8>{}, encoded(BlockScaled<float, 8>{}, x), 128) ==
          std::vector<float>(128, 0.0f));
  }
  const std::vector<float> kept(128, 127 * 0x1p-116f), lost(128, 127 * 0x1p-117f);
  CHECK(decoded(BlockScaled<float, 8>{}, encoded(BlockScaled<float, 8>{}, kept), 128) == kept);
  CHECK(decoded(BlockScaled<float, 8>{}, encoded(BlockScaled<float, 8>{}, lost), 128) ==
        std::vector<float>(128, 0.0f));
}

TEST_CASE("BlockScaled: doubles beyond its scales saturate, the greatest floats stay finite",
          "[compressor][block_scaled]") {
  const std::vector<double> x{1e300, -1e300, 1, std::numeric_limits<double>::max()};
  const double most = 7 * 0x1.fep127;
  CHECK(decoded(BlockScaled<double, 4>{}, encoded(BlockScaled<double, 4>{}, x), 4) ==
        std::vector<double>{most, -most, 0, most});
  const float greatest = std::numeric_limits<float>::max();
  const std::vector<float> f{greatest, -greatest, 0};
  const auto y = decoded(BlockScaled<float, 3>{}, encoded(BlockScaled<float, 3>{}, f), 3);
  CHECK(y == f);  // 3 scales are more than that
  CHECK(decoded(BlockScaled<float, 2>{}, encoded(BlockScaled<float, 2>{}, f), 3) ==
        std::vector<float>{0x1.fep127f, -0x1.fep127f, 0});
}

TEST_CASE("BlockScaled: a special value costs its own group one level, and the others nothing",
          "[compressor][block_scaled]") {
  std::vector<float> x = testing::sample_values<float>(testing::Sample::normal, 512);
  const auto before = decoded(BlockScaled<float, 4>{}, encoded(BlockScaled<float, 4>{}, x), 512);
  x[130] = std::bit_cast<float>(0xffa12345u);  // a signalling NaN with payload
  x[131] = -std::numeric_limits<float>::infinity();
  const auto y = decoded(BlockScaled<float, 4>{}, encoded(BlockScaled<float, 4>{}, x), 512);
  CHECK(std::bit_cast<std::uint32_t>(y[130]) == 0x7fc00000u);
  CHECK(y[131] == x[131]);
  float greatest = 0;
  for (std::size_t i = 132; i < 256; ++i) greatest = std::max(greatest, std::fabs(x[i]));
  for (std::size_t i = 0; i < 512; ++i) {
    if (i / 128 != 1) REQUIRE(y[i] == before[i]);
    if (i / 128 == 1 && std::isfinite(x[i])) REQUIRE(std::fabs(y[i] - x[i]) <= greatest / 12 * 1.01f);
  }
}

TEST_CASE("BlockScaled: no jump of the error at any length", "[compressor][block_scaled]") {
  const auto x = testing::sample_values<float>(testing::Sample::normal, 16384);
  for (const std::size_t n : {32, 64, 128, 256, 512, 1024, 2048, 4096, 16384}) {
    const std::vector<float> part(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n));
    const auto y = decoded(BlockScaled<float, 8>{}, encoded(BlockScaled<float, 8>{}, part), n);
    double squares = 0, errors = 0;
    for (std::size_t i = 0; i < n; ++i) squares += x[i] * x[i], errors += (x[i] - y[i]) * (x[i] - y[i]);
    CHECK(errors < 1e-4 * squares);
  }
}

TEST_CASE("BlockScaled knows how many bytes there are", "[compressor][block_scaled]") {
  CHECK(BlockScaled<float, 4>{}.compressed_bytes(0) == 0);
  CHECK(BlockScaled<float, 4>{}.compressed_bytes(1) == 128);
  CHECK(BlockScaled<float, 4>{}.compressed_bytes(1 << 20) == (1 << 20) / 2 + (1 << 20) / 64);
  CHECK(BlockScaled<double, 8>{}.compressed_bytes(513) == 64 + 512 + 64);
  const BlockScaled<float, 4> rotated({.rounding = {}, .rotation = RandomRotation{}});
  CHECK(rotated.compressed_bytes(513) == 64 + 256 + 64);
  CHECK(BlockScaled<float, 8>{}.max_compressed_bytes(std::size_t{1} << 61) > std::size_t{1} << 61);
}

TEST_CASE("BlockScaled refuses bytes of another length and reads and writes at any address",
          "[compressor][block_scaled]") {
  const BlockScaled<float, 5> codec;
  const auto x = testing::sample_values<float>(testing::Sample::normal, 1000);
  const Bytes right = encoded(codec, x);
  Bytes shifted(right.size() + 1);
  const auto odd = std::span(shifted).subspan(1);
  CHECK_THROWS_AS(codec.compress(Exec{}, std::span(x), odd.first(right.size() - 1), Context{}), CodecError);
  codec.compress(Exec{}, std::span(x), odd, Context{});
  Exec{}.fence();
  CHECK(std::equal(odd.begin(), odd.end(), right.begin()));
  std::vector<float> y(1000);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, right.size() - 1}) {
    CHECK_THROWS_AS(codec.decompress(Exec{}, std::span(right).first(size), std::span(y), Context{}),
                    CodecError);
    CHECK_THROWS_AS(codec.decompress_add(Exec{}, std::span(right).first(size), std::span(y), Context{}),
                    CodecError);
  }
  codec.decompress(Exec{}, std::span<const std::byte>(odd), std::span(y), Context{});
  Exec{}.fence();
  CHECK(y == decoded(codec, right, 1000));
}

TEST_CASE("BlockScaled: everything that changes a bit is in its identity", "[compressor][block_scaled]") {
  using Codec = BlockScaled<float, 4>;
  const auto options = [](const Codec::Options& o) { return Codec(o).identity().options; };
  const std::vector<std::string> all{
      options({}),
      options({.rounding = StochasticRounding{1}}),
      options({.rounding = StochasticRounding{2}}),
      options({.rounding = {}, .rotation = RandomRotation{1}}),
      options({.rounding = {}, .rotation = RandomRotation{2}}),
      options({.rounding = StochasticRounding{1}, .rotation = RandomRotation{1}}),
      BlockScaled<float, 5>{}.identity().options,
      BlockScaled<double, 4>{}.identity().options};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) CHECK(all[i] != all[k]);
  CHECK(Codec{}.identity().name == "block_scaled");
}
