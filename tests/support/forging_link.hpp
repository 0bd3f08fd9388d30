// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <wring/transport/in_process.hpp>

namespace wring_test {

/// A link of an InProcess world that forges what its rank sends: changes that a program makes, checksums included. For damage that
/// happens by itself there is wring/testing/faulty_transport.hpp. Channels that are multiples of 32 carry agreements.
class ForgingLink {
 public:
  using memory_space = Kokkos::HostSpace;
  using Request = wring::InProcessTransport::Request;
  using Bytes = std::vector<std::byte>;
  static constexpr bool shares_thread = true;

  /// Changes a message; `number` counts the agreement's messages of this rank, or the others.
  using Forge = std::function<void(bool agreement, int number, Bytes& message)>;

  explicit ForgingLink(wring::InProcessTransport& link, Forge forge = {})
      : link_(&link), forge_(std::move(forge)) {}

  int rank() const { return link_->rank(); }
  int size() const { return link_->size(); }
  wring::Session& session() { return link_->session(); }
  wring::Progress progress() { return link_->progress(); }

  Request send(int peer, int channel, std::span<const std::byte> bytes) {
    if (!forge_) return link_->send(peer, channel, bytes);
    const bool agreement = channel % 32 == 0;
    Bytes& message = kept_.emplace_back(bytes.begin(), bytes.end());  // for as long as the link lives
    forge_(agreement, agreement ? agreements_++ : messages_++, message);
    return link_->send(peer, channel, message);
  }
  Request receive(int peer, int channel, std::span<std::byte> bytes) {
    return link_->receive(peer, channel, bytes);
  }
  std::optional<std::size_t> test(Request& request) { return link_->test(request); }
  bool cancel(Request& request) { return link_->cancel(request); }

  void heal() { forge_ = {}; }

 private:
  wring::InProcessTransport* link_;
  Forge forge_;
  std::deque<Bytes> kept_;
  int agreements_ = 0, messages_ = 0;
};
static_assert(wring::SharedThreadTransport<ForgingLink>);

}  // namespace wring_test
