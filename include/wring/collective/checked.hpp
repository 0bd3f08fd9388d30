// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <wring/collective/checked/arguments.hpp>
#include <wring/collective/checked/check.hpp>
#include <wring/collective/request.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/detail/call_diagnostics.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

/// A checked operation in flight, to be used as a Request. It ends when the check has ended, with a VerificationError where the
/// result is wrong.
class [[nodiscard]] CheckedRequest {
 public:
  CheckedRequest() = default;
  explicit CheckedRequest(std::shared_ptr<detail::CheckState> state) : state_(std::move(state)) {}
  CheckedRequest(CheckedRequest&&) noexcept = default;
  CheckedRequest& operator=(CheckedRequest&& other) noexcept {
    if (this != &other) detail::leave_to_link(std::move(state_)), state_ = std::move(other.state_);
    return *this;
  }
  ~CheckedRequest() { detail::leave_to_link(std::move(state_)); }

  bool valid() const { return state_ != nullptr; }

  /// Moves all operations of the link; true once operation and check have ended.
  bool test() {
    return guarded([this] { return state_->test(); });
  }
  /// Waits for the end and says what the operation did; its check is not part of the report.
  Report wait() { return wait_until(std::nullopt); }
  /// The same until a deadline, as in Request.
  Report wait(Deadline deadline) { return wait_until(deadline); }

 private:
  Report wait_until(std::optional<Deadline> deadline) {
    const Report report = guarded([&] { return state_->wait(deadline); });
    state_.reset();
    return report;
  }

  /// A request that has thrown is done.
  template <class Action> auto guarded(Action action) -> decltype(action()) {
    if (!state_)
      throw InvalidArgument(
          "this CheckedRequest has no operation: it was waited for, moved from, or never started");
    try {
      return action();
    } catch (...) {
      state_.reset();
      throw;
    }
  }

  std::shared_ptr<detail::CheckState> state_;
};

/// A collective that verifies itself: runs an operation, then compares its result on all ranks with the exact one.
///
///     wring::Checked mean(wring::Allreduce(wring::Grid<float>{}, link, wring::Ring{}, {.operation = wring::mean}));
///     wring::Report report = mean(exec, gradient, wring::absolute(1e-4));  // throws VerificationError if it is not so
///
/// Called as the collective it is made of: the same arguments, blocking or not, in place or not, singly or in groups. Verified are
/// - the bound: |result - exact| <= Report::bound for every finite element, in exact arithmetic (of each tensor its own bound);
/// - special values: NaN and infinities where IEEE arithmetic has them;
/// - one answer: identical bits on all ranks.
/// Without a bound, the last two (what a compressor makes of finite values is then its own affair, infinities included); what loses nothing (None) and adds nothing is compared exactly all the same, and integers always.
/// The first element that violates, of the lowest index over all ranks, is named by a VerificationError, the same on every rank.
///
/// For debugging and tests, at a price. Memory: a copy of the input, and 2 (ranks + 1) pieces. Messages: every rank gets everybody's
/// inputs and results, uncompressed, over the same link, piece by piece. `Options::confirm` is switched on, since a check can follow
/// only where the operation ended well on all ranks. Until a request has ended, start nothing else on its link. One that is destroyed
/// before its end is an error on all ranks, unless nothing was left of it but to hear that it ended; its link may be used again when
/// nothing is in flight on it.
template <class Collective> class Checked {
  using Codec = typename Collective::compressor_type;
  using Link = typename Collective::link_type;
  using T = typename Codec::value_type;
  using Check = detail::Check<T, LosslessCompressor<Codec>, Link>;

 public:
  /// `piece_bytes`, equal on all ranks: how much of a rank's values is gathered and checked at a time.
  explicit Checked(Collective collective, std::size_t piece_bytes = 256 * 1024)
      : collective_(std::move(collective)), piece_bytes_(piece_bytes) {}

  /// The collective that is checked.
  Collective& collective() { return collective_; }

  /// Starts an operation; its check runs within `test` and `wait`.
  template <class Exec, class... Args> CheckedRequest start(const Exec& exec, const Args&... args) {
    if constexpr (detail::MistakenCall<Exec, Args...>) {
      detail::explain_beginning<Exec, Args...>();
      return {};
    } else {
      return start_call(exec, args...);
    }
  }

  /// The blocking form of each `start`; a trailing deadline limits the wait.
  template <class Exec, class... Args> Report operator()(const Exec& exec, const Args&... args) {
    return detail::start_and_wait([&](const auto&... a) { return start(exec, a...); }, args...);
  }

 private:
  template <class Exec, class... Args> CheckedRequest start_call(const Exec& exec, const Args&... args) {
    if (const auto last = last_.lock(); last && !last->ended())
      throw InvalidArgument("this object has an operation in flight: wait for it", collective_.link().rank());
    if constexpr ((std::is_same_v<Args, Bound> || ...)) detail::explain_bound<Codec, Exec>();
    collective_.options().confirm = true;
    const auto call = detail::checked_call(args...);
    if constexpr (!detail::explain_call<Codec, Exec, std::remove_cvref_t<decltype(call.tensors.items)>>())
      return {};
    else
      return start_checked(exec, call, args...);
  }

  template <class Exec, class Call, class... Args>
  CheckedRequest start_checked(const Exec& exec, const Call& call, const Args&... args) {
    const auto check = std::make_shared<Check>(collective_.link(), subject(call.root), piece_bytes_);
    check->keep(exec, call.tensors);
    check->begin(collective_.start(exec, args...));
    last_ = check;
    return CheckedRequest(check);
  }

  typename Check::Subject subject(int root) const {
    return {Collective::kind, collective_.options().operation, root,
            collective_.compressor().identity().name + " over " + collective_.algorithm().name()};
  }

  Collective collective_;
  std::size_t piece_bytes_;
  std::weak_ptr<Check> last_;
};

}  // namespace wring::inline v0
