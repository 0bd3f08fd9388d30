// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <wring/collective/executor/failure.hpp>
#include <wring/collective/report.hpp>
#include <wring/transport/session.hpp>

namespace wring::inline v0::detail {

/// An operation in flight, as a Request sees it.
class OperationState : public Pending {
 public:
  /// Whether the outcome is known: the result is in place, or the failure is.
  virtual bool settled() const = 0;
  virtual const Failure& failure() const = 0;
  /// Whether this rank has told the others in the confirmation that all is well: they may go on to what follows.
  virtual bool has_confirmed() const = 0;
  virtual const Report& report() const = 0;
  /// Moves every operation of the link.
  virtual Progress progress_link() = 0;
  /// True if a blocked link can never move again, since all ranks share this thread.
  virtual bool blocked_for_ever() const = 0;
  /// Gives the operation up by `failure`: its remaining messages are poisoned and it drains on its link. If `now`, it
  /// waits for nobody any more and the link is retired.
  virtual void abandon(const Failure& failure, bool now) = 0;
};

}  // namespace wring::inline v0::detail
