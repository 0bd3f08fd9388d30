// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <wring/transport/concept.hpp>

/// One readable sentence for each requirement that a transport lacks. Entry points that are not constrained by the concept call
/// `explain_transport`, so that a user reads sentences instead of pages of template errors.
namespace wring::inline v0::detail {

template <class T> constexpr void explain_transport_types() {
  static_assert(
      requires { typename T::memory_space; }, "wring: the transport has no member type memory_space, the "
                                              "Kokkos memory space that it can read and write: see "
                                              "docs/concepts.md");
  static_assert(
      requires { typename T::Request; },
      "wring: the transport has no member type Request, what send and receive return: see docs/concepts.md");
  if constexpr (requires { typename T::Request; }) {
    static_assert(std::movable<typename T::Request> && std::default_initializable<typename T::Request>,
                  "wring: the transport's Request must be movable and have a default constructor: see "
                  "docs/concepts.md");
  }
}

template <class T> constexpr void explain_transport_ranks() {
  static_assert(
      requires(const T& link) {
        { link.rank() } -> std::same_as<int>;
      }, "wring: the transport has no const member rank() that returns an int: see docs/concepts.md");
  static_assert(
      requires(const T& link) {
        { link.size() } -> std::same_as<int>;
      }, "wring: the transport has no const member size() that returns an int: see docs/concepts.md");
  static_assert(
      requires(T& link) {
        { link.session() } -> std::same_as<Session&>;
      }, "wring: the transport has no member session() that returns a wring::Session& which it owns: see "
         "docs/concepts.md");
}

template <class T> constexpr void explain_transport_messages() {
  using Request = typename T::Request;
  static_assert(
      requires(T& link, int i, std::span<const std::byte> bytes) {
        { link.send(i, i, bytes) } -> std::same_as<Request>;
      }, "wring: the transport has no member send(int peer, int channel, std::span<const std::byte>) that "
         "returns a Request: "
         "see docs/concepts.md");
  static_assert(
      requires(T& link, int i, std::span<std::byte> bytes) {
        { link.receive(i, i, bytes) } -> std::same_as<Request>;
      }, "wring: the transport has no member receive(int peer, int channel, std::span<std::byte>) that "
         "returns a Request: see "
         "docs/concepts.md");
  static_assert(
      requires(T& link, Request& r) {
        { link.test(r) } -> std::same_as<std::optional<std::size_t>>;
      }, "wring: the transport has no member test(Request&) that returns a std::optional<std::size_t>, the "
         "number of bytes "
         "when completed: see docs/concepts.md");
  static_assert(
      requires(T& link, Request& r) {
        { link.cancel(r) } -> std::same_as<bool>;
      }, "wring: the transport has no member cancel(Request&) that returns whether its bytes are free: see "
         "docs/concepts.md");
}

/// An ability that is there by half would otherwise be switched off in silence.
template <class T> constexpr void explain_transport_abilities() {
  static_assert(
      !requires { T::shares_thread; } || SharedThreadTransport<T>,
      "wring: the transport has shares_thread, which must be true, but no member progress() that moves all "
      "its ranks and "
      "returns a wring::Progress: see docs/concepts.md");
  constexpr bool tells_time = requires(T& link) {
    { link.now() } -> std::convertible_to<double>;
  };
  constexpr bool spends_time = requires(T& link) { link.spend(Work::encode, std::size_t{}); };
  static_assert(
      tells_time == spends_time,
      "wring: the transport has one of the members now(), which returns the seconds of a virtual clock, and "
      "spend(wring::Work, std::size_t), which moves it on, but not the other: see docs/concepts.md");
  constexpr bool sums = requires(T& link, std::span<std::uint64_t> words) { link.sum_words(words); };
  static_assert(!sums || WordSummingTransport<T>, "wring: the transport has a member sum_words, which must "
                                                  "take std::span<std::uint64_t> and return a Request: see "
                                                  "docs/concepts.md");
}

template <class T> constexpr void explain_transport() {
  if constexpr (!Transport<T>) {
    explain_transport_types<T>();
    explain_transport_ranks<T>();
    if constexpr (requires { typename T::Request; }) explain_transport_messages<T>();
  }
  if constexpr (Transport<T>) explain_transport_abilities<T>();
}

}  // namespace wring::inline v0::detail
