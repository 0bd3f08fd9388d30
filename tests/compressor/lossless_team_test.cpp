// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels for devices, run on a host: the bytes and values of the others.
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include "lossless_support.hpp"

using namespace lossless_test;

namespace {

template <class T> Bytes team_encoded(const std::vector<T>& x) {
  Bytes bytes = room_for<T>(x.size());
  bytes.resize(detail::team_lossless_encode<T>(Exec{}, std::span<const T>(x), std::span(bytes)));
  return bytes;
}

template <class T> std::vector<T> team_decoded(const Bytes& bytes, std::size_t n) {
  std::vector<T> y(n, from_pattern<T>(0x5a5a5a5a5a5a5a5au));
  detail::team_lossless_decode<T>(Exec{}, std::span<const std::byte>(bytes), std::span(y));
  return y;
}

/// Whether a decoder takes a piece, and what it makes of it.
template <class Decode> auto outcome(const Decode& decode) -> std::pair<bool, decltype(decode())> {
  try {
    return {true, decode()};
  } catch (const CodecError&) {
    return {false, {}};
  }
}

}  // namespace

TEMPLATE_TEST_CASE("team kernels of Lossless write and read the bytes of the others",
                   "[compressor][lossless][team]", float, double, half_t, bhalf_t, std::int8_t, std::uint16_t,
                   std::int32_t, std::uint64_t) {
  for (const std::size_t n : {0, 1, 15, 17, 511, 512, 513, 1031, 16385, 40000})
    for (int data = 0; data < static_cast<int>(Data::count); ++data) {
      INFO(name_of(static_cast<Data>(data)) << ", " << n);
      const auto x = make<TestType>(static_cast<Data>(data), n, 9);
      const Bytes piece = encoded(x);
      REQUIRE(team_encoded(x) == piece);
      REQUIRE(same_bits(team_decoded<TestType>(piece, n), x));
    }
}

TEMPLATE_TEST_CASE("team kernels of Lossless refuse what the others refuse", "[compressor][lossless][team]",
                   float, double, std::int16_t) {
  const auto x = make<TestType>(Data::tails, 1100);
  const Bytes piece = encoded(x);
  for (std::size_t bit = 0; bit < 8 * piece.size(); bit += bit < 100 ? 1 : 97) {
    Bytes damaged = piece;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    const auto host = outcome([&] { return decoded<TestType>(damaged, x.size()); });
    const auto team = outcome([&] { return team_decoded<TestType>(damaged, x.size()); });
    INFO("bit " << bit);
    REQUIRE(host.first == team.first);
    REQUIRE(same_bits(host.second, team.second));
  }
}
