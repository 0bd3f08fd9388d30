// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "grid_team_cases.hpp"

using namespace grid_team_cases;

TEST_CASE("team kernels write the bytes of the CPU kernels, float", "[grid][team]") {
  for (const std::size_t n : {1u, 15u, 16u, 17u, 511u, 512u, 513u, 1031u, 16385u})
    for (const int multiplier : {8, 11})
      for (const bool delta : {false, true})
        for (int data = 0; data < static_cast<int>(Data::count); ++data)
          check_reduction<float>(static_cast<Data>(data), n, parameters(Form::int32, multiplier, -20, delta));
}

TEST_CASE("team kernels on the int64 grid, float", "[grid][team]") {
  for (const std::size_t n : {1u, 7u, 8u, 9u, 513u, 1031u})
    for (const int multiplier : {8, 15})
      for (const bool delta : {false, true})
        for (int data = 0; data < static_cast<int>(Data::count); ++data)
          check_reduction<float>(static_cast<Data>(data), n, parameters(Form::int64, multiplier, -60, delta));
}

TEST_CASE("team kernels with raw blocks", "[grid][team]") {
  for (const Form form : {Form::int32, Form::int64})
    for (const bool delta : {false, true})
      for (const double top : {100.0, 0x1p25, 0x1p29, 0x1p33, 0x1p60}) {
        GridParameters p = parameters(form, 9, -10, delta);
        p.raw_blocks = true;
        const std::size_t n = 2000;
        INFO(describe(p, n, "mixed scales") << " up to 2^" << std::log2(top));
        std::vector<float> x = values<float>(Data::mixed, n, p.step, top, 3);
        for (std::size_t i = 600; i < n; i += 97)
          x[i] = i % 2 ? std::nanf("") : -std::numeric_limits<float>::infinity();
        check_decode<float>(encoded(x, p), n, p);
      }
}

TEST_CASE("team kernels at full width, combinable with packed pieces", "[grid][team]") {
  for (const Form form : {Form::int32, Form::int64}) {
    GridParameters packed = parameters(form, 13, -12), wide = packed;
    wide.wide = true;
    for (const Data data : {Data::zeros, Data::noise, Data::specials})
      for (const std::size_t n : {1u, 513u, 1031u}) {
        INFO(describe(wide, n, name_of(data)));
        const Bytes a = encoded(values<float>(data, n, wide.step, 1, 4), wide);
        const Bytes b = encoded(values<float>(data, n, wide.step, 1, 5), packed);
        check_decode<float>(combined<float>(a, b, n, sum, packed), n, packed);
        check_decode<float>(combined<float>(a, b, n, sum, wide), n, wide);
        check_decode<float>(finished<float>(a, n, packed), n, packed);
      }
  }
}

TEST_CASE("every team has several blocks of a long piece", "[grid][team]") {
  const std::size_t n = 2 * 512 * grid_team::Chunks::most_teams + 513;
  for (const bool delta : {false, true}) {
    const GridParameters p = parameters(Form::int32, 12, -15, delta);
    const std::vector<float> x = values<float>(Data::smooth, n, p.step, 1, 6);
    Bytes expected(room_for(n)), team(room_for(n)), twice(room_for(n)), both(room_for(n));
    expected.resize(grid_encode(Exec{}, std::span<const float>(x), expected.room(), p));
    team.resize(team_grid_encode(Exec{}, std::span<const float>(x), team.room(), p));
    REQUIRE(team == expected);
    twice.resize(grid_combine<float>(Exec{}, team.piece(), team.piece(), n, twice.room(), sum, p));
    both.resize(team_grid_combine<float>(Exec{}, team.piece(), team.piece(), n, both.room(), sum, p));
    REQUIRE(both == twice);
    std::vector<float> y(n), z(n);
    grid_decode(Exec{}, both.piece(), std::span<float>(y), p);
    team_grid_decode(Exec{}, both.piece(), std::span<float>(z), p);
    REQUIRE(same_bits(y, z));
  }
}

TEST_CASE("finite sums saturate alike", "[grid][team]") {
  GridParameters p = parameters(Form::int32, 8, 118);  // the greatest float is about 8 steps
  p.limit = 0x1.8p64;
  const std::vector<float> x(70, 0x1.fffffep127f), y(70, -0x1.fffffep127f);
  for (const auto* values : {&x, &y}) {
    const Bytes a = encoded(*values, p);
    check_decode<float>(a, x.size(), p);
    check_decode<float>(combined<float>(a, a, x.size(), sum, p), x.size(), p);
  }
}
