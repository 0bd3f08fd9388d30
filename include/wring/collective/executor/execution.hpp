// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <wring/algorithm/plan.hpp>
#include <wring/collective/executor/division.hpp>
#include <wring/collective/executor/exchange.hpp>
#include <wring/collective/executor/exchange_data.hpp>
#include <wring/collective/executor/operation_state.hpp>
#include <wring/collective/executor/ride_along.hpp>
#include <wring/collective/executor/segment.hpp>
#include <wring/collective/executor/shared.hpp>
#include <wring/detail/hash.hpp>

namespace wring::inline v0::detail {

/// What a collective hands to the executor, beyond the tensors: the same for all of them.
struct Job {
  Task task;
  Options options;
  std::string algorithm, compressor;  ///< names
  std::uint64_t compressor_hash = 0;  ///< of its identity
  std::uint64_t algorithm_hash = 0;   ///< of the plan of rank 0
  std::uint64_t layout = 0;           ///< of nodes
  std::uint64_t type = 0;             ///< of the element type
  std::vector<std::size_t> counts;    ///< per tensor and rank, for reduce-scatter and allgather
  Failure failure;                    ///< what is wrong with this rank's arguments, if anything
};

/// The executor: one operation as a state machine that never waits. It agrees with the other ranks, moves the segments through
/// the plan, and may confirm at the end. The result is settled when `settled()` says so.
template <class Codec, class Link, class Exec>
class Execution : public OperationState, public std::enable_shared_from_this<Execution<Codec, Link, Exec>> {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;

  Execution() : ride_(shared_) {}

  S& shared() { return shared_; }
  Job& job() { return job_; }

  /// Where the codec runs. Devices: an instance of the operation's own, so that it overlaps with the user's work, kept until the
  /// user comes with another one. Hosts have but one.
  void use(const Exec& exec) {
    if constexpr (host_accessible_v<Exec>) {
      shared_.exec = exec;
    } else if (!users_ || !(*users_ == exec)) {
      users_ = exec;
      shared_.exec = Kokkos::Experimental::partition_space(exec, 1)[0];
    }
  }

  /// Begins the operation that `job()` and `shared().tensors` describe, with the plan in `shared().plan`. A failure in the job makes
  /// this rank take part in the agreement only to say so.
  void start(Link& link, const Codec& codec, const EdgeCount& edges) {
    shared_.link = &link, shared_.task = job_.task, shared_.options = job_.options;
    shared_.failure = {};
    shared_.report = {};
    edges_ = edges;
    started_ = Clock::now();
    depth_ = 0, remembered_ = false, settled_ = false, stage_ = Stage::agreeing, in_flight_ = true;
    sequence_ = link.session().next_sequence();
    for (auto& tensor : shared_.tensors) tensor.codec.emplace(codec);
    describe();
    shared_.agreed = mix(head_.agreed ^ sequence_);
    try {
      if (link.session().retired())
        decline(link, {Cause::abandoned, link.rank(), "the link is retired: " + link.session().reason()});
      else
        open_agreement(link);
    } catch (...) {  // the transport cannot even begin
      link.session().retire("the transport failed when an operation began");
      shared_.fail(failure_from_current_exception(link.rank()));
      return conclude();
    }
    link.session().attach(this->shared_from_this());
    advance();
  }

  bool in_flight() const { return in_flight_; }
  bool settled() const override { return settled_; }
  const Failure& failure() const override { return shared_.failure; }
  const Report& report() const override { return shared_.report; }
  Progress progress_link() override { return progress(*shared_.link); }
  bool blocked_for_ever() const override { return SharedThreadTransport<Link>; }

  Progress advance() noexcept override {
    try {
      switch (stage_) {
      case Stage::agreeing: return advance_exchange([this] { agreed(); });
      case Stage::measuring: return advance_exchange([this] { measured(); });
      case Stage::moving: return move();
      case Stage::confirming: return advance_exchange([this] { confirmed(); });
      case Stage::abandoned: return drain();
      default: return Progress::finished;
      }
    } catch (...) {
      return give_up(failure_from_current_exception(shared_.plan.rank));
    }
  }

  std::string waits_for() const override {
    std::string text;
    const auto name = [&text](int rank, const char* what) {
      if (rank >= 0) text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank) + " (" + what + ")";
    };
    if (exchange_.running())
      name(exchange_.waits_for(), stage_ == Stage::confirming ? "confirmation" : "start of the operation");
    for (const auto& segment : active_segments())
      if (segment->running()) name(segment->waits_for(), "data");
    return text.empty() ? "nobody" : text;
  }

  void abandon(const Failure& failure, bool now) override {
    if (!in_flight_ || stage_ == Stage::abandoned) return;
    shared_.fail(failure.rank >= 0 ? failure : Failure{failure.cause, shared_.link->rank(), failure.text});
    settled_ = true;
    if (!now) return;  // it goes on in the order of its plan, poisoned
    shared_.link->session().retire(failure.text);
    exchanges_left_ = stage_ == Stage::agreeing && shared_.tensors.size() != 1 ? 1 : 0;
    if (job_.options.confirm && stage_ != Stage::confirming) ++exchanges_left_;
    if (exchange_.running()) exchange_.give_up(*shared_.link, shared_.failure);
    table_.entries().resize(shared_.tensors.size());
    if (!rides_ && (stage_ == Stage::agreeing || stage_ == Stage::measuring)) cut(), start_segments(1);
    stage_ = Stage::abandoned;
    for (auto& segment : active_segments()) segment->abandon();
    poison_later_segments();
  }

 private:
  enum class Stage { agreeing, measuring, moving, confirming, abandoned, done };

  /// The transport itself failed: nothing can be promised to peers but what still can be sent.
  Progress give_up(const Failure& failure) noexcept {
    try {
      abandon(failure, true);
      return Progress::moved;
    } catch (...) {
      settled_ = true, stage_ = Stage::abandoned;  // what is in flight keeps its memory
      return Progress::blocked;
    }
  }

  /// Ranks that will wait for segments which this one has not begun hear of the failure now.
  void poison_later_segments() {
    for (std::size_t k = next_segment_; k < shared_.report.segments; ++k)
      for (const Step& step : shared_.plan.steps) {
        if (step.kind != Kind::send) continue;
        MessageHeader h;
        h.agreed = shared_.agreed, h.segment = static_cast<std::uint32_t>(k);
        h.first = step.first, h.last = step.last;
        Poison& poison = poison_.emplace_back();
        seal_poison(poison.bytes, h, shared_.failure);
        poison.request = shared_.link->send(step.peer, channel(1 + k % channels), poison.bytes);
      }
  }

  // ---- agreement -------------------------------------------------------------------------------------------------------------

  /// A rank whose link is retired takes no part any more; it tells those who wait for it, and waits for nobody.
  void decline(Link& link, const Failure& failure) {
    rides_ = false;
    exchange_.start(link, channel(0), head_, nothing_);
    exchange_.give_up(link, failure);
    shared_.fail(failure);
    settle();
    stage_ = Stage::abandoned, exchanges_left_ = 0;
  }

  /// Everything that must be equal on all ranks.
  void describe() {
    const int rank = shared_.link->rank();
    Hasher lengths, bounds;
    lengths.add(shared_.tensors.size());
    for (const auto& t : shared_.tensors) {
      lengths.add(t.total);
      bounds.add(t.bound ? static_cast<int>(t.bound->kind) : -1).add(t.bound ? t.bound->value : 0.0);
    }
    for (const std::size_t n : job_.counts) lengths.add(n);
    const Options& o = job_.options;
    head_ = Head{};
    head_.set(Field::version, WRING_VERSION, rank);
    head_.set(Field::sequence, sequence_, rank);
    head_.set(Field::collective, static_cast<std::uint64_t>(job_.task.collective), rank);
    head_.set(Field::type, job_.type, rank);
    head_.set(Field::length, lengths.value(), rank);
    head_.set(Field::operation, static_cast<std::uint64_t>(o.operation), rank);
    head_.set(Field::root, static_cast<std::uint64_t>(job_.task.root), rank);
    head_.set(Field::compressor, job_.compressor_hash, rank);
    head_.set(Field::bound, bounds.value(), rank);
    head_.set(Field::algorithm, Hasher().add(job_.algorithm).add(job_.algorithm_hash).value(), rank);
    head_.set(Field::layout, job_.layout, rank);
    head_.set(Field::options,
              Hasher().add(o.segment_bytes).add(o.depth).add(o.ride_along_bytes).add(o.confirm).value(),
              rank);
    Report& r = shared_.report;
    r.algorithm = job_.algorithm, r.compressor = job_.compressor, r.reason = "as given";
    const bool broadcast = job_.task.collective == Collective::broadcast;
    for (const auto& t : shared_.tensors) r.bytes_given += (broadcast ? t.total : t.in.size()) * sizeof(T);
  }

  void open_agreement(Link& link) {
    Failure failure = job_.failure;
    if (!failure && !link.session().failure().empty()) {
      failure = {Cause::abandoned, link.session().failed_rank(),
                 "an earlier operation failed: " + link.session().failure()};
    }
    rides_ = false;
    try {
      rides_ = may_ride();  // decided alike on all ranks, also on one that is in error
      if (!failure) failure = measure_inputs();
      if (rides_ && !failure) ride_.give([this](int r) { return contribution(r); });
    } catch (...) {
      if (!failure) failure = failure_from_current_exception(link.rank());
    }
    if (failure) head_.fail(failure);
    ExchangeData& data = rides_ && !failure ? static_cast<ExchangeData&>(ride_.contributions()) : nothing_;
    exchange_.start(link, channel(0), head_, data);
  }

  /// Magnitudes of this rank's inputs, as far as a bound needs them.
  Failure measure_inputs() {
    for (auto& t : shared_.tensors) {
      t.magnitudes = {};
      if (!t.bound) continue;
      if (!(t.bound->value >= 0) || !std::isfinite(t.bound->value))
        return {Cause::argument, shared_.link->rank(), "the bound is " + std::to_string(t.bound->value)};
      if constexpr (!BoundedCompressor<Codec, Exec>)
        return {Cause::argument, shared_.link->rank(), "the compressor promises no bound"};
      if constexpr (is_complex_v<T>)
        return {Cause::argument, shared_.link->rank(), "complex sums have no bound"};
      if constexpr (FloatElement<T>) t.magnitudes = measure<T>(shared_.exec, t.in, t.bound->kind, workspace_);
    }
    if (shared_.tensors.size() == 1 && shared_.tensors[0].bound)
      head_.set_input(shared_.tensors[0].magnitudes, shared_.tensors[0].bound->kind);
    return {};
  }

  /// Whether everybody's data fit behind the heads: a function of what the ranks agree upon, and never more than the room that a
  /// rank which disagrees has for them.
  bool may_ride() {
    const auto ranks = static_cast<std::size_t>(shared_.plan.ranks);
    if (shared_.tensors.size() != 1 || ranks == 1 || ranks > 1024) return false;
    using Ride = RideAlong<Codec, Link, Exec>;
    constexpr bool needs_bound = BoundedCompressor<Codec, Exec> && !LosslessCompressor<Codec, Exec>;
    if (needs_bound && Ride::encode_first && shared_.tensors[0].bound) return false;
    const std::size_t total = shared_.tensors[0].total,
                      limit = std::min<std::size_t>(job_.options.ride_along_bytes, 16384) / sizeof(T);
    if (total > limit || (reduces(job_.task.collective) ? total * ranks : total) > limit) return false;
    offsets_.assign(1, 0);
    for (const std::size_t n : job_.counts) offsets_.push_back(offsets_.back() + n);
    return ride_.worst_bytes([this](int r) { return contribution(r); }) <=
           Exchange<Link>::receive_bytes - sizeof(Head);
  }

  /// What a rank contributes to a collective of one tensor.
  PieceRange contribution(int rank) const {
    const std::size_t total = shared_.tensors[0].total;
    const auto r = static_cast<std::size_t>(rank);
    if (job_.task.collective == Collective::broadcast) return {0, 0, rank == job_.task.root ? total : 0};
    if (job_.task.collective != Collective::allgather) return {0, 0, total};
    return {0, offsets_[r], job_.counts[r]};
  }

  template <class Then> Progress advance_exchange(Then then) {
    const std::uint64_t before = exchange_.sent();
    const Progress p = exchange_.advance(*shared_.link);
    shared_.report.bytes_sent += exchange_.sent() - before;
    if (p != Progress::finished) return p;
    then();
    return stage_ == Stage::done ? Progress::finished : Progress::moved;
  }

  /// The heads of all ranks are merged. Whatever is refused here, all ranks refuse alike.
  void agreed() {
    const Head& head = exchange_.head();
    const bool damaged = head.flags & Head::damaged;
    if (damaged) {
      note_damage();
    } else if (const Failure verdict = head.verdict()) {
      if (verdict.cause == Cause::abandoned) shared_.link->session().forget_failure();
      return refuse(verdict);
    }
    if (shared_.tensors.size() == 1) {
      if (damaged) return rides_ ? moved() : begin_moving();
      if (shared_.tensors[0].bound) shared_.tensors[0].magnitudes = head.magnitudes();
      return prepare();
    }
    table_.entries().clear();
    for (const auto& t : shared_.tensors) table_.entries().push_back(t.magnitudes);
    exchange_.start(*shared_.link, channel(0), head_, table_);
    stage_ = Stage::measuring;
  }

  /// Others may have heard everything and go on: this rank does what they wait for, poisoned, with all that the agreement decided
  /// before.
  void note_damage() {
    if (exchange_.damage()) return shared_.fail(exchange_.damage());
    const Failure heard = exchange_.head().failure();
    shared_.fail(heard ? heard : Failure{Cause::transport, -1, "the agreement was damaged on its way"});
  }

  void measured() {
    if (exchange_.head().cause != 0 || exchange_.head().flags & Head::damaged) {
      note_damage();
      return begin_moving();
    }
    for (std::size_t i = 0; i < shared_.tensors.size(); ++i)
      shared_.tensors[i].magnitudes = table_.entries()[i];
    prepare();
  }

  /// Compressors get their parameters from what all ranks know: an error here is the same on every rank.
  void prepare() {
    try {
      shared_.report.reproducible = CombiningCompressor<Codec, Exec>;
      for (auto& t : shared_.tensors) prepare(t);
      report_bound();
    } catch (...) {
      const Failure failure = failure_from_current_exception(-1);
      const bool everywhere = failure.cause == Cause::unattainable || failure.cause == Cause::argument;
      if (everywhere) return refuse(failure);  // no rank is to blame
      shared_.fail(failure_from_current_exception(shared_.plan.rank));
    }
    if (!rides_) return begin_moving();
    shared_.report.rode_along = true, shared_.report.reason = "rode along";
    try {
      if (!shared_.failure) ride_.finish([this](int r) { return contribution(r); });
    } catch (...) {
      shared_.fail(failure_from_current_exception(shared_.plan.rank));
    }
    moved();
  }

  void prepare(Tensor<Codec>& t) {
    Agreed a{.collective = job_.task.collective,
             .operation = job_.options.operation,
             .ranks = shared_.plan.ranks,
             .total = t.total,
             .max_abs = t.magnitudes.max_abs,
             .allowed_error = {},
             .measured = t.bound.has_value()};
    t.allowed.clear();
    if (t.bound) {
      const double values =
          static_cast<double>(t.total) * (reduces(job_.task.collective) ? shared_.plan.ranks : 1);
      t.error = absolute_error(*t.bound, t.magnitudes, job_.task.collective, job_.options.operation,
                               shared_.plan.ranks, values);
      a.allowed_error = t.error;
    }
    if constexpr (PreparedCompressor<Codec, Exec>) t.codec->prepare(a);
    if constexpr (CombiningCompressor<Codec, Exec>) {
      shared_.report.reproducible = shared_.report.reproducible && t.codec->reproducible();
    } else if constexpr (BoundedCompressor<Codec, Exec> && FloatElement<T>) {
      if (t.bound)
        t.allowed = divide_error<T>(t.error, t.magnitudes, job_.task.collective, job_.options.operation,
                                    shared_.plan.ranks, edges_, t.codec->error(greatest_encoded(t)));
    }
  }

  /// The greatest bound of a group, if every tensor of it has one.
  void report_bound() {
    double greatest = 0;
    for (const auto& t : shared_.tensors) {
      if (!t.bound) return;
      greatest = std::max(greatest, t.error);
    }
    shared_.report.bound = greatest;
  }

  /// No magnitude greater than this is ever encoded: partial sums, or values.
  double greatest_encoded(const Tensor<Codec>& t) const {
    const bool sums = reduces(job_.task.collective) && adds(job_.options.operation);
    return t.magnitudes.max_abs * (sums ? shared_.plan.ranks : 1) + t.error * (sums ? shared_.plan.ranks : 1);
  }

  /// Ends the operation before any payload has moved.
  void refuse(const Failure& failure) {
    shared_.fail(failure);
    conclude();
  }

  // ---- the plan --------------------------------------------------------------------------------------------------------------

  int channel(std::size_t slot) const { return static_cast<int>(sequence_ % 1024 * 32 + slot); }

  void begin_moving() {
    stage_ = Stage::moving;
    cut();
    start_segments(
        std::min<std::size_t>(static_cast<std::size_t>(job_.options.depth), partition().segments()));
  }

  Partition& partition() { return shared_.partition; }

  void cut() {
    const std::size_t segment_values = std::max<std::size_t>(1, job_.options.segment_bytes / sizeof(T));
    if (job_.counts.empty()) {
      lengths_.clear();
      for (const auto& t : shared_.tensors) lengths_.push_back(t.total);
      partition().cut_evenly(shared_.plan, lengths_, segment_values);
    } else {
      partition().cut_by_owner(shared_.plan, job_.counts, segment_values);
    }
    shared_.report.segments = partition().segments();
  }

  void start_segments(std::size_t depth) {
    uses_.analyse(shared_.plan);
    while (segments_.size() < depth)
      segments_.push_back(std::make_unique<Segment<Codec, Link, Exec>>(shared_));
    depth_ = depth, next_segment_ = 0;
    for (auto& segment : active_segments()) start_segment(*segment);
  }

  auto active_segments() { return std::span(segments_).first(depth_); }
  auto active_segments() const { return std::span(segments_).first(depth_); }

  static constexpr std::size_t channels = 31;  ///< of the plan's messages; one more is for the exchanges

  /// Segments take channels in turn, and those in flight at once never share one: the next waits for the oldest.
  bool may_start_segment() const {
    std::size_t oldest = next_segment_;
    for (const auto& segment : active_segments())
      if (segment->running()) oldest = std::min(oldest, segment->index());
    return next_segment_ < shared_.report.segments && next_segment_ - oldest < channels;
  }

  void start_segment(Segment<Codec, Link, Exec>& segment, bool mute = false) {
    segment.start(next_segment_, uses_, channel(1 + next_segment_ % channels), mute);
    ++next_segment_;
  }

  Progress move() {
    Progress result = Progress::blocked;
    bool running = false;
    for (auto& segment : active_segments()) {
      if (!segment->running() && may_start_segment()) start_segment(*segment);
      if (segment->advance() != Progress::blocked) result = Progress::moved;
      running = running || segment->running();
    }
    if (running && shared_.failure && !settled_ && !job_.options.confirm && only_sends()) {
      remember_failure();  // the outcome is known; a peer that has given up may never take what is on its way
      settle();
    }
    if (running || next_segment_ < shared_.report.segments) return result;
    moved();
    return stage_ == Stage::done ? Progress::finished : Progress::moved;
  }

  bool only_sends() const {
    bool all = next_segment_ >= shared_.report.segments;
    for (const auto& segment : active_segments()) all = all && (!segment->running() || segment->only_sends());
    return all;
  }

  /// Tells the ranks that know nothing of it at the next operation on this link, once.
  void remember_failure() {
    if (!remembered_) shared_.link->session().remember_failure(shared_.failure.text, shared_.failure.rank);
    remembered_ = true;
  }

  /// All of this rank's part is done, well or badly.
  void moved() {
    if (shared_.failure) remember_failure();
    if (!job_.options.confirm) return conclude();
    head_.cause = 0, head_.failed_rank = -1;
    if (shared_.failure) head_.fail(shared_.failure);
    exchange_.start(*shared_.link, channel(0), head_, nothing_);
    stage_ = Stage::confirming;
  }

  void confirmed() {
    const Failure everywhere = exchange_.head().failure();
    if (everywhere && !shared_.failure) shared_.fail(everywhere);
    if (everywhere) shared_.link->session().forget_failure();
    if (exchange_.head().flags & Head::damaged)
      shared_.fail({Cause::transport, -1, "the confirmation was damaged on its way"});
    conclude();
  }

  /// The end: the outcome is known, and nothing of this rank is in flight.
  void conclude() {
    settle();
    const Cause cause = shared_.failure.cause;
    const bool refused = cause == Cause::argument || cause == Cause::mismatch || cause == Cause::unattainable;
    if (shared_.failure && !refused) shared_.link->session().soil();
    in_flight_ = false, stage_ = Stage::done;
    release();
  }

  virtual void deliver() {}  ///< the result goes from flat runs to the user's views
  virtual void release() {}  ///< the views are the user's again

  void settle() {
    Report& r = shared_.report;
    try {
      if (!settled_ && !shared_.failure) deliver();
      if constexpr (CountsFallbacks<Codec, Exec>)
        for (const auto& t : shared_.tensors) r.fallback_blocks += t.codec->fallback_blocks();
    } catch (...) {
      shared_.fail(failure_from_current_exception(shared_.plan.rank));
    }
    r.temporary_bytes = shared_.pool.allocated();
    if constexpr (S::staged) r.temporary_bytes += shared_.messages.allocated();
    r.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    r.wire_seconds = std::max(0.0, r.seconds - r.encode_seconds - r.combine_seconds - r.decode_seconds);
    settled_ = true;
  }

  /// After `abandon(..., true)`: what is still in flight, or will be sent by peers who know nothing of it, keeps this object alive.
  Progress drain() {
    bool idle = !exchange_.running() || exchange_.drain(*shared_.link);
    for (auto& segment : active_segments()) {
      if (!segment->running() && may_start_segment()) start_segment(*segment, true);
      idle = segment->abandon() && idle;
    }
    idle = idle && next_segment_ >= shared_.report.segments;
    while (!poison_.empty() && sent(poison_.front().request)) poison_.pop_front();
    idle = idle && poison_.empty();
    if (idle && exchanges_left_ > 0) {
      --exchanges_left_;
      exchange_.start(*shared_.link, channel(0), head_, table_);
      exchange_.give_up(*shared_.link, shared_.failure);
      return Progress::moved;
    }
    if (!idle) return Progress::blocked;
    in_flight_ = false, stage_ = Stage::done;
    release();
    return Progress::finished;
  }

  /// Whether a poisoned message has left.
  bool sent(typename Link::Request& request) {
    try {
      return shared_.link->test(request).has_value();
    } catch (const Error&) {
      return true;
    }
  }

  struct Poison {
    std::array<std::byte, header_bytes + poison_text_bytes> bytes;
    typename Link::Request request{};
  };

  S shared_;
  std::optional<Exec> users_;
  Job job_;
  RideAlong<Codec, Link, Exec> ride_;
  Exchange<Link> exchange_;
  MagnitudeTable table_;
  NoData nothing_;
  Head head_;
  EdgeCount edges_;
  NextUses uses_;
  std::vector<std::unique_ptr<Segment<Codec, Link, Exec>>> segments_;
  std::vector<std::size_t> lengths_, offsets_;
  std::deque<Poison> poison_;  ///< of segments that were never begun
  Kokkos::View<TaskMagnitudes*, typename MessageSpace<Exec>::type> workspace_;
  std::size_t next_segment_ = 0, depth_ = 0;
  int exchanges_left_ = 0;
  std::uint64_t sequence_ = 0;
  Stage stage_ = Stage::done;
  bool settled_ = true, in_flight_ = false, rides_ = false, remembered_ = false;
  Clock::time_point started_{};
};

}  // namespace wring::inline v0::detail
