// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The checksum of messages: the same for every width of registers, and different for whatever was damaged.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include <wring/detail/checksum.hpp>

namespace {

using wring::detail::checksum;

std::vector<std::byte> message(std::size_t n, std::uint64_t seed) {
  std::vector<std::byte> bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(wring::detail::mix(seed + i) >> 13);
  return bytes;
}

constexpr std::size_t lengths[] = {0, 1, 7, 8, 63, 64, 65, 127, 128, 129, 191, 192, 255, 256, 1000, 4096};

}  // namespace

TEST_CASE("a checksum changes with every bit", "[detail]") {
  for (const std::size_t n : lengths) {
    auto bytes = message(n, 5);
    const std::uint64_t whole = checksum(bytes);
    std::set<std::uint64_t> seen{whole};
    for (std::size_t bit = 0; bit < 8 * n; ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
      CHECK(seen.insert(checksum(bytes)).second);
      bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    }
    CHECK(checksum(bytes) == whole);
  }
}

TEST_CASE("a checksum changes with length and order, and zeros count", "[detail]") {
  std::set<std::uint64_t> seen;
  const std::vector<std::byte> zeros(5000);
  for (std::size_t n = 0; n <= zeros.size(); ++n)
    CHECK(seen.insert(checksum(std::span(zeros).first(n))).second);
  const auto bytes = message(4096, 9);
  for (const std::size_t unit : {1, 4, 8, 16, 32, 64, 128, 256, 1024})
    for (std::size_t i = 0; i + 2 * unit <= bytes.size(); i += unit) {
      auto swapped = bytes;
      std::swap_ranges(swapped.begin() + static_cast<std::ptrdiff_t>(i),
                       swapped.begin() + static_cast<std::ptrdiff_t>(i + unit),
                       swapped.begin() + static_cast<std::ptrdiff_t>(i + unit));
      if (swapped != bytes) CHECK(checksum(swapped) != checksum(bytes));
    }
}

TEST_CASE("bursts of damage are seen", "[detail]") {
  const auto bytes = message(2048, 3);
  const std::uint64_t whole = checksum(bytes);
  for (std::uint64_t i = 0; i < 20000; ++i) {
    auto damaged = bytes;
    const std::uint64_t random = wring::detail::mix(i + 77);
    const std::size_t first = random % bytes.size(),
                      last = std::min<std::size_t>(bytes.size(), first + 1 + (random >> 32) % 300);
    for (std::size_t k = first; k < last; ++k)
      damaged[k] = i % 3 == 0 ? std::byte{0} : i % 3 == 1 ? std::byte{0xff} : ~damaged[k];
    if (damaged != bytes) REQUIRE(checksum(damaged) != whole);
  }
}

TEST_CASE("a checksum does not depend on the registers", "[detail]") {
  using namespace wring::detail;
  for (const std::size_t n : lengths) {
    const auto bytes = message(n, 1);
    const std::uint64_t expected = ChecksumRows<std::uint64_t>().sum(bytes);
    for (const Level level : {Level::scalar, Level::vector16, Level::avx2, Level::avx512})
      if (can_run(level))
        CHECK(with_level(level, [&]<Level l>() { return checksum_at<l>(bytes); }) == expected);
  }
}
