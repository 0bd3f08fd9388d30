// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <wring/algorithm/fold.hpp>
#include <wring/collective/executor/agreement/exchange.hpp>
#include <wring/collective/executor/agreement/exchange_data.hpp>
#include <wring/collective/executor/choosing/codec_speed.hpp>
#include <wring/collective/executor/operation_state.hpp>
#include <wring/collective/report.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/detail/identity.hpp>
#include <wring/detail/pipeline.hpp>
#include <wring/machine.hpp>
#include <wring/transport/concept.hpp>

/// The measurement of codec and link by all ranks together.
namespace wring::inline v0::detail {

/// What all ranks measure, in seconds. A merge keeps the greatest of each: the slowest rank's.
struct Figures {
  CodecSpeed codec;
  double empty = 0,
         loaded = 0;  ///< one exchange among all ranks, of heads alone and with `ballast_bytes` each
  double busy = 0;    ///< of an empty one, the work of a rank

  static constexpr std::size_t count = 15;
};
static_assert(sizeof(Figures) == Figures::count * sizeof(double) && std::is_trivially_copyable_v<Figures>);

class FiguresData final : public ExchangeData {
 public:
  Figures figures;

  std::size_t max_bytes() const override { return sizeof(Figures); }
  std::size_t write(std::byte* to) const override {
    std::memcpy(to, &figures, sizeof figures);
    return sizeof figures;
  }
  void merge(std::span<const std::byte> from) override {
    std::array<double, Figures::count> mine, theirs;
    std::memcpy(mine.data(), &figures, sizeof mine);
    std::memcpy(theirs.data(), checked(from), sizeof theirs);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], theirs[i]);
    std::memcpy(static_cast<void*>(&figures), mine.data(), sizeof mine);
  }
  void replace(std::span<const std::byte> from) override {
    std::memcpy(static_cast<void*>(&figures), checked(from), sizeof figures);
  }

 private:
  static const std::byte* checked(std::span<const std::byte> from) {
    if (from.size() != sizeof(Figures))
      throw TransportError("figures of a calibration arrived with the wrong size");
    return from.data();
  }
};

inline constexpr std::size_t ballast_bytes = 128 * 1024;

/// Bytes that mean nothing, but for the first: how long this rank's latest exchange of them took. A merge keeps the slowest rank's time.
/// Virtual clocks do not see that they are put together and checked, so they are told.
template <class Link> class Ballast final : public ExchangeData {
 public:
  void use(Link& link) { link_ = &link, weight_.assign(ballast_bytes, std::byte{1}); }

  double seconds = 0;

  std::size_t max_bytes() const override { return ballast_bytes; }
  std::size_t write(std::byte* to) const override {
    std::memcpy(to, weight_.data(), ballast_bytes);
    std::memcpy(to, &seconds, sizeof seconds);
    spend();
    return ballast_bytes;
  }
  void merge(std::span<const std::byte> from) override {
    seconds = std::max(seconds, seconds_in(from));
    spend();
  }
  void replace(std::span<const std::byte> from) override {
    seconds = seconds_in(from);
    spend();
  }

 private:
  static double seconds_in(std::span<const std::byte> from) {
    if (from.size() != ballast_bytes)
      throw TransportError("bytes of a calibration arrived with the wrong size");
    double value;
    std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  void spend() const {
    if constexpr (VirtualTimeTransport<Link>) link_->spend(Work::wire, ballast_bytes);
  }

  Link* link_ = nullptr;
  std::vector<std::byte> weight_;
};

/// Whether a link has warmed up: links are slow at first, until buffers have been touched and connections made. Told the times of exchanges
/// one after the other, it has settled when several in a row were no faster than the fastest before. Ranks that are told the same times
/// settle together.
class Settling {
 public:
  static constexpr int most_rounds = 100;

  void add(double seconds) {
    ++rounds_, ++idle_, spent_ += seconds;
    if (rounds_ > 1 && seconds >= faster * least_) return;
    least_ = seconds, idle_ = 0;
  }
  bool settled() const {
    return rounds_ >= most_rounds ||
           (rounds_ >= least_rounds && (idle_ >= patience || spent_ >= enough_seconds));
  }

 private:
  static constexpr int least_rounds = 2, patience = 8;
  static constexpr double faster = 0.95, enough_seconds = 10e-3;

  double least_ = 0, spent_ = 0;
  int rounds_ = 0, idle_ = 0;  ///< `idle_`: since the last one that was faster
};

/// The machine on which the cost model would take as long as was measured. The same doubles on all ranks.
inline Machine machine_from(const Figures& f, int ranks) {
  Machine m = typical_node();
  const CodecSpeed& c = f.codec;
  const WorkSpeed &far = c.from_memory, &near = c.cached;
  m.measure = 1 / far.measure, m.encode = 1 / far.encode, m.combine = 1 / far.combine;
  m.decode = 1 / far.decode, m.add = 1 / far.add;
  m.cached_measure = 1 / near.measure, m.cached_encode = 1 / near.encode;
  m.cached_combine = 1 / near.combine, m.cached_decode = 1 / near.decode, m.cached_add = 1 / near.add;
  for (const auto& [from_memory, cached] : cached_speeds) m.*cached = std::max(m.*cached, m.*from_memory);
  m.launch = c.launch, m.copy = 1 / c.copy;
  if (ranks == 1) return m;
  const Fold fold(ranks);
  const double rounds = fold.doublings + (fold.even() ? 0 : 2), head = sizeof(Head), ballast = ballast_bytes;
  const double empty = f.empty / rounds, more = std::max(f.loaded - f.empty, 1e-9) / rounds;
  m.bandwidth = ballast / std::max(more - 2 * ballast * c.copy, 0.01 * more);
  m.overhead = std::clamp(f.busy / (2 * rounds) - head * c.copy, 1e-8, 0.4 * empty);
  m.latency = std::max(empty - 2 * (m.overhead + head * c.copy) - head / m.bandwidth, 0.1 * empty);
  return m;
}

/// A calibration, as the collective that asked for it sees it.
class CalibrationState : public OperationState {
 public:
  /// Once it has ended well.
  const std::optional<Machine>& machine() const { return machine_; }
  /// Its number on the link.
  std::uint64_t sequence() const { return sequence_; }

 protected:
  std::optional<Machine> machine_;
  std::uint64_t sequence_ = 0;
};

/// An operation that measures: first the compressor, on every rank for itself; then exchanges among all ranks, one after the other, the last
/// of which merges the figures. It never waits. A rank that fails tells the others in the exchange that it is in, or in the next.
template <class Codec, class Link, class Exec> class Calibration final
    : public CalibrationState,
      public std::enable_shared_from_this<Calibration<Codec, Link, Exec>> {
 public:
  /// Begins. What fails on this rank is told to all.
  void start(Link& link, const Codec& codec, const Exec& exec) {
    link_ = &link, ballast_.use(link);
    sequence_ = link.session().next_sequence();
    describe(codec);
    Failure failure;
    if (link.session().retired()) {
      failure = {Cause::abandoned, link.rank(), "the link is retired: " + link.session().reason()};
    } else if (!link.session().failure().empty()) {
      failure = {Cause::abandoned, link.session().failed_rank(),
                 "an earlier operation failed: " + link.session().failure()};
    } else {
      try {
        figures_.figures.codec = CodecStopwatch<Codec, Link, Exec>(link, codec, exec).measure();
      } catch (...) {
        failure = failure_from_current_exception(link.rank());
      }
    }
    open(failure);
    if (advance() != Progress::finished) link.session().attach(this->shared_from_this());
  }

  bool settled() const override { return settled_; }
  const Failure& failure() const override { return failure_; }
  bool has_confirmed() const override { return false; }
  const Report& report() const override { return report_; }
  Progress progress_link() override { return progress(*link_); }
  bool blocked_for_ever() const override { return SharedThreadTransport<Link>; }

  Progress advance() noexcept override {
    try {
      if (stage_ == Stage::done) return Progress::finished;
      if (stage_ == Stage::orphaned) return Progress::blocked;
      return stage_ == Stage::measuring ? measure() : drain();
    } catch (...) {
      return give_up(failure_from_current_exception(link_->rank()));
    }
  }

  std::string waits_for() const override {
    const int rank = stage_ == Stage::measuring ? current().waits_for() : -1;
    return rank < 0 ? "nobody" : "rank " + std::to_string(rank) + " (calibration)";
  }

  void abandon(const Failure& failure, bool now) override {
    if (stage_ != Stage::measuring) return;
    fail(failure.rank >= 0 ? failure : Failure{failure.cause, link_->rank(), failure.text});
    settled_ = true;
    if (!now) return remember();  // the others still need this rank
    link_->session().retire(failure.text);
    leave();
  }

  void orphan() noexcept override {
    failure_.cause = Cause::abandoned;
    settled_ = true, stage_ = Stage::orphaned;
  }

 private:
  enum class Stage { measuring, leaving, done, orphaned };
  /// What the exchanges are for, one after the other.
  enum class Leg { gathering, loaded, empty, merging };
  static constexpr int empty_rounds = 5;

  Exchange<Link>& current() { return exchanges_[static_cast<std::size_t>(at_ % 2)]; }
  const Exchange<Link>& current() const { return exchanges_[static_cast<std::size_t>(at_ % 2)]; }
  int channel() const { return static_cast<int>(sequence_ % operations_apart * channels_per_operation); }

  /// What the ranks must agree upon: that this is a calibration, and of which compressor.
  void describe(const Codec& codec) {
    constexpr std::uint64_t calibration = 100;  // no collective
    const int rank = link_->rank();
    const Identity id = codec.identity();
    head_.epoch = static_cast<std::uint16_t>(sequence_ / operations_apart);
    head_.set(Field::version, WRING_VERSION, rank);
    head_.set(Field::sequence, sequence_, rank);
    head_.set(Field::collective, calibration, rank);
    head_.set(Field::type, sizeof(typename Codec::value_type), rank);
    for (const Field f : {Field::length, Field::operation, Field::root, Field::bound, Field::algorithm,
                          Field::layout, Field::options})
      head_.set(f, 0, rank);
    head_.set(Field::compressor, hash_of(id), rank);
    report_.algorithm = "calibration", report_.compressor = id.name, report_.reason = "as asked for";
    started_ = clock_of(*link_);
  }

  ExchangeData& data() {
    if (leg_ == Leg::merging) return figures_;
    return leg_ == Leg::loaded ? static_cast<ExchangeData&>(ballast_) : nothing_;
  }

  void open(const Failure& failure) {
    try {
      if (link_->session().retired()) {  // it takes no part any more, and says so
        fail(failure);
        exchanges_[0].announce(*link_, channel(), head_, failure);
        settled_ = true, stage_ = Stage::leaving;
        return;
      }
      Head head = head_;
      if (failure) head.fail(failure);
      begin(head);
    } catch (...) {  // the transport cannot even begin
      give_up(failure_from_current_exception(link_->rank()));
    }
  }

  void begin(const Head& head) {
    exchange_began_ = clock_of(*link_), busy_ = 0;
    current().start(*link_, channel(), head, data());
  }

  Progress measure() {
    const double before = clock_of(*link_);
    const Progress p = current().advance(*link_);
    const double now = clock_of(*link_);
    if (p != Progress::blocked) busy_ += now - before;
    if (p != Progress::finished) return p;
    const Head& head = current().head();
    const Failure verdict = head.verdict();
    if ((head.flags & Head::damaged) || (at_ > 0 && verdict)) {
      lose(current().damage() ? current().damage()
           : verdict          ? verdict
                              : Failure{Cause::transport, -1, "a calibration was damaged on its way"});
      return Progress::moved;
    }
    if (verdict) {
      if (verdict.cause == Cause::abandoned) link_->session().forget_failure(sequence_);
      fail(verdict);
      return finish();
    }
    if (leg_ == Leg::merging) return succeed();
    note(now - exchange_began_);
    ++at_;
    begin(head_);
    return Progress::moved;
  }

  /// Keeps what an exchange has shown, and decides what the next one is for, alike on all ranks: the first brings the ranks together; those
  /// with ballast go on until the link has settled; then come the empty ones, and the last one merges.
  void note(double seconds) {
    Figures& f = figures_.figures;
    const auto least = [](double& kept, double value) { kept = kept > 0 ? std::min(kept, value) : value; };
    if (leg_ == Leg::gathering) {
      leg_ = Leg::loaded;
    } else if (leg_ == Leg::loaded) {
      least(f.loaded, seconds);
      if (++loads_ > 1) settling_.add(ballast_.seconds);  // of the exchange before, on the slowest rank
      ballast_.seconds = seconds;
      if (settling_.settled()) leg_ = Leg::empty;
    } else {
      least(f.empty, seconds), least(f.busy, busy_);
      if (++empties_ == empty_rounds) leg_ = Leg::merging;
    }
  }

  Progress succeed() {
    if (!failure_) machine_ = machine_from(figures_.figures, link_->size());
    return finish();
  }

  /// What others have decided is unknown here, or known to be a failure in the midst of it.
  void lose(const Failure& failure) {
    fail(failure);
    remember();
    settled_ = true;
    leave();
  }

  /// Whoever waits for this rank, in this exchange or the next, hears of its failure.
  void leave() {
    stage_ = Stage::leaving;
    link_->session().soil();
    if (current().running()) current().give_up(*link_, failure_);
    if (leg_ == Leg::merging) return;
    ++at_;
    current().announce(*link_, channel(), head_, failure_, ballast_bytes);
  }

  Progress drain() {
    Exchange<Link>& before = exchanges_[static_cast<std::size_t>((at_ + 1) % 2)];
    for (auto* exchange : {&before, &current()}) {
      if (!exchange->running() || exchange->drain(*link_)) continue;
      if (link_->session().started() - sequence_ >= most_in_flight)  // the channel is needed again
        for (auto& other : exchanges_)
          if (other.running()) other.cancel(*link_);
      return Progress::blocked;
    }
    return finish();
  }

  Progress finish() {
    report_.seconds = clock_of(*link_) - started_;
    for (const auto& exchange : exchanges_) report_.bytes_sent += exchange.sent();
    settled_ = true, stage_ = Stage::done;
    return Progress::finished;
  }

  Progress give_up(const Failure& failure) noexcept {
    if (stage_ == Stage::leaving) return Progress::blocked;  // the link fails for good
    try {
      abandon(failure, true);
      return Progress::moved;
    } catch (...) {
      settled_ = true, stage_ = Stage::leaving;
      return Progress::blocked;
    }
  }

  void fail(const Failure& failure) {
    if (!failure_) failure_ = failure;
  }
  /// Ranks that know nothing of it are told at the next operation on this link.
  void remember() {
    if (link_->size() > 1) link_->session().remember_failure(failure_.text, failure_.rank, sequence_);
  }

  Link* link_ = nullptr;
  Head head_;
  std::array<Exchange<Link>, 2> exchanges_;  ///< the current one, and the one before or after
  int at_ = 0;                               ///< which exchange
  Leg leg_ = Leg::gathering;                 ///< what it is for
  int loads_ = 0, empties_ = 0;              ///< with ballast, and without: those that have ended
  Settling settling_;
  FiguresData figures_;
  Ballast<Link> ballast_;
  NoData nothing_;
  Failure failure_;
  Report report_;
  Stage stage_ = Stage::measuring;
  bool settled_ = false;
  double started_ = 0, exchange_began_ = 0, busy_ = 0;
};

}  // namespace wring::inline v0::detail
