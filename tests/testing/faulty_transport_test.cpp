// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A FaultyTransport does what its plan says, to the message that it names, and nothing else.
#include <wring/testing/faulty_transport.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <deque>
#include <numeric>
#include <string>
#include <vector>

#include <wring/testing/transport_laws.hpp>
#include <wring/transport/in_process.hpp>

using namespace wring::testing;
using wring::InProcess;
using wring::InProcessTransport;
using wring::TransportError;
using Faulty = FaultyTransport<InProcessTransport>;

namespace {

static_assert(wring::SharedThreadTransport<Faulty>);
static_assert(std::is_same_v<Faulty::memory_space, InProcessTransport::memory_space>);

/// A transport that shares no thread with its peers, as MPI's does not.
struct Alone {
  using memory_space = Kokkos::HostSpace;
  struct Request {};
  int rank() const { return 0; }
  int size() const { return 1; }
  Request send(int, int, std::span<const std::byte>) { return {}; }
  Request receive(int, int, std::span<std::byte>) { return {}; }
  std::optional<std::size_t> test(Request&) { return 0; }
  bool cancel(Request&) { return true; }
  wring::Session& session() { return session_; }
  wring::Session session_;
};
static_assert(wring::Transport<FaultyTransport<Alone>>);
static_assert(!wring::SharedThreadTransport<FaultyTransport<Alone>>);
static_assert(!std::is_constructible_v<Faulty, InProcessTransport&&>);

using Message = std::vector<std::byte>;

Message message(std::size_t n, int seed) {
  Message m(n);
  for (std::size_t i = 0; i < n; ++i)
    m[i] = static_cast<std::byte>((i * 7 + static_cast<std::size_t>(seed)) & 0xff);
  return m;
}

/// Two or more ranks that hand each other messages by hand.
struct World {
  explicit World(int ranks, const FaultPlan& plan, std::size_t eager = 1 << 20)
      : world(ranks, {.eager_limit = eager}) {
    for (int r = 0; r < ranks; ++r) links.emplace_back(world.link(r), plan);
  }
  Faulty& operator[](int r) { return links[static_cast<std::size_t>(r)]; }
  InProcess world;
  std::deque<Faulty> links;
};

/// Tests until it has ended, at most so often; the number of tests it took, or -1.
int tests_until(Faulty& link, Faulty::Request& request, int most, std::size_t* bytes = nullptr) {
  for (int i = 1; i <= most; ++i)
    if (const auto got = link.test(request)) {
      if (bytes) *bytes = *got;
      return i;
    }
  return -1;
}

/// What arrives when rank 0 sends this to rank 1 as its message 0.
Message sent_with(const Fault& fault, const Message& given) {
  World w(2, {.faults = {fault}});
  Message room(given.size() + 100, std::byte{0xee});
  auto out = w[0].send(1, 33, given);
  auto in = w[1].receive(0, 33, room);
  std::size_t sent = 0, got = 0;
  REQUIRE(tests_until(w[0], out, 1, &sent) == 1);
  REQUIRE(sent == given.size());
  REQUIRE(tests_until(w[1], in, 1, &got) == 1);
  REQUIRE(w[0].injected().size() == 1);
  CHECK(w[0].injected()[0].peer == 1);
  CHECK(w[0].injected()[0].channel == 33);
  CHECK(w[0].injected()[0].bytes == given.size());
  room.resize(got);
  return room;
}

std::vector<std::string> broken_laws(int ranks, const FaultPlan& plan, const wring::InProcessOptions& options,
                                     int limit = 10) {
  InProcess world(ranks, options);
  std::deque<Faulty> faulty;
  std::vector<Faulty*> links;
  for (int r = 0; r < ranks; ++r) links.push_back(&faulty.emplace_back(world.link(r), plan));
  return check_transport_laws(links, {.limit = std::chrono::seconds(limit)});
}

}  // namespace

TEST_CASE("faulty transport: without faults it keeps the laws", "[testing]") {
  for (const int ranks : {1, 2, 4})
    for (const std::size_t eager : {0u, 4096u})
      CHECK(broken_laws(ranks, {}, {.eager_limit = eager, .delay = 2, .seed = 3}) ==
            std::vector<std::string>{});
}

TEST_CASE("faulty transport: late and reordered messages break no law", "[testing]") {
  for (const int ranks : {2, 4})
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
      const FaultPlan plan{
          .random = {.rate = 0.3, .seed = seed, .kinds = {FaultKind::delay, FaultKind::reorder}}};
      CHECK(broken_laws(ranks, plan, {.eager_limit = 4096, .delay = 2, .seed = seed}) ==
            std::vector<std::string>{});
    }
}

TEST_CASE("faulty transport: the laws notice damage", "[testing]") {
  for (const FaultKind kind : {FaultKind::truncate, FaultKind::extend, FaultKind::flip, FaultKind::noise,
                               FaultKind::lose, FaultKind::throw_at_test, FaultKind::stop}) {
    const FaultPlan plan{.faults = {{.kind = kind, .rank = 1, .number = 5, .amount = 3}}};
    INFO(name_of(kind));
    CHECK_FALSE(broken_laws(3, plan, {.eager_limit = 4096}, 1).empty());
  }
}

TEST_CASE("faulty transport: damage", "[testing]") {
  const Message m = message(300, 1);
  SECTION("truncate") {
    CHECK(sent_with({.kind = FaultKind::truncate, .amount = 24}, m) == Message(m.begin(), m.end() - 24));
    CHECK(sent_with({.kind = FaultKind::truncate, .amount = 5000}, m).empty());
  }
  SECTION("extend") {
    const Message got = sent_with({.kind = FaultKind::extend, .amount = 7}, m);
    REQUIRE(got.size() == 307);
    CHECK(std::equal(m.begin(), m.end(), got.begin()));
  }
  SECTION("flip") {
    Message expected = m;
    expected[12] ^= std::byte{0x20};
    CHECK(sent_with({.kind = FaultKind::flip, .amount = 12 * 8 + 5}, m) == expected);
    CHECK(sent_with({.kind = FaultKind::flip, .amount = (300 + 12) * 8 + 5}, m) == expected);
    CHECK(sent_with({.kind = FaultKind::flip, .amount = 3}, Message()).empty());
  }
  SECTION("noise") {
    const Message a = sent_with({.kind = FaultKind::noise, .amount = 1}, m);
    REQUIRE(a.size() == 300);
    CHECK(a != m);
    CHECK(a == sent_with({.kind = FaultKind::noise, .amount = 1}, m));
    CHECK(a != sent_with({.kind = FaultKind::noise, .amount = 2}, m));
  }
}

TEST_CASE("faulty transport: messages are counted by side and kind", "[testing]") {
  // rank 0 sends agreement, data, data, agreement: one of them is damaged
  for (const MessageKind kind : {MessageKind::any, MessageKind::agreement, MessageKind::data})
    for (std::uint64_t number = 0; number < 5; ++number) {
      World w(2, {.faults = {{.kind = FaultKind::flip, .messages = kind, .number = number, .amount = 0}}});
      const std::vector<int> channels{0, 1, 31, 32};
      std::vector<std::size_t> expected;
      for (std::size_t i = 0; i < channels.size(); ++i)
        if (kind == MessageKind::any || kind == kind_of(channels[i])) expected.push_back(i);
      for (std::size_t i = 0; i < channels.size(); ++i) {
        const Message m = message(8, static_cast<int>(i));
        Message room(8);
        auto out = w[0].send(1, channels[i], m);
        auto in = w[1].receive(0, channels[i], room);
        REQUIRE(w[0].test(out));
        REQUIRE(w[1].test(in));
        CHECK((room != m) == (number < expected.size() && expected[number] == i));
      }
      CHECK(w[0].messages(Side::send) == 4);
      CHECK(w[0].messages(Side::send, MessageKind::agreement) == 2);
      CHECK(w[0].messages(Side::send, MessageKind::data) == 2);
      CHECK(w[0].messages(Side::receive) == 0);
      CHECK(w[1].messages(Side::receive, MessageKind::data) == 2);
    }
}

TEST_CASE("faulty transport: a late send leaves after so many tests, and those behind it wait", "[testing]") {
  World w(3, {.faults = {{.kind = FaultKind::delay, .amount = 5}}});
  const Message a = message(10, 1), b = message(10, 2), c = message(10, 3);
  Message first(10), second(10), other(10);
  auto late = w[0].send(1, 1, a);
  auto behind = w[0].send(1, 1, b);
  auto elsewhere = w[0].send(2, 1, c);  // another peer: goes at once
  auto in1 = w[1].receive(0, 1, first), in2 = w[1].receive(0, 1, second), in3 = w[2].receive(0, 1, other);
  CHECK(w[2].test(in3));
  CHECK(other == c);
  CHECK_FALSE(w[1].test(in1));
  CHECK(tests_until(w[0], late, 20) == 5);
  CHECK(w[0].test(behind));
  CHECK(w[0].test(elsewhere));
  REQUIRE(w[1].test(in1));
  REQUIRE(w[1].test(in2));
  CHECK(first == a);
  CHECK(second == b);
}

TEST_CASE("faulty transport: a late receive completes after so many tests", "[testing]") {
  World w(2, {.faults = {{.kind = FaultKind::delay, .rank = 1, .amount = 4, .side = Side::receive}}});
  const Message m = message(10, 1);
  Message room(10);
  auto out = w[0].send(1, 1, m);
  auto in = w[1].receive(0, 1, room);
  CHECK(w[0].test(out));
  CHECK(tests_until(w[1], in, 20) == 4);
  CHECK(room == m);
}

TEST_CASE("faulty transport: messages of two peers change places", "[testing]") {
  SECTION("where they are sent") {
    World w(3, {.faults = {{.kind = FaultKind::reorder, .amount = 1000}}});
    const Message a = message(10, 1), b = message(10, 2);
    Message to1(10), to2(10);
    auto first = w[0].send(1, 1, a);
    auto in1 = w[1].receive(0, 1, to1);
    CHECK_FALSE(w[0].test(first));
    CHECK_FALSE(w[1].test(in1));
    auto second = w[0].send(2, 1, b);  // overtakes
    CHECK(w[0].test(first));
    CHECK(w[0].test(second));
    CHECK(w[1].test(in1));
  }
  SECTION("where they are received") {
    World w(3, {.faults = {{.kind = FaultKind::reorder, .rank = 2, .amount = 1000, .side = Side::receive}}});
    const Message a = message(10, 1), b = message(10, 2);
    Message from0(10), from1(10);
    auto out0 = w[0].send(2, 1, a), out1 = w[1].send(2, 1, b);
    auto in0 = w[2].receive(0, 1, from0), in1 = w[2].receive(1, 1, from1);
    CHECK_FALSE(w[2].test(in0));
    CHECK(w[2].test(in1));
    CHECK(w[2].test(in0));
    CHECK(from0 == a);
    CHECK(w[0].test(out0));
    CHECK(w[1].test(out1));
  }
  SECTION("not for ever") {
    World w(2, {.faults = {{.kind = FaultKind::reorder, .amount = 6}}});
    const Message a = message(10, 1);
    auto only = w[0].send(1, 1, a);
    CHECK(tests_until(w[0], only, 20) == 6);
  }
}

TEST_CASE("faulty transport: a lost message never arrives, the next one does", "[testing]") {
  World w(2, {.faults = {{.kind = FaultKind::lose}}});
  const Message a = message(10, 1), b = message(10, 2);
  Message room(10);
  auto lost = w[0].send(1, 1, a);
  auto in = w[1].receive(0, 1, room);
  CHECK(w[0].test(lost) == 10);
  CHECK_FALSE(w[1].test(in));
  auto next = w[0].send(1, 1, b);
  CHECK(w[0].test(next));
  CHECK(w[1].test(in));
  CHECK(room == b);
}

TEST_CASE("faulty transport: calls that throw", "[testing]") {
  const Message a = message(10, 1), b = message(10, 2);
  Message room(10);
  SECTION("send") {
    World w(2, {.faults = {{.kind = FaultKind::throw_at_start}}});
    CHECK_THROWS_AS(w[0].send(1, 1, a), TransportError);
    auto in = w[1].receive(0, 1, room);
    CHECK_FALSE(w[1].test(in));
    auto out = w[0].send(1, 1, b);
    CHECK(w[0].test(out));
    CHECK(w[1].test(in));
    CHECK(room == b);
  }
  SECTION("test of a send: the message has left") {
    World w(2, {.faults = {{.kind = FaultKind::throw_at_test}}});
    auto out = w[0].send(1, 1, a);
    auto in = w[1].receive(0, 1, room);
    CHECK_THROWS_AS(w[0].test(out), TransportError);
    CHECK(w[1].test(in));
    CHECK(room == a);
  }
  SECTION("test of a receive: the message is gone") {
    World w(2, {.faults = {{.kind = FaultKind::throw_at_test, .rank = 1, .side = Side::receive}}});
    auto in = w[1].receive(0, 1, room);
    CHECK_FALSE(w[1].test(in));
    auto out = w[0].send(1, 1, a), next = w[0].send(1, 1, b);
    CHECK_THROWS_AS(w[1].test(in), TransportError);
    in = w[1].receive(0, 1, room);
    CHECK(w[1].test(in));
    CHECK(room == b);
    CHECK(w[0].test(out));
    CHECK(w[0].test(next));
  }
}

TEST_CASE("faulty transport: a rank stops, or dies", "[testing]") {
  const Message a = message(10, 1), b = message(10, 2);
  Message room(10), mine(10);
  const FaultKind kind = FaultKind::stop;
  World w(2, {.faults = {{.kind = kind, .number = 1}}});
  auto in = w[0].receive(1, 1, mine);
  auto before = w[0].send(1, 1, a);
  auto got = w[1].receive(0, 1, room);
  CHECK(w[1].test(got));  // what left before arrives
  auto after = w[0].send(1, 1, b);
  CHECK(w[0].stopped());
  got = w[1].receive(0, 1, room);
  auto to = w[1].send(0, 1, b);
  CHECK_FALSE(w[1].test(got));
  CHECK_FALSE(w[0].test(in));
  CHECK_FALSE(w[0].test(before));
  CHECK_FALSE(w[0].test(after));
  CHECK(w[0].cancel(after));
  auto later = w[0].receive(1, 1, mine);
  CHECK_FALSE(w[0].test(later));
  CHECK(w[0].cancel(later));
  CHECK(w[1].cancel(got));
  CHECK(w[1].cancel(to));

  World d(2, {.faults = {{.kind = FaultKind::die, .number = 1}}});
  auto first = d[0].send(1, 1, a);
  got = d[1].receive(0, 1, room);
  CHECK_THROWS_AS(d[0].send(1, 1, b), TransportError);
  CHECK_THROWS_AS(d[0].test(first), TransportError);
  CHECK_THROWS_AS(d[0].receive(1, 1, mine), TransportError);
  CHECK(d[1].test(got));
  got = d[1].receive(0, 1, room);
  CHECK_FALSE(d[1].test(got));
}

TEST_CASE("faulty transport: what is held back may be cancelled, and still arrives in order", "[testing]") {
  World w(2, {.faults = {{.kind = FaultKind::delay, .amount = 1000}}});
  Message a = message(10, 1), b = message(10, 2);
  Message first(10), second(10);
  auto one = w[0].send(1, 1, a), two = w[0].send(1, 1, b);
  CHECK(w[0].cancel(two));
  CHECK(w[0].test(one));
  a.assign(10, {}), b.assign(10, {});
  auto in1 = w[1].receive(0, 1, first), in2 = w[1].receive(0, 1, second);
  CHECK(w[1].test(in1));
  CHECK(w[1].test(in2));
  CHECK(first == message(10, 1));
  CHECK(second == message(10, 2));
}

TEST_CASE("faulty transport: the same seed draws the same faults, and heal ends them", "[testing]") {
  const auto run = [](std::uint64_t seed, int healed_at) {
    World w(2, {.random = {.rate = 0.25, .seed = seed, .kinds = {FaultKind::flip}}});
    std::string hits;
    for (int i = 0; i < 400; ++i) {
      if (i == healed_at) w[0].heal();
      const Message m = message(16, i);
      Message room(16);
      auto out = w[0].send(1, i % 64, m);
      auto in = w[1].receive(0, i % 64, room);
      REQUIRE(w[0].test(out));
      REQUIRE(w[1].test(in));
      hits += room == m ? '.' : 'x';
    }
    return hits;
  };
  const std::string one = run(1, -1);
  CHECK(one == run(1, -1));
  CHECK(one != run(2, -1));
  const auto count = std::count(one.begin(), one.end(), 'x');
  CHECK((count > 60 && count < 140));
  const std::string healed = run(1, 100);
  CHECK(healed.substr(0, 100) == one.substr(0, 100));
  CHECK(healed.substr(100) == std::string(300, '.'));
}

TEST_CASE("faulty transport: plans that mean nothing are refused", "[testing]") {
  InProcess world(1);
  const auto refused = [&](const FaultPlan& plan) {
    CHECK_THROWS_AS(Faulty(world.link(0), plan), wring::InvalidArgument);
  };
  refused({.faults = {{.kind = FaultKind::flip, .side = Side::receive}}});
  refused({.random = {.rate = 1.5}});
  refused({.random = {.rate = 0.5, .kinds = {}}});
}
