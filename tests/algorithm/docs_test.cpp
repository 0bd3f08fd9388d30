// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The numbers in docs/algorithms.md are those of the plans. On a difference the test shows the lines that the page should have.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <wring/algorithm.hpp>

using namespace wring;

namespace {

std::string read(const std::string& name) {
  std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "../../docs" / name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

/// What one rank does, in messages and in vectors (blocks taken as equal). A sum by the transport counts as one message; what is sent for
/// it is not known.
struct Cost {
  double messages = 0, sent = 0, encoded = 0, largest = 0;
};

Cost cost_of(const Plan& plan) {
  Cost cost;
  std::vector<char> bytes(static_cast<std::size_t>(plan.blocks), 0);
  const double block = 1.0 / plan.blocks;
  for (const Step& s : plan.steps) {
    const double size = (s.last - s.first) * block;
    if (s.kind == Kind::send) {
      ++cost.messages;
      cost.sent += size;
    }
    if (s.kind == Kind::sum) ++cost.messages;
    if (s.kind != Kind::finish) cost.largest = std::max(cost.largest, size);
    for (int b = s.first; b < s.last; ++b) {
      char& has_bytes = bytes[static_cast<std::size_t>(b)];
      const bool encodes = s.wire == Wire::coded && s.kind != Kind::combine && s.kind != Kind::store;
      if (s.kind == Kind::combine || s.kind == Kind::finish) has_bytes = 0;
      if (s.kind == Kind::store) has_bytes = s.wire == Wire::coded;
      if (encodes && !has_bytes) {
        cost.encoded += block;
        has_bytes = 1;
      }
    }
  }
  return cost;
}

/// Of the rank that does most, for each number by itself.
template <Algorithm A>
Cost greatest_cost(const A& algorithm, Task task, int ranks) {
  Cost most;
  for (const Plan& plan : plans_of(algorithm, task, ranks)) {
    const Cost cost = cost_of(plan);
    most.messages = std::max(most.messages, cost.messages);
    most.sent = std::max(most.sent, cost.sent);
    most.encoded = std::max(most.encoded, cost.encoded);
    most.largest = std::max(most.largest, cost.largest);
  }
  return most;
}

// ---- the table of numbers

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, std::abs(x - std::round(x)) < 1e-12 ? "%.0f" : "%.3g", x);
  return text;
}

std::string edges_text(const EdgeCount& count) {
  std::string text;
  for (int e : count.per_budget)
    if (e > 0) text += (text.empty() ? "" : " + ") + std::to_string(e);
  return text.empty() ? "0" : text;
}

template <Algorithm A>
void check_row(const std::string& page, const std::string& label, const A& algorithm, Task task, int ranks) {
  const Cost c = greatest_cost(algorithm, task, ranks);
  const std::string line = "| " + label + " | " + name_of(task.collective) + " | " + std::to_string(ranks) +
                           " | " + number(c.messages) + " | " + number(c.sent) + " | " + number(c.encoded) +
                           " | " + number(c.largest) + " | " + edges_text(edges_of(algorithm, task, ranks)) +
                           " |";
  INFO("missing in docs/algorithms.md:\n" << line);
  CHECK(has_line(page, line));
}

// ---- the tables of formulas: the text in the page beside what it means

struct Row {
  std::string algorithm, messages, sent, encoded, largest, edges;
  std::function<Cost(double p, double log_p)> cost;
  std::function<int(int p)> total_edges;
};

const double one = 1;

/// Of a reduction by the transport's own sum.
Row sum_row() {
  return {"`Native`",
          "1 sum",
          "the library's affair",
          "1",
          "1",
          "p",
          [](double, double) { return Cost{1, 0, 1, 1}; },
          [](int p) { return p; }};
}

std::vector<Row> allreduce_rows() {
  return {{"`Ring`", "2(p-1)", "2(p-1)/p", "1", "1/p", "p-1, then 1",
           [](double p, double) { return Cost{2 * (p - 1), 2 * (p - 1) / p, one, 1 / p}; },
           [](int p) { return p; }},
          {"`Direct`", "2(p-1)", "2(p-1)/p", "1", "1/p", "p-1, then 1",
           [](double p, double) { return Cost{2 * (p - 1), 2 * (p - 1) / p, one, 1 / p}; },
           [](int p) { return p; }},
          {"`RecursiveDoubling`", "L", "L", "L", "1", "2(p-1)",
           [](double, double l) { return Cost{l, l, l, one}; }, [](int p) { return 2 * (p - 1); }},
          {"`HalvingDoubling`", "2L", "2(p-1)/p", "1", "1/2", "p-1, then 1",
           [](double p, double l) { return Cost{2 * l, 2 * (p - 1) / p, one, 0.5}; },
           [](int p) { return p; }},
          sum_row()};
}

std::vector<Row> reduce_scatter_rows() {
  return {{"`Ring`, `Direct`", "p-1", "(p-1)/p", "(p-1)/p", "1/p", "p-1",
           [](double p, double) { return Cost{p - 1, (p - 1) / p, (p - 1) / p, 1 / p}; },
           [](int p) { return p - 1; }},
          {"`RecursiveDoubling`, `HalvingDoubling`", "L", "(p-1)/p", "(p-1)/p", "1/2", "p-1",
           [](double p, double l) { return Cost{l, (p - 1) / p, (p - 1) / p, 0.5}; },
           [](int p) { return p - 1; }},
          sum_row()};
}

std::vector<Row> allgather_rows() {
  return {{"`Ring`, `Direct`, `Native`", "p-1", "(p-1)/p", "1/p", "1/p", "1",
           [](double p, double) { return Cost{p - 1, (p - 1) / p, 1 / p, 1 / p}; }, [](int) { return 1; }},
          {"`RecursiveDoubling`, `HalvingDoubling`", "L", "(p-1)/p", "1/p", "1/2", "1",
           [](double p, double l) { return Cost{l, (p - 1) / p, 1 / p, 0.5}; }, [](int) { return 1; }}};
}

std::vector<Row> broadcast_rows() {
  return {{"`Ring`, `Native`", "1", "1", "1", "1", "1", [](double, double) { return Cost{1, 1, 1, 1}; },
           [](int) { return 1; }},
          {"`Direct`", "2(p-1)", "2(p-1)/p", "1", "1/p", "1",
           [](double p, double) { return Cost{2 * (p - 1), 2 * (p - 1) / p, 1, 1 / p}; },
           [](int) { return 1; }},
          {"`RecursiveDoubling`", "L", "L", "1", "1", "1", [](double, double l) { return Cost{l, l, 1, 1}; },
           [](int) { return 1; }},
          {"`HalvingDoubling`", "2L", "2(p-1)/p", "1", "1/2", "1",
           [](double p, double l) { return Cost{2 * l, 2 * (p - 1) / p, 1, 0.5}; }, [](int) { return 1; }}};
}

template <Algorithm A>
void check_formulas(const std::string& page, const A& algorithm, Collective collective, const Row& row) {
  const std::string line = "| " + row.algorithm + " | " + row.messages + " | " + row.sent + " | " +
                           row.encoded + " | " + row.largest + " | " + row.edges + " |";
  INFO("missing in docs/algorithms.md:\n" << line);
  CHECK(has_line(page, line));
  for (int log_p = 1; log_p <= 6; ++log_p) {
    const int p = 1 << log_p;
    const Cost want = row.cost(p, log_p), have = greatest_cost(algorithm, {collective}, p);
    INFO(algorithm.name() << ", " << name_of(collective) << ", " << p << " ranks");
    CHECK(have.messages == want.messages);
    CHECK(std::abs(have.sent - want.sent) < 1e-12);
    CHECK(std::abs(have.encoded - want.encoded) < 1e-12);
    CHECK(std::abs(have.largest - want.largest) < 1e-12);
    CHECK(edges_of(algorithm, {collective}, p).total() == row.total_edges(p));
  }
}

/// Allgather and reduce_scatter have a row for two algorithms each, broadcast and allreduce one for each; `Native` has the last row where
/// values are added, and shares the first elsewhere.
void check_rows(const std::string& page, Collective collective, const std::vector<Row>& rows) {
  const bool shared = rows.size() <= 3;
  check_formulas(page, Ring{}, collective, rows[0]);
  check_formulas(page, Direct{}, collective, rows[shared ? 0 : 1]);
  check_formulas(page, RecursiveDoubling{}, collective, rows[shared ? 1 : 2]);
  check_formulas(page, HalvingDoubling{}, collective, rows[shared ? 1 : 3]);
  check_formulas(page, Native{}, collective, reduces(collective) ? rows.back() : rows[0]);
}

/// The number that the picture's maker left in the file.
std::string drawn_plans(const std::vector<Plan>& plans) {
  std::uint64_t drawn = 0;
  for (const Plan& plan : plans) drawn = drawn * 31 + hash(plan);
  char text[64];
  std::snprintf(text, sizeof text, "<!-- plans %016llx -->", static_cast<unsigned long long>(drawn));
  return text;
}

}  // namespace

TEST_CASE("the formulas in docs/algorithms.md are those of the plans") {
  const std::string page = read("algorithms.md");
  REQUIRE_FALSE(page.empty());
  check_rows(page, Collective::allreduce, allreduce_rows());
  check_rows(page, Collective::reduce_scatter, reduce_scatter_rows());
  check_rows(page, Collective::allgather, allgather_rows());
  check_rows(page, Collective::broadcast, broadcast_rows());
}

TEST_CASE("the numbers in docs/algorithms.md are those of the plans") {
  const std::string page = read("algorithms.md");
  for (Collective c :
       {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::broadcast})
    for (int p : {6, 8, 64}) {
      check_row(page, "`Ring`", Ring{}, {c}, p);
      check_row(page, "`Direct`", Direct{}, {c}, p);
      check_row(page, "`RecursiveDoubling`", RecursiveDoubling{}, {c}, p);
      check_row(page, "`HalvingDoubling`", HalvingDoubling{}, {c}, p);
      const int per_node = p == 64 ? 8 : p / 2;
      const std::string label = "`Hierarchical(" + std::to_string(per_node) + ")`";
      check_row(page, label, Hierarchical(per_node), {c}, p);
      if (reduces(c))
        check_row(page, label + ", coded inside", Hierarchical(per_node, Ring{}, Ring{}, Wire::coded), {c},
                  p);
    }
}

TEST_CASE("the pictures show the plans of today") {
  const auto check = [](const std::string& file, const std::vector<Plan>& plans) {
    INFO("run docs/pictures/draw_plans.cpp again for " << file);
    CHECK(read("pictures/" + file + ".svg").find(drawn_plans(plans)) != std::string::npos);
  };
  check("ring", plans_of(Ring{}, {}, 4));
  check("direct", plans_of(Direct{}, {}, 4));
  check("recursive_doubling", plans_of(RecursiveDoubling{}, {}, 6));
  check("halving_doubling", plans_of(HalvingDoubling{}, {}, 4));
  check("hierarchical", plans_of(Hierarchical(3), {}, 6));
}
