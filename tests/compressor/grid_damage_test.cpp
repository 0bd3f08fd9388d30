// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Bytes that compress did not write give a CodecError or some result, never an access outside the spans:
// built with the address and undefined-behaviour sanitizers, this test shows it. Pieces lie in blocks of
// memory of exactly their size.

#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <compressor/grid_support.hpp>

using namespace grid_test;
using Form = GridParameters::Form;

namespace {

/// Feeds a piece to every reader; counts what they refuse.
template <class T> int refusals(const Bytes& piece, const Bytes& good, std::size_t n, GridParameters p) {
  int refused = 0;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const wring::CodecError&) {
      ++refused;
    }
  };
  attempt([&] { decode<T>(piece, n, p); });
  if (p.raw_blocks) return refused;
  for (const wring::Operation operation : {wring::sum, wring::max}) {
    attempt([&] { combine<T>(piece, good, n, operation, p); });
    attempt([&] { combine<T>(good, piece, n, operation, p); });
  }
  p.shift = 3;
  attempt([&] { finish<T>(piece, n, p); });
  return refused;
}

}  // namespace

TEMPLATE_TEST_CASE("damaged pieces are refused or decoded, never trusted", "[grid]", float, double,
                   wring::bhalf_t) {
  using T = TestType;
  for (const Form form : {Form::int32, Form::int64, Form::values})
    for (const bool delta : {false, true})
      for (const bool raw : {false, true})
        for (const std::size_t n : {std::size_t{1}, std::size_t{513}, std::size_t{3000}}) {
          GridParameters p = grid_of(13, -14, form);
          p.delta = delta, p.raw_blocks = raw;
          Random random(n);
          std::vector<T> x(n);
          for (T& v : x) v = element<T>(random.signed_unit());
          x[n / 2] = element<T>(infinity);
          const Bytes good = encode(x, p);
          REQUIRE(refusals<T>(good, good, n, p) == 0);
          // Any other length is refused by every reader.
          const int readers = raw ? 1 : 6;
          for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64},
                                         good.size() / 2, good.size() - 1}) {
            if (size >= good.size()) continue;
            CAPTURE(size, n, delta, raw, static_cast<int>(form));
            REQUIRE(refusals<T>(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), good,
                                n, p) == readers);
          }
          Bytes longer(good);
          longer.push_back(std::byte{0});
          REQUIRE(refusals<T>(longer, good, n, p) == readers);
          // Flipped bytes anywhere, and noise of the right length.
          for (int round = 0; round < 20; ++round) {
            Bytes damaged(good);
            for (int k = 0; k < 3; ++k)
              damaged[random.below(round % 2 ? damaged.size() : std::min<std::size_t>(damaged.size(), 8))] ^=
                  static_cast<std::byte>(1 + random.below(255));
            refusals<T>(damaged, good, n, p);
            if (round % 5 == 0) {
              for (std::byte& b : damaged) b = static_cast<std::byte>(random.word());
              refusals<T>(damaged, good, n, p);
            }
            if (form == Form::values) continue;
            // Valid descriptors, noise behind them: any quanta at all.
            damaged = good;
            for (std::size_t b = wring::detail::grid::padded((n + 511) / 512); b < damaged.size(); ++b)
              damaged[b] = static_cast<std::byte>(random.word());
            REQUIRE(refusals<T>(damaged, good, n, p) == 0);
          }
        }
}

TEST_CASE("no values, no bytes", "[grid]") {
  const GridParameters p = grid_of(8, -3);
  CHECK(encode(std::vector<float>(), p).empty());
  CHECK(decode<float>({}, 0, p).empty());
  CHECK(combine<float>({}, {}, 0, wring::sum, p).empty());
  CHECK(finish<float>({}, 0, p).empty());
  CHECK_THROWS_AS(decode<float>(Bytes(64), 0, p), wring::CodecError);
}
