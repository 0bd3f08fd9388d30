// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradient by itself: the laws, every value against a plain reference, the step that makes the error asked for, and the bytes.
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <wring/compressor/gradient.hpp>
#include <wring/detail/checksum.hpp>
#include <wring/testing/compressor_laws.hpp>

#include "support/values.hpp"

using namespace wring;
using namespace wring_test;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Exact = long double;

template <class T> double wide(T x) { return detail::widen(x); }
template <class T> Exact exact(T x) { return static_cast<Exact>(detail::widen(x)); }

/// Sums of three uniform numbers, of another scale from block to block.
template <class T> std::vector<T> values(std::size_t n, std::uint64_t seed = 1) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::uint64_t k = 0; k < 3; ++k)
      sum += static_cast<double>(static_cast<std::int64_t>(random_bits(seed + k, i))) * 0x1p-63;
    x[i] = to_element<T>(std::ldexp(sum, -static_cast<int>(i / 300 % 4)));
  }
  return x;
}

template <class T> Agreed agreed_of(const Gradient<T>& codec, const std::vector<T>& x) {
  Agreed a{.ranks = 4, .total = x.size(), .allowed_error = {}, .measured = true};
  double squares = 0;
  for (const T& v : x) {
    const double y = wide(v);
    squares += y * y, a.max_abs = std::max(a.max_abs, std::fabs(y));
  }
  a.root_mean_square = std::sqrt(squares / static_cast<double>(x.size()));
  if (a.root_mean_square > 0) a.survey = codec.survey(Exec{}, std::span<const T>(x), a.root_mean_square);
  return a;
}

/// Encodes and decodes in one piece that begins at value `first` of its tensor.
template <class T> struct Coded {
  std::vector<std::byte> bytes;
  std::vector<T> y;

  Coded(Gradient<T>& codec, const std::vector<T>& x, Context c) : y(x.size()) {
    c.count = x.size(), c.total = c.first + x.size();
    std::vector<std::byte> scratch(codec.scratch_bytes(x.size()) + 64);
    const std::size_t gap = (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
    c.scratch = std::span(scratch).subspan(gap, codec.scratch_bytes(x.size()));
    bytes.resize(codec.max_compressed_bytes(x.size()));
    bytes.resize(codec.compress(Exec{}, std::span<const T>(x), bytes, c));
    codec.decompress(Exec{}, bytes, y, c);
  }
};

/// As documented: word k/16 mod 4 of counter (group's first place, k mod 16, item), low half for the first 64 of a group of 128.
unsigned right_draw(std::uint64_t seed, const Context& context, std::size_t place) {
  const auto stream = detail::RandomStream::of_encoding(seed, detail::Purpose::rounding, context);
  const std::size_t k = place % 128;
  const auto words = stream.words(place - k, static_cast<std::uint32_t>(k % 16));
  return (words.word[k / 16 % 4] >> (k < 64 ? 0 : 16)) & 0xffff;
}

template <class T> std::uint64_t hash_of_all() {
  std::uint64_t hash = 0;
  for (const double target : {1e-4, 1e-2, 0.3})
    for (const Rounding& rounding : {Rounding(), Rounding(StochasticRounding{7})}) {
      Gradient<T> codec({.target = target, .rounding = rounding});
      const std::vector<T> x = values<T>(40000);
      codec.prepare(agreed_of(codec, x));
      const Coded<T> coded(codec, x, {.rank = 1, .step = 3});
      hash = hash * 31 + detail::checksum(std::span<const std::byte>(coded.bytes));
      hash = hash * 31 + detail::checksum(std::as_bytes(std::span<const T>(coded.y)));
    }
  return hash;
}

}  // namespace

TEMPLATE_TEST_CASE("Gradient keeps the laws", "[compressor][gradient][laws]", float, bhalf_t) {
  using Codec = Gradient<TestType>;
  CHECK(testing::check_compressor_laws(Codec{}) == std::vector<std::string>{});
  CHECK(testing::check_compressor_laws(Codec{{.rounding = StochasticRounding{3}}}) ==
        std::vector<std::string>{});
  CHECK(testing::check_compressor_laws(Codec{{.form = Codec::Form::packed}}) == std::vector<std::string>{});
}

TEMPLATE_TEST_CASE("Gradient: every value is rounded up from the dead zone on", "[compressor][gradient]",
                   float, double, half_t, bhalf_t) {
  for (const auto dead_zone :
       {std::optional(0.5), std::optional(0.62), std::optional(1.0), std::optional<double>()})
    for (const double target : {1e-3, 0.1}) {
      Gradient<TestType> codec({.target = target, .dead_zone = dead_zone});
      const std::vector<TestType> x = values<TestType>(5000);
      const Agreed agreed = agreed_of(codec, x);
      codec.prepare(agreed);
      const double zone = dead_zone.value_or(detail::gradient::dead_zone_for(agreed.survey) / 4096.0);
      const Exact step = codec.step().value();
      const Coded<TestType> coded(codec, x, {});
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Exact quotient = std::fabs(exact(x[i])) / step, right = std::floor(quotient + 1 - zone);
        CHECK_FALSE(std::fabs(exact(x[i]) - exact(coded.y[i])) > codec.error(agreed.max_abs));
        // magnitudes lose a part of a step, as elements of their type
        const Exact doubt = 1e-3L + 2 * FloatTraits<TestType>::unit_roundoff * quotient;
        if (std::fabs(quotient - zone - std::round(quotient - zone)) < doubt) continue;
        const Exact signed_right = exact(x[i]) < 0 ? -right : right;
        if (exact(coded.y[i]) != exact(to_element<TestType>(static_cast<double>(signed_right * step))))
          FAIL("value " << i << ": " << wide(x[i]) << " became " << wide(coded.y[i]) << ", step "
                        << static_cast<double>(step));
      }
    }
}

TEMPLATE_TEST_CASE("Gradient: stochastic rounding takes the multiples that the draws say",
                   "[compressor][gradient]", float, double, half_t, bhalf_t) {
  Gradient<TestType> codec({.target = 0.02, .rounding = StochasticRounding{5}});
  std::vector<TestType> x = values<TestType>(5000);
  codec.prepare(agreed_of(codec, x));
  const Exact step = codec.step().value();
  for (const std::size_t first : {0, 77, 128, 1001}) {
    const Context context{.rank = 2, .step = 9, .item = 1, .first = first};
    if constexpr (std::is_floating_point_v<TestType>)  // where the draws decide, or just beside
      for (std::size_t i = 0; i < 600; ++i) {
        const Exact part = (right_draw(5, context, first + i) + 0.5L) / 65536;
        const auto edge = static_cast<TestType>((part - (i % 2 == 0 ? 1 : 0)) * step);
        x[i] = std::nextafter(edge, i % 3 == 0 ? TestType(-1e30) : i % 3 == 1 ? TestType(1e30) : edge);
      }
    const Coded<TestType> coded(codec, x, context);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Exact lower = std::floor(exact(x[i]) / step) * step;
      const bool up = (right_draw(5, context, first + i) + 0.5L) / 65536 * step < exact(x[i]) - lower;
      const Exact right = up ? lower + step : lower;
      if (exact(coded.y[i]) != exact(to_element<TestType>(static_cast<double>(right))))
        FAIL("value " << i << ": " << wide(x[i]) << " became " << wide(coded.y[i]));
    }
  }
}

TEST_CASE("Gradient: the step makes the error asked for, or less", "[compressor][gradient]") {
  std::vector<float> sparse(300000, 0), outlier = values<float>(50000), one{3}, tiny = values<float>(5000);
  for (std::size_t k = 0; k < 100; ++k) sparse[2999 * k + 17] = static_cast<float>(k % 7) - 3;
  outlier[30001] = 1e6F;
  for (float& v : tiny) v *= 0x1p-130F;
  for (const auto& x : {values<float>(5), values<float>(300000), sparse, outlier, one, tiny})
    for (const bool draws : {false, true})
      for (const double target : {1e-6, 1e-3, 0.03, 0.3}) {
        const bool many = x.size() == 300000 && x[0] != 0;
        if (draws && !many) continue;  // few draws may be off by more
        Gradient<float> codec(
            {.target = target, .rounding = draws ? Rounding(StochasticRounding{7}) : Rounding()});
        codec.prepare(agreed_of(codec, x));
        const Coded<float> coded(codec, x, {});
        double error = 0, squares = 0;
        for (std::size_t i = 0; i < x.size(); ++i) {
          error += (double{x[i]} - double{coded.y[i]}) * (double{x[i]} - double{coded.y[i]});
          squares += double{x[i]} * double{x[i]};
        }
        INFO(x.size() << " values, first " << x[0] << ", target " << target << ", step "
                      << codec.step().value_or(0) << ", error " << error / squares);
        CHECK(error <=
              (many ? 1.2 : 3) * target * squares);  // one value alone: a quarter of D^2, not a twelfth
        if (many) CHECK(error >= 0.8 * target * squares);
      }
}

TEST_CASE("Gradient takes at most nine tenths of what one table would, at best, for a grid of the same error",
          "[compressor][gradient]") {
  std::ifstream file(WRING_SOURCE_DIR "/examples/data/step0100_w0.f32", std::ios::binary);
  std::vector<float> x(206346);
  REQUIRE(
      file.read(reinterpret_cast<char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(float))));
  const auto squared_error = [&](const auto& decoded) {
    double error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) error += std::pow(double{x[i]} - decoded(i), 2);
    return error;
  };
  const auto entropy = [&](double step) {
    std::map<long, double> counts;
    for (const float v : x) ++counts[std::lrint(v / step)];
    double bits = 0;
    for (const auto& [q, count] : counts) bits -= count * std::log2(count / static_cast<double>(x.size()));
    return bits;
  };
  for (const double target : {1e-3, 1e-2, 0.1}) {
    Gradient<float> codec({.target = target});
    codec.prepare(agreed_of(codec, x));
    const Coded<float> coded(codec, x, {});
    const double error = squared_error([&](std::size_t i) { return double{coded.y[i]}; });
    double low = 0, high = 8 * codec.step().value();  // of a grid: its error grows with the step
    for (int i = 0; i < 30; ++i) {
      const double step = (low + high) / 2;
      (squared_error([&](std::size_t k) { return std::nearbyint(x[k] / step) * step; }) < error ? low
                                                                                                : high) =
          step;
    }
    INFO("target " << target << ", " << 8. * static_cast<double>(coded.bytes.size()) / entropy(high)
                   << " of the entropy");
    CHECK(8 * static_cast<double>(coded.bytes.size()) <= 0.9 * entropy(high));
  }
}

TEST_CASE("Gradient refuses options that are out of range, and has no step without a survey",
          "[compressor][gradient]") {
  const std::vector<float> x = values<float>(100);
  for (const double target : {0.0, 1.0, -1.0, std::nan("")})
    CHECK_THROWS_AS(agreed_of(Gradient<float>({.target = target}), x), InvalidArgument);
  for (const double dead_zone : {0.4, 1.5})
    CHECK_THROWS_AS(agreed_of(Gradient<float>({.dead_zone = dead_zone}), x), InvalidArgument);
  Gradient<float> codec;
  CHECK_THROWS_AS(codec.prepare({.total = 5, .max_abs = 1, .allowed_error = {}}), InvalidArgument);
  CHECK_THROWS_AS(codec.prepare({.total = 5, .max_abs = 1, .allowed_error = {}, .measured = true}),
                  InvalidArgument);
  codec.prepare({.total = 5, .max_abs = 0, .allowed_error = {}, .measured = true});  // nothing but zeros
  CHECK(codec.step());
  CHECK_THROWS_AS(codec.prepare({.total = 5, .max_abs = 1, .allowed_error = {}}), InvalidArgument);
  CHECK(!codec.step());  // that of the call before has gone
}

TEST_CASE("Gradient names the bound that was asked for, where it cannot be kept", "[compressor][gradient]") {
  const Agreed agreed{.ranks = 3, .total = 5, .max_abs = 4, .allowed_error = 1e-3, .measured = true};
  const auto refusal = [&](Rounding rounding) -> std::string {
    try {
      Gradient<half_t>({.rounding = rounding}).prepare(agreed);
    } catch (const BoundUnattainable& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(NearestRounding{}).starts_with("Grid<half_t>: an error of 0.001 "));
  CHECK(refusal(StochasticRounding{1})
            .starts_with("Gradient: stochastic rounding takes half of the bound of 0.001: Grid<half_t>: an "
                         "error of 0.0005 "));
}

TEST_CASE("Gradient leaves values as they are that are below all steps", "[compressor][gradient]") {
  std::vector<double> x(100, 0);
  x[3] = 5e-324, x[70] = -5e-324;
  Gradient<double> codec;
  codec.prepare(agreed_of(codec, x));
  CHECK(Coded<double>(codec, x, {}).y == x);
}

TEST_CASE("Gradient: the packed form is longer, says the same, and is for links known to be fast",
          "[compressor][gradient]") {
  using Form = Gradient<float>::Form;
  const std::vector<float> x = values<float>(40000);
  std::vector<Coded<float>> all;
  for (const auto& [form, speed] : {std::pair(Form::coded, 1e10),
                                    {Form::packed, 0.0},
                                    {Form::automatic, 0.0},
                                    {Form::automatic, 1e6},
                                    {Form::automatic, 1e10}}) {
    Gradient<float> codec({.form = form});
    Agreed agreed = agreed_of(codec, x);
    agreed.wire_speed = speed;
    codec.prepare(agreed);
    all.emplace_back(codec, x, Context{});
    CHECK(all.back().y == all[0].y);
  }
  CHECK(all[0].bytes.size() < all[1].bytes.size());
  CHECK((all[2].bytes == all[0].bytes && all[3].bytes == all[0].bytes && all[4].bytes == all[1].bytes));
}

TEST_CASE("Gradient: golden hashes", "[compressor][gradient][golden]") {
  CHECK(hash_of_all<float>() == 0xf3559effdadc1660u);
  CHECK(hash_of_all<double>() == 0x98f47de5d279ccadu);
  CHECK(hash_of_all<half_t>() == 0xe5c30c85ddaebe86u);
  CHECK(hash_of_all<bhalf_t>() == 0x0f69925306a19a6eu);
}
