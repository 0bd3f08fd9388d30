// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One archetype for each requirement, which breaks exactly that one.
#include <wring/transport/concept.hpp>

#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <wring/transport/in_process.hpp>

namespace {

struct Complete {
  using memory_space = Kokkos::HostSpace;
  struct Request {
    Request() = default;
    Request(Request&&) = default;
    Request& operator=(Request&&) = default;
  };
  int rank() const;
  int size() const;
  Request send(int, int, std::span<const std::byte>);
  Request receive(int, int, std::span<std::byte>);
  std::optional<std::size_t> test(Request&);
  bool cancel(Request&);
  wring::Session& session();
};
static_assert(wring::Transport<Complete>);
static_assert(!wring::SharedThreadTransport<Complete>);

class NoMemorySpace : public Complete {
  using memory_space = void;
};
static_assert(!wring::Transport<NoMemorySpace>);

/// Complete, with another type of request.
template <class AnyRequest> struct Requests : Complete {
  using Request = AnyRequest;
  Request send(int, int, std::span<const std::byte>);
  Request receive(int, int, std::span<std::byte>);
  std::optional<std::size_t> test(Request&);
  bool cancel(Request&);
};
struct Fixed {
  Fixed() = default;
  Fixed(const Fixed&) = delete;
};
struct NotAssignable {
  NotAssignable() = default;
  NotAssignable(NotAssignable&&) = default;
  NotAssignable& operator=(NotAssignable&&) = delete;
};
struct NoDefault {
  explicit NoDefault(int);
};
static_assert(wring::Transport<Requests<int>>);
static_assert(!wring::Transport<Requests<Fixed>>);
static_assert(!wring::Transport<Requests<NotAssignable>>);
static_assert(!wring::Transport<Requests<NoDefault>>);

class NoRequest : public Complete {
  using Request = Complete::Request;
};
static_assert(!wring::Transport<NoRequest>);

struct RankNotConst : Complete {
  int rank();
};
struct RankNotInt : Complete {
  long rank() const;
};
struct SizeNotConst : Complete {
  int size();
};
struct SizeNotInt : Complete {
  std::size_t size() const;
};
static_assert(!wring::Transport<RankNotConst>);
static_assert(!wring::Transport<RankNotInt>);
static_assert(!wring::Transport<SizeNotConst>);
static_assert(!wring::Transport<SizeNotInt>);

struct SendWithoutChannel : Complete {
  Request send(int, std::span<const std::byte>);
};
struct SendWritesBytes : Complete {
  Request send(int, int, std::span<std::byte>);
};
struct SendReturnsNothing : Complete {
  void send(int, int, std::span<const std::byte>);
};
struct ReceiveWithoutChannel : Complete {
  Request receive(int, std::span<std::byte>);
};
struct ReceiveReturnsNothing : Complete {
  void receive(int, int, std::span<std::byte>);
};
static_assert(!wring::Transport<SendWithoutChannel>);
static_assert(!wring::Transport<SendWritesBytes>);
static_assert(!wring::Transport<SendReturnsNothing>);
static_assert(!wring::Transport<ReceiveWithoutChannel>);
static_assert(!wring::Transport<ReceiveReturnsNothing>);

struct TestWithoutLength : Complete {
  bool test(Request&);
};
struct TestTakesTemporary : Complete {
  std::optional<std::size_t> test(Request&&);
};
struct CancelReturnsNothing : Complete {
  void cancel(Request&);
};
struct NoCancel : Complete {
  bool cancel() = delete;
};
struct SessionByValue : Complete {
  wring::Session session();
};
struct SessionConst : Complete {
  const wring::Session& session() const;
};
static_assert(!wring::Transport<TestWithoutLength>);
static_assert(!wring::Transport<TestTakesTemporary>);
static_assert(!wring::Transport<CancelReturnsNothing>);
static_assert(!wring::Transport<NoCancel>);
static_assert(!wring::Transport<SessionByValue>);
static_assert(!wring::Transport<SessionConst>);

struct Shared : Complete {
  static constexpr bool shares_thread = true;
  wring::Progress progress();
};
struct SharesNothing : Shared {
  static constexpr bool shares_thread = false;
};
struct NoProgress : Complete {
  static constexpr bool shares_thread = true;
};
struct ProgressReturnsNothing : Shared {
  void progress();
};
static_assert(wring::SharedThreadTransport<Shared>);
static_assert(!wring::SharedThreadTransport<SharesNothing>);
static_assert(!wring::SharedThreadTransport<NoProgress>);
static_assert(!wring::SharedThreadTransport<ProgressReturnsNothing>);
static_assert(wring::Transport<SharesNothing> && wring::Transport<NoProgress>);

/// An operation that takes some steps; a negative number never ends.
struct Steps final : wring::Pending {
  Steps(std::string operation, int steps, std::string& trace)
      : name(std::move(operation)), left(steps), steps_seen(trace) {}
  wring::Progress advance() noexcept override {
    steps_seen += name;
    if (left == 0) return wring::Progress::blocked;
    return --left == 0 ? wring::Progress::finished : wring::Progress::moved;
  }
  std::string waits_for() const override { return name; }
  std::string name;
  int left;
  std::string& steps_seen;
};

struct Minimal : Complete {
  wring::Session& session() { return own; }
  wring::Session own;
};

}  // namespace

TEST_CASE("session: operations are moved in the order of their starts, and leave when finished",
          "[transport]") {
  Minimal link;
  std::string trace;
  CHECK(wring::progress(link) == wring::Progress::blocked);
  link.session().attach(std::make_shared<Steps>("a", 2, trace));
  link.session().attach(std::make_shared<Steps>("b", 1, trace));
  link.session().attach(std::make_shared<Steps>("c", 3, trace));
  CHECK(wring::progress(link) == wring::Progress::moved);
  CHECK(trace == "abc");
  CHECK(link.session().in_flight() == 2);
  CHECK(wring::progress(link) == wring::Progress::moved);
  CHECK(wring::progress(link) == wring::Progress::moved);
  CHECK(trace == "abcacc");
  CHECK(link.session().in_flight() == 0);
  CHECK(wring::progress(link) == wring::Progress::blocked);
}

TEST_CASE("session: counts starts and remembers the first failure and why it was retired", "[transport]") {
  wring::Session session;
  CHECK(session.next_sequence() == 0);
  CHECK(session.next_sequence() == 1);
  CHECK(session.started() == 2);
  CHECK_FALSE(session.retired());
  session.retire("abandoned");
  session.retire("again");
  CHECK(session.reason() == "abandoned");
  session.remember_failure("codec", 3, 0);
  session.remember_failure("later", 4, 1);
  CHECK(session.failure() == "codec");
  CHECK(session.failed_rank() == 3);
  session.forget_failure(2);
  CHECK(session.failure().empty());
  session.remember_failure("still draining", 5, 1);  // all have heard of what came before the third
  CHECK(session.failure().empty());
  session.remember_failure("new", 5, 2);
  CHECK(session.failure() == "new");
}

TEST_CASE("progress: moves the ranks that share a thread", "[transport]") {
  wring::InProcess world(2);
  std::string trace;
  world.link(1).session().attach(std::make_shared<Steps>("x", 1, trace));
  CHECK(wring::progress(world.link(0)) == wring::Progress::moved);
  CHECK(trace == "x");
  CHECK(wring::progress(world.link(0)) == wring::Progress::blocked);
}
