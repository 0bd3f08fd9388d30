// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random numbers: Philox against its authors' known answers, the same in every width of registers, and independent where they must be.
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <wring/detail/processor.hpp>
#include <wring/detail/random/philox.hpp>
#include <wring/detail/random/rows.hpp>
#include <wring/random.hpp>

using namespace wring;
using namespace wring::detail;

namespace {

using Rows = void (*)(const RandomPlaces&, RandomRows (&)[2]);

std::vector<Rows> all_rows() {
  std::vector<Rows> all;
  for (const Level level : {Level::scalar, Level::vector16, Level::avx2, Level::avx512})
    if (can_run(level)) all.push_back(with_level(level, []<Level l>() -> Rows { return random_rows_at<l>; }));
  return all;
}

}  // namespace

// The vectors "philox4x32 7" of the file kat_vectors that comes with Random123 1.14.
TEST_CASE("Philox4x32-7 gives its authors' known answers", "[detail][random]") {
  CHECK(philox({{0, 0, 0, 0}}, {0, 0}) == Words4{{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}});
  CHECK(philox({{~0u, ~0u, ~0u, ~0u}}, {~0u, ~0u}) ==
        Words4{{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}});
  CHECK(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {0xa4093822, 0x299f31d0}) ==
        Words4{{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}});
}

TEST_CASE("places that are drawn together are those drawn alone", "[detail][random]") {
  const RandomStream own = RandomStream::of_encoding(3, Purpose::rounding, {.step = 7, .item = 11}),
                     other = RandomStream::shared(~std::uint64_t{0}, Purpose::rotation,
                                                  {.item = ~std::uint32_t{0}});
  const RandomPlaces places[] = {RandomPlaces::indices(own, 0, 128),
                                 RandomPlaces::indices(other, 0x123456789abcdef0, ~0u),
                                 RandomPlaces::every(128, own, 1),
                                 RandomPlaces::every(128, other, 0xfffffc80),  // into the upper word
                                 {own, ~std::uint64_t{0} - 300, 65536, 77, ~0u - 7, 1}};  // both wrap
  for (const RandomPlaces& at : places)
    for (const Rows rows_of : all_rows()) {
      RandomRows rows[2];
      rows_of(at, rows);
      for (std::uint32_t r = 0; r < 2; ++r)
        for (std::uint32_t l = 0; l < 16; ++l)
          REQUIRE(rows[r].of(l) ==
                  at.stream.words(at.first + std::uint64_t{l} * at.apart + std::uint64_t{r} * at.further,
                                  at.index + l * at.next));
    }
}

TEST_CASE("numbers for another seed, purpose, step, rank, encoding, tensor or place are other numbers",
          "[detail][random]") {
  std::set<std::vector<std::uint32_t>> all;
  int streams = 0;
  const auto add = [&](const RandomStream& stream, std::uint64_t first, std::uint32_t index) {
    const Words4 words = stream.words(first, index);
    all.insert({words.word, words.word + 4});
    ++streams;
  };
  const Context usual{.step = 1};
  const auto encoding = [&](std::uint64_t seed, const Context& c) {
    add(RandomStream::of_encoding(seed, Purpose::rounding, c), 0, 0);
  };
  encoding(0, usual);
  encoding(1, usual);
  encoding(std::uint64_t{1} << 32, usual);
  add(RandomStream::of_encoding(0, Purpose::rotation, usual), 0, 0);
  add(RandomStream::shared(0, Purpose::rounding, usual), 0, 0);
  add(RandomStream::of_encoding(0, Purpose::rounding, usual), 1, 0);
  add(RandomStream::of_encoding(0, Purpose::rounding, usual), std::uint64_t{1} << 32, 0);
  add(RandomStream::of_encoding(0, Purpose::rounding, usual), 0, 1);
  for (const std::uint64_t step : {std::uint64_t{2}, std::uint64_t{1} << 32}) encoding(0, {.step = step});
  for (const int rank : {1, 2, 1000}) encoding(0, {.rank = rank, .step = 1});
  for (const int terms : {2, 3, 1000}) encoding(0, {.phase = Phase::hop, .terms = terms, .step = 1});
  encoding(0, {.phase = Phase::final, .terms = 2, .step = 1});
  for (const std::size_t item : {1, 2}) encoding(0, {.step = 1, .item = item});
  CHECK(all.size() == static_cast<std::size_t>(streams));
}

TEST_CASE("ranks that hold the same sum draw the same numbers", "[detail][random]") {
  const auto of = [](const Context& c) {
    return RandomStream::of_encoding(9, Purpose::rounding, c).words(128, 0);
  };
  for (const Phase phase : {Phase::hop, Phase::final})
    CHECK(of({.phase = phase, .rank = 0, .terms = 4}) == of({.phase = phase, .rank = 5, .terms = 4}));
  CHECK(of({.rank = 0, .terms = 1}) != of({.rank = 5, .terms = 1}));
}

TEST_CASE("numbers that all ranks share do not depend on who asks", "[detail][random]") {
  const auto of = [](const Context& c) {
    return RandomStream::shared(9, Purpose::rotation, c).words(128, 0);
  };
  CHECK(of({.phase = Phase::own, .rank = 0, .step = 3}) ==
        of({.phase = Phase::hop, .rank = 5, .terms = 4, .step = 3}));
  CHECK(of({.step = 3}) != of({.step = 4}));
}

// Each of the 128 bits of 20000 successive counters is set in half of them, within 5 standard deviations.
TEST_CASE("bits of successive places are balanced", "[detail][random]") {
  const RandomStream stream = RandomStream::of_encoding(4, Purpose::rounding, {});
  constexpr int count = 20000;
  std::vector<int> set(128);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Words4 words = stream.words(128 * i, 0);
    for (std::size_t bit = 0; bit < 128; ++bit) set[bit] += (words.word[bit / 32] >> (bit % 32)) & 1u;
  }
  for (const int n : set) CHECK(std::abs(n - count / 2) <= 5 * std::sqrt(count / 4.0));
}

TEST_CASE("what authors of compressors draw depends on the place in the tensor, not on how it was cut",
          "[detail][random]") {
  const Context whole{.step = 5, .item = 2, .first = 0, .count = 1000};
  const Context part{.step = 5, .item = 2, .first = 130, .count = 870};
  const RandomDraws a = RandomDraws::of_encoding(7, 1, whole), b = RandomDraws::of_encoding(7, 1, part);
  std::set<std::uint32_t> all;
  double sum = 0;
  for (std::uint64_t i = 0; i < 870; ++i) {
    REQUIRE(a.bits(130 + i) == b.bits(i));
    REQUIRE(a.four((130 + i) / 4).bits[(130 + i) % 4] == b.bits(i));
    REQUIRE((b.uniform(i) >= 0 && b.uniform(i) < 1 &&
             b.uniform(i) * 0x1p24f == static_cast<float>(b.bits(i) >> 8)));
    all.insert(b.bits(i)), sum += b.uniform(i);
  }
  CHECK(all.size() == 870);
  CHECK(std::abs(sum / 870 - 0.5) <= 5 * std::sqrt(1.0 / 12 / 870));
}

TEST_CASE("authors' numbers are others for another purpose, and others than the library's own",
          "[detail][random]") {
  const Context c{.step = 1};
  CHECK(RandomDraws::of_encoding(7, 0, c).bits(0) != RandomDraws::of_encoding(7, 1, c).bits(0));
  CHECK(RandomDraws::of_encoding(7, 0, c).bits(0) !=
        RandomStream::of_encoding(7, Purpose::rounding, c).words(0, 0).word[0]);
  CHECK(RandomDraws::shared(7, 0, {.phase = Phase::own, .rank = 0, .step = 1}).bits(9) ==
        RandomDraws::shared(7, 0, {.phase = Phase::hop, .rank = 3, .terms = 2, .step = 1}).bits(9));
  CHECK(RandomDraws::of_encoding(7, 0, {.rank = 1}).bits(9) !=
        RandomDraws::of_encoding(7, 0, {.rank = 2}).bits(9));
}
