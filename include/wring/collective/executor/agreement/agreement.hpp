// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <wring/collective/executor/agreement/ahead.hpp>
#include <wring/collective/executor/agreement/exchange.hpp>
#include <wring/collective/executor/agreement/exchange_data.hpp>
#include <wring/collective/executor/job.hpp>
#include <wring/collective/executor/ride_along/ride_along.hpp>
#include <wring/collective/executor/shared.hpp>
#include <wring/collective/executor/working.hpp>
#include <wring/detail/hash.hpp>
#include <wring/detail/sentence.hpp>

namespace wring::inline v0::detail {

/// The opening of an operation: all that must be equal on all ranks is compared, what a bound needs to know of everybody's input is
/// merged, and small data ride along. One exchange; groups of tensors need a second one, for their magnitudes, or to find the tensor on
/// which the ranks disagree.
template <class Codec, class Link, class Exec> class Agreement {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;

  Agreement(S& shared, Ahead<Codec, Link, Exec>& ahead) : s_(shared), ahead_(ahead), ride_(shared) {}

  RideAlong<Codec, Link, Exec>& ride() { return ride_; }

  /// Describes the operation, in the head and in the report. `sequence`: its number on this link.
  void describe(const Job& job, std::uint64_t sequence) {
    const int rank = s_.link->rank();
    Hasher lengths, bounds, compressors;
    lengths.add(s_.tensors.size());
    compressor_hash_ = job.compressor_hash;
    call_hash_ = Hasher()
                     .add(job.task.collective)
                     .add(job.task.root)
                     .add(job.options.operation)
                     .add(job.algorithm_hash)
                     .add(job.choice_hash)
                     .value();
    compressors.add(compressor_hash_);
    for (const auto& t : s_.tensors) {
      lengths.add(t.total).add(t.symmetric);
      bounds.add(bound_hash(t));
      compressors.add(hash_of_compressor(t));
    }
    for (const std::size_t n : job.counts) lengths.add(n);
    const Options& o = job.options;
    head_ = Head{}, grouped_ = false;
    head_.epoch = static_cast<std::uint16_t>(sequence / operations_apart);
    head_.set(Field::version, WRING_VERSION, rank);
    head_.set(Field::sequence, sequence, rank);
    head_.set(Field::collective, static_cast<std::uint64_t>(job.task.collective), rank);
    head_.set(Field::type, job.type, rank);
    head_.set(Field::length, lengths.value(), rank);
    head_.set(Field::operation, static_cast<std::uint64_t>(o.operation), rank);
    head_.set(Field::root, static_cast<std::uint64_t>(job.task.root), rank);
    head_.set(Field::compressor, compressors.value(), rank);
    head_.set(Field::bound, bounds.value(), rank);
    head_.set(Field::algorithm, job.algorithm_hash, rank);
    head_.set(Field::layout, job.layout, rank);
    head_.set(Field::options,
              Hasher()
                  .add(o.segment_bytes)
                  .add(o.depth)
                  .add(o.ride_along_bytes)
                  .add(o.confirm)
                  .add(o.step)
                  .add(job.choice_hash)
                  .value(),
              rank);
    if (job.experience && job.experience->seen()) head_.flags |= RatioMarks::of(*job.experience->seen());
    s_.agreed = mix(head_.agreed ^ sequence);
  }

  /// Begins. What is wrong with the job on this rank is told to all.
  void open(const Job& job, int channel) {
    channel_ = channel;
    ride_.clear();
    Failure failure = job.failure;
    const Session& session = s_.link->session();
    if (!failure && !session.failure().empty())
      failure = {Cause::abandoned, session.failed_rank(),
                 "an earlier operation failed: " + session.failure()};
    try {
      if (!job.failure)
        ride_.choose(job);  // alike on all ranks; one whose call is at fault says no more than that
      if (!failure && !ride_.chosen() && ahead_.choose()) ahead_.encode(job.counts);
      if (!failure) failure = measure_inputs();
      if (!failure) ride_.give();
    } catch (...) {
      if (!failure) failure = failure_from_current_exception(s_.link->rank());
    }
    if (failure) head_.fail(failure);
    heads_.start(*s_.link, channel_, head_, ride_.chosen() && !failure ? ride_.data() : nothing_);
  }

  /// Finished once all ranks' heads, and the magnitudes of all tensors, have come.
  Progress advance() {
    if (magnitudes_.running()) return advance(magnitudes_);
    const Progress p = advance(heads_);
    if (p != Progress::finished) return p;
    if (s_.tensors.size() == 1 || damaged()) return p;
    if (heads_.head().verdict() && !disputed()) return p;
    table_.entries().clear();
    for (const auto& t : s_.tensors) table_.entries().push_back(disputed() ? mark(t) : t.magnitudes);
    magnitudes_.start(*s_.link, channel_, disputed() ? settled_head() : head_, table_);
    grouped_ = true;
    return Progress::moved;
  }

  /// Whether something was lost on the way to this rank: what the others have decided is then unknown here.
  bool damaged() const { return lost(heads_) || (grouped_ && !disputed() && lost(magnitudes_)); }

  /// What was lost, or why a rank has left.
  Failure damage() const {
    for (const auto* exchange : {&heads_, &magnitudes_}) {
      if (exchange->damage()) return exchange->damage();
      if (exchange->head().cause != 0) return exchange->head().failure();
    }
    return {Cause::transport, -1, "the agreement was damaged on its way"};
  }

  /// Why all ranks refuse the operation, alike; nothing if they agree.
  Failure refusal() {
    Failure failure = heads_.head().verdict();
    if (!grouped_ || !failure || lost(magnitudes_)) return failure;
    const auto& marks = table_.entries();
    const auto differs = [](const Magnitudes& m) { return m.least != m.greatest; };
    const auto first = std::find_if(marks.begin(), marks.end(), differs);
    if (first != marks.end()) failure.text += sentence(", first on tensor ", first - marks.begin());
    return failure;
  }

  /// The least ratio that any rank has seen in its latest operation, the same on all ranks; nothing if no rank has seen one.
  std::optional<double> least_ratio() const { return RatioMarks::least(heads_.head().flags); }

  /// Takes over what all ranks' inputs are like.
  void adopt_magnitudes() {
    if (s_.tensors.size() == 1) {
      if (s_.compares(0)) s_.tensors[0].magnitudes = heads_.head().magnitudes();
      return;
    }
    for (std::size_t i = 0; i < s_.tensors.size(); ++i) s_.tensors[i].magnitudes = table_.entries()[i];
  }

  /// A number for the call, and for all ranks' inputs of a tensor, once they are adopted. The same on all ranks; it does not tell what was
  /// called before.
  std::uint64_t number_for(const Tensor<Codec>& t) const {
    const Magnitudes& m = t.magnitudes;
    return Hasher()
        .add(call_hash_)
        .add(t.codec_hash.value_or(compressor_hash_))
        .add(bound_hash(t))
        .add(m.max_abs)
        .add(m.least + 0.0)  // ranks may differ in the sign of a zero
        .add(m.greatest + 0.0)
        .add(m.squares.high)
        .add(m.squares.low)
        .add(m.squares.index)
        .add(m.survey.logarithm)
        .add(m.sample)
        .value();
  }

  int waits_for() const { return magnitudes_.running() ? magnitudes_.waits_for() : heads_.waits_for(); }

  /// A rank whose link is retired takes no part any more; it tells those who wait for it, and waits for nobody.
  void decline(int channel, const Failure& failure) {
    channel_ = channel;
    heads_.announce(*s_.link, channel_, head_, failure);
  }

  /// Gives up in the midst of it: says all that peers wait for, as a failure.
  void leave(const Failure& failure) {
    if (heads_.running()) heads_.give_up(*s_.link, failure);
    if (s_.tensors.size() == 1) return;
    if (magnitudes_.running())
      magnitudes_.give_up(*s_.link, failure);
    else if (!grouped_)
      magnitudes_.announce(*s_.link, channel_, head_, failure, s_.tensors.size() * sizeof(Magnitudes));
  }

  /// After `leave` or `decline`: takes what peers still send. True once nothing is in flight.
  bool drain() {
    for (auto* exchange : {&heads_, &magnitudes_})
      if (exchange->running() && !exchange->drain(*s_.link)) return false;
    return true;
  }

  void cancel() {
    for (auto* exchange : {&heads_, &magnitudes_})
      if (exchange->running()) exchange->cancel(*s_.link);
  }

  /// The head of one more exchange on the same channel, without a failure.
  const Head& head() {
    head_.cause = 0, head_.failed_rank = -1;
    return head_;
  }

 private:
  static std::uint64_t bound_hash(const Tensor<Codec>& t) {
    Hasher hasher;
    hasher.add(t.bound ? static_cast<int>(t.bound->kind) : -1).add(t.bound ? t.bound->value : 0.0);
    return hasher.add(t.scaled).add(t.scale_hash).value();
  }

  std::uint64_t hash_of_compressor(const Tensor<Codec>& t) const {
    const std::uint64_t identity = t.codec_hash.value_or(compressor_hash_);
    if constexpr (RememberingCompressor<Codec, Exec>)
      if (t.open) return Hasher().add(identity).add(t.codec->history()).value();
    return identity;
  }

  /// Whether the ranks disagree on what each tensor of a group has of its own.
  bool disputed() const {
    const std::optional<Field> field = heads_.head().disagreement();
    return field == Field::compressor || field == Field::bound;
  }

  /// The head of an exchange on what is disputed: the ranks agree on that.
  Head settled_head() const {
    Head head = heads_.head();
    head.agreed = 0, head.flags &= static_cast<std::uint16_t>(~Head::disagree);
    return head;
  }

  /// What travels in place of a tensor's magnitudes where something is disputed: least and greatest differ if the ranks do.
  Magnitudes mark(const Tensor<Codec>& t) const {
    const bool compressors = heads_.head().disagreement() == Field::compressor;
    Magnitudes m;
    m.least = m.greatest = static_cast<double>((compressors ? hash_of_compressor(t) : bound_hash(t)) >> 32);
    return m;
  }

  Progress advance(Exchange<Link>& exchange) {
    const std::uint64_t before = exchange.sent();
    const Progress p = exchange.advance(*s_.link);
    s_.report.bytes_sent += exchange.sent() - before;
    return p;
  }

  /// A rank that has left in the midst of the second exchange speaks of its failure there; the heads were complete.
  bool lost(const Exchange<Link>& exchange) const {
    return (exchange.head().flags & Head::damaged) ||
           (&exchange == &magnitudes_ && exchange.head().cause != 0);
  }

  /// Magnitudes of this rank's inputs, as far as a bound needs them, or a compressor that surveys.
  Failure measure_inputs() {
    const int rank = s_.link->rank();
    for (std::size_t i = 0; i < s_.tensors.size(); ++i) {
      auto& t = s_.tensors[i];
      if (ahead_.chosen() && ahead_.serves(i)) continue;
      t.magnitudes = {};
      if (!t.bound) {
        survey(t);
        look(t);
        continue;
      }
      if (!(t.bound->value >= 0) || !std::isfinite(t.bound->value))
        return {Cause::argument, rank, "the bound is " + std::to_string(t.bound->value)};
      if constexpr (!BoundedCompressor<Codec, Exec>)
        return {Cause::argument, rank, "the compressor promises no bound"};
      if constexpr (is_complex_v<T>) return {Cause::argument, rank, "complex sums have no bound"};
      if constexpr (FloatElement<T>) {
        const Doing doing(s_, Work::measure, t.in.size_bytes());
        t.magnitudes = measure<T>(s_.exec, t.in, t.bound->kind, workspace_);
        if constexpr (WordSummingCompressor<Codec, Exec>)
          t.magnitudes.special_values = has_special_values<T>(s_.exec, t.in) ? 1 : 0;
        if constexpr (RememberingCompressor<Codec, Exec>)
          t.magnitudes.max_abs = t.codec->greatest(s_.exec, t.magnitudes.max_abs);
      }
      look(t);
    }
    if (s_.tensors.size() == 1 && s_.compares(0)) {
      const auto& bound = s_.tensors[0].bound;
      const auto unbounded = s_.measures(0) ? Bound::Kind::rms : Bound::Kind::absolute;
      head_.set_input(s_.tensors[0].magnitudes, bound ? bound->kind : unbounded);
    }
    return {};
  }

  /// Compressors that remember tell what they have been through by what the inputs were like.
  void look(Tensor<Codec>& t) {
    if constexpr (RememberingCompressor<Codec, Exec>) t.magnitudes.sample = sample<T>(s_.exec, t.in);
  }

  /// Where no bound is asked for, a compressor may want to see the values all the same.
  void survey(Tensor<Codec>& t) {
    if constexpr (SurveyingCompressor<Codec, Exec>) {
      const Doing doing(s_, Work::measure, t.in.size_bytes());
      t.magnitudes = measure<T>(s_.exec, t.in, Bound::Kind::rms, workspace_);
      const double root_mean_square = t.magnitudes.squares.root_mean(static_cast<double>(t.in.size()));
      if constexpr (RememberingCompressor<Codec, Exec>)
        t.magnitudes.max_abs = t.codec->greatest(s_.exec, t.magnitudes.max_abs);
      if (root_mean_square > 0)
        t.magnitudes.survey = Survey::of(t.codec->survey(s_.exec, t.in, root_mean_square));
    }
  }

  S& s_;
  Ahead<Codec, Link, Exec>& ahead_;
  RideAlong<Codec, Link, Exec> ride_;
  Exchange<Link> heads_, magnitudes_;
  MagnitudeTable table_;
  NoData nothing_;
  Head head_;
  std::unique_ptr<Buffer<typename MessageSpace<Exec>::type>> workspace_;
  std::uint64_t compressor_hash_ = 0, call_hash_ = 0;  ///< of the operation's; of collective and plan
  int channel_ = 0;
  bool grouped_ = false;  ///< the second exchange has begun
};

}  // namespace wring::inline v0::detail
