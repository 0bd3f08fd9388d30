// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/plan.hpp>
#include <wring/algorithm/verify.hpp>
#include <wring/collective/calibrate.hpp>
#include <wring/collective/engines.hpp>
#include <wring/collective/executor/choosing/situation.hpp>
#include <wring/collective/executor/plan_cache.hpp>
#include <wring/collective/executor/view_execution.hpp>
#include <wring/collective/group.hpp>
#include <wring/collective/options.hpp>
#include <wring/collective/request.hpp>
#include <wring/collective/timeline.hpp>
#include <wring/detail/call_diagnostics.hpp>
#include <wring/detail/compressor_diagnostics.hpp>
#include <wring/detail/identity.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/detail/sum_diagnostics.hpp>
#include <wring/detail/transport_diagnostics.hpp>
#include <wring/transport/concept.hpp>

namespace wring::inline v0 {

/// What the four collectives have in common: compressor, link, algorithm and options, and the memory of earlier operations.
template <class Codec, class Link, class Schedule> class BasicCollective {
 public:
  using compressor_type = Codec;
  using link_type = Link;

  BasicCollective(Codec codec, Link& link, Schedule schedule, Options options);

  const Options& options() const { return options_; }
  Options& options() { return options_; }
  const Codec& compressor() const { return codec_; }
  const Schedule& algorithm() const { return schedule_; }
  Link& link() const { return *link_; }

  /// Whether an operation can be started: none of this object is in flight, and its link is not retired.
  bool ready() const { return !busy() && !link_->session().retired(); }

  /// Measures compressor and link with all ranks (`wring::calibrate`); what is found is what the algorithm goes by from now on. Once is
  /// enough, but for a failure on the link: after it the ranks may not hold the same figures, so the algorithm falls back to what it went by
  /// before. Blocks, at the longest until `deadline`.
  template <class Exec>
    requires AdaptiveAlgorithm<Schedule>
  Machine calibrate(const Exec& exec, std::optional<Deadline> deadline = std::nullopt) {
    Request request = start_calibration(exec);
    static_cast<void>(deadline ? request.wait(*deadline) : request.wait());
    return *calibration_.state->machine();
  }
  /// The nonblocking form. The request must have ended before the next operation of this object starts. The figures are worth the more the
  /// less this thread does meanwhile.
  template <class Exec>
    requires AdaptiveAlgorithm<Schedule>
  Request start_calibration(const Exec& exec) {
    expect_idle();
    take_calibration();
    auto started = detail::start_calibration(exec, codec_, *link_);
    calibration_.state = std::move(started.state);
    return std::move(started.request);
  }

  /// Operations started from now on record what they do in `timeline`, which must outlive them; a copy of this object does so, too.
  /// Local to this rank: others may record or not.
  void record(Timeline& timeline) { timeline_ = &timeline; }
  /// Operations started from now on record nothing, as from the beginning.
  void record(std::nullptr_t) { timeline_ = nullptr; }

 protected:
  template <class Exec, class... Items>
  Request start_group(Collective collective, int root, const Exec& exec, Group<Items...> tensors) {
    if constexpr (detail::explain_call<Codec, Exec, decltype(tensors.items)>())
      return start_items(collective, root, exec, tensors.items);
    else
      return {};
  }

  /// Starts an operation over the views of `items`.
  template <class Exec, class Items> Request start_items(Collective collective, int root, const Exec& exec,
                                                         Items& items) {
    expect_channels();
    expect_idle();
    using Engine = detail::ViewExecution<Codec, Link, Exec, decltype(detail::plain_items<Exec>(items))>;
    auto [engine, held] = engines_.template take<Engine>();
    detail::Job& job = engine->job();
    job.task = {collective, root}, job.options = options_, job.failure = {};
    engine->shared().timeline = timeline_;
    std::optional<double> ratio;
    if constexpr (AdaptiveAlgorithm<Schedule>) {
      take_calibration();
      job.experience = experience_.shared();
      ratio = job.experience->ratio(link_->session().told());
    }
    const EdgeCount* edges = &no_edges_;
    try {  // whatever is wrong here is told in the agreement, since the other ranks have started
      exec.fence("wring::start");
      make_plan(job);
      engine->use(exec);
      if (!AdaptiveAlgorithm<Schedule> || !engine->has_plan())
        engine->follow(planned().plan, planned().number);
      detail::for_each_item(items, [](const auto& item) {
        detail::bring_up_to_date<Exec>(item.in), detail::bring_up_to_date<Exec>(item.out);
        detail::mark_modified<Exec>(item.out);
      });
      engine->set_views(detail::plain_items<Exec>(items), link_->rank(), link_->size());
      if constexpr (AdaptiveAlgorithm<Schedule>) {
        adapt(job, engine->shared().tensors, ratio);
        engine->follow(planned().plan, planned().number);
      }
      edges = &edges_for(engine->shared().tensors);
    } catch (...) {
      job.failure = detail::failure_from_current_exception(link_->rank());
    }
    engine->start(*link_, codec_, *edges);
    return Request(std::move(held));
  }

 private:
  bool busy() const { return engines_.busy() || (calibration_.state && !calibration_.state->settled()); }

  /// Throws InvalidArgument where one more operation would meet the channels of the first that is in flight.
  void expect_channels() const;

  void expect_idle() const {
    if (busy())
      throw InvalidArgument(
          "this object has an operation in flight: wait for it, or use another object for a "
          "second operation",
          link_->rank());
  }

  /// Hands what a calibration has found to the algorithm. If some operation on the link has failed since, other ranks may not have it.
  void take_calibration() {
    if constexpr (AdaptiveAlgorithm<Schedule>) {
      auto& [state, machine, before, since] = calibration_;
      const std::uint64_t told = link_->session().told();
      if (before && told > since) {
        schedule_ = *before;
        before.reset(), machine.reset();
      }
      if (state && told > state->sequence()) state.reset();
      if (!state || !state->machine() || machine == state->machine()) return;
      if (!before) before = schedule_;
      machine = state->machine(), since = state->sequence();
      schedule_.use(*machine);
    }
  }

  /// The plan of the task, made once; what is wrong with it, or with the options, becomes the job's failure.
  void make_plan(detail::Job& job);

  detail::Planned& planned() { return plans_.latest(); }
  const detail::Planned& planned() const { return plans_.latest(); }

  /// What the agreement compares of the algorithm, and the report says of it.
  void identify(detail::Job& job) const {
    job.algorithm = planned().name, job.layout = layout_of(schedule_);
    if constexpr (AdaptiveAlgorithm<Schedule>) {
      constexpr std::uint64_t adaptive = 0xada9;  // unlike any algorithm by itself
      job.algorithm_hash = detail::Hasher().add(adaptive).value();
      job.layout = detail::Hasher().add(job.layout).add(schedule_.identity()).value();
      job.choice_hash = planned().hash;
      job.wire_speed = detail::known_wire_speed(schedule_);
    } else {
      job.algorithm_hash = detail::Hasher().add(planned().name_hash).add(planned().hash).value();
      job.choice_hash = 0;
    }
  }

  /// Lets the algorithm choose for this operation. Ranks whose calls are at fault, or differ, may choose otherwise: they all hear of it before
  /// a plan is followed.
  void adapt(detail::Job& job, std::span<const detail::Tensor<Codec>> tensors, std::optional<double> ratio);

  template <class Complain> void check_options(Complain complain) const {
    using T = typename Codec::value_type;
    if (detail::flushes_subnormals())
      complain("this thread flushes subnormal numbers to zero, which breaks bounds: build and run without "
               "fast-math");
    if (options_.segment_bytes < sizeof(T))
      complain(detail::sentence("segment_bytes is ", options_.segment_bytes));
    if (options_.depth < 1 || options_.depth > 30)
      complain(detail::sentence("depth is ", options_.depth, ", not 1..30"));
    const std::size_t widest =
        AdaptiveAlgorithm<Schedule> ? 1 : static_cast<std::size_t>(std::max(1, planned().plan.widest));
    if (options_.segment_bytes > (std::size_t{1} << 29) / widest)
      complain(detail::sentence("segment_bytes is so large that a message of ", widest,
                                " blocks would exceed 1 GiB"));
    if (!adds(options_.operation) && is_complex_v<T>)
      complain("complex numbers have no order: MIN and MAX are refused");
    if (options_.operation == Operation::mean && std::is_integral_v<T>)
      complain("MEAN of integers is refused: it is no integer");
  }

  /// Encodings per result element, counted once per plan and only where a bound is divided by them.
  const EdgeCount& edges_for(std::span<const detail::Tensor<Codec>> tensors);

  Codec codec_;
  Link* link_;
  Schedule schedule_;
  Options options_;
  detail::PlanCache plans_{AdaptiveAlgorithm<Schedule> ? 16
                                                       : 1};  ///< algorithms that choose have several in use
  std::string codec_name_;
  std::uint64_t codec_hash_ = 0, type_hash_ = 0;
  EdgeCount no_edges_;
  detail::OwnExperience experience_;
  struct {
    std::shared_ptr<detail::CalibrationState> state;  ///< of the latest
    std::optional<Machine> machine;                   ///< that the algorithm was given
    std::optional<Schedule> before;                   ///< the algorithm without it
    std::uint64_t since = 0;                          ///< the calibration that it came from
  } calibration_;
  Timeline* timeline_ = nullptr;
  detail::Engines engines_;
};

template <class Codec, class Link, class Schedule>
BasicCollective<Codec, Link, Schedule>::BasicCollective(Codec codec, Link& link, Schedule schedule,
                                                        Options options)
    : codec_(std::move(codec)), link_(&link), schedule_(std::move(schedule)), options_(options) {
  detail::explain_compressor<Codec>();
  expect_algorithm<Schedule>();
  detail::explain_transport<Link>();
  detail::explain_sums<Codec, Link, Schedule>();
  using T = typename Codec::value_type;
  if constexpr (FloatElement<T>)
    type_hash_ = detail::Hasher().add(std::string_view(FloatTraits<T>::name)).value();
  else
    type_hash_ = detail::Hasher()
                     .add(sizeof(T))
                     .add(std::is_integral_v<T>)
                     .add(is_complex_v<T>)
                     .add(std::is_signed_v<T>)
                     .value();
  const Identity id = codec_.identity();
  codec_name_ = id.name, codec_hash_ = detail::hash_of(id);
}

template <class Codec, class Link, class Schedule>
void BasicCollective<Codec, Link, Schedule>::expect_channels() const {
  if (link_->session().in_flight() + 1 >= detail::operations_apart)
    throw InvalidArgument("too many operations are in flight on this link: wait for some of them",
                          link_->rank());
}

template <class Codec, class Link, class Schedule>
void BasicCollective<Codec, Link, Schedule>::make_plan(detail::Job& job) {
  const int rank = link_->rank(), ranks = link_->size();
  const auto complain = [&](const std::string& what) {
    if (!job.failure) job.failure = {Cause::argument, rank, what};
  };
  if (job.task.root < 0 || job.task.root >= ranks) {
    complain(detail::sentence("root ", job.task.root, " is no rank of 0..", ranks - 1));
  }
  const Task task = job.failure ? Task{job.task.collective, 0} : job.task;
  plans_.take(schedule_, task, rank, ranks);
  if (!planned().fault.empty()) complain(planned().fault);
  if (!detail::can_sum_words<Codec, Link> && count_sums(planned().plan) > 0)
    complain("the algorithm's plan lets the transport add up words, which this compressor or this transport "
             "cannot");
  check_options(complain);
  job.compressor = codec_name_, job.compressor_hash = codec_hash_;
  job.reason = "as given", job.ride_reason = "rode along", job.compressed = true;
  identify(job);
  job.type = type_hash_;
}

template <class Codec, class Link, class Schedule>
void BasicCollective<Codec, Link, Schedule>::adapt(detail::Job& job,
                                                   std::span<const detail::Tensor<Codec>> tensors,
                                                   std::optional<double> ratio) {
  if constexpr (AdaptiveAlgorithm<Schedule>) {
    if (job.failure) return;
    const Situation situation =
        detail::situation_of(tensors, codec_, job.task, link_->size(), options_, ratio);
    const Choice& choice = schedule_.adapt(situation);
    plans_.take(schedule_, job.task, link_->rank(), link_->size(), choice.variant + 1);
    identify(job);
    job.options.segment_bytes = choice.segment_bytes, job.options.depth = choice.depth;
    if (!situation.ride_given)
      job.options.ride_along_bytes = choice.rides_along ? detail::ride_along_room : 0;
    job.reason = choice.reason, job.ride_reason = choice.ride_reason, job.compressed = choice.compressed;
    if (!planned().fault.empty()) job.failure = {Cause::argument, link_->rank(), planned().fault};
  }
}

template <class Codec, class Link, class Schedule>
const EdgeCount&
BasicCollective<Codec, Link, Schedule>::edges_for(std::span<const detail::Tensor<Codec>> tensors) {
  bool needed = planned().fault.empty();
  if constexpr (CombiningCompressor<Codec> || LosslessCompressor<Codec> || !BoundedCompressor<Codec>)
    needed = false;
  bool bounded = false;
  for (const auto& t : tensors) bounded = bounded || t.bound.has_value();
  if (!needed || !bounded) return no_edges_;
  detail::Planned& p = planned();
  if (!p.counted) p.edges = edges_of(schedule_, p.task, p.plan.ranks), p.counted = true;
  return p.edges;
}

}  // namespace wring::inline v0
