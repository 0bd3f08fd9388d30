// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The bytes of a piece: the layout against a sequential reader written from its description, and golden
// hashes, which no compiler, flag, instruction set or number of threads may change.

#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <compressor/grid_support.hpp>

using namespace grid_test;
using Form = GridParameters::Form;

namespace {

/// A piece read bit by bit.
class Reader {
 public:
  Reader(const Bytes& piece, std::size_t n, bool delta, bool long_words)
      : piece_(piece), n_(n), delta_(delta), word_(long_words ? 64 : 32) {
    const std::size_t blocks = (n + 511) / 512;
    at_ = (blocks + 63) / 64 * 64;
    bases_ = at_;
    if (delta) at_ += (blocks * static_cast<std::size_t>(word_ / 8) + 63) / 64 * 64;
    for (std::size_t b = 0; b < blocks; ++b) read_block(b);
  }
  std::size_t size() const { return at_; }
  const std::vector<std::int64_t>& quanta() const { return quanta_; }
  const std::vector<int>& codes() const { return codes_; }
  const std::vector<int>& widths() const { return widths_; }

 private:
  std::int64_t field(std::size_t bit_in_lane, std::size_t lane, int width) const {
    const std::size_t lanes = static_cast<std::size_t>(512 / word_);
    std::uint64_t v = 0;
    for (int i = 0; i < width; ++i) {
      const std::size_t bit = bit_in_lane + static_cast<std::size_t>(i);
      const std::size_t word = bit / static_cast<std::size_t>(word_) * lanes + lane;
      const std::size_t bit_of_piece =
          8 * at_ + word * static_cast<std::size_t>(word_) + bit % static_cast<std::size_t>(word_);
      v |= static_cast<std::uint64_t>(
               (static_cast<unsigned>(piece_[bit_of_piece / 8]) >> (bit_of_piece % 8)) & 1u)
           << i;
    }
    if (width > 0 && ((v >> (width - 1)) & 1)) v -= std::uint64_t{1} << width;
    return static_cast<std::int64_t>(v);
  }
  void read_block(std::size_t b) {
    const std::size_t m = std::min<std::size_t>(512, n_ - 512 * b),
                      lanes = static_cast<std::size_t>(512 / word_);
    const int descriptor = static_cast<int>(piece_[b]), width = descriptor & 63;
    widths_.push_back(width);
    const std::size_t planes = at_;
    if (descriptor & 64) at_ += 128;
    std::uint64_t sum = 0;
    if (delta_)
      std::memcpy(&sum, &piece_[bases_ + b * static_cast<std::size_t>(word_ / 8)],
                  static_cast<std::size_t>(word_ / 8));
    for (std::size_t i = 0; i < m; ++i) {
      const std::int64_t v = field(i / lanes * static_cast<std::size_t>(width), i % lanes, width);
      sum = delta_ ? sum + static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
      quanta_.push_back(word_ == 32 ? static_cast<std::int32_t>(sum) : static_cast<std::int64_t>(sum));
      const auto bit = [&](std::size_t plane) {
        return (static_cast<int>(piece_[plane + i / 8]) >> (i % 8)) & 1;
      };
      codes_.push_back(descriptor & 64 ? bit(planes) + 2 * bit(planes + 64) : 0);
    }
    const std::size_t rows = (m + lanes - 1) / lanes;
    at_ += 64 * ((rows * static_cast<std::size_t>(width) + static_cast<std::size_t>(word_) - 1) /
                 static_cast<std::size_t>(word_));
  }

  const Bytes& piece_;
  std::size_t n_;
  bool delta_;
  int word_;
  std::size_t at_ = 0, bases_ = 0;
  std::vector<std::int64_t> quanta_;
  std::vector<int> codes_, widths_;
};

/// Values of changing spread: quanta of up to `bits` bits; zero blocks; now and then something special.
template <class T> std::vector<T> signal(std::size_t n, double step, int bits, bool specials,
                                         std::uint64_t seed) {
  Random random(seed);
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double spread =
        std::ldexp(step, static_cast<int>((i / 512 * 5 + i / 16384) % static_cast<std::size_t>(bits)));
    x[i] = element<T>(i / 512 % 11 == 3 ? 0.0 : spread * random.signed_unit());
    if (specials && i % 1237 == 5)
      x[i] = element<T>(i % 3 == 0 ? infinity : i % 3 == 1 ? -infinity : not_a_number);
  }
  return x;
}

constexpr std::size_t lengths[] = {0, 1, 15, 16, 17, 511, 512, 513, 1000, 16384, 16385, 40000};

}  // namespace

TEMPLATE_TEST_CASE("pieces have the layout described, at every length and level", "[grid]", float, double,
                   wring::half_t) {
  for (const Form form : {Form::int32, Form::int64})
    for (const bool delta : {false, true})
      for (const std::size_t n : lengths) {
        const bool wide = form == Form::int64, half = sizeof(TestType) == 2;
        GridParameters p = grid_of(11, half ? -12 : -20, form);
        p.delta = delta;
        const std::vector<TestType> x = signal<TestType>(n, p.step,
                                                         half                            ? 18
                                                         : wide && sizeof(TestType) == 8 ? 50
                                                                                         : 30,
                                                         true, n + 1);
        const Bytes piece = encode(x, p);
        CAPTURE(n, delta, wide);
        const Reader reader(piece, n, delta, wide);
        REQUIRE(reader.size() == piece.size());
        bool right = true;
        for (std::size_t i = 0; i < n; ++i) {
          const double v = number(x[i]);
          const int code = std::isnan(v) ? 3 : v == infinity ? 1 : v == -infinity ? 2 : 0;
          const double q = static_cast<double>(reader.quanta()[i]);
          right = right && reader.codes()[i] == code &&
                  (code ? q == 0 : std::fabs(std::fma(-q, p.step, v)) <= p.step / 2);
        }
        REQUIRE(right);
        const std::vector<TestType> y = decode<TestType>(piece, n, p);
        const Bytes sum = combine<TestType>(piece, piece, n, wring::sum, p);
        p.shift = 2;
        const Bytes finished = finish<TestType>(sum, n, p);
        const std::vector<TestType> z = decode<TestType>(finished, n, p);
        p.shift = 0;
        bool doubled = true, shifted = true;
        const Reader sums(sum, n, delta, wide), results(finished, n, delta, wide);
        REQUIRE(sums.size() == sum.size());
        for (std::size_t i = 0; i < n; ++i) {
          doubled =
              doubled && sums.quanta()[i] == 2 * reader.quanta()[i] && sums.codes()[i] == reader.codes()[i];
          shifted = shifted && results.quanta()[i] == wring::detail::grid::round_shift(sums.quanta()[i], 2);
        }
        REQUIRE(doubled);
        REQUIRE(shifted);
        for (const Level level : levels) {
          if (!wring::detail::can_run(level)) continue;
          REQUIRE(encode(x, p, level) == piece);
          REQUIRE(combine<TestType>(piece, piece, n, wring::sum, p, level) == sum);
          REQUIRE(same_bits(decode<TestType>(piece, n, p, level), y));
          p.shift = 2;
          REQUIRE(finish<TestType>(sum, n, p, level) == finished);
          REQUIRE(same_bits(decode<TestType>(finished, n, p, level), z));
          p.shift = 0;
        }
      }
}

TEST_CASE("every width is packed and found again", "[grid]") {
  for (int width = 0; width <= 32; ++width) {
    // The step is 1 and doubles hold every int32: quanta with the extreme values of the width.
    const GridParameters p = grid_of(8, -3);
    std::vector<double> x(600);
    Random random(static_cast<std::uint64_t>(width));
    for (double& v : x)
      v = width == 0 ? 0 : static_cast<double>(static_cast<std::int32_t>(random.word()) >> (32 - width));
    if (width) x[0] = -std::ldexp(1.0, width - 1), x[512] = x[0];
    if (width == 32) x[0] = x[512] = 1 - 0x1p31, std::ranges::replace(x, -0x1p31, 0.0);
    const Bytes piece = encode(x, p);
    const Reader reader(piece, x.size(), false, false);
    CHECK(reader.widths() == std::vector<int>{width, width});
    CHECK(decode<double>(piece, x.size(), p) == x);
  }
  std::vector<float> ones(512, -1.0f);  // {0, -1}: the OR of magnitudes is 0, the width is not
  ones[7] = 0;
  const Bytes piece = encode(ones, grid_of(8, -3));
  CHECK(static_cast<int>(piece[0]) == 1);
  CHECK(decode<float>(piece, 512, grid_of(8, -3)) == ones);
}

TEST_CASE("every level decodes floats alike, past the caches or not, wherever they go", "[grid]") {
  for (const bool delta : {false, true})
    for (int width = 0; width <= 26; ++width) {
      GridParameters p = grid_of(delta ? 8 : 13, -9);
      p.delta = delta;
      std::vector<float> x(512 * 3 + 100);
      Random random(static_cast<std::uint64_t>(width));
      for (float& v : x) {
        const std::int32_t q = width == 0 ? 0 : static_cast<std::int32_t>(random.word()) >> (32 - width);
        v = static_cast<float>(static_cast<double>(q) * p.step);
      }
      const Bytes piece = encode(x, p);
      std::vector<float> expected(x.size());
      for (std::size_t i = 0; i < x.size(); ++i)  // floats of more than 24 bits were rounded
        expected[i] = static_cast<float>(std::nearbyint(static_cast<double>(x[i]) / p.step) * p.step);
      for (const Level level : levels) {
        if (!wring::detail::can_run(level)) continue;
        for (const bool streaming : {false, true})
          for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, std::size_t{4}}) {
            std::vector<float> y(x.size() + offset, 7.0f);
            wring::detail::grid_decode(Exec(), std::span(piece), std::span(y).subspan(offset), p,
                                       wring::detail::grid::kernels_for(level), streaming);
            CAPTURE(delta, width, static_cast<int>(level), streaming, offset);
            CHECK(std::equal(expected.begin(), expected.end(),
                             y.begin() + static_cast<std::ptrdiff_t>(offset)));
          }
      }
    }
}

TEST_CASE("residues wrap: only the quanta matter", "[grid]") {
  GridParameters p = grid_of(8, -3);
  p.delta = true;
  std::vector<double> x(512);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = i % 2 ? 0x1p30 - 1 - static_cast<double>(i) : -0x1p30 + static_cast<double>(i);
  const Bytes piece = encode(x, p);
  CHECK(static_cast<int>(piece[0]) == 32);
  CHECK(decode<double>(piece, x.size(), p) == x);
  Bytes sum = combine<double>(piece, piece, x.size(), wring::sum, p);
  std::vector<double> twice(x);
  for (double& v : twice) v *= 2;
  CHECK(decode<double>(sum, x.size(), p) == twice);
  for (double& v : x) v = -v;
  CHECK(decode<double>(combine<double>(sum, encode(x, p), x.size(), wring::sum, p), x.size(), p) ==
        decode<double>(piece, x.size(), p));
}

TEST_CASE("wide pieces have full width and combine with others", "[grid]") {
  for (const Form form : {Form::int32, Form::int64})
    for (const bool delta : {false, true}) {
      GridParameters p = grid_of(9, -10, form), wide = p;
      p.delta = wide.delta = delta;
      wide.wide = true;
      const std::size_t n = 5000;
      const auto x = signal<float>(n, p.step, 16, true, 3), y = signal<float>(n, p.step, 16, false, 4);
      const Bytes a = encode(x, p), b = encode(y, p), a_wide = encode(x, wide), b_wide = encode(y, wide);
      for (std::size_t block = 0; block < 10; ++block)
        CHECK((static_cast<int>(a_wide[block]) & 63) == (form == Form::int32 ? 32 : 62));
      CHECK(same_bits(decode<float>(a, n, p), decode<float>(a_wide, n, p)));
      const Bytes sum = combine<float>(a, b, n, wring::sum, p);
      CHECK(combine<float>(a_wide, b, n, wring::sum, p) == sum);
      CHECK(combine<float>(a_wide, b_wide, n, wring::sum, p) == sum);
      CHECK(combine<float>(a, b_wide, n, wring::sum, wide) == combine<float>(a_wide, b, n, wring::sum, wide));
      CHECK(combine<float>(combine<float>(a, b, n, wring::sum, wide), encode(std::vector<float>(n), p), n,
                           wring::sum, p) == sum);
    }
}

TEST_CASE("incompressible blocks are raw where nothing is added", "[grid]") {
  GridParameters p = grid_of(11, -40);
  p.raw_blocks = true;
  Random random(5);
  std::vector<float> x(512 * 3 + 100);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(i < 512    ? random.signed_unit()
                              : i < 1024 ? p.step * static_cast<double>(random.below(1000))
                              : i < 1536 ? 3e38 * random.signed_unit()
                                         : 1e-9 * random.signed_unit());
  x[3] = std::numeric_limits<float>::infinity();
  x[5] = std::bit_cast<float>(0xFFA12345u);  // a signalling NaN with payload
  for (const bool delta : {false, true}) {
    p.delta = delta;
    const Bytes piece = encode(x, p);
    CHECK(static_cast<int>(piece[0]) == 63);
    CHECK(static_cast<int>(piece[1]) < 20);
    CHECK(static_cast<int>(piece[2]) == 63);
    const std::vector<float> y = decode<float>(piece, x.size(), p);
    for (std::size_t i = 0; i < 512; ++i) {
      if (i == 5)
        REQUIRE(std::bit_cast<std::uint32_t>(y[i]) == 0x7FC00000u);
      else
        REQUIRE(std::bit_cast<std::uint32_t>(y[i]) == std::bit_cast<std::uint32_t>(x[i]));
    }
    for (std::size_t i = 512; i < x.size(); ++i)
      REQUIRE(std::fabs(static_cast<double>(y[i]) - static_cast<double>(x[i])) <= p.step / 2);
    for (const Level level : levels)
      if (wring::detail::can_run(level)) CHECK(encode(x, p, level) == piece);
  }
}

TEST_CASE("the greatest size of a piece is 64-bit and monotone", "[grid]") {
  for (const bool prepared : {false, true}) {
    wring::Grid<double> grid;
    if (prepared) {
      wring::Agreed agreed;
      agreed.max_abs = 1, agreed.allowed_error = 1e-12, agreed.ranks = 4;
      grid.prepare(agreed);
    }
    std::size_t before = 0;
    for (const std::size_t n :
         {std::size_t{0}, std::size_t{1}, std::size_t{512}, std::size_t{513}, (std::size_t{1} << 32) + 1,
          std::size_t{1} << 40, std::size_t{1} << 60, std::size_t{1} << 61, ~std::size_t{0}}) {
      const std::size_t most = grid.max_compressed_bytes(n);
      CHECK(most >= before);
      const std::size_t least = prepared ? 5 : 8;  // bytes a value: 4 terms up to 1 / 3e-13 take 43 bits
      CHECK((n > (std::size_t{1} << 60) ? most >= std::size_t{1} << 63 : most >= least * n));
      CHECK(grid.max_combined_bytes(n, 4) >= most);
      before = most;
    }
  }
  CHECK(wring::Grid<float>().max_compressed_bytes(0) == 0);
}

TEMPLATE_TEST_CASE("golden hashes", "[grid]", float, double, wring::half_t, wring::bhalf_t) {
  // Pieces and results for fixed inputs: multiplier, delta, shift. These bytes are the format; they never
  // change.
  struct Golden {
    int multiplier;
    bool delta;
    int shift;
    std::uint64_t float_hash, double_hash, half_hash, bhalf_hash;
  };
  constexpr Golden golden[] = {
      {8, false, 0, 0x367ddab74f7606b0u, 0x2b0b709809901c3bu, 0xf53cc87526bca561u, 0x4120aaec0d3bd622u},
      {11, false, 0, 0x8bdbe97cfd24b933u, 0x9eada372dfdd1bb3u, 0x3b86decea1fa1187u, 0x3266747ceae2340cu},
      {15, true, 0, 0x3c771f1319000373u, 0xc2063e110dd25031u, 0xdac6744ab73fdbd3u, 0xf9f477ab6bd32849u},
      {13, false, 3, 0x80204e2bb85e118bu, 0x65d1bc4b050e7341u, 0x9f894c47d35fa89fu, 0xabb7b9c1485bccb0u},
      {9, true, 2, 0xe5f9fe7e0934df25u, 0x89a4de004967356du, 0x635c0a72ccf273e3u, 0xcde948ef17cbe219u},
  };
  using T = TestType;
  for (const Golden& g : golden) {
    const std::size_t n = 50000;
    const bool narrow = sizeof(T) == 2;
    GridParameters p = grid_of(g.multiplier, narrow ? -12 : -22);
    p.delta = g.delta;
    Bytes sum = encode(signal<T>(n, p.step, narrow ? 18 : 27, true, 10), p);
    std::uint64_t hash = fnv(sum);
    for (std::uint64_t rank = 1; rank < 4; ++rank)
      sum = combine<T>(sum, encode(signal<T>(n, p.step, narrow ? 18 : 27, rank == 2, 10 + rank), p), n,
                       wring::sum, p);
    p.shift = g.shift, p.divisor = 3;
    sum = finish<T>(sum, n, p);
    hash = hash * 31 + fnv(sum);
    const std::vector<T> y = decode<T>(sum, n, p);
    hash = hash * 31 + fnv(std::as_bytes(std::span(y)));
    const std::uint64_t expected = std::is_same_v<T, float>           ? g.float_hash
                                   : std::is_same_v<T, double>        ? g.double_hash
                                   : std::is_same_v<T, wring::half_t> ? g.half_hash
                                                                      : g.bhalf_hash;
    CAPTURE(g.multiplier, g.delta, g.shift);
    CHECK(hash == expected);
  }
}

TEST_CASE("a piece has room for what was agreed upon, and what is larger is an error", "[grid]") {
  using wring::Grid;
  const std::size_t n = 3000;
  Kokkos::DefaultHostExecutionSpace exec;
  for (const bool delta : {false, true})
    for (const wring::Operation operation : {wring::sum, wring::max}) {
      Grid<float> grid({.delta = delta});
      wring::Agreed agreed{.operation = operation,
                           .ranks = 2,
                           .total = n,
                           .max_abs = 1,
                           .allowed_error = 0.01,
                           .measured = true};
      grid.prepare(agreed);
      wring::Context context{.operation = operation, .ranks = 2, .count = n, .total = n};
      const std::size_t most = grid.max_compressed_bytes(n);
      CHECK(most < n * 4 / 2);  // 9 bits at most, of 32
      std::vector<float> ones(n, 1), twos(n, 2);
      for (std::size_t i = 0; i < n; i += 3) ones[i] = -1, twos[i] = -2;
      std::vector<std::byte> a(most), b(most), c(most + 64, std::byte{0x77});
      a.resize(grid.compress(exec, std::span<const float>(ones), a, context));
      for (float& x : twos) x *= 8;  // sums of two ones are allowed
      CHECK_THROWS_AS(grid.compress(exec, std::span<const float>(twos), std::span(c).first(most), context),
                      wring::CodecError);
      b.resize(grid.combine(exec, a, a, b, context));
      if (operation == wring::sum)
        CHECK_THROWS_AS(grid.combine(exec, b, b, std::span(c).first(most), context), wring::CodecError);
      std::vector<float> result(n), values = ones;
      CHECK_NOTHROW(grid.accumulate(exec, std::span<const float>(values), a, std::span(c).first(most),
                                    std::span(result), context));
      if (operation == wring::sum) {
        CHECK(std::fabs(result[0] + 2) <= 0.01f);
        CHECK_THROWS_AS(grid.accumulate(exec, std::span<const std::byte>(b), b, std::span(c).first(most),
                                        std::span(result), context),
                        wring::CodecError);
      }
      for (std::size_t i = most; i < c.size(); ++i) REQUIRE(c[i] == std::byte{0x77});
    }
}
