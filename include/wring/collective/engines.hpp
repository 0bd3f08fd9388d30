// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <utility>

#include <Kokkos_Core.hpp>

#include <wring/collective/executor/operation_state.hpp>

namespace wring::inline v0::detail {

/// The engines of one collective object, with the memory of earlier operations. There are two, since a request of an operation that has
/// ended may still be held while the next operation runs: it keeps its engine, and with it its own outcome. A copy of an object has
/// engines of its own.
class Engines {
 public:
  Engines() = default;
  Engines(const Engines&) {}
  Engines(Engines&&) noexcept = default;
  Engines& operator=(const Engines& other) {
    if (this != &other) slots_ = {};
    return *this;
  }
  Engines& operator=(Engines&&) noexcept = default;
  ~Engines() = default;

  /// An engine and what a request holds of it.
  template <class Engine> struct Taken {
    std::shared_ptr<Engine> engine;
    std::shared_ptr<OperationState> held;
  };

  /// Whether an operation is in flight.
  bool busy() const {
    return std::any_of(slots_.begin(), slots_.end(),
                       [](const Slot& slot) { return slot.state && !slot.state->settled(); });
  }

  /// An engine for the next operation, while none is in flight.
  template <class Engine> Taken<Engine> take() {
    Slot* free = nullptr;
    for (Slot& slot : slots_) {
      if (!slot.idle()) continue;
      if (auto engine = std::dynamic_pointer_cast<Engine>(slot.state); engine && !engine->in_flight())
        return taken(slot, std::move(engine));
      if (!free || !slot.state) free = &slot;
    }
    if (!free) free = &slots_.front();  // both are held: the requests keep them alive
    const std::shared_ptr<Engine> engine(new Engine, Destroy{});
    *free = {engine, std::make_shared<std::shared_ptr<OperationState>>(engine)};
    return taken(*free, engine);
  }

 private:
  /// After Kokkos::finalize memory cannot be freed any more: Kokkos would end the program. It is left, and said to be.
  struct Destroy {
    void operator()(OperationState* engine) const {
      if (!Kokkos::is_finalized()) {
        delete engine;
      } else {
        std::fputs("wring: a collective, its request or its link outlives Kokkos::finalize(); destroy them "
                   "before it "
                   "(their memory is not freed)\n",
                   stderr);
      }
    }
  };

  struct Slot {
    std::shared_ptr<OperationState> state;
    std::shared_ptr<std::shared_ptr<OperationState>> lease;  ///< shared with the requests of this engine

    bool idle() const { return !lease || lease.use_count() == 1; }
  };

  template <class Engine> static Taken<Engine> taken(const Slot& slot, std::shared_ptr<Engine> engine) {
    OperationState* state = engine.get();
    return {std::move(engine), {slot.lease, state}};
  }

  std::array<Slot, 2> slots_;
};

}  // namespace wring::inline v0::detail
