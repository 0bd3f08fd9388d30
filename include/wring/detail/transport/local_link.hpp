// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include <Kokkos_Core.hpp>

#include <wring/detail/sentence.hpp>
#include <wring/detail/transport/target.hpp>
#include <wring/error.hpp>
#include <wring/transport/concept.hpp>
#include <wring/transport/session.hpp>

namespace wring::inline v0::detail {

/// The link of one rank of a world whose ranks are all in this thread. `World` owns it, and an `Office` that moves the messages:
/// `World::transport` is the name of the transport, `Office::Entry` a message or a receive.
template <class World, class Office> class LocalLink {
 public:
  using memory_space = Kokkos::HostSpace;
  static constexpr bool shares_thread = true;

  class Request {
   public:
    Request() = default;
    Request(Request&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    Request& operator=(Request&& other) noexcept {
      entry_ = std::exchange(other.entry_, nullptr);
      return *this;
    }

   private:
    friend LocalLink;
    explicit Request(typename Office::Entry* entry) : entry_(entry) {}
    typename Office::Entry* entry_ = nullptr;
  };

  LocalLink(const LocalLink&) = delete;
  LocalLink& operator=(const LocalLink&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  Session& session() { return session_; }

  /// Starts a message. A rank may send to itself. Throws InvalidArgument where there is no such peer or channel.
  Request send(int peer, int channel, std::span<const std::byte> bytes) {
    require_target(World::transport, rank_, size_, peer, channel);
    return Request(office_->send(rank_, peer, channel, bytes));
  }

  /// Starts a receive, like `send`.
  Request receive(int peer, int channel, std::span<std::byte> bytes) {
    require_target(World::transport, rank_, size_, peer, channel);
    return Request(office_->receive(peer, rank_, channel, bytes));
  }

  /// Starts a sum over all ranks. Words of different numbers are a TransportError on all of them.
  Request sum_words(std::span<std::uint64_t> words) { return Request(office_->sum(rank_, words)); }

  std::optional<std::size_t> test(Request& request) {
    if (request.entry_ == nullptr)
      throw InvalidArgument(sentence(World::transport, ": test of a request that is not in flight"), rank_);
    if (!office_->completed(*request.entry_)) return std::nullopt;
    auto* const entry = std::exchange(request.entry_, nullptr);
    const std::size_t length = entry->length, room = entry->size;
    const int from = entry->from, channel = entry->channel;
    const bool truncated = office_->truncated(*entry), sums = entry->sums;
    office_->dismiss(entry);
    if (truncated && sums)
      throw TransportError(sentence(World::transport, ": the ranks sum different numbers of words"), rank_);
    if (truncated)
      throw TransportError(sentence(World::transport, ": rank ", rank_, " received a message from rank ",
                                    from, " on channel ", channel, " that is longer than the ", room,
                                    " bytes given for it"),
                           from);
    return length;
  }

  /// Always succeeds. A message given up still arrives, a sum still counts what this rank has given.
  bool cancel(Request& request) {
    if (auto* const entry = std::exchange(request.entry_, nullptr)) office_->withdraw(entry);
    return true;
  }

  /// Moves the operations of all ranks, as the world does. `blocked`: no rank can move until somebody starts something.
  Progress progress() { return world_->progress(); }

 protected:
  LocalLink(World& world, Office& office, int rank, int size)
      : world_(&world), office_(&office), rank_(rank), size_(size) {}
  ~LocalLink() = default;

  World* world_;
  Office* office_;
  int rank_, size_;

 private:
  Session session_;  // last: operations still in it may use the link when they are destroyed
};

}  // namespace wring::inline v0::detail
