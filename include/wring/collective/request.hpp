// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>

#include <wring/collective/executor/operation_state.hpp>
#include <wring/collective/report.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

/// A point in time by which an operation must be complete. Without one, waiting is unlimited.
using Deadline = std::chrono::steady_clock::time_point;

namespace detail {
class CheckState;
}

/// An operation in flight. Move-only. Destroyed before its end, it is given up: its remaining messages carry an error, and it drains
/// on its link; the views it uses stay alive until then. A Request belongs to the thread of its link.
class [[nodiscard]] Request {
 public:
  Request() = default;
  explicit Request(std::shared_ptr<detail::OperationState> state) : state_(std::move(state)) {}
  Request(Request&&) noexcept = default;
  Request& operator=(Request&& other) noexcept {
    if (this != &other) give_up(), state_ = std::move(other.state_);
    return *this;
  }
  ~Request() { give_up(); }

  /// Whether there is an operation that has not been waited for.
  bool valid() const { return state_ != nullptr; }

  /// Moves all operations of the link; true once this one has ended. Throws its error, if it ended with one.
  bool test() {
    expect_valid();
    if (!state_->settled()) state_->progress_link();
    if (!state_->settled()) return false;
    throw_failure();
    return true;
  }

  /// Waits for the end and says what was done. Throws the error of the operation, if it ended with one; the request is then done.
  Report wait() { return wait_until(std::nullopt); }

  /// The same until a deadline. After it the operation is abandoned, its link retired, and the TimeoutError names whom it waited for.
  Report wait(Deadline deadline) { return wait_until(deadline); }

 private:
  friend detail::CheckState;

  void expect_valid() const {
    if (!state_)
      throw InvalidArgument("this Request has no operation: it was waited for, moved from, or never started");
  }

  Report wait_until(std::optional<Deadline> deadline) {
    expect_valid();
    for (int idle = 0; !state_->settled();) {
      const Progress p = state_->progress_link();
      if (state_->settled()) break;
      if (p != Progress::blocked) {
        idle = 0;
      } else if (state_->blocked_for_ever()) {
        time_out("this wait would never end (all ranks share one thread)");
      } else if (++idle > 64) {
        std::this_thread::yield();
      }
      if (deadline && Deadline::clock::now() > *deadline) time_out("the deadline has passed");
    }
    throw_failure();
    const Report report = state_->report();
    state_.reset();
    return report;
  }

  [[noreturn]] void time_out(const char* why) {
    const std::string whom = state_->waits_for();
    const std::string text = std::string(why) + (whom == "nobody" ? ", with work left for this rank itself"
                                                                  : ", waiting for " + whom);
    state_->abandon({Cause::timeout, -1, text}, true);
    state_.reset();
    throw TimeoutError(text);
  }

  void throw_failure() {
    if (!state_->failure()) return;
    const detail::Failure failure = state_->failure();
    state_.reset();
    const std::string where = failure.rank >= 0 ? "rank " + std::to_string(failure.rank) + ": " : "";
    throw_error(failure.cause, where + failure.text, failure.rank);
  }

  void give_up() {
    if (!state_) return;
    if (!state_->settled())
      state_->abandon({Cause::abandoned, -1, "the operation was destroyed before its end"}, false);
    state_.reset();
  }

  std::shared_ptr<detail::OperationState> state_;
};

namespace detail {

template <class... Args> constexpr bool ends_with_deadline() {
  if constexpr (sizeof...(Args) == 0)
    return false;
  else
    return std::is_same_v<std::tuple_element_t<sizeof...(Args) - 1, std::tuple<Args...>>, Deadline>;
}

/// Starts and waits; a deadline at the end of the arguments is for the wait.
template <class Start, class... Args> Report start_and_wait(Start start, const Args&... args) {
  constexpr std::size_t n = sizeof...(Args);
  const auto all = std::tie(args...);
  if constexpr (ends_with_deadline<Args...>()) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return start(std::get<I>(all)...).wait(std::get<n - 1>(all));
    }(std::make_index_sequence<n - 1>());
  } else {
    return start(args...).wait();
  }
}

}  // namespace detail
}  // namespace wring::inline v0
