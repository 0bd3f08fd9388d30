// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A machine as text: exact, in any order of lines, and refused with the name of the figure that is wrong.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <string>

#include <wring/machine.hpp>

using namespace wring;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Figures that no short decimal number hits.
Machine awkward_machine() {
  Machine m;
  m.latency = 1.0 / 3e5, m.overhead = std::nextafter(1e-6, 1), m.bandwidth = 1e9 / 7, m.measure = 1e99 / 3;
  m.encode = 1e-100, m.combine = 0x1.fffffffffffffp300;
  m.decode = 0x1.fffffffffffffp40, m.launch = 0, m.add = std::sqrt(2.0) * 1e9, m.copy = 1e9 + 1e-6;
  m.cached_measure = 0, m.cached_encode = 1e10 / 3, m.cached_decode = 2e10 / 3;
  m.ranks_per_node = 48, m.inside_latency = 0.1, m.inside_bandwidth = 0.3;
  return m;
}

/// The text of a machine with one line replaced.
std::string with_line(const std::string& name, const std::string& line) {
  std::string text = to_string(Machine{});
  const std::size_t begin = text.find(name + " ");
  REQUIRE(begin != std::string::npos);
  return text.replace(begin, text.find('\n', begin) - begin, line);
}

void expect_refused(const std::string& text, const std::string& words) {
  INFO(text);
  CHECK_THROWS_MATCHES(machine_from(text), InvalidArgument, MessageMatches(ContainsSubstring(words)));
}

}  // namespace

TEST_CASE("machine: what was written is read, bit by bit") {
  for (const Machine& m : {Machine{}, typical_node(), awkward_machine()})
    CHECK(machine_from(to_string(m)) == m);
}

TEST_CASE("machine: the text is a line for each figure") {
  Machine m;
  m.latency = 2.5e-5, m.ranks_per_node = 4;
  const std::string text = to_string(m);
  CHECK(text.starts_with("latency 2.5e-05\n"));
  CHECK(
      (text.find("\nbandwidth 12500000\n") != text.npos || text.find("\nbandwidth 1.25e+07\n") != text.npos));
  CHECK(text.ends_with("ranks_per_node 4\n"));
}

TEST_CASE("machine: order of lines, blanks, ends of lines and remarks do not matter") {
  const Machine m = awkward_machine();
  std::string backwards = "# of cluster A\n\n", text = to_string(m);
  while (!text.empty()) {
    const std::size_t begin = text.rfind('\n', text.size() - 2) + 1;
    std::string line = text.substr(begin, text.size() - 1 - begin);
    line.insert(line.find(' '), "\t ");
    backwards += "  " + line + " \r\n#\n";
    text.resize(begin);
  }
  CHECK(machine_from(backwards) == m);
  backwards.resize(backwards.rfind(" \r\n#\n"));  // the last line has no end
  CHECK(machine_from(backwards) == m);
}

TEST_CASE("machine: what is wrong with a text is named") {
  expect_refused("", "latency is missing");
  expect_refused(with_line("decode", ""), "decode is missing");
  expect_refused(with_line("ranks_per_node", ""), "ranks_per_node is missing");
  expect_refused(with_line("decode", "decoed 1e9"), "there is no figure 'decoed'");
  expect_refused(to_string(Machine{}) + "copy 1e9\n", "copy is there twice");
  expect_refused(with_line("encode", "encode"), "encode is ''");
  expect_refused(with_line("encode", "encode fast"), "encode is 'fast', which is no number");
  expect_refused(with_line("encode", "encode 4e9x"), "encode is '4e9x'");
  expect_refused(with_line("encode", "encode 4e9 5e9"), "'5e9' follows the value of encode");
  expect_refused(with_line("encode", "encode 0"), "encode is 0");
  expect_refused(with_line("encode", "encode -1"), "encode is -1");
  for (const char* value : {"nan", "inf", "1e-320", "1e308"})
    expect_refused(with_line("encode", std::string("encode ") + value), "encode is ");
  expect_refused(with_line("launch", "launch -1e-6"), "launch is -");
  expect_refused(with_line("cached_add", "cached_add -1"), "cached_add is -1");
  expect_refused(with_line("ranks_per_node", "ranks_per_node 1.5"),
                 "ranks_per_node is '1.5', which is no whole number");
  expect_refused(with_line("ranks_per_node", "ranks_per_node 0"), "less than one rank");
}
