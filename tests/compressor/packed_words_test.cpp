// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/packed_words.hpp>
#include <wring/detail/checksum.hpp>
#include <wring/testing/compressor_laws.hpp>

#include "support/values.hpp"

using namespace wring;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Bytes = std::vector<std::byte>;

struct Sums {
  Agreed agreed;
  Context context;

  Sums(int ranks, std::size_t n, double max_abs, double error, Operation operation = sum,
       bool finite = true) {
    agreed = {.operation = operation,
              .ranks = ranks,
              .total = n,
              .max_abs = max_abs,
              .allowed_error = error,
              .measured = true,
              .finite = finite};
    context = {.operation = operation, .ranks = ranks, .count = n, .total = n};
  }

  template <class Codec> Codec prepared(typename Codec::Options options = {}) const {
    Codec codec(options);
    codec.prepare(agreed);
    return codec;
  }
};

template <class Codec, class T> Bytes encoded(Codec& codec, const std::vector<T>& x, const Context& c) {
  Bytes bytes(codec.max_compressed_bytes(x.size()), std::byte{0xee});
  bytes.resize(codec.compress(Exec{}, std::span<const T>(x), bytes, c));
  return bytes;
}

/// The result of all ranks' inputs, as an executor makes it.
template <class Codec, class T>
std::vector<T> reduced(Codec& codec, const std::vector<std::vector<T>>& inputs, Context c) {
  Bytes sum = encoded(codec, inputs[0], c);
  c.phase = Phase::hop;
  for (std::size_t r = 1; r < inputs.size(); ++r) {
    const Bytes next = encoded(codec, inputs[r], c);
    Bytes out(codec.max_combined_bytes(c.count, c.ranks));
    c.terms = static_cast<int>(r) + 1;
    out.resize(codec.combine(Exec{}, sum, next, out, c));
    sum = std::move(out);
  }
  c.phase = Phase::final;
  if constexpr (FinishingCompressor<Codec>)
    if (codec.finishes()) {
      Bytes out(codec.max_combined_bytes(c.count, c.ranks));
      out.resize(codec.finish(Exec{}, sum, out, c));
      sum = std::move(out);
    }
  std::vector<T> result(c.count);
  codec.decompress(Exec{}, sum, std::span<T>(result), c);
  return result;
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

template <class T> std::vector<std::vector<T>> inputs_of(int ranks, std::size_t n, double scale,
                                                         bool specials) {
  std::vector<std::vector<T>> inputs;
  for (int r = 0; r < ranks; ++r) {
    auto& x = inputs.emplace_back(wring_test::real_numbers<T>(n, static_cast<std::uint64_t>(r + 1)));
    for (T& value : x) value = T(scale / 8 * static_cast<double>(detail::widen(value)));
    constexpr double inf = std::numeric_limits<double>::infinity();
    const double special[] = {inf, -inf, std::nan(""), inf};
    for (std::size_t i = static_cast<std::size_t>(r); specials && i < n; i += 7)
      x[i] =
          T(static_cast<typename FloatTraits<T>::Wide>(special[(i / 7 + static_cast<std::size_t>(r)) % 4]));
  }
  return inputs;
}

template <class T> double greatest(const std::vector<std::vector<T>>& inputs) {
  double most = 0;
  for (const auto& x : inputs)
    for (const T& value : x) {
      const double a = std::fabs(static_cast<double>(detail::widen(value)));
      if (std::isfinite(a)) most = std::max(most, a);
    }
  return most;
}

}  // namespace

TEMPLATE_TEST_CASE("PackedWords keeps the laws", "[compressor][packed_words][laws]", float, double, half_t,
                   bhalf_t) {
  CHECK(testing::check_compressor_laws(PackedWords<TestType>{}) == std::vector<std::string>{});
}

TEMPLATE_TEST_CASE("PackedWords: results have the bits of Grid's", "[compressor][packed_words]", float,
                   double, half_t, bhalf_t) {
  using T = TestType;
  using Step = typename Grid<T>::StepKind;
  int compared = 0;
  for (const int ranks : {1, 2, 3, 4, 5, 8, 9, 40})
    for (const double relative : {0.3, 1e-2, 1e-3, 1e-5, 1e-9})
      for (const bool specials : {false, true})
        for (const std::size_t n : {1, 7, 511, 512, 513, 1400}) {
          const auto operation = (n + static_cast<std::size_t>(ranks)) % 2 == 0 ? sum : mean;
          const auto kind = n % 3 == 0 ? Step::power_of_two : Step::short_step;
          const auto inputs = inputs_of<T>(ranks, n, 3, specials);
          const double most = greatest(inputs), error = relative * most * (operation == sum ? ranks : 1);
          const Sums sums(ranks, n, most, error, operation, !specials);
          INFO(ranks << " ranks, " << n << " values, error " << error << ", specials " << specials);
          Grid<T> grid;
          PackedWords<T> packed;
          try {
            grid = sums.prepared<Grid<T>>({.step = kind});
            packed = sums.prepared<PackedWords<T>>({.step = kind});
          } catch (const BoundUnattainable&) {
            continue;
          }
          REQUIRE(packed.step() == grid.step());
          REQUIRE(same_bits(reduced(packed, inputs, sums.context), reduced(grid, inputs, sums.context)));
          ++compared;
        }
  REQUIRE(compared > 100);
}

TEMPLATE_TEST_CASE("PackedWords: the kernels of devices write and read what those of hosts do",
                   "[compressor][packed_words]", float, double, half_t, bhalf_t) {
  using namespace wring::detail::packed_words;
  using T = TestType;
  for (const double error : {0.5, 1e-2, 1e-4})
    for (const bool specials : {false, true})
      for (const std::size_t n : {1, 100, 512, 1037}) {
        const auto inputs = inputs_of<T>(1, n, 3, specials);
        Agreed agreed = Sums(6, n, greatest(inputs), 6 * error, mean, !specials).agreed;
        std::optional<Parameters> chosen;
        try {
          chosen = choose_parameters<T>(agreed, false);
        } catch (const BoundUnattainable&) {
          continue;
        }
        Parameters p = *chosen;
        const Layout layout = p.layout(n);
        std::vector<u64> host(layout.words(), 1), device(layout.words(), 2);
        REQUIRE(encode<T>(Exec{}, inputs[0], reinterpret_cast<std::byte*>(host.data()), p) == 0);
        std::size_t too_large = 0;
        const EncodeWords<T> encode_word{inputs[0].data(), device.data(),          layout, p.grid.step,
                                         p.grid.inverse,   p.grid.multiplier == 8, p.most};
        for (std::size_t i = 0; i < layout.words(); ++i) encode_word(i, too_large);
        REQUIRE(too_large == 0);
        REQUIRE(host == device);
        p.grid.divisor = 6;
        std::vector<T> one(n), two(n);
        decode<T>(Exec{}, reinterpret_cast<const std::byte*>(host.data()), std::span<T>(one), p);
        const DecodeWords<T> decode_word{
            host.data(),  two.data(),   layout,        std::ldexp(p.grid.step, p.grid.shift),
            p.grid.limit, p.grid.shift, p.grid.divisor};
        for (std::size_t i = 0; i < layout.words(); ++i) decode_word(i);
        REQUIRE(same_bits(one, two));
      }
}

TEMPLATE_TEST_CASE("PackedWords: all levels of the instruction set pack and unpack alike",
                   "[compressor][packed_words]", std::int32_t, std::int64_t) {
  using namespace wring::detail;
  using Q = TestType;
  const packed_words::Kernels<Q> plain = packed_words::kernels_for<Q>(Level::scalar);
  for (int width = 1; width <= (sizeof(Q) == 4 ? 32 : 64); ++width)
    for (const std::size_t m : {1, 5, 8, 63, 500, 511, 512}) {
      const packed_words::Fields fields{width};
      std::vector<Q> q(512 + packed_words::spare_fields, 77), back(q.size(), 3), other(q.size(), 4);
      for (std::size_t i = 0; i < m; ++i) {
        const auto bits =
            static_cast<std::int64_t>(wring_test::random_bits(static_cast<std::uint64_t>(width), i));
        q[i] = static_cast<Q>(bits >> (64 - width));
      }
      Bytes one(fields.words(m) * 8), two(one.size());
      plain.pack(q.data(), m, fields, one.data());
      plain.unpack(one.data(), m, fields, back.data());
      REQUIRE(std::memcmp(q.data(), back.data(), m * sizeof(Q)) == 0);
      for (int level = 0; level <= static_cast<int>(best_level()); ++level) {
        const auto kernels = packed_words::kernels_for<Q>(static_cast<Level>(level));
        kernels.pack(q.data(), m, fields, two.data());
        REQUIRE(one == two);
        std::int64_t most = 0;
        for (std::size_t i = 0; i < 512; ++i)
          most = std::max<std::int64_t>(most, std::abs(q[i] == std::numeric_limits<Q>::min() ? 0 : q[i]));
        if (width < 32 || (width > 32 && width < 63)) {
          REQUIRE_FALSE(kernels.any_exceeds(q.data(), static_cast<Q>(most)));
          REQUIRE(kernels.any_exceeds(q.data(), static_cast<Q>(most - 1)));
        }
        kernels.unpack(one.data(), m, fields, other.data());
        REQUIRE(std::memcmp(q.data(), other.data(), m * sizeof(Q)) == 0);
      }
    }
}

TEST_CASE("PackedWords: sums of words are the words of sums, as plain integers say",
          "[compressor][packed_words]") {
  const Sums sums(3, 11, 8, 3.1);  // D = 2, |q| <= 4, |sum| <= 12: fields of 5 bits, 12 in a word
  auto codec = sums.prepared<PackedWords<float>>({.step = PackedWords<float>::StepKind::power_of_two});
  REQUIRE(codec.field_bits() == 5);
  const std::vector<float> x{8, -8, 2, -2, 0, 4, -6, 8, -8, -2, 6};
  std::int64_t wanted = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    wanted += static_cast<std::int64_t>(x[i] / 2) * (std::int64_t{1} << (5 * i));
  const Bytes bytes = encoded(codec, x, sums.context);
  REQUIRE(bytes.size() == 8);
  std::int64_t word = 0;
  std::memcpy(&word, bytes.data(), 8);
  REQUIRE(word == wanted);
}

TEST_CASE("PackedWords: sizes follow from bound, ranks and special values", "[compressor][packed_words]") {
  const auto bytes = [](int ranks, double error, bool finite) {
    return Sums(ranks, 51200, 1, error, mean, finite)
        .prepared<PackedWords<float>>()
        .max_compressed_bytes(51200);
  };
  REQUIRE(bytes(2, 1.0 / 8, true) == 100 * 8 * 43);          // 12 fields of 5 bits
  REQUIRE(bytes(2, 1.0 / 8, false) == 100 * 8 * (43 + 32));  // and 32 counters of 2 bits
  REQUIRE(PackedWords<float>{}.max_compressed_bytes(51200) >= 51200 * 8);
}

TEST_CASE("PackedWords: what it cannot do is refused", "[compressor][packed_words]") {
  PackedWords<double> codec;
  REQUIRE_THROWS_AS(codec.prepare(Sums(2, 1, 1, 0.1, min).agreed), InvalidArgument);
  REQUIRE_THROWS_AS(codec.prepare(Sums(2, 1, 1, 0.1, max).agreed), InvalidArgument);
  Agreed unbounded = Sums(2, 1, 1, 0.1).agreed;
  unbounded.allowed_error.reset();
  REQUIRE_THROWS_AS(codec.prepare(unbounded), InvalidArgument);
  REQUIRE_THROWS_AS(codec.prepare(Sums(2, 1, 1, 1e-30).agreed), BoundUnattainable);
  Bytes bytes(4096);
  std::vector<double> x(4, 1.0);
  REQUIRE_THROWS_AS(codec.compress(Exec{}, std::span<const double>(x), bytes, Context{}), CodecError);

  const Sums sums(2, 4, 1, 0.1);
  codec = sums.prepared<PackedWords<double>>();
  x[2] = 1.5;  // more than was agreed upon
  REQUIRE_THROWS_AS(codec.compress(Exec{}, std::span<const double>(x), bytes, sums.context), CodecError);
  x[2] = std::numeric_limits<double>::infinity();  // though all inputs were found to be finite
  REQUIRE_THROWS_AS(codec.compress(Exec{}, std::span<const double>(x), bytes, sums.context), CodecError);
  x[2] = 1;
  const std::size_t size = codec.compress(Exec{}, std::span<const double>(x), bytes, sums.context);
  for (const std::size_t wrong : {std::size_t{0}, size - 1, size + 8})
    REQUIRE_THROWS_AS(codec.decompress(Exec{}, std::span<const std::byte>(bytes).first(wrong),
                                       std::span<double>(x), sums.context),
                      CodecError);
}

TEST_CASE("PackedWords: the bytes of version 1", "[compressor][packed_words]") {
  std::vector<std::vector<float>> x;
  for (const bool finite : {true, false}) {
    const Sums sums(5, 1300, 4, 0.02, sum, finite);
    auto codec = sums.prepared<PackedWords<float>>();
    x = inputs_of<float>(1, 1300, 3, !finite);
    REQUIRE(detail::checksum(encoded(codec, x[0], sums.context)) ==
            (finite ? 0xbff37b12b100db78u : 0x902deb351884869du));
  }
}
