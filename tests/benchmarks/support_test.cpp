// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the benchmarks share.
#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/arguments.hpp"
#include "support/bound.hpp"
#include "support/data.hpp"
#include "support/json.hpp"
#include "support/result_file.hpp"
#include "support/statistics.hpp"

using namespace wring_benchmark;

TEST_CASE("sizes") {
  CHECK(size_from("8") == 8);
  CHECK(size_from("64k") == 65536);
  CHECK(size_from("1.5m") == 1572864);
  CHECK(size_text(65536) == "64k");
  CHECK(size_text(1000) == "1000");
  CHECK(size_text(0) == "0");
  for (const char* wrong :
       {"", "k", "12x", "-1", " 8", "inf", "nan", "-inf", "0x10", "1e19", "9999999999g", "8kk"})
    CHECK_THROWS_AS(size_from(wrong), std::invalid_argument);
}

TEST_CASE("whole numbers") {
  CHECK(count_from("0") == 0);
  CHECK(count_from("100000", 2) == 100000);
  CHECK(count_from("1k") == 1024);
  for (const char* wrong : {"", "1.5", "-1", "4294967298", "nan", "two"})
    CHECK_THROWS_AS(count_from(wrong), std::invalid_argument);
  CHECK_THROWS_AS(count_from("1", 2), std::invalid_argument);
}

TEST_CASE("bounds") {
  CHECK(bound_from("rms:0.1") == wring::relative_to_rms(0.1));
  CHECK(bound_from("range:1e-3") == wring::relative_to_range(1e-3));
  CHECK(bound_from("absolute:2") == wring::absolute(2));
  for (const char* text : {"rms:0.1", "range:0.001", "absolute:2"}) CHECK(text_of(bound_from(text)) == text);
  for (const char* wrong : {"", "rms", "rms:", "rms:0", "rms:-1", "rms:nan", "0.1", "other:0.1"})
    CHECK_THROWS_AS(bound_from(wrong), std::invalid_argument);
}

TEST_CASE("arguments") {
  const char* texts[] = {"program", "--sizes", "8,1k", "--depth=3", "--link", "1 Gb/s=x"};
  Arguments arguments(6, texts);
  CHECK(arguments.sizes("sizes", "") == std::vector<std::size_t>{8, 1024});
  CHECK_THROWS_AS(arguments.expect_all_known(), std::invalid_argument);
  CHECK(arguments.count("depth", "4") == 3);
  CHECK(arguments.number("budget", "0.5") == 0.5);
  CHECK(arguments.text("link", "") == "1 Gb/s=x");
  CHECK_NOTHROW(arguments.expect_all_known());
  CHECK_THROWS_AS(arguments.positive("latency", "0"), std::invalid_argument);
  CHECK_THROWS_AS(arguments.choice("depth", "", {"1", "2"}), std::invalid_argument);
  CHECK_THROWS_AS(Arguments(2, texts), std::invalid_argument);
}

TEST_CASE("arguments without a name are words") {
  const char* texts[] = {"program", "field", "--seed", "1", "a.f32"};
  Arguments arguments(5, texts);
  CHECK(arguments.count("seed", "") == 1);
  CHECK_THROWS_AS(arguments.expect_all_known(), std::invalid_argument);
  CHECK(arguments.words() == std::vector<std::string>{"field", "a.f32"});
  CHECK_NOTHROW(arguments.expect_all_known());
}

TEST_CASE("nothing is given twice, and help is asked for anywhere") {
  const char* twice[] = {"program", "--seed", "1", "--seed", "2"};
  CHECK_THROWS_AS(Arguments(5, twice), std::invalid_argument);
  CHECK_FALSE(Arguments(3, twice).help());
  const char* help[] = {"program", "--seed", "1", "--help"};
  CHECK(Arguments(4, help).help());
}

TEST_CASE("a file of results is opened at once, and changed only when they are there") {
  const auto folder = std::filesystem::temp_directory_path() / "wring_benchmark_result_file";
  std::filesystem::remove_all(folder);
  CHECK_THROWS_AS(ResultFile((folder / "a.json").string()), std::runtime_error);  // there is no such folder
  std::filesystem::create_directory(folder);
  const auto path = (folder / "a.json").string();
  const auto content = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  static_cast<void>(ResultFile(path));
  CHECK_FALSE(std::filesystem::exists(path));
  ResultFile(path).write("first results");
  CHECK(content() == "first results");
  static_cast<void>(ResultFile(path));
  CHECK(content() == "first results");
  ResultFile moved = ResultFile(path);
  moved.write("second");
  CHECK(content() == "second");
  ResultFile none;
  CHECK_FALSE(none.wanted());
  CHECK_NOTHROW(none.write("nowhere"));
  if (std::filesystem::exists("/dev/full"))
    CHECK_THROWS_AS(ResultFile("/dev/full").write("more"), std::runtime_error);
  std::filesystem::remove_all(folder);
}

TEST_CASE("data must be there, and be whole values") {
  const auto path = (std::filesystem::temp_directory_path() / "wring_benchmark_values.f32").string();
  std::filesystem::remove(path);
  CHECK_THROWS_AS(read_values<float>(path), std::runtime_error);
  const float values[] = {1.5f, std::numeric_limits<float>::infinity()};
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
  CHECK(read_values<float>(path) == std::vector<float>{1.5f, 0});
  std::ofstream(path, std::ios::binary).write("12345", 5);
  CHECK_THROWS_AS(read_values<float>(path), std::runtime_error);
  std::ofstream(path, std::ios::binary).flush();
  CHECK_THROWS_AS(read_values<float>(path), std::runtime_error);
  std::filesystem::remove(path);
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
