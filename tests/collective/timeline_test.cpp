// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What operations record of themselves: every message and piece of work, in times that agree with the report.
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/transport/in_process.hpp>

#include "support/algorithms.hpp"
#include "support/collect.hpp"
#include "support/executors.hpp"

using namespace wring_test;
using wring::InProcess;
using wring::Timeline;
using wring::Work;
using Kind = wring::Timeline::Kind;

namespace {

using View = Kokkos::View<float*, Kokkos::HostSpace>;
using Events = std::vector<Timeline::Event>;

/// An allreduce on several ranks that all record.
struct Recorded {
  std::deque<Timeline> timelines;
  std::vector<Outcome> outcomes;

  std::vector<const Timeline*> all() const {
    std::vector<const Timeline*> pointers;
    for (const Timeline& t : timelines) pointers.push_back(&t);
    return pointers;
  }
};

template <class Codec> Recorded recorded(const Codec& codec, const AnyAlgorithm& algorithm, int ranks,
                                         std::size_t n, wring::Options options,
                                         std::optional<wring::Bound> bound, std::size_t capacity = 10000) {
  InProcess world(ranks, {.eager_limit = 0, .delay = 2, .seed = 5});
  std::deque<wring::Allreduce<Codec, wring::InProcessTransport, AnyAlgorithm>> sums;
  std::vector<View> data;
  Recorded result;
  for (int r = 0; r < ranks; ++r) {
    sums.emplace_back(codec, world.link(r), algorithm, options);
    sums.back().record(result.timelines.emplace_back(capacity));
    data.emplace_back("data", n);
    Kokkos::deep_copy(data.back(), static_cast<float>(r + 1));
  }
  result.outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(Exec{}, wring::group(wring::item(data[r], bound)));
  });
  INFO(describe(result.outcomes));
  REQUIRE(all_ok(result.outcomes));
  return result;
}

Events of_kind(const Timeline& timeline, Kind kind) {
  Events some;
  for (const auto& e : timeline.events())
    if (e.kind == kind) some.push_back(e);
  return some;
}

Events of_work(const Timeline& timeline, Work work) {
  Events some = of_kind(timeline, Kind::work);
  std::erase_if(some, [work](const auto& e) { return e.work != work; });
  return some;
}

double seconds(const Events& events) {
  double sum = 0;
  for (const auto& e : events) sum += e.end - e.begin;
  return sum;
}

std::uint64_t bytes(const Events& events) {
  std::uint64_t sum = 0;
  for (const auto& e : events) sum += e.bytes;
  return sum;
}

/// One rank's events against its report.
void check_rank(const Timeline& timeline, const wring::Report& report, int rank, bool confirmed) {
  const Events sends = of_kind(timeline, Kind::send), agreements = of_kind(timeline, Kind::agreement),
               confirmations = of_kind(timeline, Kind::confirmation),
               operations = of_kind(timeline, Kind::operation);
  REQUIRE(timeline.lost() == 0);
  CHECK(sends.size() == report.messages);
  REQUIRE((agreements.size() == 1 && operations.size() == 1 && confirmations.size() == (confirmed ? 1 : 0)));
  CHECK(bytes(sends) + bytes(agreements) + bytes(confirmations) == report.bytes_sent);
  CHECK(operations[0].bytes == report.bytes_sent);
  CHECK(of_work(timeline, Work::encode).size() == report.encodings);
  CHECK(seconds(of_work(timeline, Work::measure)) == report.measure_seconds);
  CHECK(seconds(of_work(timeline, Work::encode)) == report.encode_seconds);
  CHECK(seconds(of_work(timeline, Work::combine)) == report.combine_seconds);
  CHECK(seconds(of_work(timeline, Work::decode)) == report.decode_seconds);
  double free = operations[0].begin, ended = 0;
  for (const auto& e : timeline.events()) {
    CHECK((e.rank == rank && e.operation == operations[0].operation));
    CHECK((operations[0].begin <= e.begin && e.begin <= e.end && e.end <= operations[0].end));
    CHECK(ended <= e.end);
    ended = e.end;
    if (e.kind == Kind::send || e.kind == Kind::receive) {
      CHECK((e.peer >= 0 && e.peer != rank && e.first < e.last && e.segment >= 0));
      CHECK(e.begin >= agreements[0].end);
    }
    if (e.kind != Kind::work) continue;
    CHECK(e.begin >= free);  // one piece of work after the other
    free = e.end;
    CHECK((e.work == Work::measure) == (e.end <= agreements[0].end && e.segment == -1));
  }
}

using Message = std::tuple<int, int, std::int64_t, int, int, std::uint64_t>;

/// Who sent what to whom, as senders or as receivers tell it.
std::map<Message, int> messages(const Recorded& run, Kind kind) {
  std::map<Message, int> all;
  for (const Timeline& t : run.timelines)
    for (const auto& e : of_kind(t, kind))
      ++all[{kind == Kind::send ? e.rank : e.peer, kind == Kind::send ? e.peer : e.rank, e.segment, e.first,
             e.last, e.bytes}];
  return all;
}

/// Whether a text is one JSON value: a reader of its grammar (RFC 8259) that takes anything of the right form.
class Json {
 public:
  static bool valid(std::string_view text) {
    Json reader(text);
    return reader.value() && (reader.space(), reader.text_.empty());
  }

 private:
  explicit Json(std::string_view text) : text_(text) {}

  void space() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_[0]))) text_.remove_prefix(1);
  }
  bool take(char c) {
    space();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool string() {
    if (!take('"')) return false;
    while (!text_.empty() && text_[0] != '"' && text_[0] != '\\' && text_[0] >= ' ') text_.remove_prefix(1);
    return take('"');  // no escapes are in use
  }
  bool digits() {
    const std::size_t n = std::min(text_.find_first_not_of("0123456789"), text_.size());
    text_.remove_prefix(n);
    return n > 0;
  }
  bool number() {
    take('-');
    if (text_.size() > 1 && text_[0] == '0' && std::isdigit(static_cast<unsigned char>(text_[1])))
      return false;
    return digits() && (!take('.') || digits());
  }
  template <class Element> bool list(char end, Element element) {
    if (take(end)) return true;
    do
      if (!element()) return false;
    while (take(','));
    return take(end);
  }
  bool value() {
    if (take('{')) return list('}', [this] { return string() && take(':') && value(); });
    if (take('[')) return list(']', [this] { return value(); });
    return string() || number();
  }

  std::string_view text_;
};

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// An InProcess link with a clock that moves only when something is worked on: by a second for each byte, and each kind of work has
/// a digit of its own.
class ClockedLink {
 public:
  using memory_space = Kokkos::HostSpace;
  using Request = wring::InProcessTransport::Request;
  static constexpr bool shares_thread = true;

  explicit ClockedLink(wring::InProcessTransport& link) : link_(&link) {}

  int rank() const { return link_->rank(); }
  int size() const { return link_->size(); }
  wring::Session& session() { return link_->session(); }
  wring::Progress progress() { return link_->progress(); }
  Request send(int peer, int channel, std::span<const std::byte> bytes) {
    return link_->send(peer, channel, bytes);
  }
  Request receive(int peer, int channel, std::span<std::byte> bytes) {
    return link_->receive(peer, channel, bytes);
  }
  std::optional<std::size_t> test(Request& request) { return link_->test(request); }
  bool cancel(Request& request) { return link_->cancel(request); }

  double now() const { return now_; }
  void spend(Work work, std::size_t bytes) {
    now_ += static_cast<double>(bytes);
    spent_[static_cast<std::size_t>(work)] += bytes;
  }
  std::size_t spent(Work work) const { return spent_[static_cast<std::size_t>(work)]; }

 private:
  wring::InProcessTransport* link_;
  double now_ = 1000;
  std::size_t spent_[5] = {};
};
static_assert(wring::SharedThreadTransport<ClockedLink> && wring::VirtualTimeTransport<ClockedLink> &&
              !wring::VirtualTimeTransport<wring::InProcessTransport>);

}  // namespace

TEST_CASE("timeline: what leaves a node is packed, with the node's sum in it", "[collective][timeline]") {
  const std::size_t n = 40000;
  const wring::Hierarchical<> by_node(2);
  const Recorded run = recorded(wring::Grid<float>{}, AnyAlgorithm(by_node), 4, n, {.segment_bytes = 32768},
                                wring::absolute(0.01));
  std::uint64_t inside = 0, outside = 0;
  for (const Timeline& t : run.timelines)
    for (const auto& e : of_kind(t, Kind::send)) (e.rank / 2 == e.peer / 2 ? inside : outside) += e.bytes;
  const std::size_t half_of_all = 4 * n / 2 * sizeof(float);
  CHECK(inside > half_of_all);  // each rank gives half of its values to its neighbour, in full size
  CHECK(outside < half_of_all * 13 / 32);  // sums up to 10 in steps of 0.005 take 12 bits
}

TEST_CASE("timeline: events of every rank agree with its report", "[collective][timeline]") {
  for (const int ranks : {1, 2, 4})
    for (const AnyAlgorithm& algorithm : {AnyAlgorithm(wring::Ring{}), AnyAlgorithm(wring::HalvingDoubling{}),
                                          AnyAlgorithm(wring::Hierarchical<>(2))})
      for (const bool confirm : {false, true}) {
        const wring::Options options{
            .segment_bytes = 4096, .depth = 3, .ride_along_bytes = 0, .confirm = confirm};
        INFO(algorithm.name() << ", " << ranks << " ranks" << (confirm ? ", confirmed" : ""));
        const auto check = [&](const Recorded& run) {
          for (std::size_t r = 0; r < run.outcomes.size(); ++r)
            check_rank(run.timelines[r], run.outcomes[r].report, static_cast<int>(r), confirm);
          CHECK(messages(run, Kind::send) == messages(run, Kind::receive));
        };
        check(recorded(wring::None<float>{}, algorithm, ranks, 20000, options, std::nullopt));
        check(recorded(wring::Cast<wring::half_t>{}, algorithm, ranks, 20000, options, std::nullopt));
        check(recorded(wring::Grid<float>{}, algorithm, ranks, 20000, options, wring::relative_to_rms(0.01)));
      }
}

TEST_CASE("timeline: a ring measures its input once, and encodes and decodes what its plan says",
          "[collective][timeline]") {
  const std::size_t n = 4 * 512 * 2;  // 4 blocks, 2 segments
  const Recorded run =
      recorded(wring::Grid<float>{}, wring::Ring{}, 4, n,
               {.segment_bytes = 512 * sizeof(float), .ride_along_bytes = 0}, wring::relative_to_range(0.1));
  for (const Timeline& t : run.timelines) {
    const Events measured = of_work(t, Work::measure);
    REQUIRE(measured.size() == 1);
    CHECK(measured[0].bytes == n * sizeof(float));
    CHECK(of_kind(t, Kind::send).size() == 2 * 6);
    CHECK(bytes(of_work(t, Work::encode)) == n / 4 * sizeof(float));       // the block that is sent first
    CHECK(bytes(of_work(t, Work::combine)) == 3 * n / 4 * sizeof(float));  // the others, from values
    CHECK(bytes(of_work(t, Work::decode)) == 3 * n / 4 * sizeof(float));   // all but the one completed here
    std::vector<int> of_segment(2, 0);
    for (const auto& e : of_work(t, Work::encode)) ++of_segment.at(static_cast<std::size_t>(e.segment));
    CHECK(of_segment == std::vector<int>{1, 1});
  }
}

TEST_CASE("timeline: data that ride along are part of the agreement", "[collective][timeline]") {
  const Recorded run = recorded(wring::Grid<float>{}, wring::Ring{}, 4, 100, {}, wring::absolute(0.1));
  for (std::size_t r = 0; r < 4; ++r) {
    const Timeline& t = run.timelines[r];
    REQUIRE(run.outcomes[r].report.rode_along);
    CHECK(of_kind(t, Kind::send).empty());
    CHECK(of_kind(t, Kind::agreement).at(0).bytes == run.outcomes[r].report.bytes_sent);
    CHECK(of_work(t, Work::measure).size() == 1);
    CHECK(of_work(t, Work::encode).size() == 1);
    CHECK(of_work(t, Work::combine).size() == 2);  // of two rounds
    CHECK(of_work(t, Work::decode).size() == 1);
  }
}

static_assert(sizeof(Timeline::Event) == 64);  // as documented

TEST_CASE("timeline: what does not fit is counted", "[collective][timeline]") {
  const auto run = [](std::size_t capacity) {
    return recorded(wring::None<float>{}, wring::Ring{}, 2, 5000, {.segment_bytes = 4096}, std::nullopt,
                    capacity);
  };
  const Recorded whole = run(10000), cut = run(7), none = run(0);
  const std::size_t all = whole.timelines[0].events().size();
  REQUIRE(all > 7);
  CHECK((cut.timelines[0].events().size() == 7 && cut.timelines[0].lost() == all - 7));
  CHECK((none.timelines[0].events().empty() && none.timelines[0].lost() == all));
  Timeline timeline(1);
  timeline.add({}), timeline.add({}), timeline.clear();
  CHECK((timeline.events().empty() && timeline.lost() == 0 && timeline.capacity() == 1));
  timeline.add({});
  CHECK((timeline.events().size() == 1 && timeline.lost() == 0));
}

TEST_CASE("timeline: ranks record or not, until they are told otherwise", "[collective][timeline]") {
  InProcess world(2);
  wring::Allreduce first(wring::None<float>{}, world.link(0), wring::Ring{}),
      second(wring::None<float>{}, world.link(1), wring::Ring{});
  const View a("a", 1000), b("b", 1000);
  const auto run = [&] {
    const auto outcomes = on_all_ranks(
        world, [&](int rank) { return rank == 0 ? first.start(Exec{}, a) : second.start(Exec{}, b); });
    REQUIRE(all_ok(outcomes));
  };
  Timeline timeline(1000), another(1000);
  run();
  CHECK(timeline.events().empty());
  first.record(timeline);
  run();
  const std::size_t once = timeline.events().size();
  CHECK(once > 0);
  for (const auto& e : timeline.events()) CHECK((e.rank == 0 && e.operation == 1));
  second.record(timeline);  // ranks of one thread may share
  run();
  CHECK(timeline.events().size() == 3 * once);
  first.record(another), second.record(nullptr);
  run();
  CHECK((timeline.events().size() == 3 * once && another.events().size() == once));
  first.record(nullptr);
  run();
  CHECK((timeline.events().size() == 3 * once && another.events().size() == once));
}

TEST_CASE("timeline: an operation that fails records how far it came", "[collective][timeline]") {
  InProcess world(2);
  std::deque<Timeline> timelines;
  std::deque<wring::Allreduce<wring::None<float>, wring::InProcessTransport, wring::Ring>> sums;
  const View data("data", 1000);
  for (int r = 0; r < 2; ++r)
    sums.emplace_back(wring::None<float>{}, world.link(r), wring::Ring{}).record(timelines.emplace_back(100));
  const auto outcomes = on_all_ranks(world, [&](int rank) {  // of different lengths
    return sums[static_cast<std::size_t>(rank)].start(Exec{}, Kokkos::subview(data, std::pair(rank, 900)));
  });
  REQUIRE(all_failed(outcomes, wring::Cause::mismatch));
  for (const Timeline& t : timelines) {
    REQUIRE(t.events().size() == 2);
    CHECK((t.events()[0].kind == Kind::agreement && t.events()[1].kind == Kind::operation));
  }
}

TEST_CASE("timeline: a virtual clock is the clock of reports and events", "[collective][timeline]") {
  for (const bool combines : {false, true}) {
    InProcess world(3);
    std::deque<ClockedLink> links;
    std::deque<Timeline> timelines;
    const std::size_t n = 3 * 512;
    std::vector<View> data;
    for (int r = 0; r < 3; ++r)
      links.emplace_back(world.link(r)), timelines.emplace_back(1000), data.emplace_back("data", n);
    const auto run = [&](const auto& codec, std::optional<wring::Bound> bound) {
      std::deque<wring::Allreduce<std::decay_t<decltype(codec)>, ClockedLink, wring::Ring>> sums;
      for (std::size_t r = 0; r < 3; ++r)
        sums.emplace_back(codec, links[r], wring::Ring{}, wring::Options{.ride_along_bytes = 0})
            .record(timelines[r]);
      return on_all_ranks(world, [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        return sums[r].start(Exec{}, wring::group(wring::item(data[r], bound)));
      });
    };
    const auto outcomes = combines ? run(wring::Grid<float>{}, wring::relative_to_range(0.1))
                                   : run(wring::Cast<wring::half_t>{}, std::nullopt);
    REQUIRE(all_ok(outcomes));
    const double block = 512 * sizeof(float);
    for (std::size_t r = 0; r < 3; ++r) {
      const wring::Report& report = outcomes[r].report;
      const ClockedLink& link = links[r];
      CHECK(report.measure_seconds == (combines ? 3 * block : 0));
      // Of pieces that combine, only the one that is sent first is encoded apart; values are before each hop and where complete.
      CHECK(report.encode_seconds == (combines ? 1 : 3) * block);
      CHECK(report.decode_seconds == static_cast<double>(link.spent(Work::decode)) - (combines ? block : 0));
      // Two blocks arrive to be combined with values, and the second sum is decoded, in a pass each; values that were added are finished.
      CHECK(report.combine_seconds == (combines ? 2 + 2 + 1 : 3) * block);
      CHECK(report.wire_seconds == static_cast<double>(link.spent(Work::wire)));
      CHECK(report.seconds == link.now() - 1000);
      CHECK(link.spent(Work::wire) >
            2 * 4 * 64);  // four messages sent and four received, 64 bytes of header each
      check_rank(timelines[r], report, static_cast<int>(r), false);
    }
  }
}

TEST_CASE("timeline: the text of a small trace", "[collective][timeline]") {
  Timeline first(2), second(1);
  first.add({.begin = 1.5,
             .end = 1.50000125,
             .operation = 7,
             .bytes = 4096,
             .segment = 2,
             .rank = 3,
             .work = Work::encode});
  first.add({});  // lost below
  first.clear();
  first.add({.begin = 1.5,
             .end = 1.50000125,
             .operation = 7,
             .bytes = 4096,
             .segment = 2,
             .rank = 3,
             .work = Work::encode});
  second.add({.begin = 0.001,
              .end = 0.002,
              .operation = 7,
              .bytes = 100,
              .segment = 2,
              .rank = 0,
              .peer = 3,
              .first = 4,
              .last = 6,
              .kind = Kind::send});
  second.add({});
  std::ostringstream text;
  const Timeline* both[] = {&first, &second};
  wring::write_chrome_trace(text, both);
  CHECK(text.str() == R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","name":"process_name","pid":0,"args":{"name":"rank 0"}},
{"ph":"M","name":"process_sort_index","pid":0,"args":{"sort_index":0}},
{"ph":"M","name":"process_name","pid":3,"args":{"name":"rank 3"}},
{"ph":"M","name":"process_sort_index","pid":3,"args":{"sort_index":3}},
{"ph":"X","name":"wring::encode","cat":"work","pid":3,"tid":0,"ts":1500000.000,"dur":1.250,"args":{"operation":7,"segment":2,"bytes":4096}},
{"ph":"b","name":"send","cat":"send","pid":0,"tid":0,"ts":1000.000,"id2":{"local":"0x1"},"args":{"operation":7,"segment":2,"peer":3,"first_block":4,"last_block":5,"bytes":100}},
{"ph":"e","name":"send","cat":"send","pid":0,"tid":0,"ts":2000.000,"id2":{"local":"0x1"}}
],"otherData":{"lost_events":"1"}}
)");
}

TEST_CASE("timeline: times of the program's own, before the clock's beginning or none at all",
          "[collective][timeline]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Timeline timeline(3);
  timeline.add({.begin = -2e-9, .end = 3e-9});
  timeline.add({.begin = -1.5e-6, .end = -1e-6});
  timeline.add({.begin = std::nan(""), .end = infinity});
  std::ostringstream text;
  timeline.write_chrome_trace(text);
  CHECK(text.str().find(R"("ts":-0.002,"dur":0.005)") != std::string::npos);
  CHECK(text.str().find(R"("ts":-1.500,"dur":0.500)") != std::string::npos);
  CHECK(text.str().find(R"("ts":0.000,"dur":2305843009213693.952)") != std::string::npos);
  CHECK(Json::valid(text.str()));
}

TEST_CASE("timeline: a trace is JSON and has every event", "[collective][timeline]") {
  CHECK_FALSE(Json::valid("{\"a\":[1,]}"));
  CHECK_FALSE(Json::valid("{\"a\":01}"));
  CHECK_FALSE(Json::valid("{} {}"));
  std::ostringstream empty, text;
  Timeline(0).write_chrome_trace(empty);
  CHECK(Json::valid(empty.str()));
  const Recorded run = recorded(wring::Grid<float>{}, wring::Ring{}, 4, 20000, {.segment_bytes = 4096},
                                wring::relative_to_range(0.01));
  std::size_t work = 0, spans = 0;
  for (const Timeline& t : run.timelines) {
    work += of_kind(t, Kind::work).size();
    spans += t.events().size() - of_kind(t, Kind::work).size();
  }
  wring::write_chrome_trace(text, run.all());
  CHECK(Json::valid(text.str()));
  CHECK(count(text.str(), "\"ph\":\"X\"") == work);
  CHECK(count(text.str(), "\"ph\":\"b\"") == spans);
  CHECK(count(text.str(), "\"ph\":\"e\"") == spans);
  CHECK(count(text.str(), "\"process_name\"") == 4);
}

TEST_CASE("timeline: the code of docs/performance.md", "[collective][timeline]") {
  InProcess world(1);
  wring::Allreduce mean(wring::Grid<float>{}, world.link(0), wring::Ring{}, {.operation = wring::mean});
  const Exec exec;
  const View gradient("gradient", 10000);
  std::ostringstream file;

  wring::Timeline timeline(100000);  // events; 64 bytes each, taken now
  mean.record(timeline);
  mean(exec, gradient, wring::absolute(1e-4));
  timeline.write_chrome_trace(file);
  mean.record(nullptr);

  REQUIRE(count(file.str(), "wring::encode") > 0);
}
