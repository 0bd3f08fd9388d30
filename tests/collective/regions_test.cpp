// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a profiling tool sees of an operation: a region for each piece of work, closed however it ends.
#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/transport/in_process.hpp>

#include "support/collect.hpp"
#include "support/executors.hpp"

using namespace wring_test;
using wring::InProcess;

namespace {

using View = Kokkos::View<float*, Kokkos::HostSpace>;

/// What a tool would write down.
struct Tool {
  std::vector<std::string> open;
  std::map<std::string, std::size_t> seen;
  std::size_t nested = 0, unopened = 0;
} tool;

void push(const char* name) {
  if (std::string(name).rfind("wring::", 0) == 0) ++tool.seen[name];
  if (!tool.open.empty()) ++tool.nested;
  tool.open.emplace_back(name);
}
void pop() {
  if (tool.open.empty())
    ++tool.unopened;
  else
    tool.open.pop_back();
}

/// A tool that is there for as long as this object.
struct Loaded {
  Loaded() {
    tool = {};
    Kokkos::Tools::Experimental::set_push_region_callback(push);
    Kokkos::Tools::Experimental::set_pop_region_callback(pop);
  }
  ~Loaded() {
    Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
    Kokkos::Tools::Experimental::set_pop_region_callback(nullptr);
  }
};

bool balanced() { return tool.open.empty() && tool.unopened == 0 && tool.nested == 0; }

/// Floats as they are, but for a call that throws on one rank.
struct Throwing {
  using value_type = float;
  bool encodes = true;

  std::size_t max_compressed_bytes(std::size_t n) const { return n * sizeof(float); }
  wring::Identity identity() const { return {.name = "throwing", .version = 1, .options = {}}; }
  std::size_t compress(const auto&, std::span<const float> values, std::span<std::byte> bytes,
                       const wring::Context& context) const {
    if (encodes && context.rank == 1) throw std::runtime_error("no more memory");
    std::memcpy(bytes.data(), values.data(), values.size_bytes());
    return values.size_bytes();
  }
  void decompress(const auto&, std::span<const std::byte> bytes, std::span<float> values,
                  const wring::Context& context) const {
    if (!encodes && context.rank == 1) throw std::runtime_error("no more memory");
    std::memcpy(values.data(), bytes.data(), values.size_bytes());
  }
};

template <class Codec> std::vector<Outcome> run(const Codec& codec, std::optional<wring::Bound> bound,
                                                std::size_t n = 5000, int ranks = 3) {
  InProcess world(ranks);
  std::deque<wring::Allreduce<Codec, wring::InProcessTransport, wring::Ring>> sums;
  std::vector<View> data;
  for (int r = 0; r < ranks; ++r) {
    sums.emplace_back(codec, world.link(r), wring::Ring{}, wring::Options{.segment_bytes = 4096});
    data.emplace_back("data", n);
  }
  return on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(Exec{}, wring::group(wring::item(data[r], bound)));
  });
}

std::size_t encodings(const std::vector<Outcome>& outcomes) {
  std::size_t n = 0;
  for (const Outcome& o : outcomes) n += o.report.encodings;
  return n;
}

}  // namespace

TEST_CASE("regions: one for each piece of work, none within another", "[collective][regions]") {
  const Loaded loaded;
  SECTION("pieces that combine") {
    const auto outcomes = run(wring::Grid<float>{}, wring::relative_to_range(0.01));
    REQUIRE(all_ok(outcomes));
    CHECK(tool.seen["wring::measure"] == 3);
    CHECK(tool.seen["wring::encode"] == encodings(outcomes));
    CHECK(tool.seen["wring::combine"] > 0);
    // Of three blocks, one is sent first, and one is complete, and decoded, as soon as it is added to.
    CHECK(tool.seen["wring::decode"] == 2 * tool.seen["wring::encode"]);
    CHECK(tool.seen["wring::combine"] == 2 * tool.seen["wring::encode"]);
  }
  SECTION("values that are added") {
    const auto outcomes = run(wring::Cast<wring::half_t>{}, std::nullopt);
    REQUIRE(all_ok(outcomes));
    CHECK(tool.seen.count("wring::measure") == 0);
    CHECK(tool.seen["wring::encode"] == encodings(outcomes));
    CHECK((tool.seen["wring::combine"] > 0 && tool.seen["wring::decode"] > 0));
  }
  SECTION("data that ride along, combined on the way") {
    REQUIRE(all_ok(run(wring::Grid<float>{}, wring::absolute(0.1), 50)));
    CHECK((tool.seen["wring::measure"] == 3 && tool.seen["wring::encode"] == 3 &&
           tool.seen["wring::decode"] == 3));
  }
  SECTION("data that ride along, gathered") {
    REQUIRE(all_ok(run(wring::Cast<wring::half_t>{}, std::nullopt, 50)));
    CHECK((tool.seen["wring::encode"] == 3 && tool.seen["wring::decode"] == 3));
    CHECK(tool.seen["wring::combine"] == 3 * 3);  // two are added, the sum is finished
  }
  CHECK(tool.seen["wring::wire"] > 0);
  CHECK(balanced());
}

TEST_CASE("regions: all are closed where a compressor throws", "[collective][regions]") {
  const Loaded loaded;
  for (const bool encodes : {true, false})
    for (const std::size_t n : {50, 5000}) {
      INFO((encodes ? "encoding, " : "decoding, ") << n << " elements");
      REQUIRE(run(Throwing{encodes}, std::nullopt, n)[1] == wring::Cause::codec);
      CHECK(tool.seen["wring::encode"] > 0);
      CHECK(balanced());
    }
}

TEST_CASE("regions: a tool that has gone hears no more", "[collective][regions]") {
  {
    const Loaded loaded;
  }
  REQUIRE_FALSE(Kokkos::Profiling::profileLibraryLoaded());
  REQUIRE(all_ok(run(wring::Grid<float>{}, wring::absolute(0.1))));
  CHECK((tool.seen.empty() && balanced()));
}
