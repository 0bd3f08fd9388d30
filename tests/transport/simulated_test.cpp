// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <wring/transport/simulated.hpp>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <wring/testing/transport_laws.hpp>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinRel;
using wring::SimulatedNetwork;
using wring::SimulatedTransport;
using Request = SimulatedTransport::Request;

namespace {

/// Round numbers, so that times can be added up by hand: a byte takes a microsecond.
wring::Machine slow() {
  wring::Machine m;
  m.latency = 0.5, m.overhead = 0.125, m.bandwidth = 1e6;
  m.measure = 1e3, m.encode = 2e3, m.combine = 4e3, m.decode = 8e3, m.copy = 1e4, m.launch = 0.25;
  return m;
}

/// Waits as a program outside of any collective does, with the other ranks' sessions having nothing to do.
std::size_t wait(SimulatedTransport& link, Request& request) {
  for (;;) {
    if (const auto length = link.test(request)) return *length;
    REQUIRE(link.progress() != wring::Progress::blocked);
  }
}

}  // namespace

TEST_CASE("simulated: the laws of transports", "[transport]") {
  const int ranks = GENERATE(1, 2, 3, 5), per_node = GENERATE(1, 2);
  wring::Machine machine;
  machine.ranks_per_node = per_node;
  SimulatedNetwork network(ranks, machine);
  std::vector<SimulatedTransport*> links;
  for (int r = 0; r < ranks; ++r) links.push_back(&network.link(r));
  CHECK(wring::testing::check_transport_laws(links) == std::vector<std::string>{});
}

TEST_CASE("simulated: a message takes its overheads, its bytes and the latency") {
  SimulatedNetwork network(2, slow());
  SimulatedTransport &a = network.link(0), &b = network.link(1);
  const std::vector<std::byte> out(250000, std::byte{7});
  std::vector<std::byte> in(300000);
  Request receive = b.receive(0, 3, in), send = a.send(1, 3, out);
  CHECK(a.now() == 0.125);  // the sender's overhead
  CHECK(wait(a, send) == 250000);
  CHECK(a.now() == 0.125 + 0.25);  // its bytes have left
  CHECK(wait(b, receive) == 250000);
  CHECK(b.now() == 0.125 + 0.5 + 0.25 + 0.125);  // latency, bytes, the receiver's overhead
  CHECK(std::equal(out.begin(), out.end(), in.begin()));
  CHECK(network.messages() == 1);
  CHECK(network.bytes() == 250000);
}

TEST_CASE("simulated: a message that has come already takes the receiver's overhead alone") {
  SimulatedNetwork network(2, slow());
  const std::vector<std::byte> out(1000);
  std::vector<std::byte> in(1000);
  Request send = network.link(0).send(1, 3, out);
  wait(network.link(0), send);
  network.link(1).pass(9);
  Request receive = network.link(1).receive(0, 3, in);
  wait(network.link(1), receive);
  CHECK(network.link(1).now() == 9.125);
}

TEST_CASE("simulated: messages leave one after the other, and are taken one after the other") {
  SimulatedNetwork network(3, slow());
  const std::vector<std::byte> out(1000000);
  std::array<std::vector<std::byte>, 2> in;
  in.fill(std::vector<std::byte>(out.size()));
  SECTION("two from one rank") {
    [[maybe_unused]] Request first = network.link(0).send(1, 0, out),
                             second = network.link(0).send(2, 0, out);
    Request receive = network.link(2).receive(0, 0, in[0]);
    wait(network.link(2), receive);
    CHECK(network.link(2).now() == 0.125 + 1 + 1 + 0.5 + 0.125);
  }
  SECTION("two to one rank") {
    [[maybe_unused]] Request first = network.link(0).send(2, 0, out),
                             second = network.link(1).send(2, 0, out);
    Request one = network.link(2).receive(0, 0, in[0]), other = network.link(2).receive(1, 0, in[1]);
    wait(network.link(2), other);
    CHECK(network.link(2).now() == 0.125 + 0.5 + 1 + 1 + 0.125);
    wait(network.link(2), one);
    CHECK(network.link(2).now() == 0.125 + 0.5 + 1 + 1 + 0.125 + 0.125);
  }
  SECTION("one each way at a time") {
    [[maybe_unused]] Request there = network.link(0).send(1, 0, out), back = network.link(1).send(0, 0, out);
    Request one = network.link(0).receive(1, 0, in[0]), other = network.link(1).receive(0, 0, in[1]);
    wait(network.link(0), one), wait(network.link(1), other);
    CHECK(network.link(0).now() == 0.125 + 0.5 + 1 + 0.125);
    CHECK(network.link(1).now() == 0.125 + 0.5 + 1 + 0.125);
  }
}

TEST_CASE(
    "simulated: messages are taken in the order in which they begin to arrive, not in that of the calls") {
  SimulatedNetwork network(3, slow());
  const std::vector<std::byte> out(1000000);
  std::vector<std::byte> in(out.size());
  network.link(0).pass(10);
  [[maybe_unused]] Request late = network.link(0).send(2, 0, out), early = network.link(1).send(2, 0, out);
  Request receive = network.link(2).receive(1, 0, in);
  wait(network.link(2), receive);
  CHECK(network.link(2).now() == 0.125 + 0.5 + 1 + 0.125);
}

TEST_CASE("simulated: links of their own, and links within a node") {
  wring::Machine machine = slow();
  machine.ranks_per_node = 2, machine.inside_latency = 0.25, machine.inside_bandwidth = 4e6;
  SimulatedNetwork network(4, machine);
  network.set_link(1, 2, 2, 5e5);
  const std::vector<std::byte> out(1000000);
  const auto arrives = [&](int from, int to) {
    std::vector<std::byte> in(out.size());
    const double begin = network.synchronise();
    Request send = network.link(from).send(to, 0, out), receive = network.link(to).receive(from, 0, in);
    wait(network.link(to), receive), wait(network.link(from), send);
    return network.link(to).now() - begin;
  };
  CHECK(arrives(0, 1) == 0.125 + 0.25 + 0.25 + 0.125);
  CHECK(arrives(1, 3) == 0.125 + 0.5 + 1 + 0.125);
  CHECK(arrives(1, 2) == 0.125 + 2 + 2 + 0.125);
  CHECK(arrives(2, 1) == 0.125 + 0.5 + 1 + 0.125);
}

TEST_CASE("simulated: work takes time on the clock of its rank") {
  SimulatedNetwork network(2, slow());
  SimulatedTransport& link = network.link(0);
  const auto takes = [&](wring::Work work) {
    const double before = link.now();
    link.spend(work, 8000);
    return link.now() - before;
  };
  CHECK(takes(wring::Work::measure) == 8);
  CHECK(takes(wring::Work::encode) == 4.25);
  CHECK(takes(wring::Work::combine) == 2.25);
  CHECK(takes(wring::Work::decode) == 1.25);
  CHECK_THAT(takes(wring::Work::wire), WithinRel(0.8, 1e-12));
  CHECK(network.link(1).now() == 0);
  CHECK(network.synchronise() == link.now());
  CHECK(network.link(1).now() == link.now());
}

TEST_CASE("simulated: what is given up does no harm") {
  SimulatedNetwork network(2, slow());
  const std::array<std::byte, 4> out{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  std::array<std::byte, 4> first{}, second{};
  Request unmatched = network.link(1).receive(0, 5, first);
  CHECK(network.link(1).cancel(unmatched));
  Request send = network.link(0).send(1, 5, out);
  CHECK(network.link(0).cancel(send));  // it arrives all the same
  Request receive = network.link(1).receive(0, 5, second);
  CHECK(wait(network.link(1), receive) == 4);
  CHECK(second == out);
  CHECK(first == std::array<std::byte, 4>{});
  CHECK_THROWS_AS(network.link(1).test(receive), wring::InvalidArgument);
}

TEST_CASE("simulated: what cannot be is refused") {
  wring::Machine machine;
  CHECK_THROWS_AS(SimulatedNetwork(0), wring::InvalidArgument);
  machine.bandwidth = 0;
  CHECK_THROWS_AS(SimulatedNetwork(2, machine), wring::InvalidArgument);
  SimulatedNetwork network(2);
  CHECK_THROWS_AS(network.set_link(0, 2, 1, 1), wring::InvalidArgument);
  CHECK_THROWS_AS(network.set_link(0, 1, 1, 0), wring::InvalidArgument);
  CHECK_THROWS_AS(network.set_link(0, 1, std::numeric_limits<double>::infinity(), 1), wring::InvalidArgument);
  CHECK_THROWS_AS(network.link(0).send(2, 0, {}), wring::InvalidArgument);
  CHECK(network.progress() == wring::Progress::blocked);
}

TEST_CASE("simulated: a short receive is an error that names the sender") {
  SimulatedNetwork network(2);
  const std::array<std::byte, 4> out{};
  std::array<std::byte, 3> in{};
  [[maybe_unused]] Request send = network.link(0).send(1, 5, out),
                           receive = network.link(1).receive(0, 5, in);
  CHECK_THROWS_MATCHES(wait(network.link(1), receive), wring::TransportError,
                       MessageMatches(ContainsSubstring("rank 1 received a message from rank 0") &&
                                      ContainsSubstring("the 3 bytes given")));
}
