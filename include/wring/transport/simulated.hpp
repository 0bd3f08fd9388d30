// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <wring/detail/sentence.hpp>
#include <wring/detail/transport/local_link.hpp>
#include <wring/detail/transport/run_ranks.hpp>
#include <wring/detail/transport/simulated_office.hpp>
#include <wring/detail/transport/target.hpp>
#include <wring/error.hpp>
#include <wring/machine.hpp>
#include <wring/transport/concept.hpp>
#include <wring/work.hpp>

namespace wring::inline v0 {

class SimulatedNetwork;

/// The link of one rank of a SimulatedNetwork: what it sends really arrives, when the network's machine would have brought it. Its rank has
/// a clock, which goes on when it works, handles a message, or waits. It belongs to the network.
class SimulatedTransport : public detail::LocalLink<SimulatedNetwork, detail::SimulatedOffice> {
 public:
  SimulatedNetwork& network() { return *world_; }

  /// Seconds on the clock of this rank.
  double now() const { return office_->clock(rank_); }

  /// This rank has worked: its clock goes on by what that takes on the network's machine, on values that come from memory.
  /// `bytes` of values, or of a message (`wire`).
  void spend(Work work, std::size_t bytes) {
    office_->spend(rank_, seconds_for(work, static_cast<double>(bytes)));
  }

  /// This rank is busy with something else: a computation that an operation in flight may hide behind.
  void pass(double seconds) { office_->spend(rank_, seconds); }

 private:
  friend SimulatedNetwork;
  SimulatedTransport(SimulatedNetwork& network, detail::SimulatedOffice& office, int rank, int size)
      : LocalLink(network, office, rank, size) {}

  double seconds_for(Work work, double bytes) const {
    const Machine& m = office_->machine();
    switch (work) {
    case Work::measure: return bytes / m.measure;
    case Work::encode: return m.launch + bytes / m.encode;
    case Work::combine: return m.launch + bytes / m.combine;
    case Work::decode: return m.launch + bytes / m.decode;
    default: return bytes / m.copy;
    }
  }
};

/// Any number of ranks in one process and one thread, on a network that is not there: the executor, the plans and the codecs are the real
/// ones, the results too, and time is that of the `Machine`. Nobody waits for it to pass.
///
///     wring::SimulatedNetwork network(256, machine);
///     const double seconds = wring::simulate(network, [&](wring::SimulatedTransport& link) {
///       return operations[link.rank()].start(...);   // each with its link
///     });
///
/// Each rank sends one message at a time and takes one at a time, both at once; a message waits in the switch while its receiver takes another;
/// nothing is lost. The ranks are moved in the order of their clocks, and messages taken in the order in which they begin to arrive, so that the
/// same program always takes the same time. Blocking calls cannot work here. Lives longer than what uses its links.
class SimulatedNetwork {
 public:
  /// Throws InvalidArgument for less than one rank, or an impossible machine.
  explicit SimulatedNetwork(int ranks, const Machine& machine = {})
      : office_(checked(ranks, machine), machine) {
    for (int r = 0; r < ranks; ++r) links_.emplace_back(new SimulatedTransport(*this, office_, r, ranks));
  }
  SimulatedNetwork(const SimulatedNetwork&) = delete;
  SimulatedNetwork& operator=(const SimulatedNetwork&) = delete;

  static constexpr const char* transport = "simulated transport";

  int size() const { return static_cast<int>(links_.size()); }
  SimulatedTransport& link(int rank) { return *links_.at(static_cast<std::size_t>(rank)); }
  const Machine& machine() const { return office_.machine(); }

  /// Messages from one rank to another get a latency (seconds) and a bandwidth (bytes per second) of their own. They share the ports of these
  /// ranks with all others.
  void set_link(int from, int to, double latency, double bandwidth) {
    detail::require_target("simulated network", from, size(), to, 0);
    detail::require_target("simulated network", to, size(), from, 0);
    Machine link = machine();
    link.latency = latency, link.bandwidth = bandwidth;
    expect_possible(link);
    office_.set_link(from, to, latency, bandwidth);
  }

  /// Lets the rank move whose turn it is in virtual time. `blocked`: no rank can move until somebody starts something.
  Progress progress() {
    const auto move = [this](int rank) { return link(rank).session().progress() != Progress::blocked; };
    bool moved = office_.progress(move);
    // What waits for no message and takes no time has no appointment.
    for (std::size_t r = 0; r < links_.size() && !moved; ++r)
      moved = links_[r]->session().in_flight() > 0 && office_.visit(r, move);
    return moved ? Progress::moved : Progress::blocked;
  }

  /// All ranks wait for the last one, as after a barrier that takes no time. Returns what all clocks now say.
  double synchronise() { return office_.synchronise(); }

  /// Messages sent so far, and their bytes.
  std::uint64_t messages() const { return office_.messages(); }
  std::uint64_t bytes() const { return office_.bytes(); }

 private:
  static int checked(int ranks, const Machine& machine) {
    if (ranks < 1)
      throw InvalidArgument(detail::sentence("simulated network: ", ranks, " ranks, at least 1 needed"));
    expect_possible(machine);
    return ranks;
  }

  detail::SimulatedOffice office_;  // before the links, whose operations may use it when they are destroyed
  std::vector<std::unique_ptr<SimulatedTransport>> links_;
};

/// Runs a program on all ranks of a network, beginning at the same time. `start(link)` is called for each rank and returns something whose
/// `test()` says whether it has finished: a request, or a pointer to an object that owns all it needs. Returns the seconds until the last rank
/// had finished. What `start` or `test` throw is passed on. Throws Error if no rank can move any more, saying what each of them waits for.
template <class Start> double simulate(SimulatedNetwork& network, Start&& start) {
  const double begin = network.synchronise();
  detail::run_ranks(network, start);
  return network.synchronise() - begin;
}

static_assert(SharedThreadTransport<SimulatedTransport> && VirtualTimeTransport<SimulatedTransport> &&
              WordSummingTransport<SimulatedTransport>);

}  // namespace wring::inline v0
