// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lossless: every bit arrives, the bytes are the same at every level, and are those that the description of the stream says.
#include <algorithm>
#include <fstream>
#include <numeric>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/detail/checksum.hpp>

#include "lossless_support.hpp"

using namespace lossless_test;
using detail::Level;

namespace {

/// Reads a piece bit by bit, as docs/stream_format.md describes it.
template <class T> class Reader {
 public:
  Reader(const Bytes& piece, std::size_t n) : piece_(piece) {
    const std::size_t blocks = (n + 511) / 512;
    at_ = up(4 * blocks);
    for (std::size_t first = 0; first < blocks; first += 32) {
      const std::size_t last = std::min(first + 32, blocks);
      std::size_t side = at_;
      for (std::size_t b = first; b < last; ++b) side += payload(descriptor(b), count(b, n));
      for (std::size_t b = first; b < last; ++b) read(descriptor(b), count(b, n), side);
      at_ = up(side);
    }
  }
  std::size_t size() const { return at_; }
  const std::vector<T>& values() const { return values_; }

 private:
  static constexpr int bits = 8 * sizeof(T), word = sizeof(T) == 8 ? 64 : 32, lanes = 512 / word;
  static constexpr bool is_float = FloatElement<T>;
  static constexpr int exponent_bits = !is_float                    ? 0
                                       : sizeof(T) == 8             ? 11
                                       : sizeof(T) == 4             ? 8
                                       : std::is_same_v<T, bhalf_t> ? 8
                                                                    : 5;
  static constexpr int mantissa_bits = bits - 1 - exponent_bits;

  static std::size_t up(std::size_t n) { return (n + 63) / 64 * 64; }
  static int count(std::size_t b, std::size_t n) {
    return static_cast<int>(std::min<std::size_t>(512, n - 512 * b));
  }
  std::uint64_t little_endian(std::size_t at, int bytes) const {
    std::uint64_t v = 0;
    for (int k = bytes; k-- > 0;)
      v = v << 8 | static_cast<std::uint64_t>(piece_[at + static_cast<std::size_t>(k)]);
    return v;
  }
  std::uint32_t descriptor(std::size_t b) const {
    return static_cast<std::uint32_t>(little_endian(4 * b, 4));
  }
  static std::size_t payload(std::uint32_t d, int m) {
    const int w = static_cast<int>(d & 127);
    if (w == 127) return up(static_cast<std::size_t>(m) * sizeof(T));
    return 64 * static_cast<std::size_t>(((m + lanes - 1) / lanes * w + word - 1) / word);
  }
  std::uint64_t field(int lane, int row, int width) const {
    std::uint64_t v = 0;
    for (int i = 0; i < width; ++i) {
      const int bit = row * width + i;
      const std::size_t at =
          8 * at_ + static_cast<std::size_t>((bit / word * lanes + lane) * word + bit % word);
      v |= ((static_cast<std::uint64_t>(piece_[at / 8]) >> (at % 8)) & 1) << i;
    }
    return v;
  }
  void read(std::uint32_t d, int m, std::size_t& side) {
    const int w = static_cast<int>(d & 127);
    const std::size_t first = values_.size();
    values_.resize(first + static_cast<std::size_t>(m));
    const auto put = [&](int i, std::uint64_t pattern) {
      values_[first + static_cast<std::size_t>(i)] = from_pattern<T>(pattern);
    };
    if (w == 127)
      for (int i = 0; i < m; ++i)
        put(i, little_endian(at_ + static_cast<std::size_t>(i) * sizeof(T), sizeof(T)));
    else if (w == 0 || !is_float) {
      const std::uint64_t base = little_endian(side, sizeof(T));
      side += sizeof(T);
      for (int i = 0; i < m; ++i) put(i, base + field(i % lanes, i / lanes, w));
    } else {
      for (int lane = 0; lane < lanes; ++lane)
        for (int row = 0; row * lanes + lane < m; ++row)
          put(row * lanes + lane, pattern(field(lane, row, w), d, w - 1 - mantissa_bits, side));
    }
    at_ += payload(d, m);
  }
  std::uint64_t pattern(std::uint64_t f, std::uint32_t d, int code_bits, std::size_t& side) const {
    const std::uint64_t mantissa = f & ((std::uint64_t{1} << mantissa_bits) - 1),
                        sign = f >> mantissa_bits & 1, code = is_float ? f >> ((mantissa_bits + 1) % 64) : 0,
                        escape = (std::uint64_t{1} << code_bits) - 1;
    std::uint64_t exponent = (d >> 8 & 2047) - code;
    if (code_bits > 0 && code == escape) {
      const int bytes = exponent_bits > 8 ? 2 : 1;
      exponent = little_endian(side, bytes);
      side += static_cast<std::size_t>(bytes);
    } else if ((d >> 7 & 1) != 0 && code == escape - 1) {
      exponent = 0;
    }
    return sign << (bits - 1) | exponent << mantissa_bits | mantissa;
  }

  const Bytes& piece_;
  std::size_t at_ = 0;
  std::vector<T> values_;
};

template <class T> std::uint64_t hash_of(Data data) {
  return detail::checksum(std::span<const std::byte>(encoded(make<T>(data, 20000, 5))));
}

/// Elements over bytes of a piece of them.
template <class T> double ratio(const std::vector<T>& x) {
  return static_cast<double>(x.size() * sizeof(T)) / static_cast<double>(encoded(x).size());
}

std::vector<float> gradient() {
  std::ifstream file(WRING_SOURCE_DIR "/examples/data/step0100_w0.f32", std::ios::binary);
  std::vector<float> x(1 << 20);
  file.read(reinterpret_cast<char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float)));
  x.resize(static_cast<std::size_t>(file.gcount()) / sizeof(float));
  return x;
}

}  // namespace

#define WRING_LOSSLESS_TYPES                                                                                 \
  float, double, half_t, bhalf_t, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,      \
      std::uint32_t, std::int64_t, std::uint64_t

TEMPLATE_TEST_CASE("Lossless keeps every bit, at every level with the same bytes", "[compressor][lossless]",
                   WRING_LOSSLESS_TYPES) {
  for (const std::size_t n : lengths)
    for (int data = 0; data < static_cast<int>(Data::count); ++data) {
      INFO(name_of(static_cast<Data>(data)) << ", " << n);
      const auto x = make<TestType>(static_cast<Data>(data), n);
      const Bytes piece = encoded(x);
      REQUIRE(same_bits(decoded<TestType>(piece, n), x));
      for (const Level level : {Level::scalar, Level::vector16, Level::avx2, Level::avx512}) {
        if (!detail::can_run(level)) continue;
        const auto& kernels = detail::lossless::kernels_for<TestType>(level);
        REQUIRE(encoded(x, kernels) == piece);
        REQUIRE(same_bits(decoded<TestType>(piece, n, kernels), x));
      }
    }
}

TEMPLATE_TEST_CASE("a piece of Lossless is what the description of the stream says", "[compressor][lossless]",
                   WRING_LOSSLESS_TYPES) {
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{17}, std::size_t{511}, std::size_t{513}, std::size_t{17000}})
    for (int data = 0; data < static_cast<int>(Data::count); ++data) {
      INFO(name_of(static_cast<Data>(data)) << ", " << n);
      const auto x = make<TestType>(static_cast<Data>(data), n, 3);
      const Bytes piece = encoded(x);
      const Reader<TestType> reader(piece, n);
      REQUIRE(reader.size() == piece.size());
      REQUIRE(same_bits(reader.values(), x));
    }
}

TEMPLATE_TEST_CASE("all patterns of 16 bits arrive, alone and among others", "[compressor][lossless]", half_t,
                   bhalf_t) {
  std::vector<TestType> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i * 40503u);
  CHECK(same_bits(decoded<TestType>(encoded(all), all.size()), all));
  std::vector<TestType> mixed = make<TestType>(Data::normal, 512 * 1024);
  for (std::size_t i = 0; i < 65536; ++i) mixed[8 * i + i / 8 % 8].bits = static_cast<std::uint16_t>(i);
  CHECK(same_bits(decoded<TestType>(encoded(mixed), mixed.size()), mixed));
}

TEST_CASE("all exponents of float and double arrive", "[compressor][lossless]") {
  std::vector<float> floats = make<float>(Data::normal, 512 * 64);
  std::vector<double> doubles = make<double>(Data::normal, 2048 * 64);
  for (std::uint64_t e = 0; e < 2048; ++e) {
    if (e < 256) floats[e * 128 + e % 128] = from_pattern<float>(e << 23 | 0x80000000u | e);
    doubles[e * 64 + e % 64] = from_pattern<double>(e << 52 | 0x8000000000000000u | e);
  }
  CHECK(same_bits(decoded<float>(encoded(floats), floats.size()), floats));
  CHECK(same_bits(decoded<double>(encoded(doubles), doubles.size()), doubles));
}

TEST_CASE("real gradients shrink", "[compressor][lossless]") {
  const std::vector<float> x = gradient();
  REQUIRE(x.size() > 10000);
  std::vector<bhalf_t> narrow;
  for (const float v : x) narrow.push_back(bhalf_t(v));
  const std::vector<double> wide(x.begin(), x.end());
  INFO("float " << ratio(x) << ", bhalf_t " << ratio(narrow) << ", double " << ratio(wide));
  CHECK(ratio(x) > 1.15);
  CHECK(ratio(narrow) > 1.36);
  CHECK(ratio(wide) > 1.1);
}

TEST_CASE("a piece is hardly larger than its elements, and tiny where they are equal",
          "[compressor][lossless]") {
  for (const std::size_t n : lengths) {
    const std::size_t blocks = (n + 511) / 512;
    CHECK(encoded(make<float>(Data::patterns, n)).size() <= 4 * n + 4 * blocks + 128);
    CHECK(encoded(make<double>(Data::zeros, n)).size() <=
          4 * blocks + 8 * blocks + 64 * (1 + (blocks + 31) / 32));
  }
  CHECK(ratio(make<std::uint8_t>(Data::alternating, 16384)) > 7);
  CHECK(ratio(make<std::uint16_t>(Data::alternating, 16384)) > 14);
}

// Any other bytes are another format: a new version of the compressor.
TEST_CASE("the bytes of Lossless are what they were", "[compressor][lossless]") {
  CHECK(hash_of<float>(Data::tails) == 0x6ab17da979ee2624);
  CHECK(hash_of<double>(Data::normal) == 0xc24d758fdb790026);
  CHECK(hash_of<half_t>(Data::sparse) == 0x8c1fd12b1f6c2642);
  CHECK(hash_of<bhalf_t>(Data::specials) == 0xd2cd87a6754baf29);
  CHECK(hash_of<std::int16_t>(Data::tails) == 0xc0855155f4fb56bb);
  CHECK(hash_of<std::uint64_t>(Data::ramp) == 0x4d7fe72fa9233162);
}

TEST_CASE("Lossless says its size", "[compressor][lossless]") {
  std::size_t before = 0;
  for (const std::size_t n : {(std::size_t{1} << 32) + 1, std::size_t{1} << 40, std::size_t{1} << 59}) {
    CHECK(Lossless<double>::max_compressed_bytes(n) > 8 * n);
    CHECK(Lossless<double>::max_compressed_bytes(n) > before);
    before = Lossless<double>::max_compressed_bytes(n);
  }
  CHECK_THROWS_AS(Lossless<double>::max_compressed_bytes(std::size_t{1} << 61), InvalidArgument);
  CHECK(Lossless<float>::error(1e30) == 0);
}

TEMPLATE_TEST_CASE("damaged pieces of Lossless are refused or decode to something", "[compressor][lossless]",
                   float, half_t, double, std::int32_t) {
  const auto x = make<TestType>(Data::tails, 1100);
  const Bytes piece = encoded(x);
  long refused = 0;
  for (std::size_t bit = 0; bit < 8 * piece.size(); bit += bit < 200 ? 1 : 37) {
    Bytes damaged = piece;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    try {
      decoded<TestType>(damaged, x.size());
    } catch (const CodecError&) {
      ++refused;
    }
  }
  CHECK(refused > 0);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{3}, std::size_t{63}, piece.size() - 1, piece.size() - 64})
    CHECK_THROWS_AS(
        decoded<TestType>(Bytes(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(size)), x.size()),
        CodecError);
  Bytes longer = piece;
  longer.push_back({});
  CHECK_THROWS_AS(decoded<TestType>(longer, x.size()), CodecError);
  CHECK_THROWS_AS(decoded<TestType>(piece, x.size() - 600), CodecError);
}

TEST_CASE("Lossless adds what it decodes, and says how many blocks stay raw", "[compressor][lossless]") {
  Lossless<float> codec;
  const auto x = make<float>(Data::normal, 5000), raw = make<float>(Data::patterns, 1024);
  Bytes bytes = room_for<float>(5000);
  bytes.resize(codec.compress(Exec{}, std::span<const float>(x), std::span(bytes), Context{}));
  CHECK(codec.fallback_blocks() == 0);
  std::vector<float> sums(5000, 0.5f);
  codec.decompress_add(Exec{}, std::span<const std::byte>(bytes), std::span(sums), Context{});
  bool right = true;
  for (std::size_t i = 0; i < sums.size(); ++i) right = right && sums[i] == x[i] + 0.5f;
  CHECK(right);
  codec.compress(Exec{}, std::span<const float>(raw), std::span(bytes), Context{});
  CHECK(codec.fallback_blocks() == 2);
}
