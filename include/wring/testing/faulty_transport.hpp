// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/error.hpp>
#include <wring/testing/detail/fault_script.hpp>
#include <wring/testing/fault_plan.hpp>
#include <wring/transport/concept.hpp>

namespace wring::inline v0::testing {

/// What a FaultyTransport has of a transport whose ranks share one thread, and of any other.
struct FaultyInOneThread {
  static constexpr bool shares_thread = true;
};
struct FaultyOnItsOwn {};

/// A transport that does what another one does, but for the faults that a plan asks for: late, reordered, damaged and lost messages,
/// calls that throw, ranks that stop or die. To see what a program, a codec or a transport of one's own makes of them:
///
///     wring::InProcess world(4);
///     wring::testing::FaultPlan plan{.faults = {{.kind = FaultKind::flip, .rank = 1, .number = 3, .amount = 77}}};
///     wring::testing::FaultyTransport link(world.link(rank), plan);   // on every rank, with the same plan
///     wring::Allreduce sum(MyCodec{}, link);
///
/// Without faults it keeps the laws of transports that the link beneath keeps; delayed and reordered messages break none either: those
/// of one pair and channel stay in order. It carries the session of the link beneath, refers to that link, and outlives what uses it.
/// Ranks that share a thread are moved by `progress()` of any FaultyTransport, which polls often enough for the longest delay.
/// The plan is read by the rank itself: nothing travels but the messages of its user.
template <Transport Link> class FaultyTransport
    : public std::conditional_t<SharedThreadTransport<Link>, FaultyInOneThread, FaultyOnItsOwn> {
  /// A message or a receive that is not simply handed on. Stays where it is until it has ended.
  struct Parcel {
    Fault fault;
    bool faulty = false, sends = true, lost = false;
    bool held = false;     ///< a send that has not left, a receive that must not complete
    bool started = false;  ///< `inner` is in flight
    int peer = 0, channel = 0;
    std::uint64_t due = 0;             ///< held until so many tests have been made
    std::span<const std::byte> bytes;  ///< of a send: the user's, or `own`
    std::size_t size = 0;              ///< of a send, as its user knows it
    std::vector<std::byte> own;
    std::exception_ptr thrown;
    typename Link::Request inner{};
  };

 public:
  using memory_space = typename Link::memory_space;
  static_assert(Kokkos::SpaceAccessibility<Kokkos::HostSpace, memory_space>::accessible,
                "wring: FaultyTransport needs a transport whose memory the host can access");

  class Request {
   public:
    Request() = default;
    Request(Request&& other) noexcept
        : inner_(std::move(other.inner_)), parcel_(std::exchange(other.parcel_, nullptr)), peer_(other.peer_),
          sends_(other.sends_) {}
    Request& operator=(Request&& other) noexcept {
      inner_ = std::move(other.inner_), parcel_ = std::exchange(other.parcel_, nullptr);
      peer_ = other.peer_, sends_ = other.sends_;
      return *this;
    }

   private:
    friend FaultyTransport;
    typename Link::Request inner_{};
    Parcel* parcel_ = nullptr;
    int peer_ = -1;
    bool sends_ = false;
  };

  explicit FaultyTransport(Link& link, FaultPlan plan = {})
      : link_(&link), script_(std::move(plan), link.rank()) {}
  explicit FaultyTransport(Link&&, FaultPlan = {}) = delete;  // the link must outlive it
  FaultyTransport(const FaultyTransport&) = delete;
  FaultyTransport& operator=(const FaultyTransport&) = delete;

  /// Gives what still drains on it a last chance, then ends it. Bytes that the link beneath does not give back stay allocated.
  ~FaultyTransport() {
    for (int i = 0; i < 1000 && session().in_flight() > 0; ++i) session().progress();
    session().orphan();
    for (Parcel& p : parcels_)
      if (p.started && !link_->cancel(p.inner)) static_cast<void>(new Parcel(std::move(p)));
  }

  int rank() const { return link_->rank(); }
  int size() const { return link_->size(); }
  Session& session() { return link_->session(); }

  /// Moves all ranks of this thread. Says `blocked` only when it would after the longest delay of the plan, too.
  Progress progress()
    requires SharedThreadTransport<Link>
  {
    Progress result = link_->progress();
    for (std::uint64_t i = 0; result == Progress::blocked && i <= script_.longest_hold(); ++i) {
      tick();
      result = link_->progress();
    }
    return result;
  }

  Request send(int peer, int channel, std::span<const std::byte> bytes) {
    const Fault* fault = next(Side::send, peer, channel, bytes.size());
    Request request;
    request.peer_ = peer, request.sends_ = true;
    if (!stopped_ && !fault && !must_queue(peer, channel)) {
      request.inner_ = link_->send(peer, channel, bytes);
      overtake(Side::send, peer);
      return request;
    }
    Parcel& p = open(request, fault, channel);
    p.bytes = bytes, p.size = bytes.size();
    if (stopped_) return request;
    if (fault && damages(fault->kind)) {
      p.own.assign(bytes.begin(), bytes.end());
      damage(*fault, p.own);
      p.bytes = p.own;
    }
    p.lost = fault && fault->kind == FaultKind::lose;
    p.held = !p.lost;
    release();
    if (!p.held) overtake(Side::send, peer);
    return request;
  }

  Request receive(int peer, int channel, std::span<std::byte> bytes) {
    const Fault* fault = next(Side::receive, peer, channel, bytes.size());
    Request request;
    request.peer_ = peer;
    if (!stopped_ && !fault) {
      request.inner_ = link_->receive(peer, channel, bytes);
      return request;
    }
    Parcel& p = open(request, fault, channel);
    if (stopped_) return request;
    p.inner = link_->receive(peer, channel, bytes);
    p.started = true;
    p.held = holds(*fault);
    return request;
  }

  /// Sums have no faults of their own; a rank that has stopped or died takes no part in them.
  Request sum_words(std::span<std::uint64_t> words)
    requires WordSummingTransport<Link>
  {
    if (dead_) throw TransportError("faulty transport: " + who() + " has died", rank());
    Request request;
    request.sends_ = true;
    if (stopped_)
      static_cast<void>(open(request, nullptr, 0));
    else
      request.inner_ = link_->sum_words(words);
    return request;
  }

  std::optional<std::size_t> test(Request& request) {
    tick();
    if (stopped_) return dead_ ? die_of(request) : std::nullopt;
    if (request.parcel_ != nullptr) return test_parcel(request);
    const std::optional<std::size_t> bytes = link_->test(request.inner_);
    if (bytes && !request.sends_) overtake(Side::receive, request.peer_);
    return bytes;
  }

  /// A message that is held back leaves at once, unless the rank has stopped.
  bool cancel(Request& request) {
    if (request.parcel_ == nullptr) return link_->cancel(request.inner_);
    Parcel& p = *request.parcel_;
    if (p.sends && p.held && !stopped_) hurry(p);
    if (p.started && !link_->cancel(p.inner)) return false;
    close(request);
    return true;
  }

  /// No more faults from now on; what is held back goes its way. A rank that has stopped or died stays so.
  void heal() {
    script_.heal();
    for (Parcel& p : parcels_) p.due = 0;
  }

  /// Whether this rank has stopped or died.
  bool stopped() const { return stopped_; }

  /// How many messages this rank has sent (received) so far: what the numbers of a plan can be.
  std::uint64_t messages(Side side, MessageKind kind = MessageKind::any) const {
    return script_.messages(side, kind);
  }

  /// The faults that took effect on this rank, in their order.
  const std::vector<InjectedFault>& injected() const { return injected_; }

 private:
  static bool holds(const Fault& fault) {
    return fault.kind == FaultKind::delay || fault.kind == FaultKind::reorder;
  }

  std::string who() const { return "rank " + std::to_string(rank()); }

  /// What the plan wants of the next message. Stopping, dying and throwing begin here.
  const Fault* next(Side side, int peer, int channel, std::size_t bytes) {
    if (dead_) throw TransportError("faulty transport: " + who() + " has died", rank());
    if (stopped_) return nullptr;
    const Fault* fault = script_.next(side, channel);
    if (fault == nullptr) return nullptr;
    injected_.push_back({*fault, peer, channel, bytes});
    stopped_ = fault->kind == FaultKind::stop || fault->kind == FaultKind::die;
    dead_ = fault->kind == FaultKind::die;
    if (dead_) throw TransportError("faulty transport: " + who() + " dies", rank());
    if (fault->kind == FaultKind::throw_at_start)
      throw TransportError("faulty transport: a message of " + who() + " is refused", rank());
    return stopped_ ? nullptr : fault;
  }

  Parcel& open(Request& request, const Fault* fault, int channel) {
    Parcel& p = parcels_.emplace_back();
    p.peer = request.peer_, p.channel = channel, p.sends = request.sends_;
    p.faulty = fault != nullptr;
    if (fault) p.fault = *fault;
    if (fault && holds(*fault)) p.due = ticks_ + fault->amount;
    request.parcel_ = &p;
    return p;
  }

  void close(Request& request) {
    parcels_.remove_if([&](const Parcel& p) { return &p == request.parcel_; });
    request = Request();
  }

  // ---- messages that are held back ---------------------------------------------------------------------------------------------

  /// Messages of one pair and channel leave in the order in which they were sent.
  bool must_queue(int peer, int channel, const Parcel* until = nullptr) const {
    for (const Parcel& p : parcels_) {
      if (&p == until) break;
      if (p.sends && p.held && p.peer == peer && p.channel == channel) return true;
    }
    return false;
  }

  void tick() {
    if (stopped_) return;
    ++ticks_;
    release();
  }

  void release() {
    for (Parcel& p : parcels_) {
      if (!p.held || p.due > ticks_) continue;
      if (!p.sends)
        p.held = false;
      else if (!must_queue(p.peer, p.channel, &p))
        leave(p);
    }
  }

  void leave(Parcel& p) {
    p.held = false;
    try {
      p.inner = link_->send(p.peer, p.channel, p.bytes);
      p.started = true;
    } catch (...) {
      p.thrown = std::current_exception();
    }
  }

  void hurry(const Parcel& last) {
    for (Parcel& p : parcels_) {
      if (p.sends && p.held && p.peer == last.peer && p.channel == last.channel) leave(p);
      if (&p == &last) return;
    }
  }

  /// A message of this peer has gone first: those of others need wait no longer.
  void overtake(Side side, int peer) {
    bool any = false;
    for (Parcel& p : parcels_) {
      if (!p.held || p.fault.kind != FaultKind::reorder || p.sends != (side == Side::send) || p.peer == peer)
        continue;
      p.due = 0, any = true;
    }
    if (any) release();
  }

  // ---- the end of a message ----------------------------------------------------------------------------------------------------

  std::optional<std::size_t> test_parcel(Request& request) {
    Parcel& p = *request.parcel_;
    if (p.held) return std::nullopt;
    if (p.thrown) {
      const std::exception_ptr thrown = p.thrown;
      close(request);
      std::rethrow_exception(thrown);
    }
    std::optional<std::size_t> bytes = p.size;
    try {
      if (!p.lost) bytes = link_->test(p.inner);
    } catch (...) {
      close(request);
      throw;
    }
    if (!bytes) return std::nullopt;
    if (p.sends) bytes = p.size;
    const bool throws = p.faulty && p.fault.kind == FaultKind::throw_at_test, sends = p.sends;
    const int peer = p.peer;
    close(request);
    if (!sends) overtake(Side::receive, peer);
    if (throws) throw TransportError("faulty transport: a message of " + who() + " has failed", rank());
    return bytes;
  }

  /// The bytes of a request are its owner's again when `test` throws, also on a rank that has died.
  std::optional<std::size_t> die_of(Request& request) {
    if (!cancel(request)) return std::nullopt;
    request = Request();
    throw TransportError("faulty transport: " + who() + " has died", rank());
  }

  Link* link_;
  FaultScript script_;
  std::list<Parcel> parcels_;
  std::vector<InjectedFault> injected_;
  std::uint64_t ticks_ = 0;
  bool stopped_ = false, dead_ = false;
};

}  // namespace wring::inline v0::testing
