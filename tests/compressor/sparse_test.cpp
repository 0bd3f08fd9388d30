// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sparse pieces: the bytes that the description of the stream says, on every path; what TopK and Threshold select.
#include <string>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/detail/checksum.hpp>
#include <wring/testing/compressor_laws.hpp>

#include "sparse_support.hpp"

using namespace sparse_test;

namespace {

using detail::Level;
constexpr Level levels[] = {Level::scalar, Level::vector16, Level::avx2, Level::avx512};

/// Reads a piece as docs/stream_format.md describes it.
template <class T> class Reader {
 public:
  Reader(const Bytes& piece, std::size_t n) : piece_(piece), values_(n, from_pattern<T>(0)) {
    const std::size_t blocks = (n + 511) / 512;
    at_ = 2 * blocks;
    for (std::size_t b = 0; b < blocks; ++b) {
      const unsigned word = byte(2 * b) | byte(2 * b + 1) << 8;
      read(512 * b, std::min<std::size_t>(512, n - 512 * b), word & 1023, word >> 10);
    }
  }
  std::size_t size() const { return at_; }
  const std::vector<T>& values() const { return values_; }

 private:
  unsigned byte(std::size_t at) const { return std::to_integer<unsigned>(piece_.at(at)); }
  T value() {
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < sizeof(T); ++k) bits |= std::uint64_t{byte(at_++)} << (8 * k);
    return from_pattern<T>(bits);
  }
  void read(std::size_t first, std::size_t m, std::size_t count, std::size_t in_first_half) {
    std::vector<std::size_t> places;
    if (count == 512) {
      for (std::size_t i = 0; i < m; ++i) places.push_back(i);
    } else if (count < 64) {
      for (std::size_t k = 0; k < count; ++k) places.push_back(byte(at_++) + (k < in_first_half ? 0 : 256));
    } else {
      for (std::size_t i = 0; i < 512; ++i)
        if (byte(at_ + i / 8) >> (i % 8) & 1) places.push_back(i);
      at_ += 64;
    }
    for (const std::size_t i : places) values_.at(first + i) = value();
  }

  const Bytes& piece_;
  std::size_t at_ = 0;
  std::vector<T> values_;
};

template <class T> std::vector<T> all_as_sent(std::vector<T> x) {
  for (T& v : x) v = as_sent(v);
  return x;
}

/// A decoder's values, or none where it refuses.
template <class Decode> auto outcome(const Decode& decode) -> std::pair<bool, decltype(decode())> {
  try {
    return {true, decode()};
  } catch (const CodecError&) {
    return {false, {}};
  }
}

template <class T> std::uint64_t hash_of(double density) {
  Bytes all;
  for (const std::size_t n : {20000, 700})
    for (const std::byte b : encoded(scattered<T>(n, density, 5))) all.push_back(b);
  return detail::checksum(std::span<const std::byte>(all));
}

template <class T> std::vector<T> one_rank(const TopK<T>& prepared, const std::vector<T>& x) {
  TopK<T> codec = prepared;
  Context context;
  context.count = context.total = x.size();
  Bytes bytes(codec.max_compressed_bytes(x.size()));
  bytes.resize(codec.compress(Exec{}, std::span<const T>(x), std::span(bytes), context));
  return decoded<T>(bytes, x.size());
}

std::string message_of(auto make) {
  try {
    make();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

bool names(const std::string& message, const std::string& field) {
  return message.find(field) != std::string::npos;
}

}  // namespace

TEMPLATE_TEST_CASE("Threshold and TopK keep the laws", "[compressor][sparse][laws]", float, double, half_t,
                   bhalf_t) {
  CHECK(testing::check_compressor_laws(Threshold<TestType>{}) == std::vector<std::string>{});
  CHECK(testing::check_compressor_laws(TopK<TestType>({.ratio = 0.2})) == std::vector<std::string>{});
}

TEMPLATE_TEST_CASE("a sparse piece is what the description of the stream says, by every kernel",
                   "[compressor][sparse]", float, double, half_t, bhalf_t) {
  for (const std::size_t n : lengths)
    for (const double density : densities) {
      INFO(n << " values, density " << density);
      const auto x = scattered<TestType>(n, density, n), expected = all_as_sent(x);
      const Bytes piece = encoded(x);
      const Reader<TestType> reader(piece, n);
      REQUIRE(reader.size() == piece.size());
      REQUIRE(same_bits(reader.values(), expected));
      REQUIRE(team_encoded(x) == piece);
      REQUIRE(same_bits(team_decoded<TestType>(piece, n), expected));
      for (const Level level : levels) {
        if (!detail::can_run(level)) continue;
        const auto& kernels = detail::sparse::kernels_for<TestType>(level);
        REQUIRE(encoded(x, {}, 0, kernels) == piece);
        REQUIRE(same_bits(decoded<TestType>(piece, n, 1, kernels), expected));
      }
    }
}

TEST_CASE("sparse pieces have the bytes that they have always had", "[compressor][sparse]") {
  CHECK(hash_of<float>(0.02) == 0x930d1dfc15f4797a);
  CHECK(hash_of<float>(0.4) == 0x9d14e8a9a5ed11d1);
  CHECK(hash_of<double>(0.02) == 0x4918ea85cbcaf2fa);
  CHECK(hash_of<half_t>(0.4) == 0xf71471027ae859c1);
  CHECK(hash_of<bhalf_t>(1) == 0xadb016629d810f83);
}

TEMPLATE_TEST_CASE("the k values of greatest magnitude are those that sorting finds", "[compressor][sparse]",
                   float, double, half_t, bhalf_t) {
  constexpr std::size_t first = 1000;
  for (const Sample kind : testing::samples_of<TestType>())
    for (const std::size_t n : {1, 2, 511, 512, 1031, 100000}) {
      const auto x = testing::sample_values<TestType>(kind, n);
      for (const std::size_t k : {std::size_t{1}, std::size_t{2}, n / 10 + 1, n / 2 + 1, n - 1, n, n + 5}) {
        if (k == 0 || (n == 100000 && k != n / 10 + 1)) continue;
        INFO(testing::name_of(kind) << ", " << k << " of " << n);
        const auto expected = greatest_of(x, k);
        const auto selection = detail::sparse::select_greatest<TestType>(
            Exec{}, x, k, first, detail::sparse::best_kernels<TestType>());
        const Bytes piece = encoded(x, selection, first);
        REQUIRE(same_bits(decoded<TestType>(piece, n), expected));
        if (n > 2000) continue;
        const auto team = detail::sparse::team_select_greatest<TestType>(Exec{}, x, k, first);
        REQUIRE(team_encoded(x, team, first) == piece);
      }
    }
}

TEST_CASE("what is found first by looking at a few values is found wherever it is", "[compressor][sparse]") {
  constexpr std::size_t n = 65536;
  const auto normal = testing::sample_values<float>(Sample::normal, n);
  for (const float planted : {0.0f, 0.5f, 1e30f, std::numeric_limits<float>::quiet_NaN()}) {
    auto x = normal;
    for (std::size_t i = 0; i < n; i += n / 1024) x[i] = planted;
    for (const std::size_t k : {std::size_t{1}, std::size_t{1000}, std::size_t{1024}, n / 2, n - 1}) {
      const auto selection =
          detail::sparse::select_greatest<float>(Exec{}, x, k, 0, detail::sparse::best_kernels<float>());
      REQUIRE(same_bits(decoded<float>(encoded(x, selection), n), greatest_of(x, k)));
    }
  }
}

TEMPLATE_TEST_CASE("sparse pieces combine to what their values combine to", "[compressor][sparse]", float,
                   double, half_t, bhalf_t) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{300}, std::size_t{1031}})
    for (const double density : densities)
      for (const double other : {0.0, 0.05, 0.4, 1.0})
        for (const Operation operation : {sum, wring::min, wring::max}) {
          INFO(n << " values, densities " << density << " and " << other << ", " << name_of(operation));
          auto x = scattered<TestType>(n, density, 3), y = scattered<TestType>(n, other, 4);
          for (std::size_t i = 0; i < n; i += 11)  // sums that vanish, and infinities that cancel
            y[i] = from_pattern<TestType>(pattern_of(x[i]) ^ std::uint64_t{1} << (8 * sizeof(TestType) - 1));
          const Bytes a = encoded(x), b = encoded(y), c = combined<TestType>(a, b, n, operation);
          std::vector<TestType> expected(n);
          for (std::size_t i = 0; i < n; ++i) {
            const TestType p = as_sent(x[i]), q = as_sent(y[i]);
            expected[i] = as_sent(operation == sum          ? detail::add_values(p, q)
                                  : operation == wring::min ? detail::select_value<false>(p, q)
                                                            : detail::select_value<true>(p, q));
          }
          REQUIRE(c == encoded(expected));
          REQUIRE(combined<TestType>(b, a, n, operation) == c);
          REQUIRE(team_combined<TestType>(a, b, n, operation) == c);
        }
}

TEMPLATE_TEST_CASE("MEAN divides what was sent when it is decoded", "[compressor][sparse]", float, half_t) {
  for (const double density : {0.05, 0.4, 1.0}) {
    auto x = testing::sample_values<TestType>(Sample::mixed, 700);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (testing::random_bits(8, i) % 1000 >= 1000 * density) x[i] = TestType(0.0f);
    const Bytes piece = encoded(x);
    std::vector<TestType> expected = x;
    for (TestType& v : expected) v = as_sent(detail::narrow<TestType>(as_double(v) / 3));
    for (TestType& v : expected)
      if (as_double(v) == 0) v = TestType(0.0f);
    const auto host = decoded<TestType>(piece, x.size(), 3),
               team = team_decoded<TestType>(piece, x.size(), 3);
    for (std::size_t i = 0; i < x.size(); ++i) REQUIRE(as_double(host[i]) == as_double(expected[i]));
    REQUIRE(same_bits(host, team));
  }
}

TEMPLATE_TEST_CASE("what is damaged in a sparse piece is refused alike, or decoded alike",
                   "[compressor][sparse]", float, half_t) {
  std::size_t refused = 0;
  for (const double density : {0.03, 0.3, 0.99}) {
    const auto x = scattered<TestType>(1100, density);
    const Bytes piece = encoded(x);
    for (std::size_t bit = 0; bit < 8 * piece.size(); bit += bit < 600 ? 1 : 97) {
      Bytes damaged = piece;
      damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      const auto host = outcome([&] { return decoded<TestType>(damaged, x.size()); });
      const auto team = outcome([&] { return team_decoded<TestType>(damaged, x.size()); });
      INFO("density " << density << ", bit " << bit);
      REQUIRE(host.first == team.first);
      REQUIRE(same_bits(host.second, team.second));
      refused += !host.first;
    }
  }
  CHECK(refused > 50);
}

// The kind of apache/mxnet#8342.
TEST_CASE("options of TopK and Threshold that make no sense are refused by name",
          "[compressor][sparse][case]") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   infinity = std::numeric_limits<double>::infinity();
  CHECK(names(message_of([] { TopK<float>({.k = 0}); }), "k is 0"));
  for (const double ratio : {0.0, -0.5, 1.5, nan, infinity})
    CHECK(names(message_of([&] { TopK<float>({.ratio = ratio}); }), "ratio is"));
  CHECK(names(message_of([] { TopK<float>(TopK<float>::Options{}); }), "k and ratio"));
  CHECK(names(message_of([] { TopK<float>({.k = 1, .ratio = 0.5}); }), "k and ratio"));
  for (const double threshold : {-1.0, nan})
    CHECK(names(message_of([&] { Threshold<float>({.threshold = threshold}); }), "threshold is"));
  CHECK(message_of([] { TopK<float>({.k = 1}), Threshold<float>({.threshold = 0}); }) == "accepted");
}

TEST_CASE("a number or a part of the values, at least one, at most all", "[compressor][sparse]") {
  const TopK<float> number({.k = 10}), part({.ratio = 0.1}), all({.ratio = 1});
  CHECK(number.selected(1000) == 10);
  CHECK(number.selected(3) == 3);
  CHECK(number.selected(0) == 0);
  CHECK(part.selected(1000) == 100);
  CHECK(part.selected(14) == 1);
  CHECK(part.selected(16) == 2);
  CHECK(part.selected(1) == 1);
  CHECK(all.selected(12345) == 12345);
  CHECK(number.identity().options != part.identity().options);
  CHECK(TopK<float>({.k = 11}).identity().options != number.identity().options);
}

TEST_CASE("magnitudes count, not values; NaN and infinities come first", "[compressor][sparse][case]") {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  CHECK(one_rank(TopK<float>({.k = 1}), {-5, 1, 2, -0.5f}) == std::vector<float>{-5, 0, 0, 0});
  CHECK(one_rank(TopK<float>({.k = 2}), {3, -3, 3, 3}) == std::vector<float>{3, -3, 0, 0});
  CHECK(one_rank(TopK<float>({.k = 1}), {3e38f, -infinity, infinity}) == std::vector<float>{0, -infinity, 0});
  CHECK(std::isnan(one_rank(TopK<float>({.k = 1}), {infinity, nan})[1]));
  CHECK(one_rank(TopK<float>({.k = 9}), {0, -0.0f, 1}) == std::vector<float>{0, 0, 1});
}

TEST_CASE("pieces of one tensor hold what was selected from all of it", "[compressor][sparse]") {
  const auto x = testing::sample_values<float>(Sample::alternating, 3000);  // many ties
  const auto expected = greatest_of(x, 500);
  TopK<float> codec({.k = 500});
  Context whole;
  whole.first = 70, whole.count = x.size(), whole.total = 5000;
  codec.inspect(Exec{}, std::span<const float>(x), whole);
  std::vector<float> got;
  for (std::size_t at = 0; at < x.size(); at += 700) {
    const auto part = std::span<const float>(x).subspan(at, std::min<std::size_t>(700, x.size() - at));
    Context context = whole;
    context.first = 70 + at, context.count = part.size();
    Bytes bytes(codec.max_compressed_bytes(part.size()));
    bytes.resize(codec.compress(Exec{}, part, std::span(bytes), context));
    const auto values = decoded<float>(bytes, part.size());
    got.insert(got.end(), values.begin(), values.end());
  }
  CHECK(same_bits(got, expected));
}

TEMPLATE_TEST_CASE("a value is sent where it is not below the threshold, however that is rounded",
                   "[compressor][sparse]", float, half_t, bhalf_t) {
  const auto x = testing::sample_values<TestType>(Sample::normal, 2000);
  for (const double threshold : {0.0, 0.5, 0.7, 1.0 / 3, 1e-60, 1.000001, 1e300})
    for (const double nudge : {1 - 0x1p-52, 1.0, 1 + 0x1p-52}) {
      const auto sent =
          decoded<TestType>(encoded(x, detail::sparse::not_below<TestType>(threshold * nudge)), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double v = as_double(x[i]);
        REQUIRE(as_double(sent[i]) == (std::fabs(v) >= threshold * nudge ? v : 0));
      }
    }
}

TEST_CASE("Threshold takes the smaller one of its option and what the bound allows", "[compressor][sparse]") {
  Agreed agreed{
      .operation = sum, .ranks = 4, .total = 100, .max_abs = 1, .allowed_error = 0.1, .measured = true};
  Threshold<float> free, loose({.threshold = 1}), tight({.threshold = 1e-3});
  for (Threshold<float>* codec : {&free, &loose, &tight}) codec->prepare(agreed);
  CHECK((free.threshold() < 0.025 && free.threshold() > 0.02499));
  CHECK(loose.threshold() == free.threshold());
  CHECK(tight.threshold() == 1e-3);
  agreed.operation = wring::max;
  free.prepare(agreed);
  CHECK((free.threshold() == 0.1 && free.reproducible()));
  agreed.operation = sum, agreed.allowed_error = 1e-8;
  CHECK_THROWS_AS(free.prepare(agreed), BoundUnattainable);
  agreed.allowed_error.reset();
  free.prepare(agreed), loose.prepare(agreed);
  CHECK((free.threshold() == 0 && loose.threshold() == 1 && !free.reproducible()));
}
