// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What users hold instead of a Kokkos::View: DynRankView, OffsetView, DualView.
#include <catch2/catch_test_macros.hpp>

#include <deque>
#include <vector>

#include <Kokkos_DualView.hpp>
#include <Kokkos_DynRankView.hpp>
#include <Kokkos_OffsetView.hpp>

#include <wring/collective.hpp>
#include <wring/collective/checked.hpp>
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
using Dynamic = Kokkos::DynRankView<float, Host>;
using Offset = Kokkos::Experimental::OffsetView<float**, Host>;
using Dual = Kokkos::DualView<float*, Exec>;
using Plain = Kokkos::View<float**, Kokkos::LayoutRight, Host>;

static_assert(wring::ViewLike<Dynamic> && wring::ViewLike<Offset> && wring::ViewLike<Dual> &&
              wring::ViewLike<Plain>);
static_assert(wring::ViewLike<Kokkos::DynRankView<const double, Kokkos::LayoutStride, Host>>);
static_assert(!wring::ViewLike<std::vector<float>> && !wring::ViewLike<float*> && !wring::ViewLike<int>);

template <template <class...> class Collective> auto objects(InProcess& world) {
  std::deque<Collective<None<float>, InProcessTransport, wring::Ring>> all;
  for (int r = 0; r < world.size(); ++r) all.emplace_back(None<float>{}, world.link(r));
  return all;
}

constexpr std::size_t rows = 37, columns = 21;
float value(int rank, std::size_t i, std::size_t j) {
  return static_cast<float>(rank + 1) * static_cast<float>(100 * i + j);
}

}  // namespace

TEST_CASE("views: DynRankView, OffsetView and View of one shape on different ranks", "[collective][views]") {
  InProcess world(3);
  auto sums = objects<wring::Allreduce>(world);
  const Dynamic dynamic("dynamic", rows, columns);
  const Offset offset("offset", {-5, -5 + static_cast<std::int64_t>(rows) - 1},
                      {3, 3 + static_cast<std::int64_t>(columns) - 1});
  const Plain plain("plain", rows, columns);
  const auto offset_at = [&](std::size_t i, std::size_t j) -> float& {
    return offset(static_cast<std::int64_t>(i) - 5, static_cast<std::int64_t>(j) + 3);
  };
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      dynamic(i, j) = value(0, i, j), offset_at(i, j) = value(1, i, j), plain(i, j) = value(2, i, j);
  REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
    if (r == 0) return sums[0].start(Exec{}, dynamic);
    if (r == 1) return sums[1].start(Exec{}, offset);
    return sums[2].start(Exec{}, plain);
  })));
  bool right = true;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      for (const float got : {dynamic(i, j), offset_at(i, j), plain(i, j)})
        right = right && got == 6 * value(0, i, j);
  CHECK(right);
}

TEST_CASE("views: DynRankView of rank 0 to 7, input and output apart", "[collective][views]") {
  const Dynamic inputs[] = {Dynamic("0"), Dynamic("1", 5), Dynamic("2", 5, 2), Dynamic("3", 5, 2, 3),
                            Dynamic("7", 5, 2, 3, 1, 2, 1, 4)};
  for (const Dynamic& in : inputs) {
    InProcess world(2);
    auto sums = objects<wring::Allreduce>(world);
    for (std::size_t i = 0; i < in.size(); ++i) in.data()[i] = static_cast<float>(i + 1);
    std::deque<Dynamic> out;
    REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
      out.push_back(Kokkos::create_mirror(in));
      return sums[static_cast<std::size_t>(r)].start(Exec{}, in, out.back());
    })));
    for (const Dynamic& got : out)
      for (std::size_t i = 0; i < in.size(); ++i) CHECK(got.data()[i] == static_cast<float>(2 * i + 2));
  }
}

TEST_CASE("views: DualView in place, apart and in groups; the side in use is marked", "[collective][views]") {
  InProcess world(2);
  auto sums = objects<wring::Allreduce>(world);
  auto gathers = objects<wring::Allgather>(world);
  std::deque<Dual> one, other, all;
  for (int r = 0; r < 2; ++r) {
    one.emplace_back("one", 700), other.emplace_back("other", 10), all.emplace_back("all", 1400);
    Kokkos::deep_copy(one.back().view_host(), static_cast<float>(r + 1)), one.back().modify_host();
    Kokkos::deep_copy(other.back().view_host(), 4.0f), other.back().modify_host();
  }
  const auto r_of = [](int r) { return static_cast<std::size_t>(r); };
  REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
    return sums[r_of(r)].start(Exec{}, wring::group(wring::item(one[r_of(r)]), wring::item(other[r_of(r)])));
  })));
  REQUIRE(all_ok(on_all_ranks(
      world, [&](int r) { return gathers[r_of(r)].start(Exec{}, one[r_of(r)], all[r_of(r)]); })));
  std::vector<wring::Item<Dual, Dual>> many{wring::item(other[0]), wring::item(one[0])},
      mine{wring::item(other[1]), wring::item(one[1])};
  REQUIRE(all_ok(on_all_ranks(
      world, [&](int r) { return sums[r_of(r)].start(Exec{}, wring::group(r == 0 ? many : mine)); })));
  for (std::size_t r = 0; r < 2; ++r) {
    one[r].sync_host(), other[r].sync_host(), all[r].sync_host();
    for (std::size_t i = 0; i < 700; ++i) REQUIRE(one[r].view_host()(i) == 6);
    for (std::size_t i = 0; i < 10; ++i) REQUIRE(other[r].view_host()(i) == 16);
    for (std::size_t i = 0; i < 1400; ++i) REQUIRE(all[r].view_host()(i) == 3);
  }
}

TEST_CASE("views: a const input of each kind", "[collective][views]") {
  InProcess world(1);
  wring::Broadcast spread(None<float>{}, world.link(0));
  auto sums = objects<wring::Allreduce>(world);
  const Dual dual("dual", 6), out("out", 6);
  Kokkos::deep_copy(dual.view_host(), 2.0f);
  const Kokkos::DualView<const float*, Exec> constant = dual;
  const Kokkos::View<float*, Host> plain("plain", 6);
  static_cast<void>(sums[0](Exec{}, constant, out));
  static_cast<void>(sums[0](Exec{}, constant, plain));
  CHECK((out.view_host()(5) == 2 && plain(0) == 2));
  const Kokkos::DynRankView<const float, Host> dynamic = Dynamic(plain);
  static_cast<void>(sums[0](Exec{}, dynamic, out));
  static_cast<void>(spread(Exec{}, out, 0));
  CHECK(out.view_host()(5) == 2);
}

TEST_CASE("views: Checked takes all kinds", "[collective][views]") {
  InProcess world(1);
  wring::Checked sum(wring::Allreduce<None<float>, InProcessTransport>(None<float>{}, world.link(0)));
  const Dual dual("dual", 6);
  static_cast<void>(sum(Exec{}, dual));
  static_cast<void>(sum(Exec{}, Dynamic("dynamic", 2, 3), Dynamic("out", 2, 3)));
}
