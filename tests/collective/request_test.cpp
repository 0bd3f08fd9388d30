// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations in flight: several at once, polled, moved, given up, late.
#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <deque>
#include <memory>
#include <vector>

#include <wring/compressor/none.hpp>

#include "support/collect.hpp"
#include "support/executors.hpp"

using namespace wring_test;
using wring::Cause;
using wring::InProcess;
using wring::InProcessTransport;
using wring::None;
using wring::Request;

namespace {

using View = Kokkos::View<double*, Kokkos::HostSpace>;
using Sum = wring::Allreduce<None<double>, InProcessTransport>;

/// One operation of `n` values in flight on every rank: rank r holds r + 1 + i.
struct Job {
  Job(InProcess& world, std::size_t n, wring::Options options = {}) : length(n) {
    for (int r = 0; r < world.size(); ++r) {
      sums.emplace_back(None<double>{}, world.link(r), wring::Ring{}, options);
      data.emplace_back("data", n);
    }
    reset();
    requests.resize(data.size());
  }
  Job(Job&&) = default;
  Job(const Job& other) : length(other.length), sums(other.sums), data(other.data), requests(data.size()) {}
  void reset() {
    for (std::size_t r = 0; r < data.size(); ++r)
      for (std::size_t i = 0; i < length; ++i) data[r](i) = static_cast<double>(r + 1 + i);
  }
  void start(int rank) {
    const auto r = static_cast<std::size_t>(rank);
    requests[r] = sums[r].start(Exec{}, data[r]);
  }
  void start() {
    for (std::size_t r = 0; r < data.size(); ++r) start(static_cast<int>(r));
  }
  bool holds_sum(std::size_t rank) const {
    const double p = static_cast<double>(data.size());
    for (std::size_t i = 0; i < length; ++i)
      if (data[rank](i) != p * (p + 1) / 2 + p * static_cast<double>(i)) return false;
    return true;
  }
  bool all_hold_sum() const {
    for (std::size_t r = 0; r < data.size(); ++r)
      if (!holds_sum(r)) return false;
    return true;
  }
  std::vector<Outcome> finish(InProcess& world) { return complete(world, requests); }
  std::vector<Outcome> run(InProcess& world) {
    reset();
    return on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      return sums[r].start(Exec{}, data[r]);
    });
  }

  std::size_t length;
  std::deque<Sum> sums;
  std::vector<View> data;
  std::vector<Request> requests;
};

/// Polls until `test` is true for all of them.
bool all_tested(std::vector<Request>& requests) {
  for (int polls = 0; polls < 100000; ++polls) {
    bool all = true;
    for (Request& request : requests) all = request.test() && all;
    if (all) return true;
  }
  return false;
}

const std::size_t lengths[] = {10, 1000, 100000};  // rides along, one segment, many segments

}  // namespace

TEST_CASE("requests: two operations in flight on one link, waited for in reverse order",
          "[collective][request]") {
  for (const std::uint64_t seed : {0, 1, 2}) {
    InProcess world(3, {.eager_limit = 0, .delay = 3, .seed = seed});
    Job a(world, 1000), b(world, 10), c(world, 20000, {.segment_bytes = 4096, .depth = 3});
    a.start(), b.start(), c.start();
    for (std::size_t r = 0; r < 3; ++r) c.requests[r].wait();
    for (std::size_t r = 0; r < 3; ++r) b.requests[r].wait();
    for (std::size_t r = 3; r-- > 0;) a.requests[r].wait();
    REQUIRE((a.all_hold_sum() && b.all_hold_sum() && c.all_hold_sum()));
  }
}

TEST_CASE("requests: forty operations in flight at once", "[collective][request]") {
  InProcess world(4, {.eager_limit = 0, .delay = 2, .seed = 5});
  std::deque<Job> jobs;
  for (std::size_t i = 0; i < 40; ++i)
    jobs.emplace_back(world, i * 37, wring::Options{.segment_bytes = 4096});
  for (Job& job : jobs) job.start();
  for (std::size_t i = jobs.size(); i-- > 0;) REQUIRE(all_ok(jobs[i].finish(world)));
  for (Job& job : jobs) REQUIRE(job.all_hold_sum());
}

TEST_CASE("requests: test() moves the operation and says when it is done", "[collective][request]") {
  InProcess world(2, {.eager_limit = 0, .delay = 4, .seed = 0});
  Job job(world, 5000);
  job.start(0);
  REQUIRE_FALSE(job.requests[0].test());  // the other has not even begun
  job.start(1);
  int polls = 0;
  while (!job.requests[0].test() && polls < 10000) ++polls;
  REQUIRE(polls > 0);
  REQUIRE(polls < 10000);
  REQUIRE(job.requests[0].valid());
  REQUIRE(job.requests[0].test());  // still true
  job.requests[1].wait();
  const wring::Report report = job.requests[0].wait();
  REQUIRE(report.bytes_given == 5000 * sizeof(double));
  REQUIRE_FALSE(job.requests[0].valid());
  REQUIRE_THROWS_AS(job.requests[0].wait(), wring::InvalidArgument);
  REQUIRE_THROWS_AS(job.requests[0].test(), wring::InvalidArgument);
  REQUIRE(job.all_hold_sum());
}

TEST_CASE("requests: one that was polled to its end may be replaced by the next start of its object",
          "[collective][request]") {
  for (const std::size_t n : lengths) {
    InProcess world(3);
    Job job(world, n);
    for (int turn = 0; turn < 4; ++turn) {
      job.reset(), job.start();  // the requests of the turn before are destroyed after the new starts
      REQUIRE(all_tested(job.requests));
      REQUIRE(job.all_hold_sum());
    }
  }
}

TEST_CASE("requests: one that has ended keeps its outcome while its object goes on",
          "[collective][request]") {
  for (const std::size_t n : lengths) {
    InProcess world(2);
    Job job(world, n);
    std::vector<std::vector<Request>> earlier;
    for (int turn = 0; turn < 4; ++turn) {
      for (auto& sum : job.sums) sum.options().segment_bytes = std::size_t{4096} << turn;
      job.reset(), job.start();
      REQUIRE(all_tested(job.requests));
      earlier.push_back(std::move(job.requests));
      job.requests.resize(2);
    }
    job.reset(), job.start();
    if (n > 16384) REQUIRE(earlier[0][0].wait().segments > earlier[2][0].wait().segments);
    REQUIRE(earlier[1][1].wait().bytes_given == n * sizeof(double));
    earlier.clear();  // those that were never waited for, too
    REQUIRE(all_ok(job.finish(world)));
    REQUIRE(job.all_hold_sum());
  }
}

TEST_CASE("requests: a copy of a collective object is an object of its own", "[collective][request]") {
  InProcess world(2);
  Job job(world, 5000);
  REQUIRE(all_ok(job.run(world)));
  Job copy = job;
  for (View& data : copy.data) data = View("data", 5000);
  Job moved = std::move(copy);
  for (int turn = 0; turn < 2; ++turn) {
    job.reset(), moved.reset();
    job.start(), moved.start();
    REQUIRE(all_ok(moved.finish(world)));
    REQUIRE(all_ok(job.finish(world)));
    REQUIRE((job.all_hold_sum() && moved.all_hold_sum()));
    moved.sums = job.sums;
  }
}

TEST_CASE("requests: a moved request goes on elsewhere", "[collective][request]") {
  for (const std::size_t n : lengths) {
    InProcess world(2);
    Job job(world, n);
    job.start();
    std::vector<Request> moved;
    for (Request& request : job.requests) moved.push_back(std::move(request));
    REQUIRE_FALSE(job.requests[0].valid());
    REQUIRE(all_ok(complete(world, moved)));
    REQUIRE(job.all_hold_sum());
  }
}

TEST_CASE("requests: the collective object may be destroyed while its operation is in flight",
          "[collective][request]") {
  InProcess world(3, {.eager_limit = 0, .delay = 3, .seed = 1});
  std::vector<Request> requests;
  std::vector<View> data;
  {
    Job job(world, 20000);
    job.start();
    data = job.data, requests = std::move(job.requests);
  }
  REQUIRE(all_ok(complete(world, requests)));
  for (const View& view : data) REQUIRE(view(1) == 9);
}

TEST_CASE("requests: destroyed early, the others end, the next operation reports it, the one after works",
          "[collective][request]") {
  for (const bool confirm : {false, true})
    for (const std::size_t n : lengths)
      for (const int progress : {0, 1, 2, 5, 10, 20, 40, 80}) {
        InProcess world(4, {.eager_limit = 0, .delay = 2, .seed = 3});
        Job job(world, n, {.segment_bytes = 8192, .confirm = confirm}), next(world, 600);
        job.start();
        for (int i = 0; i < progress; ++i) static_cast<void>(world.progress());
        const bool was_done = progress > 0 && job.requests[2].test();
        job.requests[2] = Request();
        INFO("confirm " << confirm << ", " << n << " elements, after " << progress << " steps");
        auto outcomes = job.finish(world);
        outcomes.erase(outcomes.begin() + 2);
        INFO(describe(outcomes));
        bool lost = false;
        for (std::size_t i = 0; i < 3; ++i) {
          const std::size_t rank = i < 2 ? i : 3;
          REQUIRE_FALSE(outcomes[i].hangs);
          if (outcomes[i].ok())
            REQUIRE(job.holds_sum(rank));
          else
            REQUIRE((outcomes[i].cause == Cause::abandoned && outcomes[i].rank == 2));
          lost = lost || !outcomes[i].ok();
        }
        if (was_done) REQUIRE_FALSE(lost);
        while (world.progress() != wring::Progress::blocked) {
        }
        const auto second = next.run(world);
        INFO("then" << describe(second));
        if (lost && !confirm) REQUIRE(all_failed(second, Cause::abandoned, 2));
        REQUIRE((all_ok(second) || all_failed(second, Cause::abandoned, 2)));
        const auto third = next.run(world);
        INFO("then" << describe(third));
        REQUIRE(all_ok(third));
        REQUIRE(next.all_hold_sum());
        const auto again = job.run(world);  // the object whose operation was given up is as good as new
        REQUIRE(all_ok(again));
        REQUIRE(job.all_hold_sum());
      }
}

TEST_CASE(
    "requests: memory is the user's as soon as the request is destroyed, at any time, riding along or not",
    "[collective][request]") {
  using Free = Kokkos::View<double*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  const auto check = [](auto operation, std::size_t in, std::size_t out, auto... root) {
    using Operation = decltype(operation);
    for (int polls = 0; polls < 12; ++polls) {
      InProcess world(2, {.eager_limit = 0, .delay = 1, .seed = 1});
      std::deque<Operation> operations;
      std::vector<std::vector<double>> inputs(2, std::vector<double>(in, 1)),
          outputs(2, std::vector<double>(out, 2));
      std::vector<Request> requests;
      for (std::size_t r = 0; r < 2; ++r) {
        operations.emplace_back(None<double>{}, world.link(static_cast<int>(r)));
        const Free from(inputs[r].data(), in), to(outputs[r].data(), out);
        requests.push_back(operations.back().start(Exec{}, wring::group(wring::item(from, to)), root...));
      }
      for (int i = 0; i < polls; ++i) static_cast<void>(world.progress());
      for (std::size_t r = 0; r < 2; ++r) {
        requests[r] = Request();
        inputs[r].assign(in, 77), outputs[r].assign(out, 77);
      }
      while (world.progress() != wring::Progress::blocked) {
      }
      INFO(in << " values, after " << polls << " polls");
      for (std::size_t r = 0; r < 2; ++r) {
        REQUIRE(world.link(static_cast<int>(r)).session().in_flight() == 0);
        REQUIRE(inputs[r] == std::vector<double>(in, 77));
        REQUIRE(outputs[r] == std::vector<double>(out, 77));
      }
    }
  };
  InProcess world(2);
  for (const std::size_t n : {std::size_t{8}, std::size_t{40000}}) {
    check(Sum(None<double>{}, world.link(0)), n, n);
    check(wring::ReduceScatter<None<double>, InProcessTransport>(None<double>{}, world.link(0)), n, n / 2);
    check(wring::Allgather<None<double>, InProcessTransport>(None<double>{}, world.link(0)), n / 2, n);
    check(wring::Broadcast<None<double>, InProcessTransport>(None<double>{}, world.link(0)), n, n, 0);
  }
}

TEST_CASE("requests: a second start on a busy object is refused, the first goes on",
          "[collective][request]") {
  InProcess world(2);
  Job job(world, 1000);
  REQUIRE(job.sums[0].ready());
  job.start();
  REQUIRE_FALSE(job.sums[0].ready());
  REQUIRE_THROWS_AS(job.sums[0].start(Exec{}, job.data[0]), wring::InvalidArgument);
  REQUIRE_THROWS_AS(job.sums[0].start(Exec{}, wring::group(wring::item(job.data[0]))),
                    wring::InvalidArgument);
  REQUIRE(all_ok(job.finish(world)));
  REQUIRE(job.sums[0].ready());
  REQUIRE(job.all_hold_sum());
  REQUIRE(all_ok(job.run(world)));
}

TEST_CASE("requests: a rank that does not come is named when the deadline passes, the link is retired",
          "[collective][request]") {
  for (const std::size_t n : lengths) {
    InProcess world(3);
    Job job(world, n), next(world, 10);
    job.start(0), job.start(1);
    const auto deadline = wring::Deadline::clock::now() + std::chrono::milliseconds(5);
    const Outcome late = outcome_of([&](Outcome&) { job.requests[0].wait(deadline); });
    INFO(late);
    REQUIRE(late == Cause::timeout);
    REQUIRE(late.text.find("rank 2") != std::string::npos);
    REQUIRE(world.link(0).session().retired());
    REQUIRE_FALSE((job.sums[0].ready() || next.sums[0].ready()));
    REQUIRE(next.sums[1].ready());
    job.start(2);
    for (std::size_t r : {1, 2}) {
      const Outcome o = outcome_of([&](Outcome&) { job.requests[r].wait(); });
      INFO(o);
      REQUIRE(((o.ok() && n == 10 && job.holds_sum(r)) ||
               (o == Cause::timeout && o.rank == 0)));  // small ones came with the start
    }
    // The next start on the retired link fails at once and says why; nobody who starts it with this rank waits for ever.
    const auto outcomes = next.run(world);
    INFO(describe(outcomes));
    REQUIRE(outcomes[0] == Cause::abandoned);
    REQUIRE(outcomes[0].text.find("retired") != std::string::npos);
    REQUIRE(all_failed(outcomes, Cause::abandoned, 0));
  }
}

TEST_CASE("requests: a rank that comes too late hears that it was given up", "[collective][request]") {
  for (const std::size_t n : lengths) {
    InProcess world(2);
    Job job(world, n);
    job.start(0);
    REQUIRE_THROWS_AS(job.requests[0].wait(wring::Deadline::clock::now()), wring::TimeoutError);
    job.start(1);
    const auto outcomes = job.finish(world);
    INFO(outcomes[1]);
    if (n == 10)
      REQUIRE((outcomes[1].ok() && job.holds_sum(1)));  // all it needs came with the start
    else
      REQUIRE((outcomes[1] == Cause::timeout && outcomes[1].rank == 0));
  }
}

TEST_CASE("requests: in one thread, waiting for a rank that has not started is an error, not a hang",
          "[collective][request]") {
  InProcess world(2);
  Job job(world, 100);
  job.start(1);
  const Outcome outcome = outcome_of([&](Outcome&) { job.requests[1].wait(); });
  REQUIRE(outcome == Cause::timeout);
  REQUIRE(outcome.text.find("rank 0") != std::string::npos);
}

TEST_CASE("requests: a deadline that is met changes nothing; the blocking form takes one too",
          "[collective][request]") {
  InProcess world(1);
  Sum sum(None<double>{}, world.link(0));
  const View data("data", 3);
  const auto deadline = wring::Deadline::clock::now() + std::chrono::hours(1);
  REQUIRE(sum(Exec{}, data, deadline).bytes_sent == 0);
  REQUIRE(sum(Exec{}, data, wring::absolute(1e-9), deadline).bound == 1e-9);
}

TEST_CASE("an operation that ends as it is started is not left on its link", "[collective][request]") {
  wring::InProcess world(2, {.eager_limit = 4096});
  std::deque<wring::Allreduce<wring::None<float>, wring::InProcessTransport>> sums;
  for (int r = 0; r < 2; ++r) sums.emplace_back(wring::None<float>{}, world.link(r));
  std::vector<float> x{1, 2}, y{3, 4};
  const Values<float> views[] = {Values<float>(x.data(), 2), Values<float>(y.data(), 2)};
  for (int again = 0; again < 5;
       ++again) {  // rank 1 finds the message of rank 0 there, and is ahead of it after that
    wring::Request first = sums[0].start(Exec{}, views[0]), second = sums[1].start(Exec{}, views[1]);
    CHECK(second.wait().rode_along);
    REQUIRE(world.link(1).session().in_flight() == 0);
    wring::Request ahead = sums[1].start(Exec{}, views[1]);
    REQUIRE(world.link(1).session().in_flight() == 1);
    while (!first.test()) {
    }
    first = sums[0].start(Exec{}, views[0]);
    while (!first.test() || !ahead.test()) {
    }
  }
}
