// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <wring/testing/transport_laws.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <wring/error.hpp>
#include <wring/transport/in_process.hpp>

namespace {

enum class Fault {
  none,
  swaps_messages,
  ignores_channels,
  drops_a_message,
  flips_a_byte,
  writes_beyond,
  reports_the_room,
  hides_truncation,
  truncation_stops_it,
  completes_early,
  cancel_does_nothing,
  refuses_cancel,
  sums_without_carries,
  reports_half_of_a_sum
};

/// A transport with one fault, which one law at least must notice.
class Faulty {
 public:
  using memory_space = Kokkos::HostSpace;
  struct Request {
    wring::InProcessTransport::Request inner;
    std::span<std::byte> bytes;
    std::size_t room = 0;
    bool receives = false, sums = false;
  };

  Faulty(wring::InProcessTransport& link, Fault fault) : link_(link), fault_(fault) {}

  int rank() const { return link_.rank(); }
  int size() const { return link_.size(); }
  wring::Session& session() { return link_.session(); }

  Request send(int peer, int channel, std::span<const std::byte> bytes) {
    if (fault_ == Fault::ignores_channels) channel = 0;
    if (fault_ == Fault::drops_a_message && ++sent_ == 20)
      return {link_.send(peer, 32000, bytes), {}, 0, false};
    if (fault_ == Fault::swaps_messages && channel == 8) channel = 8 + (++sent_ % 2);
    return {link_.send(peer, channel, bytes), {}, 0, false};
  }

  Request receive(int peer, int channel, std::span<std::byte> bytes) {
    if (fault_ == Fault::ignores_channels) channel = 0;
    if (fault_ == Fault::swaps_messages && channel == 8) channel = 8 + (received_++ % 2);
    return {link_.receive(peer, channel, bytes), bytes, bytes.size(), true};
  }

  Request sum_words(std::span<std::uint64_t> words) {
    if (fault_ == Fault::sums_without_carries)
      for (std::uint64_t& word : words) word &= ~std::uint64_t{0} >> 2;
    return {link_.sum_words(words), {}, 0, false, true};
  }

  std::optional<std::size_t> test(Request& request) {
    if (fault_ == Fault::completes_early && request.receives && request.room == 50) {
      link_.cancel(request.inner);
      return request.room;
    }
    if (broken_) {
      link_.cancel(request.inner);
      throw wring::TransportError("broken");
    }
    try {
      auto length = link_.test(request.inner);
      if (length && request.sums && fault_ == Fault::reports_half_of_a_sum) *length /= 2;
      if (length && request.receives) damage(request, *length);
      return length;
    } catch (const wring::TransportError&) {
      if (fault_ == Fault::hides_truncation) return request.room;
      broken_ = fault_ == Fault::truncation_stops_it;
      throw;
    }
  }

  bool cancel(Request& request) {
    if (fault_ == Fault::refuses_cancel && ++refusals_ < 3) return false;
    if (fault_ == Fault::cancel_does_nothing) return true;
    return link_.cancel(request.inner);
  }

 private:
  void damage(Request& request, std::size_t& length) {
    if (fault_ == Fault::flips_a_byte && length == 65537) request.bytes[40000] ^= std::byte{1};
    if (fault_ == Fault::writes_beyond && length < request.room) request.bytes[length] ^= std::byte{1};
    if (fault_ == Fault::reports_the_room) length = request.room;
  }

  wring::InProcessTransport& link_;
  Fault fault_;
  int sent_ = 0, received_ = 0, refusals_ = 0;
  bool broken_ = false;
};

std::vector<std::string> failures_with(Fault fault) {
  wring::InProcess world(3);
  std::deque<Faulty> faulty;
  std::vector<Faulty*> links;
  for (int r = 0; r < world.size(); ++r) links.push_back(&faulty.emplace_back(world.link(r), fault));
  return wring::testing::check_transport_laws(links, {.limit = std::chrono::seconds(1)});
}

}  // namespace

TEST_CASE("transport laws: a transport without fault passes", "[transport]") {
  CHECK(failures_with(Fault::none) == std::vector<std::string>{});
}

TEST_CASE("transport laws: each fault is noticed", "[transport]") {
  const Fault fault =
      GENERATE(Fault::swaps_messages, Fault::ignores_channels, Fault::drops_a_message, Fault::flips_a_byte,
               Fault::writes_beyond, Fault::reports_the_room, Fault::hides_truncation,
               Fault::truncation_stops_it, Fault::completes_early, Fault::cancel_does_nothing,
               Fault::refuses_cancel, Fault::sums_without_carries, Fault::reports_half_of_a_sum);
  const auto failures = failures_with(fault);
  CAPTURE(static_cast<int>(fault), failures);
  CHECK_FALSE(failures.empty());
}
