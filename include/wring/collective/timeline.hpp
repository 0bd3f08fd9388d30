// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include <wring/work.hpp>

namespace wring::inline v0 {

/// What a rank did, and when: filled by the collectives that record into it (`BasicCollective::record`), written as a trace that
/// Perfetto (ui.perfetto.dev) and chrome://tracing show. Ranks that share a thread may share a timeline. It must outlive the
/// operations that record into it, those given up included: these end on their link. Belongs to the thread of its link or links.
///
/// All memory is taken at construction, 64 bytes an event: recording allocates nothing and reads the clock once or twice an event.
/// Events beyond the capacity are counted, not kept.
class Timeline {
 public:
  enum class Kind : std::uint8_t {
    work,          ///< something this rank did itself; no two of one rank overlap
    send,          ///< a message, from the start of its send to when its completion was found
    receive,       ///< a message, from when it was asked for to when it was found to have come
    agreement,     ///< the opening of an operation, small data that ride along included
    confirmation,  ///< its closing, where Options::confirm asks for one
    operation,     ///< the whole, from its start to when nothing of it was in flight any more
    sum            ///< by the transport, from its start to when it was found to have come
  };

  /// Times are in seconds, on std::chrono::steady_clock or on the virtual clock of the link.
  struct Event {
    double begin = 0, end = 0;
    std::uint64_t operation = 0;  ///< its number on the link: the same on all ranks
    std::uint64_t bytes = 0;      ///< of the values worked on, uncompressed; else of the message or messages
    std::int64_t segment = -1;    ///< -1: not in the midst of a plan
    int rank = 0;                 ///< whose event this is
    int peer = -1;                ///< of a message
    int first = 0, last = 0;      ///< the plan's blocks [first, last) in a message
    Kind kind = Kind::work;
    Work work = Work::wire;  ///< of Kind::work. `wire`: a message is put together and handed over, or checked
  };

  /// `capacity`: in events. An operation has two for each message sent or received, one for each piece encoded, combined or decoded,
  /// and a few.
  explicit Timeline(std::size_t capacity) : capacity_(capacity) { events_.reserve(capacity); }

  /// In the order of their ends.
  std::span<const Event> events() const { return events_; }
  std::size_t capacity() const { return capacity_; }
  /// How many events there was no room for.
  std::uint64_t lost() const { return lost_; }

  /// Forgets all events.
  void clear() { events_.clear(), lost_ = 0; }

  /// What an operation calls; programs may add work of their own.
  void add(const Event& event) {
    if (events_.size() < capacity_)
      events_.push_back(event);
    else
      ++lost_;
  }

  /// Writes the events of all ranks in it: see below.
  void write_chrome_trace(std::ostream& out) const;

 private:
  std::vector<Event> events_;
  std::size_t capacity_;
  std::uint64_t lost_ = 0;
};

namespace detail {

/// Writes events in the JSON format of Chrome's traces, one to a line. Numbers are made without a stream's or program's locale.
class ChromeTrace {
 public:
  using Event = Timeline::Event;

  explicit ChromeTrace(std::ostream& out) : out_(&out) {
    *out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  }

  void name(int rank) {
    const std::string text = std::to_string(rank);
    line("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + text + ",\"args\":{\"name\":\"rank " + text +
         "\"}}");
    line("{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":" + text +
         ",\"args\":{\"sort_index\":" + text + "}}");
  }

  /// Work is a complete event of the rank's thread; what overlaps with it and with its like is a pair of asynchronous events.
  void add(const Event& e) {
    const std::int64_t begin = nanoseconds(e.begin), end = nanoseconds(e.end);
    if (e.kind == Timeline::Kind::work)
      return line("{\"ph\":\"X\"," + place(e, begin) + ",\"dur\":" + microseconds(end - begin) + "," +
                  arguments(e) + "}");
    const std::string id = ",\"id2\":{\"local\":\"" + hexadecimal(++pairs_) + "\"}";
    line("{\"ph\":\"b\"," + place(e, begin) + id + "," + arguments(e) + "}");
    line("{\"ph\":\"e\"," + place(e, end) + id + "}");
  }

  void end(std::uint64_t lost) {
    *out_ << "\n],\"otherData\":{\"lost_events\":\"" << std::to_string(lost) << "\"}}\n";
  }

 private:
  void line(const std::string& text) {
    *out_ << (first_ ? "\n" : ",\n") << text;
    first_ = false;
  }

  static const char* name_of(const Event& e) {
    switch (e.kind) {
    case Timeline::Kind::send: return "send";
    case Timeline::Kind::receive: return "receive";
    case Timeline::Kind::agreement: return "agreement";
    case Timeline::Kind::confirmation: return "confirmation";
    case Timeline::Kind::operation: return "operation";
    case Timeline::Kind::sum: return "sum";
    default: return region_name(e.work);
    }
  }

  /// What every event of a trace has: name and category, process and thread, and when.
  static std::string place(const Event& e, std::int64_t when) {
    const std::string name = name_of(e);
    const std::string category = e.kind == Timeline::Kind::work ? "work" : name;
    return "\"name\":\"" + name + "\",\"cat\":\"" + category + "\",\"pid\":" + std::to_string(e.rank) +
           ",\"tid\":0,\"ts\":" + microseconds(when);
  }

  static std::string arguments(const Event& e) {
    std::string text = "\"args\":{\"operation\":" + std::to_string(e.operation);
    if (e.segment >= 0) text += ",\"segment\":" + std::to_string(e.segment);
    if (e.peer >= 0)
      text += ",\"peer\":" + std::to_string(e.peer) + ",\"first_block\":" + std::to_string(e.first) +
              ",\"last_block\":" + std::to_string(e.last - 1);
    return text + ",\"bytes\":" + std::to_string(e.bytes) + "}";
  }

  static constexpr std::int64_t most_nanoseconds = std::int64_t{1} << 61;  // differences fit, too

  /// What is no time counts as 0.
  static std::int64_t nanoseconds(double seconds) {
    constexpr double most = most_nanoseconds;
    const double exact = seconds * 1e9;
    return exact == exact ? std::llround(std::clamp(exact, -most, most)) : 0;
  }

  static std::string microseconds(std::int64_t nanoseconds) {
    if (nanoseconds < 0) return "-" + microseconds(-nanoseconds);
    const std::string thousandths = std::to_string(1000 + nanoseconds % 1000);
    return std::to_string(nanoseconds / 1000) + "." + thousandths.substr(1);
  }

  static std::string hexadecimal(std::uint64_t number) {
    std::string digits;
    for (; number > 0; number /= 16) digits.insert(digits.begin(), "0123456789abcdef"[number % 16]);
    return "0x" + digits;
  }

  std::ostream* out_;
  std::uint64_t pairs_ = 0;
  bool first_ = true;
};

}  // namespace detail

/// Writes the events of several timelines into one trace, a process for each rank. Their clocks must be one: of one machine, or of one
/// simulated network. What other processes have written can be added afterwards: join the arrays `traceEvents`.
inline void write_chrome_trace(std::ostream& out, std::span<const Timeline* const> timelines) {
  std::uint64_t lost = 0;
  std::vector<int> ranks;
  for (const Timeline* timeline : timelines) {
    lost += timeline->lost();
    for (const Timeline::Event& e : timeline->events())
      if (std::find(ranks.begin(), ranks.end(), e.rank) == ranks.end()) ranks.push_back(e.rank);
  }
  std::sort(ranks.begin(), ranks.end());
  detail::ChromeTrace trace(out);
  for (const int rank : ranks) trace.name(rank);
  for (const Timeline* timeline : timelines)
    for (const Timeline::Event& e : timeline->events()) trace.add(e);
  trace.end(lost);
}

inline void Timeline::write_chrome_trace(std::ostream& out) const {
  const Timeline* const self = this;
  v0::write_chrome_trace(out, std::span(&self, 1));
}

}  // namespace wring::inline v0
