// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>

#include <wring/collective/report.hpp>
#include <wring/collective/timeline.hpp>
#include <wring/transport/concept.hpp>
#include <wring/work.hpp>

namespace wring::inline v0::detail {

/// A region for profiling tools, from here to the end of the scope. Without a tool: a question, and nothing.
class Region {
 public:
  explicit Region(Work work) : pushed_(Kokkos::Profiling::profileLibraryLoaded()) {
    if (pushed_) Kokkos::Profiling::pushRegion(region_name(work));
  }
  ~Region() {
    if (pushed_) Kokkos::Profiling::popRegion();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  bool pushed_;
};

inline constexpr std::size_t least_timed_bytes = 1024;  ///< of values; the time of less counts as wire

/// Where the report adds up the time of some work; null for the wire, which gets what is left.
inline double* seconds_of(Report& report, Work work) {
  switch (work) {
  case Work::measure: return &report.measure_seconds;
  case Work::encode: return &report.encode_seconds;
  case Work::combine: return &report.combine_seconds;
  case Work::decode: return &report.decode_seconds;
  default: return nullptr;
  }
}

/// A piece of work of this rank, from here to the end of the scope, however it ends: a region for tools, an entry of the report, time
/// of a virtual clock, an event of a timeline. Pieces of work do not overlap. `S`: what the parts of the operation share.
template <class S> class Doing {
 public:
  /// `bytes`: of the values worked on; of the message where `work` is `wire`.
  Doing(S& shared, Work work, std::size_t bytes)
      : s_(shared), region_(work), work_(work), bytes_(bytes), timed_(worth_timing(shared, work, bytes)),
        begin_(timed_ ? shared.now() : 0) {}

  ~Doing() {
    if constexpr (VirtualTimeTransport<typename S::Transport>) s_.link->spend(work_, bytes_);
    if (!timed_) return;
    const double end = s_.now();
    if (double* seconds = seconds_of(s_.report, work_)) *seconds += end - begin_;
    if (!s_.timeline) return;
    Timeline::Event event = s_.event(Timeline::Kind::work, begin_, end);
    event.work = work_, event.bytes = bytes_;
    s_.timeline->add(event);
  }

  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;

 private:
  /// Looking at the clock takes longer than work on little.
  static bool worth_timing(const S& shared, Work work, std::size_t bytes) {
    return VirtualTimeTransport<typename S::Transport> || shared.timeline ||
           (work != Work::wire && bytes >= least_timed_bytes);
  }

  S& s_;
  Region region_;
  Work work_;
  std::size_t bytes_;
  bool timed_;
  double begin_;
};

}  // namespace wring::inline v0::detail
