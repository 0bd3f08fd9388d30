// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranks that do not agree, and bytes of another version or byte order: an error that names the thing, on every rank.
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>

#include <bit>

#include "cases/compressors.hpp"
#include "support/forging_link.hpp"

using namespace wring_test;
using wring::absolute;
using wring::Bound;
using wring::Cause;
using wring::Collective;
using wring::InProcess;
using wring::InProcessTransport;

namespace {

using View = Kokkos::View<float*, Kokkos::HostSpace>;
using Grid = wring::Grid<float>;

View filled(std::size_t n) {
  View view("view", n);
  Kokkos::deep_copy(view, 3);
  return view;
}

bool untouched(const std::vector<View>& views) {
  for (const View& view : views)
    for (std::size_t i = 0; i < view.extent(0); ++i)
      if (view(i) != 3) return false;
  return true;
}

std::optional<Bound> bound_of(auto codec) {
  return wring::BoundedCompressor<decltype(codec)> ? std::optional(absolute(0.1)) : std::nullopt;
}

void all_name(const std::vector<Outcome>& outcomes, const std::string& field) {
  INFO(field << describe(outcomes));
  REQUIRE(all_failed(outcomes, Cause::mismatch));
  for (const Outcome& o : outcomes) REQUIRE(o.text.find(field) != std::string::npos);
}

/// The last of three ranks has another compressor.
void compressors_differ(const char* field, auto one, auto other) {
  for (const std::size_t n : {10, 5000}) {
    InProcess world(3);
    std::vector<View> data{filled(n), filled(n), filled(n)};
    const auto start = [&](auto codec, int r) {
      return wring::Allreduce(codec, world.link(r))
          .start(Exec{}, wring::group(wring::item(data[static_cast<std::size_t>(r)], bound_of(codec))));
    };
    all_name(on_all_ranks(world, [&](int r) { return r == 2 ? start(other, r) : start(one, r); }), field);
    REQUIRE(untouched(data));
    REQUIRE(
        all_ok(on_all_ranks(world, [&](int r) { return start(one, r); })));  // the link is as good as before
  }
}

/// How one rank calls an allreduce or a broadcast with a grid.
struct Spec {
  wring::Operation operation = wring::sum;
  Bound bound = absolute(1e-3);
  int root = -1;
};

void calls_differ(const char* field, const Spec& one, const Spec& other) {
  for (const std::size_t n : {10, 5000})
    for (const int odd : {0, 1}) {
      InProcess world(2);
      std::vector<View> data{filled(n), filled(n)};
      const auto start = [&](const Spec& spec, int r) {
        const View& view = data[static_cast<std::size_t>(r)];
        if (spec.root >= 0)
          return wring::Broadcast(Grid{}, world.link(r)).start(Exec{}, view, spec.root, spec.bound);
        return wring::Allreduce(Grid{}, world.link(r), wring::Ring{}, {.operation = spec.operation})
            .start(Exec{}, view, spec.bound);
      };
      all_name(on_all_ranks(world, [&](int r) { return start(r == odd ? other : one, r); }), field);
      REQUIRE(untouched(data));
    }
}

using Forge = ForgingLink::Forge;

/// A sum on two ranks, whose messages are changed on their way; small ones ride along with the agreement.
std::vector<Outcome> sum_with(const Forge& forge, std::size_t n, std::vector<View>& data) {
  InProcess world(2);
  data = {filled(n), filled(n)};
  std::deque<ForgingLink> links;
  std::deque<wring::Allreduce<Grid, ForgingLink>> sums;
  for (int r = 0; r < 2; ++r) {
    links.emplace_back(world.link(r), forge);
    sums.emplace_back(Grid{}, links.back());
  }
  return on_all_ranks(world, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, data[static_cast<std::size_t>(r)], absolute(0.1));
  });
}

template <class T> void store(ForgingLink::Bytes& message, std::size_t at, T value) {
  std::memcpy(message.data() + at, &value, sizeof value);
}
template <class T> T load(const ForgingLink::Bytes& message, std::size_t at) {
  T value;
  std::memcpy(&value, message.data() + at, sizeof value);
  return value;
}
void seal_again(ForgingLink::Bytes& message, std::size_t checksum_at) {
  store(message, checksum_at, std::uint64_t{0});
  store(message, checksum_at, wring::detail::checksum(message));
}
std::uint32_t swapped(std::uint32_t x) { return x << 24 | (x & 0xff00u) << 8 | (x >> 8 & 0xff00u) | x >> 24; }

}  // namespace

TEST_CASE("another compressor, or the same one with other options, on one rank", "[cases][mismatch]") {
  using wring::Cast, wring::half_t, wring::bhalf_t, wring::Overflow;
  compressors_differ("compressor", Grid{}, Grid(Grid::Options{.delta = true}));
  compressors_differ("compressor", Grid{}, Grid(Grid::Options{.step = Grid::StepKind::power_of_two}));
  compressors_differ("compressor", Grid{}, wring::None<float>{});
  compressors_differ("compressor", Cast<half_t>{}, Cast<bhalf_t>{});
  compressors_differ("compressor", Cast<half_t>{}, Cast<half_t>(Overflow::infinity));
  compressors_differ("compressor", Cast<half_t>{}, Grid{});
}

TEST_CASE("another element type on one rank", "[cases][mismatch]") {
  InProcess world(2);
  std::vector<View> data{filled(40)};
  Kokkos::View<std::int64_t*, Kokkos::HostSpace> whole("whole", 40);
  Kokkos::deep_copy(whole, 3);
  all_name(
      on_all_ranks(world,
                   [&](int r) {
                     if (r == 0)
                       return wring::Allreduce(Grid{}, world.link(0)).start(Exec{}, data[0], absolute(0.1));
                     return wring::Allreduce(wring::None<std::int64_t>{}, world.link(1)).start(Exec{}, whole);
                   }),
      "element type");
  REQUIRE(untouched(data));
  for (std::size_t i = 0; i < 40; ++i) REQUIRE(whole(i) == 3);
}

TEST_CASE("another operation, root or bound on one rank", "[cases][mismatch]") {
  calls_differ("operation", {}, {.operation = wring::max});
  calls_differ("operation", {.operation = wring::min}, {.operation = wring::mean});
  calls_differ("root", {.root = 0}, {.root = 1});
  calls_differ("collective", {.root = 0}, {});
  calls_differ("bound", {.bound = absolute(1e-3)}, {.bound = absolute(1e-4)});
  calls_differ("bound", {.bound = absolute(1e-3)}, {.bound = absolute(std::nextafter(1e-3, 1))});
  calls_differ("bound", {.bound = absolute(1e-3)}, {.bound = wring::relative_to_range(1e-3)});
  calls_differ("bound", {.bound = wring::relative_to_rms(1e-3)}, {.bound = wring::relative_to_range(1e-3)});
}

TEST_CASE("other counts on one rank, though they add up to the same", "[cases][mismatch]") {
  for (const std::size_t k : {1, 1000})
    for (const Collective collective : {Collective::reduce_scatter, Collective::allgather}) {
      InProcess world(2);
      const std::vector<std::size_t> one{3 * k, 5 * k}, other{4 * k, 4 * k};
      std::vector<View> whole{filled(8 * k), filled(8 * k)}, part{filled(3 * k), filled(4 * k)};
      const auto outcomes = on_all_ranks(world, [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        const auto& counts = rank == 0 ? one : other;
        if (collective == Collective::allgather)
          return wring::Allgather(Grid{}, world.link(rank))
              .start(Exec{}, part[r], whole[r], counts, absolute(0.1));
        return wring::ReduceScatter(Grid{}, world.link(rank))
            .start(Exec{}, whole[r], part[r], counts, absolute(0.1));
      });
      all_name(outcomes, "length");
      REQUIRE((untouched(whole) && untouched(part)));
    }
}

TEST_CASE("wrong options and views are errors on every rank, and the process lives", "[cases][mismatch]") {
  const auto refused = [](auto start) {
    InProcess world(2);
    const auto outcomes = on_all_ranks(world, [&](int r) { return start(world.link(r), r); });
    INFO(describe(outcomes));
    REQUIRE(all_failed(outcomes, Cause::argument));
  };
  const std::vector<View> data{filled(10), filled(10)};
  const View apart = filled(8);
  const auto at = [&](int r) { return data[static_cast<std::size_t>(r)]; };
  refused([&](auto& link, int r) {
    return wring::Allreduce(Grid{}, link).start(Exec{}, at(r));
  });  // a grid without a bound
  refused([&](auto& link, int r) {
    return wring::Allreduce(Grid{}, link, wring::Ring{}, {.segment_bytes = 3})
        .start(Exec{}, at(r), absolute(1));
  });
  refused([&](auto& link, int r) {
    return wring::Allreduce(Grid{}, link, wring::Ring{}, {.depth = -1}).start(Exec{}, at(r), absolute(1));
  });
  refused([&](auto& link, int r) {
    return wring::Broadcast(Grid{}, link).start(Exec{}, at(r), -1, absolute(1));
  });
  refused(
      [&](auto& link, int r) { return wring::Broadcast(Grid{}, link).start(Exec{}, at(r), 2, absolute(1)); });
  refused([&](auto& link, int r) {
    return wring::Allreduce(Grid{}, link).start(Exec{}, at(r), apart, absolute(1));
  });
  refused([&](auto& link, int r) {
    return wring::Allgather(Grid{}, link).start(Exec{}, at(r), apart, absolute(1));
  });
  refused([&](auto& link, int r) {
    return wring::Allreduce(Grid{}, link, wring::Hierarchical<>(std::vector<int>{1, 2, 3}))
        .start(Exec{}, at(r), absolute(1));
  });
  REQUIRE(untouched(data));
  REQUIRE(untouched({apart}));
}

TEST_CASE("a rank of another version of the library: every rank is told so, nothing is written",
          "[cases][mismatch]") {
  for (const std::size_t n : {10, 5000}) {
    std::vector<View> data;
    const auto outcomes = sum_with(
        [](bool agreement, int, ForgingLink::Bytes& message) {
          if (!agreement) return;
          for (const std::size_t at : {32, 36})
            store(message, at, load<std::uint32_t>(message, at) ^ 0x100u);  // least and greatest version
          store(message, 16, load<std::uint64_t>(message, 16) + 1);         // hash of all fields
          seal_again(message, 8);
        },
        n, data);
    INFO(describe(outcomes));
    for (const Outcome& o : outcomes)
      REQUIRE((o == Cause::mismatch && o.text.find("library version") != std::string::npos));
    REQUIRE(untouched(data));
  }
}

TEST_CASE("an agreement in the other byte order is refused, not misread", "[cases][mismatch]") {
  std::vector<View> data;
  const auto outcomes = sum_with(
      [](bool agreement, int, ForgingLink::Bytes& message) {
        if (!agreement) return;
        for (std::size_t at = 0; at + 4 <= message.size(); at += 4)
          store(message, at, swapped(load<std::uint32_t>(message, at)));
      },
      5000, data);
  INFO(describe(outcomes));
  for (const Outcome& o : outcomes) REQUIRE(o == Cause::transport);
  REQUIRE(untouched(data));
}

TEST_CASE("a message of another stream version or byte order is refused with its name", "[cases][mismatch]") {
  for (const bool swap : {false, true}) {
    std::vector<View> data;
    const auto outcomes = sum_with(
        [swap](bool agreement, int, ForgingLink::Bytes& message) {
          if (agreement) return;
          if (swap)
            store(message, 0, swapped(load<std::uint32_t>(message, 0)));
          else
            store(message, 4, static_cast<std::uint16_t>(wring::detail::stream_version + 1));
          seal_again(message, 56);
        },
        5000, data);
    INFO(describe(outcomes));
    for (const Outcome& o : outcomes) REQUIRE(o == Cause::transport);
    REQUIRE(outcomes[0].text.find(swap ? "not one of this library" : "stream version 2") !=
            std::string::npos);
  }
}
