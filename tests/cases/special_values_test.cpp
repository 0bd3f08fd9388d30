// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// NaN, infinities, subnormals, zeros: with every compressor, algorithm and floating-point type.
#include "cases/compressors.hpp"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

using namespace wring_test;
using wring::absolute;
using wring::Cause;
using wring::Collective;
using wring::FloatTraits;
using wring::relative_to_range;
using wring::relative_to_rms;

namespace {

const std::vector<Collective> all_collectives(std::begin(collectives), std::end(collectives));
const std::vector<wring::Operation> all_operations(std::begin(operations), std::end(operations));

template <class F> void for_all_types(F f) {
  f(float{});
  f(double{});
  f(wring::half_t{});
  f(wring::bhalf_t{});
}

/// Small multiples of a unit, with alternating signs.
template <class T> std::vector<T> multiples(double unit) {
  std::vector<T> x;
  for (int i = 1; i <= 8; ++i) x.push_back(to_element<T>(unit * i * (i % 2 ? 1 : -1)));
  return x;
}

template <class T> T signalling_nan() {
  if constexpr (sizeof(T) == 8) {
    return __builtin_bit_cast(double, 0x7ff0000000000123u);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(float, 0x7f800123u);
  } else {
    T x{};
    x.bits = FloatTraits<T>::greatest < 1e5 ? 0xfc03 : 0xff83;
    return x;
  }
}

}  // namespace

TEST_CASE("a NaN stays a NaN and leaves its neighbours alone", "[cases][special]") {
  for_all_types([]<class T>(T) {
    const double bound = std::max(1e-3, 40 * FloatTraits<T>::unit_roundoff);
    const std::vector<T> ones(5, to_element<T>(1)), x = elements<T>({1, 2, not_a_number, 4, 5});
    hold(Case<T>{.inputs = {x, ones},
                 .bound = absolute(bound),
                 .collectives = all_collectives,
                 .operations = all_operations});
    hold(Case<T>{.inputs = {ones, ones, x},
                 .bound = absolute(bound),
                 .collectives = all_collectives,
                 .operations = all_operations});
    hold(Case<T>{.inputs = {x, x},
                 .bound = relative_to_range(bound),
                 .error = 4 * bound * (1 + 1e-9)});  // a range of 4, without the NaN
    hold(Case<T>{.inputs = {std::vector<T>(5, to_element<T>(not_a_number)), ones},
                 .bound = absolute(bound),
                 .operations = all_operations});
  });
}

TEST_CASE("a NaN stays where it is at the edges of blocks and parts, with any payload", "[cases][special]") {
  for_all_types([]<class T>(T) {
    const double bound = std::max(1e-3, 40 * FloatTraits<T>::unit_roundoff);
    PerRank<T> inputs{real_numbers<T>(1030, 1), real_numbers<T>(1030, 2), real_numbers<T>(1030, 3)};
    for (const std::size_t i : {0, 15, 16, 511, 512, 1023, 1029})
      inputs[i % 3][i] = to_element<T>(not_a_number);
    inputs[1][513] = signalling_nan<T>(), inputs[2][342] = signalling_nan<T>();
    REQUIRE(std::isnan(as_double(inputs[1][513])));
    hold(Case<T>{.inputs = inputs,
                 .bound = absolute(bound),
                 .collectives = all_collectives,
                 .operations = {wring::sum, wring::max}});
  });
}

TEST_CASE("infinities, NaN and the greatest numbers side by side", "[cases][special]") {
  for_all_types([]<class T>(T) {
    const double greatest = FloatTraits<T>::greatest,
                 bound = greatest * FloatTraits<T>::unit_roundoff * (sizeof(T) == 8 ? 64 : 8);
    const std::vector<T> x = elements<T>({infinite, -infinite, not_a_number, 1, greatest, -greatest}),
                         zeros(6, to_element<T>(0));
    const Case<T> all{.inputs = {x, zeros},
                      .bound = absolute(bound),
                      .collectives = all_collectives,
                      .operations = {wring::sum, wring::min, wring::max},
                      .refusable = Refusable::sums_of_values};
    hold(all);
    everywhere(all, [&](const AnyCompressor<T>&, const AnyCall<T>& call, const Collected<T>& got) {
      if (!all_ok(got.outcomes)) return;  // refused, and told so
      if (wring::reduces(call.collective) && call.options.operation != wring::sum) return;
      if (call.collective == Collective::reduce_scatter ||
          (call.collective == Collective::broadcast && call.root != 0))
        return;
      for (const auto& y : got.results) {
        REQUIRE((as_double(y[0]) == infinite && as_double(y[1]) == -infinite && std::isnan(as_double(y[2]))));
        REQUIRE((std::isfinite(as_double(y[3])) && std::isfinite(as_double(y[4])) &&
                 std::isfinite(as_double(y[5]))));
      }
    });
    // Infinities of opposite signs meet; an infinity meets the greatest number.
    hold(Case<T>{.inputs = {elements<T>({infinite, infinite, -infinite}),
                            elements<T>({-infinite, -greatest, greatest})},
                 .bound = absolute(bound),
                 .collectives = all_collectives,
                 .operations = all_operations,
                 .refusable = Refusable::sums_of_values});
  });
}

TEST_CASE("subnormal and tiny numbers: a bound far below the least normal number holds, sums are finite",
          "[cases][special]") {
  const auto check = []<class T>(T, const std::vector<double>& units, double bound) {
    for (const double unit : units) {
      const std::vector<T> x = multiples<T>(unit);
      const Case<T> all{.inputs = {x, std::vector<T>(x.rbegin(), x.rend())},
                        .bound = absolute(bound),
                        .collectives = all_collectives,
                        .operations = all_operations};
      INFO("unit " << unit);
      hold(all);
      everywhere(all, [&](const AnyCompressor<T>&, const AnyCall<T>&, const Collected<T>& got) {
        for (const auto& y : got.results)
          for (const T v : y) REQUIRE(std::isfinite(as_double(v)));
      });
    }
  };
  check(float{}, {1e-45, 1e-40, 1e-38}, 1e-42);
  check(float{}, {1e-35}, 1e-40);
  check(double{}, {5e-324, 1e-318, 2.2e-308}, 1e-320);
  check(double{}, {1e-300}, 1e-314);
  check(wring::half_t{}, {0x1p-24, 0x1p-20}, 0x1p-23);
  check(wring::half_t{}, {0x1p-14}, 0x1p-19);
  check(wring::bhalf_t{}, {0x1p-133}, 0x1p-130);
  check(wring::bhalf_t{}, {1e-38}, 0x1p-126);
}

TEST_CASE("tiny numbers of all magnitudes in one block: copies keep a subnormal bound", "[cases][special]") {
  std::vector<float> x;
  for (const double unit : {1e-45, 1e-40, 1e-38, 1e-35})
    for (const float v : multiples<float>(unit)) x.push_back(v);
  for (const double bound : {1e-42, 1e-45})
    hold(Case<float>{.inputs = PerRank<float>(2, x),
                     .bound = absolute(bound),
                     .collectives = all_collectives,
                     .refusable = Refusable::sums});
}

TEST_CASE("a block of zeros stays zero, on all ranks or on one", "[cases][special]") {
  const std::size_t block = 512;
  PerRank<float> inputs;
  for (std::uint64_t r = 0; r < 3; ++r) {
    inputs.push_back(real_numbers<float>(3 * block, r));
    for (std::size_t i = 0; i < (r == 1 ? 2 * block : block); ++i) inputs.back()[i] = 0;
  }
  for (const wring::Operation operation : {wring::sum, wring::mean}) {
    const Case<float> all{.inputs = inputs,
                          .bound = absolute(1e-3),
                          .collectives = {Collective::allreduce},
                          .operations = {operation}};
    hold(all);
    everywhere(all, [&](const AnyCompressor<float>&, const AnyCall<float>&, const Collected<float>& got) {
      for (const auto& y : got.results) REQUIRE(std::count(y.begin(), y.begin() + block, 0.0f) == block);
    });
  }
}

TEST_CASE("nothing but zeros gives zeros, whatever the bound", "[cases][special]") {
  for_all_types([]<class T>(T) {
    for (const wring::Bound bound : {absolute(0), relative_to_range(0.1), relative_to_rms(0.1)})
      hold(Case<T>{.inputs = PerRank<T>(3, std::vector<T>(600, to_element<T>(0))),
                   .bound = bound,
                   .error = 0,
                   .collectives = all_collectives,
                   .operations = all_operations});
  });
}

TEST_CASE("a constant has no range: copies of it are exact, sums are refused", "[cases][special]") {
  for (const float x : {7.0f, -0.1f, 1e-45f, 3e38f}) {
    const PerRank<float> inputs(2, std::vector<float>(700, x));
    hold(Case<float>{.inputs = inputs,
                     .bound = relative_to_range(0.1),
                     .error = 0,
                     .collectives = {Collective::broadcast, Collective::allgather}});
    hold(Case<float>{.inputs = inputs,
                     .bound = relative_to_range(0.1),
                     .error = 0,
                     .operations = {wring::min, wring::max}});
    everywhere(
        Case<float>{.inputs = inputs,
                    .bound = relative_to_range(0.1),
                    .collectives = {Collective::allreduce},
                    .operations = {wring::sum, wring::mean}},
        [](const AnyCompressor<float>& compressor, const AnyCall<float>&, const Collected<float>& got) {
          if (compressor.bounded) REQUIRE(all_failed(got.outcomes, Cause::unattainable));
        });
  }
}

TEST_CASE("the maximum of minus infinities is minus infinity, in every type", "[cases][special]") {
  for_all_types([]<class T>(T) {
    const std::vector<T> lowest(3, to_element<T>(-infinite)), highest(3, to_element<T>(infinite));
    for (const auto& [x, operation] : {std::pair(lowest, wring::max), std::pair(highest, wring::min)}) {
      const Case<T> all{.inputs = {x, x},
                        .bound = absolute(1),
                        .collectives = {Collective::allreduce},
                        .operations = {operation}};
      everywhere(all, [&](const AnyCompressor<T>& compressor, const AnyCall<T>&, const Collected<T>& got) {
        REQUIRE(all_ok(got.outcomes));
        const PerRank<T> expected = selected(compressor, {x});
        for (const auto& y : got.results) REQUIRE(same_bits(y, expected[0]));
      });
    }
  });
}

TEST_CASE("special patterns are gathered bit by bit where nothing is compressed", "[cases][special]") {
  for_all_types([]<class T>(T) {
    const double greatest = FloatTraits<T>::greatest;
    const std::vector<T> x = elements<T>(
        {infinite, -infinite, not_a_number, greatest, -greatest, FloatTraits<T>::least_subnormal, -0.0});
    std::vector<T> odd = x;
    odd.push_back(signalling_nan<T>());
    std::vector<T> twice = odd;
    twice.insert(twice.end(), odd.begin(), odd.end());
    everywhere(Case<T>{.inputs = {odd, odd}, .bound = absolute(0), .collectives = {Collective::allgather}},
               [&](const AnyCompressor<T>& compressor, const AnyCall<T>&, const Collected<T>& got) {
                 REQUIRE(all_ok(got.outcomes));
                 for (const auto& y : got.results) {
                   for (std::size_t i = 0; i < y.size(); ++i)
                     REQUIRE(std::isnan(as_double(y[i])) == std::isnan(as_double(twice[i])));
                   for (std::size_t i = 0; i < y.size(); ++i)
                     REQUIRE(std::isinf(as_double(y[i])) == std::isinf(as_double(twice[i])));
                   if (compressor.name.starts_with("none")) REQUIRE(same_bits(y, twice));
                 }
               });
  });
}

#if defined(__SSE__)
TEST_CASE("a thread that flushes subnormal numbers to zero is refused on every rank, not believed",
          "[cases][special]") {
  const Case<float> all{
      .inputs = {{not_a_number, 1}, {1, 1}}, .bound = absolute(1e-3), .collectives = all_collectives};
  const unsigned before = _mm_getcsr();
  for (const unsigned mode : {0x8000u, 0x8040u}) {  // results; results and operands
    _mm_setcsr(before | mode);
    std::vector<std::vector<Outcome>> outcomes;
    everywhere(all, [&](const AnyCompressor<float>&, const AnyCall<float>&, const Collected<float>& got) {
      outcomes.push_back(got.outcomes);
    });
    _mm_setcsr(before);
    for (const auto& ranks : outcomes) {
      REQUIRE(all_failed(ranks, Cause::argument));
      REQUIRE(ranks[1].text.find("flushes subnormal") != std::string::npos);
    }
  }
  hold(all);
}
#endif
