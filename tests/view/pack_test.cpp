// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a view becomes a flat run: shapes, flatness, packing in row-major order and back.
#include <catch2/catch_test_macros.hpp>

#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/view/pack.hpp>

using wring::detail::pack;
using wring::detail::Shape;
using wring::detail::shape_of;
using wring::detail::unpack;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Host = Kokkos::HostSpace;
using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;
template <class Data, class Layout> using View = Kokkos::View<Data, Layout, Host>;

}  // namespace

TEST_CASE("shape: extents, strides and size", "[view]") {
  const View<int***, LayoutRight> right("right", 2, 3, 4);
  const Shape shape = shape_of(right);
  REQUIRE((shape.rank == 3 && shape.size() == 24));
  REQUIRE((shape.extent[1] == 3 && shape.stride[0] == 12 && shape.stride[2] == 1));
  REQUIRE(shape_of(View<int, LayoutRight>("scalar")).size() == 1);
  REQUIRE(shape_of(View<int**, LayoutRight>("none", 0, 7)).size() == 0);
  const auto column = Kokkos::subview(View<int**, LayoutRight>("m", 6, 4), Kokkos::ALL, 1);
  REQUIRE(shape_of(column).size() == 6);
}

TEST_CASE("shape: flat is row-major without gaps, whatever the layout says", "[view]") {
  REQUIRE(shape_of(View<int**, LayoutRight>("a", 3, 4)).flat());
  REQUIRE_FALSE(shape_of(View<int**, LayoutLeft>("a", 3, 4)).flat());
  REQUIRE(shape_of(View<int**, LayoutLeft>("row", 1, 4)).flat());
  REQUIRE(shape_of(View<int**, LayoutLeft>("column", 4, 1)).flat());
  REQUIRE(shape_of(View<int*, LayoutLeft>("line", 9)).flat());
  REQUIRE(shape_of(View<int**, LayoutLeft>("none", 0, 5)).flat());
  REQUIRE(shape_of(View<int, LayoutLeft>("scalar")).flat());
  const View<int**, LayoutRight> m("m", 6, 4);
  REQUIRE(shape_of(Kokkos::subview(m, std::pair(1, 3), Kokkos::ALL)).flat());
  REQUIRE_FALSE(shape_of(Kokkos::subview(m, Kokkos::ALL, std::pair(1, 3))).flat());
  REQUIRE(shape_of(Kokkos::subview(m, 2, std::pair(1, 3))).flat());
  REQUIRE_FALSE(shape_of(Kokkos::subview(m, Kokkos::ALL, 2)).flat());
}

TEST_CASE("pack: row-major order of the indices, and back", "[view]") {
  const View<int***, LayoutLeft> left("left", 3, 4, 5);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 5; ++k) left(i, j, k) = 100 * i + 10 * j + k;
  std::vector<int> flat(60, -1);
  pack<int>(Exec{}, left.data(), shape_of(left), std::span<int>(flat));
  Exec{}.fence();
  std::size_t at = 0;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j)
      for (int k = 0; k < 5; ++k) REQUIRE(flat[at++] == 100 * i + 10 * j + k);
  const View<int***, LayoutLeft> copy("copy", 3, 4, 5);
  unpack<int>(Exec{}, std::span<const int>(flat), copy.data(), shape_of(copy));
  Exec{}.fence();
  for (std::size_t i = 0; i < 60; ++i) REQUIRE(copy.data()[i] == left.data()[i]);
}

TEST_CASE("pack: large strided views, gaps left alone", "[view]") {
  const View<float**, LayoutRight> m("m", 9001, 3);
  Kokkos::deep_copy(m, -1);
  const auto column = Kokkos::subview(m, Kokkos::ALL, 1);
  std::vector<float> flat(9001);
  for (std::size_t i = 0; i < flat.size(); ++i) flat[i] = static_cast<float>(i);
  unpack<float>(Exec{}, std::span<const float>(flat), column.data(), shape_of(column));
  Exec{}.fence();
  bool good = true;
  for (std::size_t i = 0; i < flat.size(); ++i)
    good = good && m(i, 0) == -1 && m(i, 1) == flat[i] && m(i, 2) == -1;
  REQUIRE(good);
  std::vector<float> back(9001);
  pack<float>(Exec{}, static_cast<const float*>(column.data()), shape_of(column), std::span<float>(back));
  Exec{}.fence();
  REQUIRE(back == flat);
}
