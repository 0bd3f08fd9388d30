// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <wring/detail/grid/team/kernels.hpp>

using namespace wring;
using namespace wring::detail;
using Form = GridParameters::Form;

namespace {

/// A span of exactly the bytes given, so that a sanitizer sees every access beyond.
struct Exact {
  explicit Exact(std::span<const std::byte> from)
      : size(from.size()), data(new(std::align_val_t{64}) std::byte[size + 1]) {
    std::memcpy(data, from.data(), size);
  }
  Exact(const Exact&) = delete;
  ~Exact() { operator delete[](data, std::align_val_t{64}); }
  std::span<const std::byte> span() const { return {data, size}; }
  std::size_t size;
  std::byte* data;
};

/// Whether a call refuses its input, and by the right error.
template <class Call> bool refuses(const Call& call) {
  try {
    call();
    return false;
  } catch (const CodecError&) {
    return true;
  }
}

struct Fixture {
  static constexpr std::size_t n = 1300;
  Kokkos::DefaultHostExecutionSpace exec{};
  GridParameters p;
  std::vector<float> x = std::vector<float>(n);
  Kokkos::View<std::byte*, Kokkos::HostSpace> a{"a", 1 << 14}, out{"out", 1 << 14};
  std::size_t size = 0;

  Fixture(Form form, bool delta, bool raw) {
    p.form = form, p.delta = delta, p.raw_blocks = raw;
    p.multiplier = 9, p.exponent = -12, p.step = 9 * 0x1p-12, p.inverse = 1 / p.step;
    for (std::size_t i = 0; i < n; ++i) x[i] = std::sin(static_cast<float>(i) * 0.01f);
    x[7] = std::numeric_limits<float>::infinity();
    size = team_grid_encode(exec, std::span<const float>(x), std::span(a.data(), a.size()), p);
  }
  std::span<const std::byte> piece() const { return {a.data(), size}; }
  bool decode_refuses(std::span<const std::byte> bytes) {
    std::vector<float> y(n);
    return refuses([&] { team_grid_decode(exec, bytes, std::span(y), p); });
  }
  bool combine_refuses(std::span<const std::byte> left, std::span<const std::byte> right) {
    return refuses(
        [&] { team_grid_combine<float>(exec, left, right, n, std::span(out.data(), out.size()), sum, p); });
  }
  bool finish_refuses(std::span<const std::byte> bytes) {
    return refuses([&] { team_grid_finish<float>(exec, bytes, n, std::span(out.data(), out.size()), p); });
  }
};

}  // namespace

TEST_CASE("damaged descriptors and sizes are refused, and nothing outside is read", "[grid][team]") {
  std::mt19937 random(3);
  for (const Form form : {Form::int32, Form::int64})
    for (const bool delta : {false, true})
      for (const bool raw : {false, true}) {
        Fixture f(form, delta, raw);
        const Exact whole(f.piece());
        REQUIRE_FALSE(f.decode_refuses(whole.span()));
        for (std::size_t cut = 0; cut < f.size; cut += 1 + cut / 7) {
          const Exact part(f.piece().first(cut));
          CHECK(f.decode_refuses(part.span()));
          CHECK(f.combine_refuses(part.span(), whole.span()));
          CHECK(f.combine_refuses(whole.span(), part.span()));
          CHECK(f.finish_refuses(part.span()));
        }
        for (int trial = 0; trial < 300; ++trial) {
          Exact damaged(f.piece());
          damaged.data[random() % 3] = static_cast<std::byte>(random());
          const bool refused = f.decode_refuses(damaged.span());
          if (std::memcmp(damaged.data, whole.data, 3) == 0) CHECK_FALSE(refused);
          CHECK((f.combine_refuses(damaged.span(), whole.span()) || !refused || raw));
          CHECK((f.finish_refuses(damaged.span()) || !refused || raw));
        }
      }
}

TEST_CASE("any payload is accepted", "[grid][team]") {
  std::mt19937 random(4);
  for (const Form form : {Form::int32, Form::int64})
    for (const bool delta : {false, true}) {
      Fixture f(form, delta, false);
      for (int trial = 0; trial < 50; ++trial) {
        Exact noise(f.piece());
        for (std::size_t i = 64; i < f.size; ++i) noise.data[i] = static_cast<std::byte>(random());
        CHECK_FALSE(f.decode_refuses(noise.span()));
        CHECK_FALSE(f.combine_refuses(noise.span(), noise.span()));
        f.p.shift = 5;
        CHECK_FALSE(f.finish_refuses(noise.span()));
        f.p.shift = 0;
      }
    }
}

TEST_CASE("no room, no values, or values beyond what was agreed", "[grid][team]") {
  Fixture f(Form::int32, false, false);
  const std::span<std::byte> out(f.out.data(), f.out.size());
  const std::span<const float> x(f.x);
  for (const std::size_t room : {std::size_t(0), std::size_t(63), f.size - 1}) {
    CHECK_THROWS_AS(team_grid_encode(f.exec, x, out.first(room), f.p), CodecError);
    CHECK_THROWS_AS(team_grid_combine<float>(f.exec, f.piece(), f.piece(), f.n, out.first(room), sum, f.p),
                    CodecError);
  }
  CHECK(team_grid_encode(f.exec, x.first(0), out.first(0), f.p) == 0);
  CHECK(team_grid_combine<float>(f.exec, {}, {}, 0, out, sum, f.p) == 0);
  CHECK_THROWS_AS(team_grid_combine<float>(f.exec, f.piece(), {}, 0, out, sum, f.p), CodecError);
  f.x[1000] = 1e30f;
  CHECK_THROWS_AS(team_grid_encode(f.exec, x, out, f.p), CodecError);
  f.p.raw_blocks = true;
  CHECK(team_grid_encode(f.exec, x, out, f.p) > f.size);
}

TEST_CASE("the form of values keeps elements", "[grid][team]") {
  Fixture f(Form::values, false, false);
  std::vector<float> y(f.n);
  REQUIRE(f.size == (f.n * sizeof(float) + 63) / 64 * 64);
  team_grid_decode(f.exec, f.piece(), std::span(y), f.p);
  CHECK(y == f.x);
  const std::span<std::byte> out(f.out.data(), f.out.size());
  REQUIRE(team_grid_combine<float>(f.exec, f.piece(), f.piece(), f.n, out, mean, f.p) == f.size);
  f.p.divisor = 2;
  team_grid_decode(f.exec, std::span<const std::byte>(out.first(f.size)), std::span(y), f.p);
  CHECK(y == f.x);
  CHECK(f.decode_refuses(f.piece().first(f.size - 64)));
}
