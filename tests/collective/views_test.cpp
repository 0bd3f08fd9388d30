// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views of any rank, layout and stride, different ones on different ranks. Elements correspond by their indices.
#include <catch2/catch_test_macros.hpp>

#include <array>
#include <utility>

#include <wring/collective.hpp>
#include <wring/compressor/none.hpp>

#include "support/executors.hpp"
#include "support/ranks.hpp"

using namespace wring_test;
using wring::InProcess;
using wring::InProcessTransport;
using wring::None;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Host = Kokkos::HostSpace;
using Reduce = wring::Allreduce<None<float>, InProcessTransport>;
using Spread = wring::Broadcast<None<float>, InProcessTransport>;

template <class Operation> std::deque<Operation> objects(InProcess& world) {
  std::deque<Operation> all;
  for (int r = 0; r < world.size(); ++r) all.emplace_back(None<float>{}, world.link(r));
  return all;
}

/// Calls f(index array, element reference) for every element.
template <class View, class F, class... I> void each(const View& view, F f, I... index) {
  if constexpr (sizeof...(I) == View::rank())
    f(std::array<std::size_t, sizeof...(I)>{index...}, view(index...));
  else
    for (std::size_t i = 0; i < view.extent(sizeof...(I)); ++i) each(view, f, index..., i);
}

/// A value that tells rank and indices apart; sums over ranks are exact.
template <std::size_t n> float value_at(int rank, const std::array<std::size_t, n>& index) {
  float v = static_cast<float>(rank + 1);
  for (const std::size_t i : index) v = v * 5 + static_cast<float>(i);
  return v;
}

template <class View> void fill(const View& view, int rank) {
  each(view, [rank](auto index, float& x) { x = value_at(rank, index); });
}

template <class View> bool holds_sum(const View& view, int ranks) {
  bool good = true;
  each(view, [&](auto index, float x) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += value_at(r, index);
    good = good && x == sum;
  });
  return good;
}

/// Two ranks, one with layout A and one with layout B; in place and apart.
template <class Data, class A, class B> void mixed_layouts(auto... extents) {
  const Kokkos::View<Data, A, Host> a("a", extents...), apart("apart", extents...);
  const Kokkos::View<Data, B, Host> b("b", extents...);
  InProcess world(2);
  auto reduces = objects<Reduce>(world);
  fill(a, 0), fill(b, 1);
  auto outcomes = on_all_ranks(world, [&](int r) {
    return r == 0 ? reduces[0].start(Exec{}, a, apart) : reduces[1].start(Exec{}, b);
  });
  INFO(describe(outcomes));
  REQUIRE(all_ok(outcomes));
  REQUIRE(holds_sum(apart, 2));
  REQUIRE(holds_sum(b, 2));
  each(a, [](auto index, float x) { REQUIRE(x == value_at(0, index)); });
}

}  // namespace

TEST_CASE("views: no dimension up to eight, either layout, different on each rank", "[collective][view]") {
  using Kokkos::LayoutLeft, Kokkos::LayoutRight;
  mixed_layouts<float, LayoutLeft, LayoutRight>();
  mixed_layouts<float*, LayoutLeft, LayoutRight>(7);
  mixed_layouts<float**, LayoutLeft, LayoutRight>(3, 5);
  mixed_layouts<float***, LayoutLeft, LayoutRight>(10, 10, 10);
  mixed_layouts<float****, LayoutLeft, LayoutLeft>(2, 3, 4, 5);
  mixed_layouts<float*****, LayoutRight, LayoutLeft>(2, 3, 1, 2, 3);
  mixed_layouts<float******, LayoutRight, LayoutLeft>(2, 2, 2, 1, 2, 3);
  mixed_layouts<float*******, LayoutLeft, LayoutRight>(2, 1, 2, 2, 2, 2, 2);
  mixed_layouts<float********, LayoutLeft, LayoutRight>(2, 2, 2, 1, 2, 2, 2, 2);
  mixed_layouts<float**, LayoutLeft, LayoutRight>(0, 5);
  mixed_layouts<float***, LayoutLeft, LayoutRight>(3, 0, 5);
}

TEST_CASE("views: a column of a matrix is reduced, the columns beside it are not touched",
          "[collective][view]") {
  InProcess world(3);
  auto reduces = objects<Reduce>(world);
  auto spreads = objects<Spread>(world);
  std::vector<Kokkos::View<float**, Kokkos::LayoutRight, Host>> m;
  const auto reset = [&] {
    m.clear();
    for (int r = 0; r < 3; ++r) {
      m.emplace_back("m", 6, 4);
      each(m.back(), [r](auto at, float& x) {
        x = static_cast<float>(10 * at[0] + at[1]) + 100 * static_cast<float>(r);
      });
    }
  };
  const auto column = [&](int r) { return Kokkos::subview(m[static_cast<std::size_t>(r)], Kokkos::ALL, 1); };
  const auto check = [&](auto expected) {
    for (int r = 0; r < 3; ++r)
      each(m[static_cast<std::size_t>(r)], [&](auto at, float x) {
        const float before = static_cast<float>(10 * at[0] + at[1]);
        REQUIRE(x == (at[1] == 1 ? expected(before) : before + 100 * static_cast<float>(r)));
      });
  };
  reset();
  REQUIRE(all_ok(on_all_ranks(
      world, [&](int r) { return reduces[static_cast<std::size_t>(r)].start(Exec{}, column(r)); })));
  check([](float before) { return 3 * before + 300; });
  reset();
  REQUIRE(all_ok(on_all_ranks(
      world, [&](int r) { return spreads[static_cast<std::size_t>(r)].start(Exec{}, column(r), 0); })));
  check([](float before) { return before; });
}

TEST_CASE("views: a strided box in three dimensions, its gaps untouched", "[collective][view]") {
  InProcess world(3);
  auto reduces = objects<Reduce>(world);
  std::vector<Kokkos::View<float***, Kokkos::LayoutStride, Host>> boxes;
  std::vector<Kokkos::View<float***, Kokkos::LayoutLeft, Host>> memory;
  for (int r = 0; r < 3; ++r) {
    memory.emplace_back("m", 9, 8, 7);
    Kokkos::deep_copy(memory.back(), -1);
    boxes.push_back(Kokkos::subview(memory.back(), std::pair(2, 6), std::pair(1, 4), std::pair(3, 7)));
    fill(boxes.back(), r);
  }
  REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
    return reduces[static_cast<std::size_t>(r)].start(Exec{}, boxes[static_cast<std::size_t>(r)]);
  })));
  for (std::size_t r = 0; r < 3; ++r) {
    REQUIRE(holds_sum(boxes[r], 3));
    each(memory[r], [](auto at, float x) {
      const bool inside = at[0] >= 2 && at[0] < 6 && at[1] >= 1 && at[1] < 4 && at[2] >= 3 && at[2] < 7;
      REQUIRE((inside || x == -1));
    });
  }
}

TEST_CASE("views: every second element of two interleaved runs, input and output in one allocation",
          "[collective][view]") {
  InProcess world(2);
  auto reduces = objects<Reduce>(world);
  std::vector<Kokkos::View<float**, Kokkos::LayoutRight, Host>> m;
  for (int r = 0; r < 2; ++r) {
    m.emplace_back("m", 50, 2);
    each(m.back(),
         [r](auto at, float& x) { x = at[1] == 0 ? static_cast<float>(at[0]) + static_cast<float>(r) : -7; });
  }
  REQUIRE(all_ok(on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return reduces[r].start(Exec{}, Kokkos::subview(m[r], Kokkos::ALL, 0),
                            Kokkos::subview(m[r], Kokkos::ALL, 1));
  })));
  for (std::size_t r = 0; r < 2; ++r)
    for (std::size_t i = 0; i < 50; ++i) {
      REQUIRE(m[r](i, 0) == static_cast<float>(i + r));
      REQUIRE(m[r](i, 1) == static_cast<float>(2 * i + 1));
    }
}

TEST_CASE("views: constant input, unmanaged output, managed and static extents", "[collective][view]") {
  InProcess world(2);
  auto reduces = objects<Reduce>(world);
  std::vector<std::vector<float>> in(2, std::vector<float>(6, 2)), out(2, std::vector<float>(6, 77));
  using Fixed =
      Kokkos::View<const float[2][3], Kokkos::LayoutRight, Host, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Free = Kokkos::View<float**, Kokkos::LayoutRight, Host, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return reduces[r].start(Exec{}, Fixed(in[r].data()), Free(out[r].data(), 2, 3));
  });
  REQUIRE(all_ok(outcomes));
  for (const auto& result : out) REQUIRE(result == std::vector<float>(6, 4));
}

TEST_CASE("views: unallocated ones are empty tensors", "[collective][view]") {
  for (const int ranks : {1, 2, 3, 4}) {
    InProcess world(ranks);
    auto reduces = objects<Reduce>(world);
    auto spreads = objects<Spread>(world);
    const Kokkos::View<float*, Host> nothing;
    const Kokkos::View<float**, Kokkos::LayoutLeft, Host> nothing2;
    REQUIRE(all_ok(on_all_ranks(
        world, [&](int r) { return reduces[static_cast<std::size_t>(r)].start(Exec{}, nothing); })));
    REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
      return reduces[static_cast<std::size_t>(r)].start(Exec{}, nothing2, wring::absolute(1));
    })));
    REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
      return spreads[static_cast<std::size_t>(r)].start(Exec{}, nothing, ranks - 1);
    })));
  }
}

TEST_CASE("views: extents may differ if the number of elements agrees, elements go by row-major order",
          "[collective][view]") {
  InProcess world(2);
  auto reduces = objects<Reduce>(world);
  const Kokkos::View<float**, Kokkos::LayoutRight, Host> a("a", 2, 3);
  const Kokkos::View<float*, Host> b("b", 6);
  for (std::size_t i = 0; i < 6; ++i) a(i / 3, i % 3) = static_cast<float>(i), b(i) = 10;
  REQUIRE(all_ok(on_all_ranks(
      world, [&](int r) { return r == 0 ? reduces[0].start(Exec{}, a) : reduces[1].start(Exec{}, b); })));
  for (std::size_t i = 0; i < 6; ++i) {
    REQUIRE(a(i / 3, i % 3) == static_cast<float>(i) + 10);
    REQUIRE(b(i) == static_cast<float>(i) + 10);
  }
}
