// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the benchmarks share.
#include <catch2/catch_test_macros.hpp>

#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include "support/arguments.hpp"
#include "support/json.hpp"
#include "support/statistics.hpp"

using namespace wring_benchmark;

TEST_CASE("sizes") {
  CHECK(size_from("8") == 8);
  CHECK(size_from("64k") == 65536);
  CHECK(size_from("1.5m") == 1572864);
  CHECK(size_text(65536) == "64k");
  CHECK(size_text(1000) == "1000");
  CHECK(size_text(0) == "0");
  for (const char* wrong : {"", "k", "12x", "-1", "nan", "inf", "-inf", "1e19", "9999999999g"})
    CHECK_THROWS_AS(size_from(wrong), std::invalid_argument);
  CHECK(count_from("1k") == 1024);
  CHECK_THROWS_AS(count_from("4294967298"), std::invalid_argument);
  for (const char* wrong : {"nan", "inf", "1e999"})
    CHECK_THROWS_AS(number_from(wrong), std::invalid_argument);
}

TEST_CASE("arguments") {
  const char* texts[] = {"program", "--sizes", "8,1k", "--depth", "3"};
  Arguments arguments(5, const_cast<char**>(texts));
  CHECK(arguments.list("sizes", "") == std::vector<std::string>{"8", "1k"});
  CHECK_THROWS_AS(arguments.expect_all_known(), std::invalid_argument);
  CHECK(arguments.size("depth", "4") == 3);
  CHECK(arguments.number("budget", "0.5") == 0.5);
  CHECK_NOTHROW(arguments.expect_all_known());
  CHECK_THROWS_AS(Arguments(2, const_cast<char**>(texts)), std::invalid_argument);
}

TEST_CASE("quantiles") {
  const std::vector<double> values{4, 1, 3, 2};
  CHECK(median(values) == 2.5);
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 1) == 4);
  CHECK(quantile(values, 0.25) == 1.75);
  CHECK(quotients({2, 9}, {1, 3}) == std::vector<double>{2, 3});
}

TEST_CASE("JSON") {
  JsonObject object;
  object.add("a \"b\"", std::string("c\\d\n")).add("n", 3).add("x", 0.5).add("yes", true);
  object.add("none", std::optional<double>()).add("infinite", std::numeric_limits<double>::infinity());
  CHECK(object.text() ==
        R"({"a \"b\"": "c\\d ", "n": 3, "x": 0.5, "yes": true, "none": null, "infinite": null})");
}
