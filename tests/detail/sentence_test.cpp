// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <wring/detail/sentence.hpp>

using wring::detail::sentence;

TEST_CASE("A sentence is its words in a row") {
  const std::string where = "rank 3";
  CHECK(sentence(where, ": block ", std::size_t{0}, " of ", -2) == "rank 3: block 0 of -2");
  CHECK(sentence("") == "");
  CHECK(sentence(std::string(), 7u, std::string_view()) == "7");
}

TEST_CASE("Whole numbers of every size are written out") {
  CHECK(sentence(std::numeric_limits<std::int64_t>::min(), " ", std::numeric_limits<std::uint64_t>::max()) ==
        "-9223372036854775808 18446744073709551615");
  CHECK(sentence(std::int8_t{-128}, " ", std::uint16_t{65535}) == "-128 65535");
}
