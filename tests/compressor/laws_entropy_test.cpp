// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/entropy_grid.hpp>
#include <wring/testing/compressor_laws.hpp>

#include "support/values.hpp"

using namespace wring;

namespace {

namespace entropy = detail::entropy;
using Exec = Kokkos::DefaultHostExecutionSpace;
using Bytes = std::vector<std::byte>;
constexpr entropy::Tries tries{true, true};

/// Three chunks: of gradients, of a smooth field, with special values, and one whose last block is one value, sooner left as it is.
template <class T> std::vector<T> mixed_values(std::uint64_t seed) {
  std::vector<T> x = wring_test::real_numbers<T>(75265, seed);
  for (std::size_t i = entropy::chunk_values; i < x.size(); ++i) {
    const double part = static_cast<double>(i % 1000) / 1000;
    if (i < 2 * entropy::chunk_values) x[i] = wring_test::to_element<T>(part * part * 3);
    if (i % 997 == seed) x[i] = wring_test::to_element<T>(i % 2 ? INFINITY : NAN);
  }
  return x;
}

/// By way of a Grid piece.
template <class T> Bytes coded_by_detour(const std::vector<T>& x, const detail::GridParameters& p) {
  Bytes piece(detail::grid::largest_piece<detail::grid::i32>(x.size(), p.delta, sizeof(T)));
  piece.resize(detail::grid_encode<T>(Exec{}, x, piece, p));
  Bytes out(entropy::largest_piece(piece.size() + 100000, x.size()));
  out.resize(entropy::encode_piece<T>(Exec{}, piece, x.size(), p, out, tries));
  return out;
}

template <class T> Bytes coded(const std::vector<T>& x, const detail::GridParameters& p) {
  Bytes out(entropy::largest_piece(
      detail::grid::largest_piece<detail::grid::i32>(x.size(), p.delta, sizeof(T)), x.size()));
  std::uint64_t raw_blocks = 0;
  out.resize(entropy::encode_values<T>(Exec{}, x, p, out, tries, entropy::AsTheyAre{}, raw_blocks));
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("EntropyGrid keeps the laws", "[compressor][entropy][laws]", float, half_t) {
  using Codec = EntropyGrid<TestType>;
  CHECK(testing::check_compressor_laws(Codec{}) == std::vector<std::string>{});
  CHECK(testing::check_compressor_laws(Codec{{.grid = {.delta = true}}}) == std::vector<std::string>{});
  CHECK(testing::check_compressor_laws(Codec{{.stage = Codec::Stage::distribution}}) ==
        std::vector<std::string>{});
}

TEMPLATE_TEST_CASE("EntropyGrid writes and reads what it would by way of a Grid piece",
                   "[compressor][entropy]", float, double, bhalf_t) {
  const auto a = mixed_values<TestType>(1), b = mixed_values<TestType>(2);
  for (const bool delta : {false, true})
    for (const Collective collective : {Collective::allreduce, Collective::broadcast})
      for (const double error : {0.05, 0.3, 1.0}) {
        const auto p = detail::grid::choose_parameters<TestType>({.collective = collective,
                                                                  .ranks = 2,
                                                                  .total = a.size(),
                                                                  .max_abs = 4,
                                                                  .allowed_error = error,
                                                                  .measured = true},
                                                                 false, delta);
        REQUIRE(p.form == detail::GridParameters::Form::int32);
        const Bytes x = coded(a, p), y = coded(b, p);
        REQUIRE(x == coded_by_detour(a, p));
        Bytes piece(entropy::largest_piece(x.size(), 2 * a.size()) + 32 * a.size());
        piece.resize(entropy::decode_piece<TestType>(Exec{}, x, a.size(), p, piece));
        std::vector<TestType> read(a.size()), expected(a.size());
        entropy::decode_values<TestType>(Exec{}, x, read, p, false);
        detail::grid_decode<TestType>(Exec{}, piece, expected, p);
        REQUIRE(std::memcmp(read.data(), expected.data(), read.size() * sizeof(TestType)) == 0);
        if (delta || p.raw_blocks) continue;
        Bytes other(piece.size() + 32 * a.size()), sum(other.size() * 2), out(sum.size());
        other.resize(entropy::decode_piece<TestType>(Exec{}, y, a.size(), p, other));
        sum.resize(detail::grid_combine<TestType>(Exec{}, piece, other, a.size(), sum, Operation::sum, p));
        Bytes right(out.size());
        right.resize(entropy::encode_piece<TestType>(Exec{}, sum, a.size(), p, right, tries));
        out.resize(entropy::combine_pieces(Exec{}, x, y, a.size(), p, out, tries));
        REQUIRE(out == right);
      }
}
