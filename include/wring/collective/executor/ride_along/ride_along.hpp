// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <type_traits>

#include <wring/collective/executor/job.hpp>
#include <wring/collective/executor/ride_along/gathered_ride.hpp>
#include <wring/collective/executor/ride_along/summed_ride.hpp>

namespace wring::inline v0::detail {

/// Small operations travel with the agreement, summed or gathered. Both forms make the very calls that a plan would make; where sums
/// do not depend on the order of ranks, the bits are those of any plan.
template <class Codec, class Link, class Exec> class RideAlong {
 public:
  using S = Shared<Codec, Link, Exec>;

  explicit RideAlong(S& shared) : s_(shared), summed_(shared), gathered_(shared) {}

  /// Decides whether and how the data ride: a function of what the ranks agree upon, and never more than the room that a rank which
  /// disagrees has for them.
  void choose(const Job& job) {
    // Gathered values would be encoded again by every rank, sums perhaps twice.
    if (RememberingCompressor<Codec, Exec> || s_.tensors.size() != 1 || s_.plan.ranks == 1) return;
    if (summed_.choose())
      form_ = Form::summed;
    else if (gathered_.choose(job.counts))
      form_ = Form::gathered;
  }

  /// Nothing rides, until `choose`.
  void clear() { form_ = Form::none; }

  bool chosen() const { return form_ != Form::none; }

  /// Whether the data may have to move by the plan all the same.
  bool may_move() const { return form_ != Form::gathered; }

  /// What travels behind the heads, if the data ride.
  ExchangeData& data() {
    if constexpr (anticipates)
      if (form_ == Form::summed) return summed_;
    return gathered_.data();
  }

  /// Puts this rank's input in.
  void give() {
    if constexpr (anticipates)
      if (form_ == Form::summed) return summed_.give();
    if (form_ == Form::gathered) gathered_.give();
  }

  /// The rank leaves before the agreement is complete.
  void give_up() {
    if constexpr (anticipates)
      if (form_ == Form::summed) summed_.give_up();
  }

  /// Once the parameters are known: whether the result can be computed from what has come. The same on all ranks.
  bool holds() const {
    if constexpr (anticipates)
      if (form_ == Form::summed) return summed_.holds();
    return chosen();
  }

  /// Computes the result.
  void finish() {
    if constexpr (anticipates)
      if (form_ == Form::summed) summed_.finish();
    if (form_ == Form::gathered) gathered_.finish();
    s_.exec.fence("wring::finish");
  }

 private:
  enum class Form { none, summed, gathered };
  static constexpr bool anticipates = AnticipatingCompressor<Codec, Exec>;

  S& s_;
  std::conditional_t<anticipates, SummedRide<Codec, Link, Exec>, NoSummedRide> summed_;
  GatheredRide<Codec, Link, Exec> gathered_;
  Form form_ = Form::none;
};

}  // namespace wring::inline v0::detail
