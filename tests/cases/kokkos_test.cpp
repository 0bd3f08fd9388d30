// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views with gaps, of the wrong size, overlapping, short-lived; execution spaces: with compression.
#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>

#include "cases/compressors.hpp"

using namespace wring_test;
using wring::absolute;
using wring::Cause;
using wring::InProcess;
using wring::InProcessTransport;

namespace {

using Host = Kokkos::HostSpace;
using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Host>;
using Box = Kokkos::View<float***, Kokkos::LayoutLeft, Host>;
using View = Kokkos::View<float*, Host>;
using Grid = wring::Grid<float>;

template <class Codec> constexpr float error =
    wring::BoundedCompressor<Codec> ? 0.01f : 0.5f;  // whole numbers up to 700, in 11 bits
template <class Codec> std::optional<wring::Bound> bound_for() {
  return wring::BoundedCompressor<Codec> ? std::optional(absolute(0.01)) : std::nullopt;
}

std::pair<std::size_t, std::size_t> range(std::size_t first, std::size_t last) { return {first, last}; }

View filled(std::size_t n, float x) {
  View view("view", n);
  Kokkos::deep_copy(view, x);
  return view;
}

/// A column of a matrix, and a box within a box: summed or broadcast; all around them stays as it was.
template <class Codec> void gaps_stay(const Codec& codec) {
  for (const AnyAlgorithm& algorithm : all_algorithms(3))
    for (const bool broadcasts : {false, true})
      for (const std::size_t ride : {0, 4096}) {
        InProcess world(3);
        std::deque<wring::Allreduce<Codec, InProcessTransport, AnyAlgorithm>> sums;
        std::deque<wring::Broadcast<Codec, InProcessTransport, AnyAlgorithm>> spreads;
        std::vector<Matrix> m;
        std::vector<Box> b;
        const auto before = [](std::size_t r, std::size_t i, std::size_t j, std::size_t k) {
          return static_cast<float>(10 * i + j + 3 * k + 100 * r);
        };
        for (std::size_t r = 0; r < 3; ++r) {
          const wring::Options options{.ride_along_bytes = ride};
          sums.emplace_back(codec, world.link(static_cast<int>(r)), algorithm, options);
          spreads.emplace_back(codec, world.link(static_cast<int>(r)), algorithm, options);
          m.emplace_back("m", 6, 4), b.emplace_back("b", 6, 5, 4);
          for (std::size_t i = 0; i < 6; ++i)
            for (std::size_t j = 0; j < 5; ++j)
              for (std::size_t k = 0; k < 4; ++k)
                b[r](i, j, k) = before(r, i, j, k), m[r](i, j % 4) = before(r, i, j % 4, 0);
        }
        const auto outcomes = on_all_ranks(world, [&](int rank) {
          const auto r = static_cast<std::size_t>(rank);
          const auto column = Kokkos::subview(m[r], Kokkos::ALL, 1);
          const auto inner = Kokkos::subview(b[r], range(1, 5), range(2, 4), range(0, 3));
          const auto tensors =
              wring::group(wring::item(column, bound_for<Codec>()), wring::item(inner, bound_for<Codec>()));
          return broadcasts ? spreads[r].start(Exec{}, tensors, 0) : sums[r].start(Exec{}, tensors);
        });
        INFO(codec.identity().name << ", " << algorithm.name() << (broadcasts ? ", broadcast" : ", sum")
                                   << describe(outcomes));
        REQUIRE(all_ok(outcomes));
        const auto good = [&](std::size_t r, bool inside, float y, std::size_t i, std::size_t j,
                              std::size_t k) {
          const float x = before(r, i, j, k),
                      exact = broadcasts ? before(0, i, j, k) : 3 * before(1, i, j, k);
          return inside ? std::abs(y - exact) <= error<Codec> : y == x;
        };
        for (std::size_t r = 0; r < 3; ++r)
          for (std::size_t i = 0; i < 6; ++i)
            for (std::size_t j = 0; j < 5; ++j)
              for (std::size_t k = 0; k < 4; ++k) {
                REQUIRE(good(r, i >= 1 && i < 5 && j >= 2 && j < 4 && k < 3, b[r](i, j, k), i, j, k));
                if (j < 4) REQUIRE(good(r, j == 1, m[r](i, j), i, j, 0));
              }
      }
}

/// Both ranks call `start(link, rank)`; an argument is refused on both, naming `culprit` (-2: whichever).
template <class Start> void refused(int culprit, Start start) {
  InProcess world(2);
  const auto outcomes = on_all_ranks(world, [&](int r) { return start(world.link(r), r); });
  INFO(describe(outcomes));
  REQUIRE(all_failed(outcomes, Cause::argument, culprit));
}

}  // namespace

TEST_CASE("views with gaps: what lies between is neither sent nor overwritten", "[cases][kokkos]") {
  gaps_stay(wring::None<float>{});
  gaps_stay(Grid{});
  gaps_stay(wring::Cast<wring::half_t>{});
}

TEST_CASE("a destination of another size is noticed on every rank, nothing is written", "[cases][kokkos]") {
  const View in = filled(10, 1), small = filled(8, 77), large = filled(21, 77), none;
  for (const View& out : {small, large, none})
    for (const int culprit : {0, 1}) {
      std::vector<View> good{filled(10, 77), filled(10, 77)}, whole{filled(20, 77), filled(20, 77)};
      refused(culprit, [&](auto& link, int r) {
        return wring::Allreduce(Grid{}, link)
            .start(Exec{}, in, r == culprit ? out : good[static_cast<std::size_t>(r)], absolute(1));
      });
      refused(culprit, [&](auto& link, int r) {
        return wring::Allgather(Grid{}, link)
            .start(Exec{}, in, r == culprit ? out : whole[static_cast<std::size_t>(r)], absolute(1));
      });
      refused(culprit, [&](auto& link, int r) {
        return wring::ReduceScatter(Grid{}, link)
            .start(Exec{}, whole[static_cast<std::size_t>(r)],
                   r == culprit ? out : good[static_cast<std::size_t>(r)], absolute(1));
      });
      for (const auto& views : {good, whole, std::vector<View>{out}})
        for (const View& view : views)
          for (std::size_t i = 0; i < view.extent(0); ++i) REQUIRE(view(i) == 77);
    }
}

TEST_CASE("extents that are swapped between input and output, or between ranks, go by row-major order",
          "[cases][kokkos]") {
  InProcess world(2);
  std::vector<Matrix> in{Matrix("in", 3, 4), Matrix("in", 4, 3)},
      out{Matrix("out", 4, 3), Matrix("out", 2, 6)};
  for (std::size_t i = 0; i < 12; ++i) in[0].data()[i] = static_cast<float>(i), in[1].data()[i] = 100;
  std::deque<wring::Allreduce<Grid, InProcessTransport>> sums;
  for (int r = 0; r < 2; ++r) sums.emplace_back(Grid{}, world.link(r));
  REQUIRE(all_ok(on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(Exec{}, in[r], out[r], absolute(0.25));
  })));
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t i = 0; i < 12; ++i)
      REQUIRE(std::abs(out[r].data()[i] - static_cast<float>(100 + i)) <= 0.25f);
}

TEST_CASE(
    "input and output that share some elements, but not all in the same places, are refused on every rank",
    "[cases][kokkos]") {
  const View memory = filled(40, 5), apart = filled(10, 5), part = filled(5, 5);
  const auto untouched = [&] {
    for (const View& view : {memory, apart, part})
      for (std::size_t i = 0; i < view.extent(0); ++i)
        if (view(i) != 5) return false;
    return true;
  };
  const auto sub = [&](std::size_t first, std::size_t last) {
    return View(Kokkos::subview(memory, range(first, last)));
  };
  for (const std::size_t shift : {1, 3, 9})
    for (const bool down : {false, true})
      refused(1, [&](auto& link, int r) {
        const View in = r == 0 ? apart : sub(10, 20), out = r == 0 ? apart
                                                            : down ? sub(10 - shift, 20 - shift)
                                                                   : sub(10 + shift, 20 + shift);
        return wring::Allreduce(Grid{}, link).start(Exec{}, in, out, absolute(1));
      });
  refused(1, [&](auto& link, int r) {  // an unmanaged constant alias of part of the output
    using Alias = Kokkos::View<const float*, Host, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    const Alias in = r == 0 ? Alias(part) : Alias(sub(12, 17));
    return wring::Allgather(Grid{}, link).start(Exec{}, in, r == 0 ? apart : sub(10, 20), absolute(1));
  });
  REQUIRE(untouched());
}

TEST_CASE("an output with gaps may lie over its input: it is written when all has been read",
          "[cases][kokkos]") {
  using Left = Kokkos::View<float**, Kokkos::LayoutLeft, Host>;
  InProcess world(2);
  std::deque<wring::Allreduce<Grid, InProcessTransport>> sums;
  std::vector<View> memory{filled(3000, 0), filled(3000, 0)};
  for (int r = 0; r < 2; ++r) {
    sums.emplace_back(Grid{}, world.link(r), wring::Ring{},
                      wring::Options{.segment_bytes = 2048, .depth = 2});
    for (std::size_t i = 0; i < 3000; ++i)
      memory[static_cast<std::size_t>(r)](i) = static_cast<float>(i) + static_cast<float>(r);
  }
  const auto outcomes = on_all_ranks(world, [&](int r) {
    float* data = memory[static_cast<std::size_t>(r)].data();
    return sums[static_cast<std::size_t>(r)].start(Exec{}, Matrix(data, 1500, 2), Left(data, 1500, 2),
                                                   absolute(0.25));  // transposed
  });
  INFO(describe(outcomes));
  REQUIRE(all_ok(outcomes));
  for (const View& view : memory)
    for (std::size_t i = 0; i < 3000; ++i) {
      const std::size_t row = i % 1500, column = i / 1500;
      REQUIRE(std::abs(view(i) - static_cast<float>(2 * (2 * row + column) + 1)) <= 0.25f);
    }
}

TEST_CASE("equal input and output are in place; neighbours without a common element are apart",
          "[cases][kokkos]") {
  InProcess world(2);
  std::deque<wring::Allreduce<Grid, InProcessTransport>> sums;
  for (int r = 0; r < 2; ++r) sums.emplace_back(Grid{}, world.link(r));
  std::vector<View> memory{filled(20, 5), filled(20, 5)};
  const auto half = [&](int r, std::size_t first) {
    return View(Kokkos::subview(memory[static_cast<std::size_t>(r)], range(first, first + 10)));
  };
  REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, half(r, 0), half(r, 10), absolute(0.25));
  })));
  const Kokkos::View<const float*, Host> alias = half(0, 0);
  REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
    return r == 0 ? sums[0].start(Exec{}, alias, half(0, 0), absolute(0.25))
                  : sums[1].start(Exec{}, half(1, 0), half(1, 0), absolute(0.25));
  })));
  for (const View& view : memory)
    for (std::size_t i = 0; i < 20; ++i) REQUIRE(std::abs(view(i) - 10) <= 0.25f);
}

TEST_CASE("a view may go out of scope while its operation is in flight", "[cases][kokkos]") {
  InProcess world(2, {.eager_limit = 0, .delay = 3, .seed = 1});
  std::deque<wring::Allreduce<Grid, InProcessTransport>> sums;
  std::vector<View> kept;
  std::vector<wring::Request> requests;
  for (int r = 0; r < 2; ++r) {
    sums.emplace_back(Grid{}, world.link(r));
    kept.push_back(filled(3000, 0));
    requests.push_back(sums.back().start(Exec{}, filled(3000, static_cast<float>(r + 1)), kept.back(),
                                         absolute(0.25)));  // the input has no other owner
  }
  for (int i = 0; i < 20; ++i) static_cast<void>(filled(3000, -1));
  REQUIRE(all_ok(complete(world, requests)));
  for (const View& view : kept)
    for (std::size_t i = 0; i < 3000; ++i) REQUIRE(std::abs(view(i) - 3) <= 0.25f);
}
