// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BlockScaled with random numbers: stochastic rounding is right on average and never a level too far, the rotation comes back.
#include "compressor/block_scaled_support.hpp"

using namespace block_scaled_test;

namespace {

/// The draw that the description gives value i: word i/16 mod 4 of counter (place of the group, i mod 16, item), low half for the first 64.
unsigned right_draw(std::uint64_t seed, const Context& context, std::size_t i) {
  const auto stream =
      wring::detail::RandomStream::of_encoding(seed, wring::detail::Purpose::rounding, context);
  const std::size_t group = i / 128, within = i % 128;
  const auto words = stream.words(context.first + 128 * group, static_cast<std::uint32_t>(within % 16));
  return (words.word[within / 16 % 4] >> (within < 64 ? 0 : 16)) & 0xffff;
}

/// The lower of the two levels around x, or the upper one where x is farther from it than the draw.
int right_drawn_level(Exact x, Exact scale, unsigned draw, int levels) {
  if (scale == 0) return 0;
  int lower = -levels;
  while (lower < levels && (lower + 1) * scale <= x) ++lower;
  return lower < levels && (draw + 0.5L) / 65536 * scale < x - lower * scale ? lower + 1 : lower;
}

template <class T, int Bits> void check_draws() {
  const BlockScaled<T, Bits> codec({.rounding = StochasticRounding{77}});
  const Context context{.phase = Phase::hop, .rank = 3, .terms = 2, .step = 11, .item = 4, .first = 512};
  for (const std::size_t n : {1, 17, 128, 513, 4097})
    for (const std::vector<T>& x : data<T>(n, Bits)) {
      const Piece piece(encoded(codec, x, context), n, Bits, false);
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t group = i / 128;
        if (piece.marked[group] || piece.scales[group] == 0x7f7f) continue;
        const int right = right_drawn_level(exact(x[i]), scale_value(piece.scales[group]),
                                            right_draw(77, context, i), most_levels(Bits));
        if (piece.codes[i] != right)
          FAIL(Bits << " bits, value " << i << " of " << n << ": " << static_cast<double>(exact(x[i]))
                    << " has code " << piece.codes[i] << ", not " << right);
      }
    }
}

/// Decoded values of many seeds: their errors, and how far the means are from the values, in standard deviations.
template <class T, int Bits> void check_mean(int seeds) {
  constexpr std::size_t n = 128;
  const auto x = testing::sample_values<T>(testing::Sample::normal, n);
  const Exact scale = scale_value(Piece(encoded(BlockScaled<T, Bits>{}, x), n, Bits, false).scales[0]);
  std::vector<Exact> sums(n, 0);
  Exact worst = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const BlockScaled<T, Bits> codec({.rounding = StochasticRounding{static_cast<std::uint64_t>(seed)}});
    const auto y = decoded(codec, encoded(codec, x), n);
    for (std::size_t i = 0; i < n; ++i) {
      const Exact error = exact(y[i]) - exact(x[i]);
      worst = std::max(worst, std::fabs(error)), sums[i] += error;
    }
  }
  CHECK(worst < scale);
  for (std::size_t i = 0; i < n; ++i) {
    const Exact quotient = exact(x[i]) / scale, part = quotient - std::floor(quotient);
    const Exact deviation = scale * std::sqrt(part * (1 - part) / seeds), bias = scale * 0x1p-17L;
    if (!(std::fabs(sums[i] / seeds) <= 5 * deviation + bias))
      FAIL_CHECK("the mean of value " << i << " is off");
  }
}

}  // namespace

TEMPLATE_TEST_CASE("BlockScaled: every stochastic level is the one that its draw asks for",
                   "[compressor][block_scaled]", float, double, half_t, bhalf_t) {
  check_draws<TestType, 8>();
  check_draws<TestType, 5>();
  check_draws<TestType, 4>();
  check_draws<TestType, 2>();
}

TEST_CASE("BlockScaled: stochastic rounding is right on average and less than a scale off",
          "[compressor][block_scaled]") {
  check_mean<float, 8>(20000);
  check_mean<float, 4>(20000);
  check_mean<double, 3>(20000);
  check_mean<float, 2>(20000);
}

TEST_CASE("BlockScaled: a million seeds", "[compressor][block_scaled][nightly]") {
  check_mean<float, 4>(1000000);
}

TEST_CASE("BlockScaled: draws depend on seed, step, rank, phase and place, on nothing else",
          "[compressor][block_scaled]") {
  const auto x = testing::sample_values<float>(testing::Sample::normal, 2048);
  using Codec = BlockScaled<float, 4>;
  const auto of = [&](std::uint64_t seed, const Context& c) {
    return encoded(Codec(Codec::Options{.rounding = StochasticRounding{seed}}), x, c);
  };
  const Bytes usual = of(1, {.step = 5});
  CHECK(of(1, {.ranks = 8, .step = 5, .count = 2048, .total = 4096}) == usual);
  CHECK(of(2, {.step = 5}) != usual);
  CHECK(of(1, {.step = 6}) != usual);
  CHECK(of(1, {.rank = 1, .step = 5}) != usual);
  CHECK(of(1, {.phase = Phase::hop, .step = 5}) != usual);
  CHECK(of(1, {.terms = 2, .step = 5}) != usual);
  CHECK(of(1, {.step = 5, .item = 1}) != usual);
  CHECK(of(1, {.step = 5, .first = 512}) != usual);
  // Cut at a block, the second part says where it starts.
  const std::vector<float> tail(x.begin() + 512, x.end());
  const Codec codec({.rounding = StochasticRounding{1}});
  const auto whole = decoded(codec, usual, 2048),
             part = decoded(codec, encoded(codec, tail, {.step = 5, .first = 512}), tail.size());
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + 512));
}

TEST_CASE("BlockScaled: errors of a mean over ranks shrink with stochastic rounding, not with nearest",
          "[compressor][block_scaled]") {
  const auto x = testing::sample_values<float>(testing::Sample::normal, 4096);
  const auto error_of_mean = [&](const Rounding& rounding, int ranks) {
    const BlockScaled<float, 4> codec({.rounding = rounding});
    std::vector<double> mean(x.size());
    for (int rank = 0; rank < ranks; ++rank) {
      const auto y = decoded(codec, encoded(codec, x, {.rank = rank}), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) mean[i] += (y[i] - x[i]) / static_cast<double>(ranks);
    }
    double squares = 0;
    for (const double e : mean) squares += e * e;
    return std::sqrt(squares);
  };
  CHECK(error_of_mean(NearestRounding{}, 64) > 0.99 * error_of_mean(NearestRounding{}, 1));
  CHECK(error_of_mean(StochasticRounding{1}, 64) < error_of_mean(StochasticRounding{1}, 1) / 6);
}

namespace {

/// The rotation as its formula has it: the entry (i, k) of the Hadamard matrix is -1 to the number of common bits.
template <class T> std::vector<Exact> rotated(std::span<const T> x, const wring::detail::Words4& signs) {
  std::vector<Exact> v(128, 0);
  for (unsigned i = 0; i < 128; ++i)
    for (unsigned k = 0; k < x.size(); ++k) {
      const bool flipped = (signs.word[k / 32] >> (k % 32)) & 1;
      v[i] += (flipped != (std::popcount(i & k) % 2 != 0) ? -1 : 1) * exact(x[k]);
    }
  return v;
}

template <class T, int Bits> void check_rotation() {
  const BlockScaled<T, Bits> codec({.rounding = {}, .rotation = RandomRotation{6}});
  const Context context{.rank = 2, .step = 9, .item = 1, .first = 1024};
  const auto stream = wring::detail::RandomStream::shared(6, wring::detail::Purpose::rotation, context);
  const Exact u = std::is_same_v<T, double> ? 0x1p-53L : 0x1p-24L;
  for (const std::size_t n : {1, 100, 128, 513, 1000})
    for (const testing::Sample kind :
         {testing::Sample::normal, testing::Sample::mixed, testing::Sample::ramp, testing::Sample::zeros}) {
      const auto x = testing::sample_values<T>(kind, n);
      const Bytes bytes = encoded(codec, x, context);
      const auto y = decoded(codec, bytes, n, context);
      const Piece piece(bytes, n, Bits, true);
      for (std::size_t first = 0; first < n; first += 128) {
        const auto group = std::span(x).subspan(first, std::min<std::size_t>(128, n - first));
        const auto v = rotated<T>(group, stream.words(context.first + first, 0));
        const Exact scale = scale_value(piece.scales[first / 128]);
        Exact length = 0, errors = 0, greatest = 0;
        for (const T& value : group)
          length += exact(value) * exact(value), greatest = std::max(greatest, std::fabs(exact(value)));
        const Exact roundoff = 16 * u * 128 * greatest;
        for (std::size_t i = 0; i < 128; ++i)
          REQUIRE(std::fabs(v[i] - piece.codes[first + i] * scale) <= scale / 2 + roundoff);
        for (std::size_t i = 0; i < group.size(); ++i) {
          const Exact error = exact(y[first + i]) - exact(x[first + i]);
          errors += error * error;
        }
        const Exact own = sizeof(T) == 2 ? FloatTraits<T>::unit_roundoff * 2 * greatest * 12 : 0;
        REQUIRE(std::sqrt(errors) <= scale / 2 + roundoff + own + 12 * FloatTraits<T>::least_subnormal);
      }
    }
}

}  // namespace

TEMPLATE_TEST_CASE("BlockScaled: rotated groups are what the formula says, and come back",
                   "[compressor][block_scaled]", float, double, half_t, bhalf_t) {
  check_rotation<TestType, 8>();
  check_rotation<TestType, 3>();
}

TEST_CASE("BlockScaled: a rotation spares the neighbours of a value that stands out",
          "[compressor][block_scaled]") {
  auto x = testing::sample_values<float>(testing::Sample::normal, 4096);
  for (std::size_t i = 0; i < x.size(); i += 128) x[i] = 100;
  const auto error = [&](const std::optional<RandomRotation>& rotation) {
    const BlockScaled<float, 4> codec({.rounding = {}, .rotation = rotation});
    const auto y = decoded(codec, encoded(codec, x), x.size());
    double squares = 0;
    for (std::size_t i = 0; i < x.size(); ++i) squares += (y[i] - x[i]) * (y[i] - x[i]);
    return squares;
  };
  CHECK(error(RandomRotation{1}) < error(std::nullopt) / 3);
}

TEST_CASE("BlockScaled: groups that cannot be rotated arrive all the same", "[compressor][block_scaled]") {
  const BlockScaled<float, 8> codec({.rounding = {}, .rotation = RandomRotation{1}});
  auto x = testing::sample_values<float>(testing::Sample::normal, 512);
  x[5] = std::numeric_limits<float>::infinity(), x[130] = 3e38f, x[131] = -0x1p100f;
  const auto y = decoded(codec, encoded(codec, x), 512);
  CHECK(y[5] == x[5]);
  CHECK(std::fabs(y[130] - x[130]) <= 3e38f / 252 * 1.01f);
  for (std::size_t i = 0; i < 128; ++i)
    if (i != 5) REQUIRE(std::fabs(y[i] - x[i]) < 0.02f);
  for (std::size_t i = 256; i < 512; ++i) REQUIRE(std::fabs(y[i] - x[i]) < 0.1f);
}

TEST_CASE("BlockScaled: groups are not rotated from 2^100 on", "[compressor][block_scaled]") {
  const BlockScaled<float, 8> codec({.rounding = {}, .rotation = RandomRotation{1}});
  const float below = std::nextafter(0x1p100f, 0.f);
  std::vector<float> x(512);
  x[7] = 0x1p100f, x[128 + 7] = below;
  std::fill_n(x.begin() + 256, 128, below), std::fill_n(x.begin() + 384, 128, -0x1p100f);
  const auto piece = encoded(codec, x);
  for (const auto& [group, marked] : {std::pair{0, true}, {1, false}, {2, false}, {3, true}})
    CHECK((std::to_integer<unsigned>(piece[2 * static_cast<std::size_t>(group) + 1]) >= 0x80) == marked);
}
