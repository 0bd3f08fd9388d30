// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The entropy coder: integers of every kind come back, all levels of the instruction set write the same bytes, the size is near the
// entropy, and damage is found.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <wring/detail/entropy/chunk.hpp>
#include <wring/detail/hash.hpp>

#include "support/values.hpp"

using namespace wring::detail::entropy;
using wring::detail::Level;
using Integers = std::vector<std::int32_t>;
using wring_test::random_bits;

namespace {

constexpr Level levels[] = {Level::scalar, Level::avx2, Level::avx512};

/// Twice exponentially distributed, with the given mean magnitude.
Integers exponential(std::size_t n, double mean, std::uint64_t seed) {
  Integers q(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double unit = (static_cast<double>(random_bits(seed, i) >> 11) + 0.5) * 0x1p-53;
    const double x = std::min(-mean * std::log(unit), 2147483000.0);
    q[i] = static_cast<std::int32_t>(std::lround(random_bits(seed + 1, i) & 1 ? -x : x));
  }
  return q;
}

/// A matrix whose columns have scales, and whose rows have.
Integers matrix(std::size_t n, std::size_t row, double mean, std::uint64_t seed) {
  Integers q(n);
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;  // of four uniform numbers: nearly normal
    for (std::uint64_t k = 0; k < 4; ++k)
      sum += static_cast<double>(static_cast<std::int64_t>(random_bits(seed + k, i))) * 0x1p-63;
    const int octaves =
        static_cast<int>(random_bits(seed + 4, i % row) % 4 + random_bits(seed + 5, i / row) % 2);
    q[i] = static_cast<std::int32_t>(std::lround(mean * std::ldexp(sum, octaves - 2)));
  }
  return q;
}

struct Kind {
  std::string name;
  Integers q;
};

std::vector<Kind> kinds(std::size_t n) {
  std::vector<Kind> all;
  all.push_back({"zeros", Integers(n, 0)});
  all.push_back({"one value", Integers(n, -7)});
  for (const double mean : {0.001, 0.01, 0.3, 3.0, 40.0, 1e3, 1e6, 1e9})
    all.push_back({"exponential " + std::to_string(mean), exponential(n, mean, 1)});
  Integers mixed(n), extremes(n), greatest(n), sparse(n, 0), comb(n), offset(n);
  const Integers small = exponential(n, 2, 3), large = exponential(n, 1e7, 4);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t bits = random_bits(9, i);
    mixed[i] = i / 1000 % 3 == 0 ? 0 : i / 500 % 2 ? small[i] : large[i];
    extremes[i] = bits % 4 == 0   ? std::numeric_limits<std::int32_t>::min()
                  : bits % 4 == 1 ? std::numeric_limits<std::int32_t>::max()
                                  : static_cast<std::int32_t>(bits % 3) - 1;
    greatest[i] = std::numeric_limits<std::int32_t>::max() - static_cast<std::int32_t>(bits % 3);
    if (bits % 501 == 0) sparse[i] = static_cast<std::int32_t>(bits >> 33);
    comb[i] = static_cast<std::int32_t>(bits % 5) * 1000003;
    offset[i] = bits % 3 == 0 ? 0 : 1000000 + static_cast<std::int32_t>(bits % 70000);
  }
  all.push_back({"mixed", mixed}), all.push_back({"extremes", extremes}), all.push_back({"sparse", sparse});
  all.push_back({"greatest", greatest});
  all.push_back({"comb", comb}), all.push_back({"offset", offset});
  all.push_back({"matrix", matrix(n, 300, 3, 11)}), all.push_back({"wide matrix", matrix(n, 577, 30, 12)});
  return all;
}

std::vector<std::byte> encoded(const Integers& q, Tries tries, Level level = Level::scalar) {
  std::vector<std::byte> bytes(q.size() * 12 + 4096);
  bytes.resize(encode_chunk(q.data(), q.size(), bytes, tries, coder_for(level)));
  return bytes;
}

double entropy_bits(const Integers& q) {
  std::map<std::int32_t, double> counts;
  for (const std::int32_t v : q) ++counts[v];
  double bits = 0;
  for (const auto& [v, count] : counts) bits -= count * std::log2(count / static_cast<double>(q.size()));
  return bits;
}

}  // namespace

TEST_CASE("integers come back, with the same bytes on every level", "[detail][entropy]") {
  for (const std::size_t n : {1, 2, 31, 32, 33, 127, 128, 129, 1000, 4095, 4096, 4097, 20000, 32767, 32768})
    for (const Kind& kind : kinds(n))
      for (const Tries& tries : {Tries{}, Tries{.tables = true}, Tries{.own = true}, Tries{true, true}}) {
        const std::vector<std::byte> bytes = encoded(kind.q, tries);
        INFO(kind.name << ", " << n << " integers");
        REQUIRE(!bytes.empty());
        for (const Level level : levels) {
          if (!can_run(level)) continue;
          REQUIRE(encoded(kind.q, tries, level) == bytes);
          Integers back(n, 77);
          decode_chunk(bytes, back.data(), n, coder_for(level));
          REQUIRE(back == kind.q);
        }
      }
}

TEST_CASE("the bytes stay as they are", "[detail][entropy][golden]") {
  wring::detail::Hasher hash;
  for (const int widest : {1, 3, 9, 20, 31}) {  // no logarithms: they differ by machine
    Integers q(5000);
    for (std::size_t i = 0; i < q.size(); ++i) {
      const std::uint64_t bits = random_bits(21, i);
      const auto value = static_cast<std::int32_t>(bits >> 33 >> (31 - widest) >> (bits % 8));
      q[i] = bits >> 32 & 1 ? value : -value;
    }
    for (const Tries& tries : {Tries{.own = true}, Tries{true, true}})
      for (const std::byte b : encoded(q, tries)) hash.add(static_cast<std::uint64_t>(b));
  }
  CHECK(hash.value() == 0x33220466bf8373e0u);
}

TEST_CASE("models are distributions", "[detail][entropy]") {
  const auto frequencies_add_up = [](const Model& m) {
    std::uint32_t sum = 0;
    const std::uint32_t symbols = m.escape + (m.has_common ? 2 : 1);
    for (std::uint32_t s = 0; s < symbols; ++s) {
      const std::uint32_t start = m.push[s] & 0xffff, frequency = m.push[s] >> 16;
      if (start != sum) return false;
      for (std::uint32_t k = 0; k < frequency; ++k)
        if (m.slot[sum + k] != (s | (frequency - 1) << 8 | k << 20)) return false;
      sum += frequency;
    }
    return sum == total_frequency && m.push[m.escape] >> 16 != 0;
  };
  for (int scale = 1; scale <= greatest_scale; ++scale)
    CHECK(frequencies_add_up(ScaleModels::get().of(scale)));
  for (unsigned kind = 0; kind < 4; ++kind) CHECK(frequencies_add_up(ScaleModels::get().steps(kind)));
  const ModelSet& each = ScaleModels::get().each();
  for (std::uint32_t model = 0; model < ModelSet::count; ++model) {
    for (std::uint32_t k = 0; k < total_frequency; ++k) {
      const std::uint32_t slot = each.slot[model * total_frequency + k], symbol = slot & 0xff,
                          entry = each.push[model * ModelSet::symbols + symbol];
      REQUIRE(symbol <= ModelSet::escape);
      CHECK((entry & 0xfff) + (slot >> 20) == k);
      CHECK((slot >> 8 & 0xfff) + 1 == (entry >> 16));
      CHECK(((entry & ModelSet::escaped) != 0) == (symbol == ModelSet::escape));
    }
  }
  for (const Kind& kind : kinds(3000)) {
    TableMaker maker;
    CHECK(frequencies_add_up(maker.make(kind.q.data(), kind.q.size()).table.model()));
  }
}

TEST_CASE("the scale is the mean magnitude in half octaves", "[detail][entropy]") {
  for (const std::int32_t value :
       {1, 2, 3, 5, 100, -1, -77, 1 << 20, std::numeric_limits<std::int32_t>::max(),
        std::numeric_limits<std::int32_t>::min()})
    for (const std::size_t some : {1, 3, 64, 127, 128}) {
      Integers q(block_values, 0);
      std::fill_n(q.begin(), some, value);
      const double mean = std::fabs(static_cast<double>(value)) * static_cast<double>(some) / 128;
      CHECK(scale_of(sum_of_magnitudes(q.data(), q.size()), q.size()) ==
            static_cast<int>(std::floor(2 * std::log2(mean) + 0.5)) + 15);
    }
  CHECK(scale_of(0, 128) == 0);
}

TEST_CASE("the size is within a tenth of a bit of the entropy", "[detail][entropy]") {
  const std::size_t n = chunk_values;
  for (const Kind& kind : kinds(n)) {
    // beyond 8 bits and more the entropy of a sample says little of that of its source
    const double bits = entropy_bits(kind.q) / static_cast<double>(n);
    if (bits > 9 || kind.name == "mixed" || kind.name == "sparse" || kind.name == "extremes" ||
        kind.name == "comb")
      continue;
    INFO(kind.name << ", entropy " << bits);
    CHECK(8.0 * static_cast<double>(encoded(kind.q, Tries{.tables = true}).size()) / static_cast<double>(n) <
          bits + 0.1);
  }
  // where the scale varies from place to place, far below that of all values together
  Integers patches;
  for (int k = 0; k < 64; ++k) {
    const Integers one = exponential(512, std::exp2(k % 8 - 2), static_cast<std::uint64_t>(k));
    patches.insert(patches.end(), one.begin(), one.end());
  }
  CHECK(8.0 * static_cast<double>(encoded(patches, Tries{.own = true}).size()) < 0.9 * entropy_bits(patches));
}

TEST_CASE("what fits is written, and nothing else", "[detail][entropy]") {
  for (const std::size_t n : {1, 700, 10000})
    for (const Kind& kind : kinds(n)) {
      const Integers& q = kind.q;
      const std::vector<std::byte> whole = encoded(q, Tries{.own = true});
      const std::size_t size = whole.size();
      INFO(kind.name << ", " << n << " integers");
      for (const std::size_t room : {std::size_t{0}, std::size_t{1}, size / 2, size - 1, size, size + 9}) {
        std::vector<std::byte> bytes(room + 64, std::byte{0x5a});
        const std::span<std::byte> out = std::span(bytes).first(room);
        CHECK(encode_chunk(q.data(), n, out, Tries{.own = true}) == (room < size ? 0 : size));
        if (room >= size) CHECK(std::equal(whole.begin(), whole.end(), bytes.begin()));
        CHECK(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(room), bytes.end(),
                          [](std::byte b) { return b == std::byte{0x5a}; }));
      }
    }
}

TEST_CASE("columns with scales are found, and take fewer bytes", "[detail][entropy]") {
  for (const std::size_t row : {128, 300, 577})
    for (const double mean : {0.5, 5.0}) {
      const Integers q = matrix(chunk_values, row, mean, row);
      Integers apart;  // the same values with their columns in another order in each row
      for (std::size_t i = 0; i < q.size(); ++i) {
        const std::size_t first = i / row * row, in_row = std::min(row, q.size() - first);
        apart.push_back(q[first + (i - first + random_bits(7, i / row)) % in_row]);
      }
      INFO("rows of " << row << ", mean " << mean);
      const chunk::Scales scales(q.data(), q.size(), best_coder());
      const auto own = std::make_unique<chunk::Own>(scales, q.data(), q.size(), best_coder());
      CHECK((own->used && own->row == row));
      CHECK(encoded(q, Tries{.own = true}).size() * 100 < encoded(apart, Tries{.own = true}).size() * 97);
    }
}

TEST_CASE("nearly nothing takes nearly no bytes", "[detail][entropy]") {
  Integers q(chunk_values, 0);
  CHECK(encoded(q, Tries{.tables = true}).size() < 40);
  for (std::size_t i = 0; i < 1000; ++i) q[i] = static_cast<std::int32_t>(random_bits(3, i) % 3) - 1;
  CHECK(encoded(q, Tries{.tables = true}).size() < 300);  // the entropy is 198
}

TEST_CASE("damaged bytes give an error or other integers", "[detail][entropy]") {
  std::size_t errors = 0, trials = 0;
  for (const std::size_t n : {1, 40, 1000, 6000})
    for (const Kind& kind : kinds(n))
      for (const Tries& tries : {Tries{}, Tries{.tables = true}, Tries{.own = true}, Tries{true, true}}) {
        const std::vector<std::byte> bytes = encoded(kind.q, tries);
        Integers back(n);
        const auto try_decoding = [&](const std::vector<std::byte>& damaged) {
          ++trials;
          for (const Level level : levels) {
            if (!can_run(level)) continue;
            try {
              decode_chunk(damaged, back.data(), n, coder_for(level));
            } catch (const wring::CodecError&) {
              errors += level == Level::scalar;
            }
          }
        };
        for (std::size_t k = 0; k < 20; ++k) {
          const std::uint64_t bits = random_bits(n + k, bytes.size());
          std::vector<std::byte> damaged = bytes;
          damaged[bits % bytes.size()] ^= static_cast<std::byte>(1 + (bits >> 32) % 255);
          try_decoding(damaged);
          damaged = bytes;
          damaged.resize(bits % bytes.size());
          try_decoding(damaged);
        }
        std::vector<std::byte> longer = bytes;
        longer.push_back(std::byte{0});
        try_decoding(longer);
      }
  CHECK(errors * 10 > trials * 8);
}
