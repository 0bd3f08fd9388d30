// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <wring/transport/session.hpp>
#include <wring/work.hpp>

namespace wring::inline v0 {

/// Minimal definition of a transport, which moves bytes between ranks and knows nothing of values or plans:
/// - `memory_space`: a Kokkos memory space whose memory it can read and write.
/// - `rank()`, `size()`.
/// - `send(peer, channel, bytes)`, `receive(peer, channel, bytes)`: start and return a request at once. The bytes stay in place
///   until the request has completed. Messages of one pair and channel arrive in the order sent; channels (0 .. 32767) are
///   independent. A receive may be longer than the message.
/// - `test(request)`: nothing while the request is in flight; when it has completed, the number of bytes sent or received. A
///   completed request is reset, and testing it again (or a default-constructed one) is an error of the caller. Throws
///   TransportError if the message did not fit or the transport failed.
/// - `cancel(request)`: gives a request up; true if the transport no longer touches its bytes. A send may refuse.
/// - `session()`: the Session object that it carries.
/// There is no `wait`: with all ranks in one process and thread nobody could block.
template <class T>
concept Transport = std::movable<typename T::Request> && std::default_initializable<typename T::Request> &&
                    requires { typename T::memory_space; } &&
                    requires(T& link, const T& constant, typename T::Request& request, int peer, int channel,
                             std::span<const std::byte> out, std::span<std::byte> in) {
                      { constant.rank() } -> std::same_as<int>;
                      { constant.size() } -> std::same_as<int>;
                      { link.send(peer, channel, out) } -> std::same_as<typename T::Request>;
                      { link.receive(peer, channel, in) } -> std::same_as<typename T::Request>;
                      { link.test(request) } -> std::same_as<std::optional<std::size_t>>;
                      { link.cancel(request) } -> std::same_as<bool>;
                      { link.session() } -> std::same_as<Session&>;
                    };

/// A transport whose ranks share one thread moves all of them forward: `progress()` returns `blocked` only when no rank can move.
template <class T>
concept SharedThreadTransport = Transport<T> && requires(T& link) {
  requires T::shares_thread;
  { link.progress() } -> std::same_as<Progress>;
};

/// A transport whose ranks live in virtual time, as in a simulation:
/// - `now()`: seconds on the clock of this rank, which never goes back.
/// - `spend(work, bytes)`: this rank has worked on `bytes` of uncompressed values (`wire`: has put together or checked a message of
///   so many bytes); its clock moves on by what that costs. Called once for each piece of work, after it. Must not throw.
/// All times in reports and timelines are then those of this clock.
template <class T>
concept VirtualTimeTransport = Transport<T> && requires(T& link, Work work, std::size_t bytes) {
  { link.now() } -> std::convertible_to<double>;
  link.spend(work, bytes);
};

/// A transport that can add up words of all ranks: `sum_words(words)` starts it and returns a request at once. Every rank takes part, with the
/// same number of words, and all ranks start their sums in the same order; each word becomes the sum of that of all ranks modulo 2^64, the
/// same on all of them. The words stay in place, and are not looked at, until `test(request)` reports their bytes. Several sums may be in
/// flight. `cancel` may refuse: the other ranks still wait for what this one has given.
template <class T>
concept WordSummingTransport = Transport<T> && requires(T& link, std::span<std::uint64_t> words) {
  { link.sum_words(words) } -> std::same_as<typename T::Request>;
};

/// Moves every operation in flight on a link. Users call it between pieces of their computation.
template <Transport Link> Progress progress(Link& link) {
  if constexpr (SharedThreadTransport<Link>)
    return link.progress();
  else
    return link.session().progress();
}

}  // namespace wring::inline v0
