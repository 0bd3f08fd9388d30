// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Collectives through Lossless give, bit by bit, what they give uncompressed.
#include <algorithm>
#include <cstdint>

#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/lossless.hpp>
#include <wring/compressor/none.hpp>

#include "collective/group_cases.hpp"

using namespace wring_test;
using wring::Lossless;
using wring::None;

namespace {

/// Values of all kinds among those that shrink.
template <class T> std::vector<T> mixture(std::size_t n, std::uint64_t seed) {
  std::vector<T> x = real_numbers<T>(n, seed);
  for (std::size_t i = 0; i < n; i += 37) {
    const std::uint64_t bits = random_bits(seed + 77, i);
    std::memcpy(static_cast<void*>(&x[i]), &bits, sizeof(T));
  }
  return x;
}
template <> std::vector<int> mixture<int>(std::size_t n, std::uint64_t seed) {
  std::vector<int> x;
  for (std::size_t i = 0; i < n; ++i) x.push_back(static_cast<int>(random_bits(seed, i) >> 44));
  return x;
}

template <class T> void same_as_uncompressed(unsigned every) {
  const auto check = [](Call<Lossless<T>>& call, int ranks, const AnyAlgorithm& algorithm, std::size_t n,
                        bool uneven) {
    if (std::is_integral_v<T> && call.options.operation == wring::mean) call.options.operation = wring::sum;
    const auto inputs = make_inputs<T>(call, ranks, n, uneven, mixture<T>);
    const Call<None<T>> plain{{},        call.collective, call.options, call.bound,
                              call.root, call.in_place,   call.counts,  call.world};
    const auto got = collect(algorithm, call, inputs), expected = collect(algorithm, plain, inputs);
    INFO(describe(call, ranks, algorithm, n) << describe(got.outcomes));
    REQUIRE((all_ok(got.outcomes) && got.intact));
    for (std::size_t r = 0; r < inputs.size(); ++r) REQUIRE(same_bits(got.results[r], expected.results[r]));
  };
  for_each_case(Lossless<T>{}, 8, small_lengths, every, true, check);
  for_each_case(Lossless<T>{}, 5, [](int) { return Lengths{5000, 70000}; }, 4 * every, true, check);
}

/// One tensor of each rank, gathered; every bit, and how many bytes it took.
template <class T> wring::Report gathered(const PerRank<T>& inputs) {
  wring::Report report;
  for (const AnyAlgorithm& algorithm : all_algorithms(static_cast<int>(inputs.size()))) {
    Call<Lossless<T>> call{.collective = wring::Collective::allgather};
    call.options.ride_along_bytes = 0;
    std::vector<T> whole;
    for (const auto& input : inputs) {
      call.counts.push_back(input.size());
      whole.insert(whole.end(), input.begin(), input.end());
    }
    const auto got = collect(algorithm, call, inputs);
    INFO(describe(call, static_cast<int>(inputs.size()), algorithm, whole.size()) << describe(got.outcomes));
    REQUIRE(all_ok(got.outcomes));
    for (const auto& result : got.results) REQUIRE(same_bits(result, whole));
    report = got.outcomes[0].report;
  }
  return report;
}

/// The bytes of one piece.
template <class T> std::size_t size_of_piece(const std::vector<T>& x) {
  Lossless<T> codec;
  std::vector<std::byte> bytes(codec.max_compressed_bytes(x.size()));
  return codec.compress(Exec{}, std::span<const T>(x), std::span(bytes),
                        wring::Context{.count = x.size(), .total = x.size()});
}

}  // namespace

TEST_CASE("lossless: what uncompressed collectives give, float", "[collective]") {
  same_as_uncompressed<float>(3);
}
TEST_CASE("lossless: what uncompressed collectives give, bhalf_t", "[collective]") {
  same_as_uncompressed<wring::bhalf_t>(5);
}
TEST_CASE("lossless: what uncompressed collectives give, integers", "[collective]") {
  same_as_uncompressed<int>(5);
}

TEST_CASE("lossless: integers that lie close together shrink, signed or not, around any value",
          "[collective][cases]") {
  PerRank<std::uint8_t> bytes(2, std::vector<std::uint8_t>(16384));
  PerRank<std::uint16_t> words(2, std::vector<std::uint16_t>(16384));
  for (std::size_t i = 0; i < 16384; ++i)
    for (std::size_t r = 0; r < 2; ++r)
      bytes[r][i] = static_cast<std::uint8_t>(127 + i % 2),
      words[r][i] = static_cast<std::uint16_t>(32767 + i % 2);
  const wring::Report narrow = gathered(bytes), wide = gathered(words);
  CHECK(narrow.bytes_sent < narrow.bytes_raw / 3);
  CHECK(wide.bytes_sent < wide.bytes_raw / 5);
  for (auto& x : bytes) x.resize(512);
  for (auto& x : words) x.resize(512);
  gathered(bytes), gathered(words);
  CHECK(size_of_piece(bytes[0]) < 512 / 2);  // the headers of a message are as large
  CHECK(size_of_piece(words[0]) < 1024 / 5);
  bytes.resize(1), words.resize(1);  // alone
  gathered(bytes), gathered(words);
}

TEST_CASE("lossless: integers that no float holds arrive", "[collective][cases]") {
  const std::int64_t large = (std::int64_t{1} << 53) + 1, larger = (std::int64_t{1} << 62) + 1;
  gathered(PerRank<std::int64_t>{{large, -large, larger, -larger, 0}, {INT64_MIN, INT64_MAX}});
  gathered(PerRank<std::int32_t>{{INT32_MIN, INT32_MAX, 1 << 24, (1 << 24) + 1}, {7}});
}

TEST_CASE("lossless: one value again and again, or once", "[collective][cases]") {
  for (const int value : {0, 7})
    for (const std::size_t n : {std::size_t{2048}, std::size_t{1}}) {
      gathered(PerRank<int>(2, std::vector<int>(n, value)));
      gathered(PerRank<float>(2, std::vector<float>(n, static_cast<float>(value))));
    }
}

TEST_CASE("lossless: infinities, NaN and subnormals of the 16-bit types arrive as they are",
          "[collective][cases]") {
  const std::uint16_t half[] = {0x7c00, 0xfc00, 0x7e01, 0xfdff, 0x7bff, 0xfbff, 0x0001, 0x8000};
  const std::uint16_t bfloat[] = {0x7f80, 0xff80, 0x7fc1, 0xff81, 0x7f7f, 0xff7f, 0x0001, 0x8000};
  PerRank<wring::half_t> a(2);
  PerRank<wring::bhalf_t> b(2);
  for (std::size_t i = 0; i < 600; ++i)
    for (std::size_t r = 0; r < 2; ++r)
      a[r].emplace_back().bits = half[i % 8], b[r].emplace_back().bits = bfloat[i % 8];
  gathered(a), gathered(b);
}

TEST_CASE("lossless: tensors of a group, with compressors of their own or without, keep every bit",
          "[collective][lossless]") {
  for (const wring::Collective collective : {wring::Collective::allgather, wring::Collective::broadcast})
    for (const AnyAlgorithm& algorithm : all_algorithms(3)) {
      const auto result = collect_group<Lossless<float>>(
          algorithm,
          {.collective = collective, .lengths = {700, 0, 3, 1300}, .own = {Lossless<float>(), std::nullopt}},
          3, mixture<float>);
      INFO(name_of(collective) << ", " << algorithm.name() << describe(result.outcomes));
      REQUIRE(all_ok(result.outcomes));
      REQUIRE(as_alone(algorithm, result));
      for (const auto& t : result.tensors)
        if (collective == wring::Collective::broadcast)
          for (const auto& got : t.got.results) REQUIRE(same_bits(got, t.inputs[2]));
    }
  for (const AnyAlgorithm& algorithm : all_algorithms(4))
    run_group<Lossless<float>>(algorithm,
                               {.lengths = {700, 3, 1300}, .own = {std::nullopt, Lossless<float>()}}, 4,
                               4 * 4 * 4 * 0x1p-24);
}
