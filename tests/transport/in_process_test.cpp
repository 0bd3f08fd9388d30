// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <wring/transport/in_process.hpp>

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <wring/testing/transport_laws.hpp>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Request = wring::InProcessTransport::Request;

namespace {

std::vector<std::byte> message(const std::string& text) {
  std::vector<std::byte> bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

std::string text(const std::vector<std::byte>& bytes, std::size_t length) {
  std::string result;
  for (std::size_t i = 0; i < length; ++i) result += static_cast<char>(bytes[i]);
  return result;
}

std::vector<wring::InProcessTransport*> links(wring::InProcess& world) {
  std::vector<wring::InProcessTransport*> all;
  for (int r = 0; r < world.size(); ++r) all.push_back(&world.link(r));
  return all;
}

/// An operation of one rank: a token goes once around the ring of ranks, a number of times.
class TokenRing final : public wring::Pending {
 public:
  TokenRing(wring::InProcessTransport& link, int rounds, std::vector<int>* order = nullptr)
      : link_(link), order_(order), left_(rounds), receives_(rounds), holds_(link.rank() == 0) {
    post_receive();
  }

  wring::Progress advance() noexcept override {
    if (sending_) {
      if (!link_.test(send_)) return wring::Progress::blocked;
      sending_ = false;
    } else if (holds_ && left_ > 0) {
      if (order_ != nullptr) order_->push_back(link_.rank());
      send_ = link_.send((link_.rank() + 1) % link_.size(), 3, token_);
      sending_ = true, holds_ = false, --left_;
    } else if (receiving_) {
      if (!link_.test(receive_)) return wring::Progress::blocked;
      receiving_ = false, holds_ = true;
      if (receives_ > 0) post_receive();
    }
    return finished() ? wring::Progress::finished : wring::Progress::moved;
  }

  std::string waits_for() const override { return "the token"; }
  bool finished() const { return left_ == 0 && !sending_ && !receiving_; }

 private:
  void post_receive() {
    receive_ = link_.receive((link_.rank() + link_.size() - 1) % link_.size(), 3, token_in_);
    receiving_ = true, --receives_;
  }

  wring::InProcessTransport& link_;
  std::vector<int>* order_;
  int left_, receives_;
  bool holds_, sending_ = false, receiving_ = false;
  std::array<std::byte, 4> token_{}, token_in_{};
  Request send_, receive_;
};

/// What a user's request looks like: `test` moves the whole world.
struct TokenRequest {
  wring::InProcessTransport* link;
  std::shared_ptr<TokenRing> ring;
  bool test() {
    wring::progress(*link);
    return ring->finished();
  }
};

TokenRequest start_token(wring::InProcessTransport& link, int rounds, std::vector<int>* order = nullptr) {
  auto ring = std::make_shared<TokenRing>(link, rounds, order);
  link.session().attach(ring);
  return {&link, ring};
}

}  // namespace

TEST_CASE("in-process: the transport laws hold under all options", "[transport]") {
  const int ranks = GENERATE(1, 2, 3, 5);
  for (const wring::InProcessOptions& options : {wring::InProcessOptions{},
                                                 {.eager_limit = 100},
                                                 {.eager_limit = std::size_t(1) << 30},
                                                 {.delay = 3},
                                                 {.eager_limit = 4097, .delay = 5, .seed = 1},
                                                 {.delay = 2, .seed = 2}}) {
    wring::InProcess world(ranks, options);
    CHECK(wring::testing::check_transport_laws(links(world)) == std::vector<std::string>{});
    CHECK(wring::testing::check_transport_laws(links(world)) ==
          std::vector<std::string>{});  // nothing is left behind
  }
}

TEST_CASE("in-process: a send completes when its message is taken", "[transport]") {
  wring::InProcess world(2);
  wring::InProcessTransport &zero = world.link(0), &one = world.link(1);
  const auto out = message("hello");
  std::vector<std::byte> in(9);
  Request sent = zero.send(1, 7, out);
  CHECK_FALSE(zero.test(sent));
  Request received = one.receive(0, 7, in);
  CHECK(zero.test(sent) == 5u);
  CHECK(one.test(received) == 5u);
  CHECK(text(in, 5) == "hello");
  CHECK(world.messages() == 1);
  CHECK(world.bytes() == 5);
}

TEST_CASE("in-process: small messages are copied below the eager limit", "[transport]") {
  wring::InProcess world(2, {.eager_limit = 5});
  std::vector<std::byte> out = message("hello"), in(5);
  Request sent = world.link(0).send(1, 7, out);
  CHECK(world.link(0).test(sent) == 5u);
  out = message("other");
  Request received = world.link(1).receive(0, 7, in);
  CHECK(world.link(1).test(received) == 5u);
  CHECK(text(in, 5) == "hello");
  const auto longer = message("longer");
  sent = world.link(0).send(1, 7, longer);
  CHECK_FALSE(world.link(0).test(sent));
}

TEST_CASE("in-process: delivery is late by the tests asked for", "[transport]") {
  wring::InProcess world(2, {.delay = 3});
  std::vector<std::byte> out = message("hello"), in(5);
  Request received = world.link(1).receive(0, 7, in), sent = world.link(0).send(1, 7, out);
  for (int i = 0; i < 3; ++i) CHECK_FALSE(world.link(1).test(received));
  std::ranges::copy(message("later"),
                    out.begin());  // still the transport's: what is delivered is what is there at delivery
  CHECK(world.link(1).test(received) == 5u);
  CHECK(text(in, 5) == "later");
  CHECK(world.link(0).test(sent) == 5u);
}

TEST_CASE("in-process: a message to oneself", "[transport]") {
  wring::InProcess world(1);
  std::vector<std::byte> out = message("self"), in(4);
  Request sent = world.link(0).send(0, 0, out), received = world.link(0).receive(0, 0, in);
  CHECK(world.link(0).test(received) == 4u);
  CHECK(world.link(0).test(sent) == 4u);
  CHECK(text(in, 4) == "self");
}

TEST_CASE("in-process: a cancelled message still arrives, a cancelled receive takes none", "[transport]") {
  const int delay = GENERATE(0, 2);
  wring::InProcess world(2, {.delay = delay});
  wring::InProcessTransport &zero = world.link(0), &one = world.link(1);
  std::vector<std::byte> in(5), other(5);
  {
    const auto out = message("hello");
    Request given_up = zero.send(1, 1, out);
    CHECK(zero.cancel(given_up));
    CHECK_THROWS_AS(zero.test(given_up), wring::InvalidArgument);
  }
  Request first = one.receive(0, 1, in), second = one.receive(0, 1, other);
  for (int i = 0; i < delay; ++i) CHECK_FALSE(one.test(first));
  CHECK(one.test(first) == 5u);
  CHECK(text(in, 5) == "hello");
  CHECK(one.cancel(second));
  const auto out = message("again");
  Request sent = zero.send(1, 1, out);
  CHECK_FALSE(zero.test(sent));
  Request third = one.receive(0, 1, in);
  CHECK(one.cancel(third));  // matched already: completed, not taken back
  CHECK(text(in, 5) == "again");
  CHECK(zero.test(sent) == 5u);
}

TEST_CASE("in-process: wrong calls are refused", "[transport]") {
  CHECK_THROWS_AS(wring::InProcess(0), wring::InvalidArgument);
  CHECK_THROWS_AS(wring::InProcess(2, {.delay = -1}), wring::InvalidArgument);
  wring::InProcess world(2);
  wring::InProcessTransport& link = world.link(1);
  std::vector<std::byte> bytes(8);
  CHECK_THROWS_MATCHES(link.send(2, 0, bytes), wring::InvalidArgument,
                       MessageMatches(ContainsSubstring("rank 2 of 2")));
  CHECK_THROWS_AS(link.receive(-1, 0, bytes), wring::InvalidArgument);
  CHECK_THROWS_AS(link.send(0, 32768, bytes), wring::InvalidArgument);
  CHECK_THROWS_AS(link.receive(0, -1, bytes), wring::InvalidArgument);
  Request none;
  CHECK_THROWS_AS(link.test(none), wring::InvalidArgument);
  CHECK(link.cancel(none));
}

TEST_CASE("in-process: a message that does not fit names rank, channel and room", "[transport]") {
  wring::InProcess world(2);
  std::vector<std::byte> in(3);
  const auto out = message("hello");
  Request received = world.link(1).receive(0, 9, in), sent = world.link(0).send(1, 9, out);
  try {
    world.link(1).test(received);
    FAIL("no error");
  } catch (const wring::TransportError& error) {
    CHECK(error.rank() == 0);
    CHECK_THAT(error.what(), ContainsSubstring("rank 1 received a message from rank 0 on channel 9"));
    CHECK_THAT(error.what(), ContainsSubstring("3 bytes"));
  }
  CHECK(world.link(0).test(sent) == 5u);
}

TEST_CASE("in-process: operations of all ranks are stepped by any of them", "[transport]") {
  wring::InProcess world(5);
  std::vector<TokenRequest> requests;
  for (int r = 0; r < 5; ++r) requests.push_back(start_token(world.link(r), 3));
  CHECK(world.link(2).session().in_flight() == 1);
  int steps = 0;
  while (!requests[0].test()) REQUIRE(++steps < 1000);
  while (wring::progress(world.link(4)) != wring::Progress::blocked) REQUIRE(++steps < 1000);
  for (auto& request : requests) CHECK(request.ring->finished());
  CHECK(world.link(2).session().in_flight() == 0);
  CHECK(world.messages() == 15);
}

TEST_CASE("in-process: the seed decides the order of events", "[transport]") {
  const auto run = [](std::uint64_t seed) {
    wring::InProcess world(6, {.delay = 4, .seed = seed});
    std::vector<TokenRequest> requests;
    for (int r = 0; r < 6; ++r) requests.push_back(start_token(world.link(r), 4));
    int steps = 0;
    for (auto& request : requests) {
      while (!request.test()) REQUIRE(++steps < 10000);
    }
    return steps;
  };
  CHECK(run(1) == run(1));
  CHECK((run(1) != run(2) || run(1) != run(3)));
}

TEST_CASE("in_process: runs a program of any number of ranks", "[transport]") {
  const int ranks = GENERATE(1, 2, 5);
  const int delay = GENERATE(0, 3);
  std::vector<int> order;
  wring::in_process(ranks, [&](wring::InProcessTransport& link) { return start_token(link, 2, &order); },
                    {.delay = delay, .seed = 1});
  REQUIRE(order.size() == static_cast<std::size_t>(2 * ranks));
  for (int i = 0; i < 2 * ranks; ++i) CHECK(order[static_cast<std::size_t>(i)] == i % ranks);
}

TEST_CASE("in_process: accepts pointers and passes errors on", "[transport]") {
  struct Fails {
    bool test() { throw wring::CodecError("deliberate"); }
  };
  CHECK_THROWS_AS(wring::in_process(2, [](wring::InProcessTransport&) { return std::make_unique<Fails>(); }),
                  wring::CodecError);
}

TEST_CASE("in_process: ranks that wait for ever are named", "[transport]") {
  const auto start = [](wring::InProcessTransport& link) {
    return start_token(link, link.rank() == 2 ? 1 : 2);  // rank 2 leaves after the first round
  };
  CHECK_THROWS_MATCHES(wring::in_process(3, start), wring::Error,
                       MessageMatches(ContainsSubstring("all ranks are blocked") &&
                                      ContainsSubstring("rank 2 waits for nobody")));
}

TEST_CASE("in-process: a world may end with operations in flight", "[transport]") {
  auto world = std::make_unique<wring::InProcess>(3);
  for (int r = 0; r < 2; ++r) static_cast<void>(start_token(world->link(r), 2));
  static_cast<void>(world->progress());
  CHECK(world->link(0).session().in_flight() == 1);
  world.reset();
}
