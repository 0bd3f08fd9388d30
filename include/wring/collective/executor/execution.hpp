// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <wring/algorithm/plan.hpp>
#include <wring/collective/executor/agreement/agreement.hpp>
#include <wring/collective/executor/agreement/exchange.hpp>
#include <wring/collective/executor/agreement/exchange_data.hpp>
#include <wring/collective/executor/agreement/parameters.hpp>
#include <wring/collective/executor/job.hpp>
#include <wring/collective/executor/operands.hpp>
#include <wring/collective/executor/operation_state.hpp>
#include <wring/collective/executor/segments/segments.hpp>
#include <wring/collective/executor/shared.hpp>
#include <wring/detail/hash.hpp>
#include <wring/detail/sentence.hpp>

namespace wring::inline v0::detail {

/// The executor: one operation as a state machine that never waits. It agrees with the other ranks, moves the segments through
/// the plan, and may confirm at the end. The result is settled when `settled()` says so.
///
///     agreeing -> moving -> confirming -> done          a failure poisons what this rank sends, the stages stay the same
///         \__________\__________\_______ leaving -> done        this rank waits for nobody any more
///
/// Plans in which the transport sums have one more stage, `consenting`, before anything moves: nobody could leave a sum.
///
/// What a collective calls is defined below the class, so that files can leave the instantiation to another one
/// (wring/instantiate.hpp): all the rest is reached from there.
template <class Codec, class Link, class Exec>
class Execution : public OperationState, public std::enable_shared_from_this<Execution<Codec, Link, Exec>> {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;

  Execution();
  ~Execution() override;

  S& shared() { return shared_; }
  Job& job() { return job_; }

  /// Where the codec runs. Devices: an instance of the operation's own, so that it overlaps with the user's work, kept
  /// until the user comes with another one. Hosts have but one.
  void use(const Exec& exec);

  /// The plan. Those of one number, greater than 0, are the same.
  void follow(const Plan& plan, std::uint64_t number);
  bool has_plan() const { return plan_number_ != 0; }

  /// Turns what the user gives into the tensors of the operation. What is wrong with it is left in `job().failure`.
  void take(std::span<const Operand<Codec>> operands, int rank, int ranks);

  /// Begins the operation that `job()` and `shared().tensors` describe, with the plan in `shared().plan`. A failure in the job makes
  /// this rank take part in the agreement only to say so.
  void start(Link& link, const Codec& codec, const EdgeCount& edges);

  bool in_flight() const { return in_flight_; }
  bool settled() const override { return settled_; }
  const Failure& failure() const override { return shared_.failure; }
  bool has_confirmed() const override { return confirmed_; }
  const Report& report() const override { return shared_.report; }
  Progress progress_link() override;
  bool blocked_for_ever() const override { return SharedThreadTransport<Link>; }
  Progress advance() noexcept override;
  std::string waits_for() const override;

  /// The link is gone: whoever still holds a request of this operation hears of it.
  void orphan() noexcept override;
  void abandon(const Failure& failure, bool now) override;

 private:
  enum class Stage { agreeing, consenting, moving, confirming, leaving, done, orphaned };

  /// Segments take the channels after the first, which is for the exchanges.
  int channel(std::size_t slot) const {
    return static_cast<int>(sequence_ % operations_apart * channels_per_operation + slot);
  }

  /// Refused on all ranks as long as there are channels to say so.
  void limit_in_flight() {
    if (shared_.link->session().in_flight() >= most_in_flight && !job_.failure)
      job_.failure = {Cause::argument, shared_.link->rank(),
                      sentence(most_in_flight, " operations are in flight on this link already")};
  }

  /// Each tensor that has no codec of its own gets a copy of the operation's, to be prepared for it.
  void give_codecs(const Codec& codec) {
    try {
      for (auto& tensor : shared_.tensors)
        if (!tensor.codec) tensor.codec.emplace(codec);
      if (!job_.failure) open_memories();
    } catch (...) {
      job_.failure = failure_from_current_exception(shared_.link->rank());
    }
  }

  /// Tells compressors that remember something what is to come.
  void open_memories() {
    if constexpr (RememberingCompressor<Codec, Exec>) {
      Hasher course;
      course.add(job_.algorithm_hash).add(job_.choice_hash).add(job_.task.collective).add(job_.task.root);
      if (shared_.plan.blocks > 1) {  // else all values go the same way, whatever is beside them
        for (const auto& t : shared_.tensors) course.add(t.total);
        for (const std::size_t n : job_.counts) course.add(n);
      }
      for (std::size_t i = 0; i < shared_.tensors.size(); ++i) {
        auto& t = shared_.tensors[i];
        const bool part = job_.task.collective == Collective::allgather;
        const auto ranks = static_cast<std::size_t>(shared_.link->size());
        t.codec->open({.collective = job_.task.collective,
                       .operation = job_.options.operation,
                       .root = job_.task.root,
                       .rank = shared_.link->rank(),
                       .ranks = shared_.link->size(),
                       .item = i,
                       .total = t.total,
                       .shape = t.shape,
                       .first = part ? t.in_offset : 0,
                       .count = part ? t.in.size() : t.total,
                       .counts = job_.counts.empty() ? std::span<const std::size_t>()
                                                     : std::span(job_.counts).subspan(i * ranks, ranks),
                       .course = course.value(),
                       .alone = shared_.alone});
        t.open = true;
      }
    }
  }

  /// The operation will take place: all ranks know of each other's inputs what they need to.
  void begin_memories() {
    if constexpr (RememberingCompressor<Codec, Exec>) {
      try {
        for (auto& t : shared_.tensors)
          if (!shared_.failure && t.open) t.codec->begin(shared_.exec, agreement_.number_for(t));
      } catch (...) {
        shared_.fail(failure_from_current_exception(shared_.plan.rank));
      }
    }
  }

  /// Nothing more will be encoded.
  void close_memories() noexcept {
    if constexpr (RememberingCompressor<Codec, Exec>)
      for (auto& t : shared_.tensors)
        if (std::exchange(t.open, false)) t.codec->close(!shared_.failure);
  }

  Progress stage_progress() const { return stage_ == Stage::done ? Progress::finished : Progress::moved; }

  void begin_report() {
    Report& r = shared_.report;
    r = {};
    r.algorithm = job_.algorithm, r.compressor = job_.compressor, r.reason = job_.reason;
    const bool broadcast = job_.task.collective == Collective::broadcast;
    for (const auto& t : shared_.tensors) r.bytes_given += (broadcast ? t.total : t.in.size()) * sizeof(T);
  }

  // ---- agreeing --------------------------------------------------------------------------------------------------------------

  /// Whatever is refused here, all ranks refuse alike.
  Progress agree() {
    const Progress p = agreement_.advance();
    if (p != Progress::finished) return p;
    record(Timeline::Kind::agreement, stage_began_, sent_before_);
    if (job_.experience && !agreement_.damaged()) job_.experience->agree(agreement_.least_ratio(), sequence_);
    if (agreement_.damaged()) {
      fail_and_leave(agreement_.damage());
    } else if (const Failure refusal = agreement_.refusal()) {
      if (refusal.cause == Cause::abandoned) shared_.link->session().forget_failure(sequence_);
      refuse(refusal);
    } else {
      agreement_.adopt_magnitudes();
      prepare();
    }
    return stage_progress();
  }

  /// Compressors get their parameters from what all ranks know: an error here is the same on every rank.
  void prepare() {
    bool rides = false;
    try {
      shared_.report.reproducible = true;
      for (auto& t : shared_.tensors) shared_.report.reproducible &= set_parameters(shared_, t, edges_);
      report_bound(shared_);
      rides = agreement_.ride().holds();
    } catch (...) {
      const Failure failure = failure_from_current_exception(-1);
      const bool everywhere = failure.cause == Cause::unattainable || failure.cause == Cause::argument;
      if (everywhere) return refuse(failure);  // no rank is to blame
      return fail_and_leave({failure.cause, shared_.plan.rank, failure.text});
    }
    if (!rides) return shared_.sums_of_plan > 0 ? ask_consent() : begin_moving();
    shared_.report.rode_along = true, shared_.report.reason = job_.ride_reason;
    try {
      if (!shared_.failure) agreement_.ride().finish();  // a request that is gone has no memory to write to
    } catch (...) {
      shared_.fail(failure_from_current_exception(shared_.plan.rank));
    }
    finish_moving();
  }

  /// Ends the operation before any payload has moved.
  void refuse(const Failure& failure) {
    shared_.fail(failure);
    conclude();
  }

  // ---- consenting ------------------------------------------------------------------------------------------------------------

  /// Sums by the transport need every rank, and the number of their words is known to those alone who know what all have agreed upon. So
  /// each one says now that it does. Who does not learn that all have said so takes part all the same, with sums that say that it has failed;
  /// for the others may have learnt it.
  void ask_consent() {
    Head head = agreement_.head();
    if (shared_.failure) head.fail(shared_.failure);
    stage_ = Stage::consenting;
    stage_began_ = shared_.now(), sent_before_ = shared_.report.bytes_sent;
    consent_.start(*shared_.link, channel(0), head, nothing_);
  }

  Progress consent() {
    const Progress p = advance_exchange(consent_);
    if (p != Progress::finished) return p;
    record(Timeline::Kind::agreement, stage_began_, sent_before_);
    const Failure failure = consent_.head().failure();
    if (consent_.head().flags & Head::damaged) {
      shared_.sums_agreed = true;
      shared_.fail(failure ? failure
                           : Failure{Cause::transport, shared_.plan.rank, "the consent to sums was damaged"});
      settle();
      abandon(shared_.failure, true);
    } else if (failure) {
      shared_.fail(failure);
      finish_moving();
    } else {
      shared_.sums_agreed = true;
      begin_moving();
    }
    return stage_progress();
  }

  // ---- moving ----------------------------------------------------------------------------------------------------------------

  void begin_moving() {
    stage_ = Stage::moving;
    sent_before_ = shared_.report.bytes_sent;
    ahead_.settle();
    begin_memories();
    inspect_inputs();
    segments_.start(job_.counts, channel(1));
  }

  /// Shows each tensor's input to compressors that want to see it whole; a failure poisons what this rank sends.
  void inspect_inputs() {
    if constexpr (InspectingCompressor<Codec, Exec>) {
      try {
        for (std::size_t i = 0; i < shared_.tensors.size() && !shared_.failure; ++i)
          inspect_input(shared_, i);
      } catch (...) {
        shared_.fail(failure_from_current_exception(shared_.plan.rank));
      }
    }
  }

  Progress advance_segments() {
    const Progress p = segments_.advance();
    if (p == Progress::finished) {
      learn();
      finish_moving();
      return stage_progress();
    }
    if (shared_.failure && !settled_ && !job_.options.confirm && segments_.only_sends()) {
      remember_failure();  // the outcome is known; a peer that has given up may never take what is on its way
      settle();
    }
    return p;
  }

  /// How well the values have compressed that this rank has sent.
  void learn() {
    const Report& r = shared_.report;
    if (!job_.experience || !job_.compressed || shared_.failure || r.bytes_raw == 0) return;
    const std::uint64_t sent = r.bytes_sent - sent_before_ - r.messages * header_bytes;
    job_.experience->see(static_cast<double>(r.bytes_raw) / static_cast<double>(sent));
  }

  /// All of this rank's part is done, well or badly.
  void finish_moving() {
    hand_over();
    if (shared_.failure) remember_failure();
    if (!job_.options.confirm) return conclude();
    Head head = agreement_.head();
    if (shared_.failure) head.fail(shared_.failure);
    confirmed_ = !shared_.failure;
    stage_began_ = shared_.now(), sent_before_ = shared_.report.bytes_sent;
    confirmation_.start(*shared_.link, channel(0), head, nothing_);
    stage_ = Stage::confirming;
  }

  // ---- confirming ------------------------------------------------------------------------------------------------------------

  Progress confirm() {
    const Progress p = advance_exchange(confirmation_);
    if (p != Progress::finished) return p;
    record(Timeline::Kind::confirmation, stage_began_, sent_before_);
    const Failure everywhere = confirmation_.head().failure();
    if (everywhere) shared_.failure = everywhere;
    if (confirmation_.head().flags & Head::damaged) {  // others may have heard that all is well
      remembered_ = false;
      remember_failure();
    } else if (everywhere) {
      shared_.link->session().forget_failure(sequence_ + 1);
    }
    conclude();
    return stage_progress();
  }

  Progress advance_exchange(Exchange<Link>& exchange) {
    const std::uint64_t before = exchange.sent();
    const Progress p = exchange.advance(*shared_.link);
    shared_.report.bytes_sent += exchange.sent() - before;
    return p;
  }

  // ---- leaving ---------------------------------------------------------------------------------------------------------------

  /// The transport itself failed: nothing can be promised to peers but what still can be sent.
  Progress give_up(const Failure& failure) noexcept {
    if (stage_ == Stage::leaving) return Progress::blocked;  // the link fails for good
    try {
      abandon(failure, true);
      return Progress::moved;
    } catch (...) {
      close_memories();
      settled_ = true, stage_ = Stage::leaving;  // what is in flight keeps its memory
      return Progress::blocked;
    }
  }

  /// A rank whose link is retired takes no part any more; it tells those who wait for it.
  void decline(const Failure& failure) {
    agreement_.decline(channel(0), failure);
    shared_.link->session().end_turn(sequence_);
    shared_.fail(failure);
    settle();
    stage_ = Stage::leaving;
  }

  /// This rank does not know what the others have decided, or cannot do it: they hear of it wherever they wait for this rank, and it
  /// waits for nobody.
  void fail_and_leave(const Failure& failure) {
    shared_.fail(failure);
    if (!job_.options.confirm) remember_failure();  // else the confirmation tells
    shared_.link->session().soil();
    settle();
    leave();
  }

  /// All that peers may wait for goes out now, as a failure. What they still send is taken, so that they need not wait either, and
  /// keeps this object alive.
  void leave() {
    const Stage before = std::exchange(stage_, Stage::leaving);
    agreement_.leave(shared_.failure);
    const bool may_move = !job_.failure && agreement_.ride().may_move();  // else nobody moves anything
    if (before == Stage::agreeing) agreement_.ride().give_up(), ahead_.give_up();
    refuse_consent(before, may_move);
    if ((before == Stage::agreeing && may_move) || before == Stage::consenting)
      segments_.start(job_.counts, channel(1));
    segments_.leave();
    if (confirmation_.running())
      confirmation_.give_up(*shared_.link, shared_.failure);
    else if (job_.options.confirm && before != Stage::confirming)
      confirmation_.announce(*shared_.link, channel(0), agreement_.head(), shared_.failure);
  }

  /// The other ranks do without sums, unless some may have heard before that this rank takes part.
  void refuse_consent(Stage before, bool may_move) {
    if (shared_.sums_of_plan == 0) return;
    if (before == Stage::consenting && consent_.running()) {
      shared_.sums_agreed = consent_.has_spoken();
      consent_.give_up(*shared_.link, shared_.failure);
    } else if (before == Stage::agreeing && may_move) {
      consent_.announce(*shared_.link, channel(0), agreement_.head(), shared_.failure);
    }
    if (!shared_.sums_agreed) shared_.link->session().end_turn(sequence_);
  }

  Progress drain() {
    const bool idle = segments_.drain();
    const bool said = agreement_.drain() && (!consent_.running() || consent_.drain(*shared_.link)) &&
                      (!confirmation_.running() || confirmation_.drain(*shared_.link));
    if (idle && said) {
      finish();
      return Progress::finished;
    }
    if (shared_.link->session().started() - sequence_ >= most_in_flight) cancel();
    return Progress::blocked;
  }

  /// Peers that have refused the operation never send what this rank would take. Its channels are needed again.
  void cancel() {
    segments_.cancel();
    agreement_.cancel();
    if (consent_.running()) consent_.cancel(*shared_.link);
    if (confirmation_.running()) confirmation_.cancel(*shared_.link);
  }

  /// Tells the ranks that know nothing of it at the next operation on this link, once.
  void remember_failure() {
    if (!remembered_ && shared_.plan.ranks > 1)
      shared_.link->session().remember_failure(shared_.failure.text, shared_.failure.rank, sequence_);
    remembered_ = true;
  }

  // ---- the end ---------------------------------------------------------------------------------------------------------------

  /// The outcome is known, and nothing of this rank is in flight.
  void conclude() {
    settle();
    const Cause cause = shared_.failure.cause;
    const bool refused = cause == Cause::argument || cause == Cause::mismatch || cause == Cause::unattainable;
    if (shared_.failure && !refused) shared_.link->session().soil();
    finish();
  }

  void finish() {
    in_flight_ = false, stage_ = Stage::done;
    if (shared_.sums_of_plan > 0) shared_.link->session().end_turn(sequence_);
    ahead_.clear();
    record(Timeline::Kind::operation, started_, 0);
    operands_.release();
    release();
  }

  /// The result goes to the user, before the others are told that all is well.
  void hand_over() {
    try {
      if (!shared_.failure) operands_.deliver();
    } catch (...) {
      shared_.fail(failure_from_current_exception(shared_.plan.rank));
    }
  }

  /// A part of the operation that ends now. `sent`: bytes that had been sent before it.
  void record(Timeline::Kind kind, double begin, std::uint64_t sent) {
    if (!shared_.timeline) return;
    shared_.segment = -1;
    Timeline::Event event = shared_.event(kind, begin, shared_.now());
    event.bytes = shared_.report.bytes_sent - sent;
    shared_.timeline->add(event);
  }

  virtual void release() {}  ///< the views are the user's again

  void settle() {
    close_memories();
    Report& r = shared_.report;
    r.fallback_blocks = 0;  // a failure may settle twice
    if constexpr (CountsFallbacks<Codec, Exec>)
      for (const auto& t : shared_.tensors)
        if (t.codec) r.fallback_blocks += t.codec->fallback_blocks();
    r.temporary_bytes = shared_.pool.allocated();
    if constexpr (S::staged) r.temporary_bytes += shared_.messages.allocated();
    r.seconds = shared_.now() - started_;
    r.wire_seconds = std::max(0.0, r.seconds - r.measure_seconds - r.encode_seconds - r.combine_seconds -
                                       r.decode_seconds);
    settled_ = true;
  }

  S shared_;
  std::optional<Exec> users_;
  Job job_;
  Operands<Codec, Link, Exec> operands_;
  Ahead<Codec, Link, Exec> ahead_;
  Agreement<Codec, Link, Exec> agreement_;
  Segments<Codec, Link, Exec> segments_;
  Exchange<Link> consent_, confirmation_;
  NoData nothing_;
  EdgeCount edges_;
  std::uint64_t plan_number_ = 0, sequence_ = 0;
  Stage stage_ = Stage::done;
  bool settled_ = true, in_flight_ = false, remembered_ = false, confirmed_ = false;
  double started_ = 0, stage_began_ = 0;  ///< when
  std::uint64_t sent_before_ = 0;         ///< bytes, before the stage
};

template <class Codec, class Link, class Exec>
Execution<Codec, Link, Exec>::Execution()
    : operands_(shared_, job_), ahead_(shared_), agreement_(shared_, ahead_), segments_(shared_, ahead_) {}

template <class Codec, class Link, class Exec>
Execution<Codec, Link, Exec>::~Execution() = default;

template <class Codec, class Link, class Exec>
void Execution<Codec, Link, Exec>::follow(const Plan& plan, std::uint64_t number) {
  if (number != std::exchange(plan_number_, 0)) shared_.follow(plan);
  plan_number_ = number;
}

template <class Codec, class Link, class Exec>
void Execution<Codec, Link, Exec>::use(const Exec& exec) {
  if constexpr (host_accessible_v<Exec>) {
    shared_.exec = exec;
  } else if (!users_ || !(*users_ == exec)) {
    users_ = exec;
    shared_.exec = Kokkos::Experimental::partition_space(exec, 1)[0];
  }
}

template <class Codec, class Link, class Exec>
void Execution<Codec, Link, Exec>::take(std::span<const Operand<Codec>> operands, int rank, int ranks) {
  operands_.take(operands, rank, ranks);
}

template <class Codec, class Link, class Exec>
void Execution<Codec, Link, Exec>::start(Link& link, const Codec& codec, const EdgeCount& edges) {
  shared_.link = &link, shared_.task = job_.task, shared_.options = job_.options;
  shared_.wire_speed = job_.wire_speed;
  shared_.failure = {};
  edges_ = edges;
  remembered_ = confirmed_ = settled_ = false, in_flight_ = true, stage_ = Stage::agreeing;
  segments_.clear(), ahead_.clear();
  shared_.sequence = sequence_ = link.session().next_sequence(), shared_.segment = -1;
  started_ = stage_began_ = shared_.now(), sent_before_ = 0;
  shared_.sums_agreed = false;
  if (shared_.sums_of_plan > 0) link.session().take_turn(sequence_);
  limit_in_flight();
  give_codecs(codec);
  begin_report();
  agreement_.describe(job_, sequence_);
  try {
    if (link.session().retired())
      decline({Cause::abandoned, link.rank(), "the link is retired: " + link.session().reason()});
    else
      agreement_.open(job_, channel(0));
  } catch (...) {  // the transport cannot even begin
    shared_.fail(failure_from_current_exception(link.rank()));
    link.session().retire(shared_.failure.text);
    settle();
    give_up(shared_.failure);
  }
  // What ends at once is not attached: the object may be used again before the link moves, and must not be there twice.
  if (advance() != Progress::finished) link.session().attach(this->shared_from_this());
}

template <class Codec, class Link, class Exec>
Progress Execution<Codec, Link, Exec>::advance() noexcept {
  try {
    switch (stage_) {
    case Stage::agreeing: return agree();
    case Stage::consenting: return consent();
    case Stage::moving: return advance_segments();
    case Stage::confirming: return confirm();
    case Stage::leaving: return drain();
    case Stage::orphaned: return Progress::blocked;  // what is in flight keeps its memory
    default: return Progress::finished;
    }
  } catch (...) {
    return give_up(failure_from_current_exception(shared_.plan.rank));
  }
}

template <class Codec, class Link, class Exec>
Progress Execution<Codec, Link, Exec>::progress_link() {
  return progress(*shared_.link);
}

template <class Codec, class Link, class Exec>
std::string Execution<Codec, Link, Exec>::waits_for() const {
  std::string text;
  const auto name = [&text](int rank, const char* what) {
    if (rank >= 0) text += sentence((text.empty() ? "rank " : ", rank "), rank, " (", what, ")");
  };
  if (stage_ == Stage::agreeing) name(agreement_.waits_for(), "start of the operation");
  if (stage_ == Stage::consenting) name(consent_.waits_for(), "consent to sums");
  if (stage_ == Stage::confirming) name(confirmation_.waits_for(), "confirmation");
  segments_.waits_for(name);
  if (segments_.sums()) text += text.empty() ? "all ranks (sum)" : ", all ranks (sum)";
  return text.empty() ? "nobody" : text;
}

template <class Codec, class Link, class Exec>
void Execution<Codec, Link, Exec>::orphan() noexcept {
  try {
    shared_.fail(
        {Cause::abandoned, shared_.plan.rank, "its link was destroyed before the operation had ended"});
    operands_.release();
    release();
  } catch (...) {
    shared_.failure.cause = Cause::abandoned;
  }
  close_memories();
  settled_ = true, stage_ = Stage::orphaned;
}

template <class Codec, class Link, class Exec>
void Execution<Codec, Link, Exec>::abandon(const Failure& failure, bool now) {
  if (!in_flight_ || stage_ == Stage::leaving || stage_ == Stage::orphaned) return;
  shared_.fail(failure.rank >= 0 ? failure : Failure{failure.cause, shared_.link->rank(), failure.text});
  close_memories();
  settled_ = true;
  if (!now) {  // it goes on in the order of its plan, poisoned
    if (!job_.options.confirm) remember_failure();
    return;
  }
  shared_.link->session().retire(failure.text);
  leave();
}

}  // namespace wring::inline v0::detail
