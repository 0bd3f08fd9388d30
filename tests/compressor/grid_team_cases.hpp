// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <wring/detail/grid/combine.hpp>
#include <wring/detail/grid/decode.hpp>
#include <wring/detail/grid/encode.hpp>
#include <wring/detail/grid/team/kernels.hpp>

/// The team kernels against the CPU kernels, byte for byte.
namespace grid_team_cases {

using namespace wring;
using namespace wring::detail;
using grid_team::TeamShape;
using Form = GridParameters::Form;
using Exec = Kokkos::DefaultHostExecutionSpace;

/// Memory aligned as pieces are.
class Bytes {
 public:
  explicit Bytes(std::size_t size) : view_("bytes", size) { Kokkos::deep_copy(view_, std::byte{0xa5}); }
  std::span<std::byte> room() { return {view_.data(), view_.size()}; }
  void resize(std::size_t size) { size_ = size; }
  std::span<const std::byte> piece() const { return {view_.data(), size_}; }
  bool operator==(const Bytes& other) const {
    return size_ == other.size_ && std::memcmp(view_.data(), other.view_.data(), size_) == 0;
  }

 private:
  Kokkos::View<std::byte*, Kokkos::HostSpace> view_;
  std::size_t size_ = 0;
};

inline std::size_t room_for(std::size_t n) { return n * 8 + (n / 512 + 1) * 256 + 1024; }

inline GridParameters parameters(Form form, int multiplier, int exponent, bool delta = false) {
  GridParameters p;
  p.form = form, p.multiplier = multiplier, p.exponent = exponent, p.delta = delta;
  p.step = std::ldexp(multiplier, exponent), p.inverse = 1 / p.step;
  return p;
}

inline std::string describe(const GridParameters& p, std::size_t n, const char* data) {
  return std::string(data) + ", " + std::to_string(n) + " values, form " +
         std::to_string(static_cast<int>(p.form)) + ", step " + std::to_string(p.multiplier) + " * 2^" +
         std::to_string(p.exponent) + (p.delta ? ", delta" : "") + (p.wide ? ", wide" : "") +
         (p.raw_blocks ? ", raw blocks" : "");
}

/// A sequence of 64 random bits that is the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u, z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>((*this)() >> 11) * 0x1p-53 * 2 - 1; }

 private:
  std::uint64_t state_;
};

enum class Data { zeros, minus_one, noise, smooth, ties, specials, mixed, count };
inline const char* name_of(Data d) {
  constexpr const char* names[] = {"zeros", "0 and -1",       "noise",       "smooth",
                                   "ties",  "special values", "mixed scales"};
  return names[static_cast<int>(d)];
}

/// Values of about 1000 steps at most, but for `mixed`, which goes up to `top` steps.
template <class T> std::vector<T> values(Data data, std::size_t n, double step, double top,
                                         std::uint64_t seed) {
  using Wide = typename FloatTraits<T>::Wide;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Random random(seed);
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    double v = 0;
    switch (data) {
    case Data::zeros: v = i % 3 ? 0.0 : -0.0; break;
    case Data::minus_one: v = random() % 2 ? 0 : -step; break;
    case Data::noise: v = random.uniform() * 1000 * step; break;
    case Data::smooth:
      v = std::sin(static_cast<double>(i) * 0.003 + static_cast<double>(seed)) * 1000 * step;
      break;
    case Data::ties: v = (static_cast<double>(random() % 64) - 32) * 0.5 * step; break;
    case Data::specials: {
      const double special[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 1e-320};
      v = random() % 5 ? random.uniform() * 100 * step : special[random() % 4];
      break;
    }
    default: v = random.uniform() * step * std::exp2(random.uniform() * std::log2(top)); break;
    }
    x[i] = T(static_cast<Wide>(v));
  }
  return x;
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

inline constexpr TeamShape shapes[] = {{}, {2, 4}, {32, 16}};

template <class T> Bytes encoded(const std::vector<T>& x, const GridParameters& p) {
  Bytes out(room_for(x.size()));
  out.resize(grid_encode(Exec{}, std::span<const T>(x), out.room(), p));
  for (const TeamShape shape : shapes) {
    Bytes team(room_for(x.size()));
    team.resize(team_grid_encode(Exec{}, std::span<const T>(x), team.room(), p, shape));
    CHECK(team == out);
  }
  return out;
}

template <class T> void check_decode(const Bytes& piece, std::size_t n, const GridParameters& p) {
  std::vector<T> expected(n);
  grid_decode(Exec{}, piece.piece(), std::span<T>(expected), p);
  for (const TeamShape shape : shapes) {
    std::vector<T> y(n, T(1.0f));
    team_grid_decode(Exec{}, piece.piece(), std::span<T>(y), p, shape);
    CHECK(same_bits(y, expected));
  }
}

template <class T>
Bytes combined(const Bytes& a, const Bytes& b, std::size_t n, Operation operation, const GridParameters& p) {
  Bytes out(room_for(n));
  out.resize(grid_combine<T>(Exec{}, a.piece(), b.piece(), n, out.room(), operation, p));
  for (const TeamShape shape : shapes) {
    Bytes team(room_for(n));
    team.resize(team_grid_combine<T>(Exec{}, a.piece(), b.piece(), n, team.room(), operation, p, shape));
    CHECK(team == out);
  }
  return out;
}

template <class T> Bytes finished(const Bytes& sum, std::size_t n, const GridParameters& p) {
  Bytes out(room_for(n));
  out.resize(grid_finish<T>(Exec{}, sum.piece(), n, out.room(), p));
  for (const TeamShape shape : shapes) {
    Bytes team(room_for(n));
    team.resize(team_grid_finish<T>(Exec{}, sum.piece(), n, team.room(), p, shape));
    CHECK(team == out);
  }
  return out;
}

/// A reduction of two ranks, every step on both sets of kernels.
template <class T> void check_reduction(Data data, std::size_t n, GridParameters p) {
  INFO(describe(p, n, name_of(data)));
  const double top = p.form == Form::int64 ? 0x1p45 : 0x1p29;
  const Bytes a = encoded(values<T>(data, n, p.step, top, 1), p);
  const Bytes b = encoded(values<T>(data == Data::zeros ? Data::noise : data, n, p.step, top, 2), p);
  check_decode<T>(a, n, p);
  for (const Operation operation : {sum, min, max}) {
    const Bytes both = combined<T>(a, b, n, operation, p);
    check_decode<T>(both, n, p);
    if (operation != sum) continue;
    p.shift = 3, p.divisor = 5;
    check_decode<T>(finished<T>(both, n, p), n, p);
    p.shift = 0, p.divisor = 1;
  }
}

}  // namespace grid_team_cases
