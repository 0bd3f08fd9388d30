// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// symmetric and scaled: what arrives where, the bound on each element, and what is refused on all ranks.
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include <wring/collective.hpp>
#include <wring/compressor.hpp>
#include <wring/view.hpp>

#include "support/algorithms.hpp"
#include "support/exact.hpp"
#include "support/executors.hpp"
#include "support/ranks.hpp"
#include "support/values.hpp"

using namespace wring_test;
using Kokkos::LayoutLeft, Kokkos::LayoutRight, Kokkos::LayoutStride;
using wring::absolute;
using wring::Cause;
using wring::Grid;
using wring::InProcess;
using wring::InProcessTransport;
using wring::item;
using wring::None;
using wring::scaled;
using wring::symmetric;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Host = Kokkos::HostSpace;
template <class Data, class Layout = LayoutRight> using View = Kokkos::View<Data, Layout, Host>;

template <class Codec> using Reduce = wring::Allreduce<Codec, InProcessTransport, AnyAlgorithm>;
template <class Codec> std::deque<Reduce<Codec>> reduces(InProcess& world, wring::Options options = {},
                                                         const AnyAlgorithm& algorithm = wring::Ring{},
                                                         Codec codec = {}) {
  std::deque<Reduce<Codec>> all;
  for (int r = 0; r < world.size(); ++r) all.emplace_back(codec, world.link(r), algorithm, options);
  return all;
}

/// A whole number that tells rank and place apart; the same for (i, j) and (j, i).
float mark(int rank, std::size_t i, std::size_t j) {
  return static_cast<float>((rank + 1) * (1 + std::min(i, j) * 131 + std::max(i, j)));
}

/// A symmetric matrix, something else below the diagonal.
template <class M> void fill(const M& m, int rank) {
  for (std::size_t i = 0; i < m.extent(0); ++i)
    for (std::size_t j = 0; j < m.extent(1); ++j) m(i, j) = i <= j ? mark(rank, i, j) : -777;
}

template <class M> bool holds_sum(const M& m, int ranks) {
  const float factor = static_cast<float>(ranks * (ranks + 1) / 2);
  bool good = true;
  for (std::size_t i = 0; i < m.extent(0); ++i)
    for (std::size_t j = 0; j < m.extent(1); ++j) good = good && m(i, j) == factor * mark(0, i, j);
  return good;
}

/// The elements in the midst of a larger matrix.
auto inner(const View<float**>& whole) {
  return Kokkos::subview(whole, std::pair(std::size_t{1}, whole.extent(0) - 1),
                         std::pair(std::size_t{2}, whole.extent(1) - 1));
}

/// One element of a scaled allreduce against the exact sum (or mean, ...): within its own part of the bound.
template <class T> bool within(wring::Operation operation, const std::vector<T>& terms, T y, double scale,
                               double bound) {
  return reduced_within(operation, terms, y,
                        scale * bound * (1 + 0x1p-50) + wring::FloatTraits<T>::least_subnormal / 2);
}

using Scale = View<float*>;
template <class T> using ScaleFor = View<typename wring::detail::ScaleOf<T>::type*>;

/// Scales over many orders of magnitude, some of them zero.
template <class T> ScaleFor<T> scales(std::size_t n, int orders) {
  const ScaleFor<T> scale("scale", n);
  for (std::size_t i = 0; i < n; ++i)
    scale(i) = static_cast<typename ScaleFor<T>::value_type>(
        std::pow(10.0, static_cast<double>(random_bits(1, i) % 1000) / 1000 * 2 * orders - orders));
  return scale;
}

/// Each rank's elements: up to four times their scales.
template <class T, class S> std::vector<View<T*>> inputs_for(const S& scale, int ranks) {
  std::vector<View<T*>> inputs;
  for (int r = 0; r < ranks; ++r) {
    const View<T*> x("x", scale.extent(0));
    const auto numbers = real_numbers<double>(x.extent(0), static_cast<std::uint64_t>(r + 5));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      x(i) = to_element<T>(numbers[i] * static_cast<double>(scale(i)));
    inputs.push_back(x);
  }
  return inputs;
}

/// All ranks fail alike and no element has changed.
template <class Start> std::vector<Outcome> refused(InProcess& world, Cause cause, Start start) {
  const auto outcomes = on_all_ranks(world, start);
  INFO(describe(outcomes));
  REQUIRE(all_failed(outcomes, cause));
  for (const Outcome& o : outcomes) REQUIRE(o.text == outcomes[0].text);
  return outcomes;
}

}  // namespace

TEST_CASE("symmetric: both triangles get the sum of the upper ones, whatever the layout",
          "[collective][view]") {
  for (const std::size_t n : {0, 1, 2, 5, 33, 130})
    for (int ranks = 1; ranks <= 4; ++ranks) {
      INFO(n << " rows, " << ranks << " ranks");
      InProcess world(ranks);
      auto sums = reduces<None<float>>(world);
      std::vector<View<float**>> right;
      std::vector<View<float**, LayoutLeft>> left;
      for (int r = 0; r < ranks; ++r) {
        fill(right.emplace_back("m", n, n), r), fill(left.emplace_back("m", n, n), r);
      }
      const View<float**> whole("whole", n + 2, n + 3);  // the last rank has a part of a larger matrix
      Kokkos::deep_copy(whole, 99);
      const auto part = inner(whole);
      fill(part, ranks - 1);
      const auto outcomes = on_all_ranks(world, [&](int r) {
        const auto i = static_cast<std::size_t>(r);
        if (r == ranks - 1) return sums[i].start(Exec{}, symmetric(part));
        if (r % 2 == 0) return sums[i].start(Exec{}, symmetric(right[i]));
        return sums[i].start(Exec{}, symmetric(left[i]), symmetric(right[i]));
      });
      INFO(describe(outcomes));
      REQUIRE(all_ok(outcomes));
      for (int r = 0; r + 1 < ranks; ++r) REQUIRE(holds_sum(right[static_cast<std::size_t>(r)], ranks));
      REQUIRE(holds_sum(part, ranks));
      for (std::size_t i = 0; i < n + 2; ++i)
        REQUIRE((whole(i, 0) == 99 && whole(i, 1) == 99 && whole(i, n + 2) == 99));
      for (std::size_t j = 0; j < n + 3; ++j) REQUIRE((whole(0, j) == 99 && whole(n + 1, j) == 99));
    }
}

TEST_CASE("symmetric: only the triangle travels, and a bound holds on both", "[collective][view]") {
  constexpr std::size_t n = 200;
  InProcess world(2);
  auto sums = reduces<Grid<float>>(world, {.ride_along_bytes = 0});
  std::vector<View<float**>> m;
  for (int r = 0; r < 2; ++r) fill(m.emplace_back("m", n, n), r);
  const auto outcomes = on_all_ranks(world, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, symmetric(m[static_cast<std::size_t>(r)]),
                                                   absolute(3));
  });
  REQUIRE(all_ok(outcomes));
  REQUIRE(outcomes[0].report.bytes_raw == n * (n + 1) / 2 * sizeof(float));
  bool good = true;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      good = good && m[0](i, j) == m[0](j, i) && m[0](i, j) == m[1](i, j) &&
             std::abs(m[0](i, j) - 3 * mark(0, i, j)) <= 3;
  REQUIRE(good);
}

TEST_CASE("symmetric: broadcast, and groups with other views", "[collective][view]") {
  InProcess world(3);
  std::vector<View<double**, LayoutLeft>> m;
  std::vector<View<double*>> x;
  for (int r = 0; r < 3; ++r) {
    m.emplace_back("m", 7, 7), x.emplace_back("x", 11);
    Kokkos::deep_copy(m.back(), r + 1), Kokkos::deep_copy(x.back(), 10 * (r + 1));
  }
  std::deque<wring::Broadcast<None<double>, InProcessTransport>> spread;
  for (int r = 0; r < 3; ++r) spread.emplace_back(None<double>{}, world.link(r));
  REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
    const auto i = static_cast<std::size_t>(r);
    return spread[i].start(Exec{}, wring::group(item(symmetric(m[i])), item(x[i])), 1);
  })));
  for (std::size_t r = 0; r < 3; ++r) REQUIRE((m[r](6, 0) == 2 && m[r](0, 6) == 2 && x[r](10) == 20));
  auto sums = reduces<None<double>>(world);
  REQUIRE(all_ok(on_all_ranks(world, [&](int r) {
    const auto i = static_cast<std::size_t>(r);
    std::vector items{item(symmetric(m[i])), item(symmetric(m[i]))};
    items[1] = item(symmetric(View<double**, LayoutLeft>("other", 3, 3)));
    return sums[i].start(Exec{}, wring::group(std::move(items)));
  })));
  for (std::size_t r = 0; r < 3; ++r) REQUIRE((m[r](2, 5) == 6 && m[r](5, 2) == 6));
}

TEST_CASE("symmetric: what is refused, on all ranks", "[collective][view]") {
  InProcess world(3);
  auto sums = reduces<None<float>>(world);
  const View<float**> square("s", 6, 6), oblong("o", 6, 5), sum("sum", 6, 6);
  refused(world, Cause::argument, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, symmetric(r == 1 ? oblong : square));
  });
  refused(world, Cause::argument, [&](int r) {
    auto& reduce = sums[static_cast<std::size_t>(r)];
    return r == 2 ? reduce.start(Exec{}, square, symmetric(sum))
                  : reduce.start(Exec{}, symmetric(square), symmetric(sum));
  });
  const View<float*> packed("p", 21);  // as many elements, but not a triangle
  refused(world, Cause::mismatch, [&](int r) {
    auto& reduce = sums[static_cast<std::size_t>(r)];
    return r == 2 ? reduce.start(Exec{}, packed) : reduce.start(Exec{}, symmetric(square));
  });
  std::deque<wring::ReduceScatter<None<float>, InProcessTransport>> scatter;
  for (int r = 0; r < 3; ++r) scatter.emplace_back(None<float>{}, world.link(r));
  refused(world, Cause::argument, [&](int r) {
    return scatter[static_cast<std::size_t>(r)].start(Exec{}, symmetric(square), symmetric(sum));
  });
}

TEMPLATE_TEST_CASE("scaled: every element is within its own scale's part of the bound", "[collective][view]",
                   float, double) {
  unsigned variant = 0;
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
      for (const wring::Operation operation : {wring::sum, wring::mean, wring::min, wring::max}) {
        const std::size_t n = variant % 3 ? 700 : 3000;
        const double bound = variant % 2 ? 0.01 : 0.3;
        const auto scale = scales<TestType>(n, variant % 4 ? 3 : 25);
        const auto x = inputs_for<TestType>(scale, ranks);
        std::vector<View<TestType*>> y;
        for (int r = 0; r < ranks; ++r) y.emplace_back("y", n);
        InProcess world(ranks);
        auto all = reduces<Grid<TestType>>(
            world, {.operation = operation, .ride_along_bytes = variant % 5 ? 0u : 65536u}, algorithm);
        const auto outcomes = on_all_ranks(world, [&](int rank) {
          const auto r = static_cast<std::size_t>(rank);
          return all[r].start(Exec{}, scaled(x[r], scale), scaled(y[r], scale), absolute(bound));
        });
        INFO(ranks << " ranks, " << algorithm.name() << ", " << wring::name_of(operation)
                   << describe(outcomes));
        REQUIRE(all_ok(outcomes));
        bool good = true;
        for (std::size_t i = 0; i < n; ++i) {
          std::vector<TestType> terms;
          for (const auto& one : x) terms.push_back(one(i));
          for (const auto& one : y) good = good && one(i) == y[0](i);
          good = good && within(operation, terms, y[0](i), static_cast<double>(scale(i)), bound);
        }
        REQUIRE(good);
        ++variant;
      }
}

TEST_CASE("scaled: relative bounds are relative to the quotients", "[collective][view]") {
  const auto scale = scales<float>(2000, 6);
  auto x = inputs_for<float>(scale, 2);
  const auto before0 = Kokkos::create_mirror(x[0]), before1 = Kokkos::create_mirror(x[1]);
  Kokkos::deep_copy(before0, x[0]), Kokkos::deep_copy(before1, x[1]);
  double squares = 0;
  for (std::size_t i = 0; i < 2000; ++i)
    for (const auto& one : x)
      squares += std::pow(static_cast<double>(one(i)) / static_cast<double>(scale(i)), 2);
  const double bound = 0.1 * 2 * std::sqrt(squares / 4000);
  InProcess world(2);
  auto sums = reduces<Grid<float>>(world);
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(Exec{}, scaled(x[r], scale), wring::relative_to_rms(0.1));
  });
  REQUIRE(all_ok(outcomes));
  REQUIRE(std::abs(*outcomes[0].report.bound / bound - 1) < 1e-6);
  bool good = true;
  for (std::size_t i = 0; i < 2000; ++i)
    good = good && within<float>(wring::sum, {before0(i), before1(i)}, x[0](i), static_cast<double>(scale(i)),
                                 bound * (1 + 1e-6));
  REQUIRE(good);
}

TEST_CASE("scaled: layouts and strides, of elements and of scales", "[collective][view]") {
  const View<float**, LayoutLeft> a("a", 9, 13), scale_a("s", 9, 13);
  const View<float**> b("b", 9, 13), wide("wide", 9, 26);
  const auto scale_b = Kokkos::subview(wide, Kokkos::ALL, std::pair(5, 18));
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 13; ++j) {
      scale_a(i, j) = scale_b(i, j) = std::ldexp(1.0f, (i * 13 + j) % 50 - 25);
      a(i, j) = 3 * scale_a(i, j), b(i, j) = 4 * scale_a(i, j);
    }
  InProcess world(2);
  auto sums = reduces<Grid<float>>(world);
  const auto outcomes = on_all_ranks(world, [&](int r) {
    return r == 0 ? sums[0].start(Exec{}, scaled(a, scale_a), absolute(0.125))
                  : sums[1].start(Exec{}, scaled(b, scale_b), absolute(0.125));
  });
  INFO(describe(outcomes));
  REQUIRE(all_ok(outcomes));
  bool good = true;
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 13; ++j)
      good = good && a(i, j) == b(i, j) && std::abs(a(i, j) / scale_a(i, j) - 7) <= 0.125f;
  REQUIRE(good);
}

TEST_CASE("scaled: special values, and scales that count as zero", "[collective][view]") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float least = std::numeric_limits<float>::denorm_min();
  const float scale_values[] = {1, 100, 1e-30f, 2, 0, 1e-36f, least, 0, -0.0f, 1e38f};
  const float values[2][10] = {{inf, nan, -inf, 1, 5, 1e-20f, 3, nan, -2, 3e38f},
                               {1, 2, 1e-31f, 2, -9, 1e-20f, inf, 0, 4, 3e37f}};
  const Scale scale("scale", 10);
  std::vector<View<float*>> x;
  for (const auto& from : values) {
    x.emplace_back("x", 10);
    for (std::size_t i = 0; i < 10; ++i) x.back()(i) = from[i], scale(i) = scale_values[i];
  }
  InProcess world(2);
  auto sums = reduces<Grid<float>>(world);
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(Exec{}, scaled(x[r], scale), absolute(0.5));
  });
  INFO(describe(outcomes));
  REQUIRE(all_ok(outcomes));
  const auto y = x[0];
  REQUIRE((y(0) == inf && std::isnan(y(1)) && y(2) == -inf));
  REQUIRE(std::abs(y(3) - 3) <= 1);
  REQUIRE((y(4) == 0 && y(5) == 0 && y(6) == inf && std::isnan(y(7)) && y(8) == 0));
  REQUIRE(std::isfinite(y(9)));  // 3.3e38 is finite, and its error must not make it infinite
  REQUIRE(std::abs(static_cast<double>(y(9)) - 3.3e38) <= 0.5e38);
}

TEST_CASE("scaled: what is refused, on all ranks", "[collective][view]") {
  InProcess world(3);
  auto sums = reduces<Grid<float>>(world);
  const View<float*> x("x", 20);
  Kokkos::deep_copy(x, 1);
  const auto with = [&](float value) {
    const Scale scale("scale", 20);
    Kokkos::deep_copy(scale, 1);
    scale(7) = value;
    return scale;
  };
  const Scale good = with(1);
  for (const float wrong :
       {-1.0f, -1e-40f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    for (int odd = 0; odd < 3; ++odd) {
      const Scale bad = with(wrong);
      const auto outcomes = refused(world, Cause::argument, [&](int r) {
        return sums[static_cast<std::size_t>(r)].start(Exec{}, scaled(x, r == odd ? bad : good), absolute(1));
      });
      REQUIRE(outcomes[0].text.find("scale") != std::string::npos);
    }
  const Scale other = with(1.0000001f);
  const auto outcomes = refused(world, Cause::mismatch, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, scaled(x, r == 1 ? other : good), absolute(1));
  });
  REQUIRE(outcomes[0].text.find("scale") != std::string::npos);
  refused(world, Cause::mismatch, [&](int r) {
    auto& reduce = sums[static_cast<std::size_t>(r)];
    return r == 1 ? reduce.start(Exec{}, x, absolute(1)) : reduce.start(Exec{}, scaled(x, good), absolute(1));
  });
  refused(world, Cause::argument, [&](int r) {  // extents
    return sums[static_cast<std::size_t>(r)].start(Exec{}, scaled(x, Scale("short", 19)), absolute(1));
  });
  const Scale tiny = with(1e-34f);
  x(7) = 1e10f;  // the quotient overflows
  refused(world, Cause::argument, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, scaled(x, tiny), absolute(1));
  });
  x(7) = 1e-20f;  // the quotient is 1e14: rounding it exceeds the bound
  refused(world, Cause::unattainable, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, scaled(x, tiny), absolute(1));
  });
  REQUIRE(x(0) == 1);
  const auto again = on_all_ranks(world, [&](int r) {
    return sums[static_cast<std::size_t>(r)].start(Exec{}, scaled(x, good),
                                                   scaled(View<float*>("y", 20), good), absolute(1));
  });
  REQUIRE(all_ok(again));
}

TEST_CASE("scaled: a symmetric matrix of scaled elements, in a group, with other compressors",
          "[collective][view]") {
  const View<float**> scale("scale", 12, 12);
  for (int i = 0; i < 12; ++i)
    for (int j = 0; j < 12; ++j) scale(i, j) = std::ldexp(1.0f, i + j - 12);
  InProcess world(2);
  const auto exactly = [&](auto codec, bool bounded) {
    std::vector<View<float**>> m;
    std::vector<View<float*>> x;
    for (int r = 0; r < 2; ++r) {
      m.emplace_back("m", 12, 12), x.emplace_back("x", 600);
      for (int i = 0; i < 12; ++i)
        for (int j = 0; j < 12; ++j) m.back()(i, j) = i <= j ? static_cast<float>(r + 1) * scale(i, j) : -5;
      Kokkos::deep_copy(x.back(), 2);
    }
    auto sums = reduces<decltype(codec)>(world, {}, wring::Ring{}, codec);
    const std::optional<wring::Bound> bound = bounded ? std::optional(absolute(0.25)) : std::nullopt;
    const auto outcomes = on_all_ranks(world, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      return sums[r].start(Exec{},
                           wring::group(item(x[r], bound), item(scaled(symmetric(m[r]), scale), bound)));
    });
    INFO(describe(outcomes));
    REQUIRE(all_ok(outcomes));
    bool good = true;
    for (int i = 0; i < 12; ++i)
      for (int j = 0; j < 12; ++j)
        good = good && m[0](i, j) == m[0](j, i) && m[0](i, j) == m[1](i, j) &&
               std::abs(m[0](i, j) / scale(std::min(i, j), std::max(i, j)) - 3) <= 0.25f;
    REQUIRE(good);
    REQUIRE(std::abs(x[0](599) - 4) <= 0.25f);
  };
  exactly(Grid<float>{}, true);
  exactly(wring::Lossless<float>{}, true);
  exactly(None<float>{}, false);
  exactly(wring::Cast<wring::bhalf_t>{}, false);
}
