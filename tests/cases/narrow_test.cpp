// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Narrow formats and integers: what must not underflow, overflow or lose bits.
#include <wring/compressor/lossless.hpp>

#include "cases/compressors.hpp"

using namespace wring_test;
using wring::absolute;
using wring::bhalf_t;
using wring::Collective;
using wring::FloatTraits;
using wring::half_t;
using wring::None;

namespace {

const std::vector<Collective> all_collectives(std::begin(collectives), std::end(collectives));

template <class T> PerRank<T> constant(std::size_t ranks, double x, std::size_t n = 10) {
  return PerRank<T>(ranks, std::vector<T>(n, to_element<T>(x)));
}

/// Every element of every rank's result.
template <class T, class Check> void each_result(const Case<T>& all, Check check) {
  everywhere(all, [&](const AnyCompressor<T>& compressor, const AnyCall<T>&, const Collected<T>& got) {
    REQUIRE(all_ok(got.outcomes));
    for (const auto& y : got.results) {
      REQUIRE(same_bits(y, got.results[0]));
      for (const T& v : y) check(compressor, as_double(v));
    }
  });
}

/// Any integers, compared bit by bit with what wrap-around arithmetic gives.
template <class Codec, class I = typename Codec::value_type>
void integers_are_exact(const std::vector<I>& a, const std::vector<I>& b) {
  const auto reduced = [&](wring::Operation operation, std::size_t i) {
    using U = std::make_unsigned_t<I>;
    if (operation == wring::sum)
      return static_cast<I>(static_cast<U>(static_cast<U>(a[i]) + static_cast<U>(b[i])));
    return operation == wring::min ? std::min(a[i], b[i]) : std::max(a[i], b[i]);
  };
  unsigned variant = 0;
  for (const AnyAlgorithm& algorithm : all_algorithms(2))
    for (const Collective collective : all_collectives)
      for (const wring::Operation operation : {wring::sum, wring::min, wring::max}) {
        Call<Codec> call{.collective = collective};
        vary(call, variant++, 2);
        call.options.operation = operation;
        if (collective == Collective::allgather) call.counts = {a.size(), b.size()};
        if (collective == Collective::reduce_scatter) call.counts = {1, a.size() - 1};
        const auto got = collect(algorithm, call, PerRank<I>{a, b});
        INFO(describe(call, 2, algorithm, a.size()) << describe(got.outcomes));
        REQUIRE((all_ok(got.outcomes) && got.intact));
        std::vector<I> expected;
        for (std::size_t i = 0; i < a.size(); ++i)
          expected.push_back(wring::reduces(collective)                              ? reduced(operation, i)
                             : collective == Collective::broadcast && call.root == 1 ? b[i]
                                                                                     : a[i]);
        if (collective == Collective::allgather) expected.insert(expected.end(), b.begin(), b.end());
        if (collective == Collective::reduce_scatter) {
          REQUIRE(got.results[0] == std::vector<I>(expected.begin(), expected.begin() + 1));
          REQUIRE(got.results[1] == std::vector<I>(expected.begin() + 1, expected.end()));
        } else {
          REQUIRE((got.results[0] == expected && got.results[1] == expected));
        }
      }
}

}  // namespace

TEST_CASE("a mean of tiny values does not underflow: it divides after the sum, once", "[cases][narrow]") {
  const Case<float> all{.inputs = constant<float>(4, 6e-8f),
                        .bound = absolute(1e-10),
                        .collectives = {Collective::allreduce, Collective::reduce_scatter},
                        .operations = {wring::mean}};
  hold(all);
  everywhere(all, [](const AnyCompressor<float>& compressor, const AnyCall<float>& call,
                     const Collected<float>& got) {
    for (const auto& y : got.results)
      for (const float v : y) {
        if (compressor.name.starts_with("fp16") && call.collective == Collective::allreduce)
          REQUIRE((v == 0x1p-24f || v == 6e-8f));  // the nearest that the format has; within a node, as it is
        REQUIRE((std::abs(v - 6e-8f) <= 0x1p-25f || (compressor.selected && v == 0)));
      }
  });
  for (const std::size_t ranks : {3, 4, 5}) {  // the least numbers of 16 bits
    hold(Case<half_t>{
        .inputs = constant<half_t>(ranks, 0x1p-24), .bound = absolute(0x1p-23), .operations = {wring::mean}});
    hold(Case<bhalf_t>{.inputs = constant<bhalf_t>(ranks, 0x1p-133),
                       .bound = absolute(0x1p-132),
                       .operations = {wring::mean}});
  }
  each_result(Case<half_t>{.inputs = constant<half_t>(4, 0x1p-24),
                           .bound = absolute(0x1p-26),
                           .collectives = {Collective::allreduce},
                           .operations = {wring::max}},
              [](const AnyCompressor<half_t>&, double v) { REQUIRE(v == 0x1p-24); });
}

TEST_CASE("bfloat16 sent as binary16 saturates: no infinity, NaN stays NaN, small values stay right",
          "[cases][narrow]") {
  const std::vector<bhalf_t> x = elements<bhalf_t>({1e5, -1e5, 1, not_a_number, infinite});
  for (const Collective collective : {Collective::allreduce, Collective::broadcast}) {
    const Case<bhalf_t> all{.inputs = {x, x}, .bound = absolute(4096), .collectives = {collective}};
    hold(all);  // what promises a bound keeps it: 2e5
    everywhere(all, [&](const AnyCompressor<bhalf_t>& compressor, const AnyCall<bhalf_t>&,
                        const Collected<bhalf_t>& got) {
      if (compressor.bounded) return;
      for (const Outcome& o : got.outcomes)
        REQUIRE_FALSE(o.report.bound.has_value());  // the report says that nothing is promised
      for (const auto& y : got.results) {
        const double exact = collective == Collective::allreduce ? 2e5 : 1e5;
        REQUIRE((as_double(y[0]) >= 65504 && as_double(y[0]) <= exact * (1 + 0x1p-8)));
        REQUIRE(as_double(y[1]) == -as_double(y[0]));
        if (compressor.by_itself) REQUIRE(as_double(y[2]) == (collective == Collective::allreduce ? 2 : 1));
        REQUIRE((std::isnan(as_double(y[3])) && as_double(y[4]) == infinite));
      }
    });
  }
}

TEST_CASE("a mean of finite values is not infinite because their sum would be, where a bound is asked",
          "[cases][narrow]") {
  const auto check = []<class T>(T, double x) {
    const double units =
        sizeof(T) == 8 ? 64 : 2;  // in the last place; the grid of doubles is that much coarser
    const double bound = units * 2 * FloatTraits<T>::unit_roundoff * std::exp2(std::floor(std::log2(x)));
    for (const std::size_t ranks : {3, 5}) {
      const Case<T> all{.inputs = constant<T>(ranks, x),
                        .bound = absolute(bound),
                        .collectives = {Collective::allreduce, Collective::reduce_scatter},
                        .operations = {wring::mean}};
      everywhere(all,
                 [&](const AnyCompressor<T>& compressor, const AnyCall<T>& call, const Collected<T>& got) {
                   if (!compressor.bounded) return;
                   if (compressor.adds_values)
                     REQUIRE((all_failed(got.outcomes, wring::Cause::unattainable) &&
                              got.intact));  // values that are added overflow: told, not done
                   else
                     REQUIRE(judge(call, all.inputs, got, bound) == "");
                 });
    }
  };
  check(float{}, 3.0e38);
  check(double{}, 1.7e308);
  check(half_t{}, 60000);
  check(bhalf_t{}, 3.0e38);
}

TEST_CASE("a mean whose sum overflows is the same on all ranks without a bound too, and never NaN",
          "[cases][narrow]") {
  const auto check = []<class T>(T, double x) {
    for (const AnyCompressor<T>& compressor : all_compressors<T>())
      for (const AnyAlgorithm& algorithm : all_algorithms(3)) {
        if (compressor.bounded && !compressor.adds_values) continue;  // asks for a bound
        AnyCall<T> call;
        call.options.operation = wring::mean;
        const auto got = compressor.collect(algorithm, call, constant<T>(3, x));
        INFO(compressor.name << ", " << algorithm.name() << describe(got.outcomes));
        REQUIRE(all_ok(got.outcomes));
        for (std::size_t r = 0; r < 3; ++r) {
          REQUIRE(same_bits(got.results[r], got.results[0]));
          REQUIRE(as_double(got.results[r][0]) >
                  0);  // infinite or saturated, as addition in this type has it; no NaN
          REQUIRE_FALSE(got.outcomes[r].report.bound.has_value());
        }
      }
  };
  check(float{}, 3.0e38);
  check(double{}, 1.7e308);
  check(half_t{}, 60000);
  check(bhalf_t{}, 3.0e38);
}

TEST_CASE("sixteen bits on the wire halve the bytes of float, and quarter those of double",
          "[cases][narrow]") {
  const auto check = []<class T>(T, std::uint64_t ranks, std::size_t n) {
    PerRank<T> inputs;
    for (std::uint64_t r = 0; r < ranks; ++r) inputs.push_back(real_numbers<T>(n, r));
    using namespace wring;
    const std::vector<AnyAlgorithm> coded{Ring{}, Direct{}, RecursiveDoubling{}, HalvingDoubling{},
                                          Hierarchical<HalvingDoubling, Ring>(2, {}, {}, Wire::coded)};
    const Case<T> all{
        .inputs = inputs, .bound = absolute(1), .collectives = all_collectives, .algorithms = coded};
    everywhere(all, [&](const AnyCompressor<T>& compressor, const AnyCall<T>&, const Collected<T>& got) {
      if (compressor.bounded || !compressor.by_itself) return;
      REQUIRE(all_ok(got.outcomes));
      for (const Outcome& o : got.outcomes) {
        const std::uint64_t narrow = o.report.bytes_raw * 2 / sizeof(T);
        INFO("raw " << o.report.bytes_raw << ", sent " << o.report.bytes_sent << ", messages "
                    << o.report.messages);
        REQUIRE(o.report.bytes_sent >= narrow);
        REQUIRE(o.report.bytes_sent <=
                narrow + (o.report.messages + 6) * 576);  // headers and tables, the heads of the agreement
      }
    });
  };
  check(float{}, 4, 16384);
  check(double{}, 4, 16384);
  check(float{}, 2, 65536);
}

TEST_CASE("values in the upper half of a range take no more bits than they need", "[cases][narrow]") {
  const auto check = []<class T>(T, double low) {
    std::vector<T> x(4096);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = to_element<T>(low + static_cast<double>(i % 2));
    const Case<T> all{.inputs = {x, x}, .bound = absolute(0.4), .collectives = {Collective::allgather}};
    hold(all);
    everywhere(all, [](const AnyCompressor<T>& compressor, const AnyCall<T>& call, const Collected<T>& got) {
      if (!compressor.name.starts_with("grid") || got.outcomes[0].report.rode_along) return;
      if (call.options.segment_bytes < 4096) return;  // headers show
      INFO(got.outcomes[0].report.ratio());
      REQUIRE(got.outcomes[0].report.ratio() > 1.4);
    });
  };
  check(half_t{}, 127);
  check(float{}, 32767);
  check(double{}, 2147483647);
}

TEST_CASE("integers beyond what a double holds arrive bit by bit, and their sums are exact",
          "[cases][narrow]") {
  constexpr auto lowest = std::numeric_limits<std::int64_t>::min(),
                 highest = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t big = (std::int64_t{1} << 53) + 1, bigger = (std::int64_t{1} << 62) + 1;
  const std::vector<std::int64_t> a{big, bigger, -big, -1, lowest, highest, 0},
      b{big, -bigger, 1, -bigger, 1, -1, -7};
  integers_are_exact<None<std::int64_t>>(a, b);
  integers_are_exact<wring::Lossless<std::int64_t>>(a, b);
  std::vector<std::int64_t> many(1500), others(1500);  // whole blocks, and what Lossless has to shrink
  for (std::size_t i = 0; i < 1500; ++i)
    many[i] = bigger + static_cast<std::int64_t>(i % 7), others[i] = big - static_cast<std::int64_t>(i % 5);
  integers_are_exact<wring::Lossless<std::int64_t>>(many, others);
}

TEST_CASE("unsigned integers in the upper half of their range are not taken for negative ones",
          "[cases][narrow]") {
  constexpr auto all = std::numeric_limits<std::uint64_t>::max();
  integers_are_exact<None<std::uint64_t>>({all, std::uint64_t{1} << 63, 1, 0},
                                          {1, (std::uint64_t{1} << 63) - 1, all - 1, all});
  std::vector<std::uint8_t> bytes(512), others(512);
  for (std::size_t i = 0; i < 512; ++i) bytes[i] = i % 2 ? 128 : 127, others[i] = i % 2 ? 127 : 128;
  integers_are_exact<None<std::uint8_t>>(bytes, others);
}

TEST_CASE("values in groups err by no more than their own group's scale allows, wherever the group lies",
          "[cases][narrow]") {
  const auto check = []<class T>(T) {
    constexpr std::size_t n = 16384, group = 128;
    std::vector<T> x = real_numbers<T>(n, 1);
    for (std::size_t i = 0; i < n; ++i)  // scales that differ by far
      x[i] = to_element<T>(std::ldexp(as_double(x[i]), static_cast<int>(i / group % 9) - 4));
    const Case<T> all{.inputs = {x, x}, .bound = absolute(1e-2), .collectives = {Collective::broadcast}};
    everywhere(all, [&](const AnyCompressor<T>& compressor, const AnyCall<T>&, const Collected<T>& got) {
      if (!compressor.name.starts_with("block_scaled") || compressor.mixes) return;
      REQUIRE(all_ok(got.outcomes));
      const int bits = compressor.name[compressor.name.find("bits=") + 5] - '0';
      const bool nearest = compressor.name.find("nearest") != std::string::npos;
      for (std::size_t first = 0; first < n; first += group) {
        double most = 0;
        for (std::size_t i = first; i < first + group; ++i) most = std::max(most, std::abs(as_double(x[i])));
        const double scale = most / ((1 << (bits - 1)) - 1) * (1 + 0x1p-7);  // the next bfloat16
        const double allowed = (nearest ? 0.5 : 1) * scale + FloatTraits<T>::unit_roundoff * 2 * most;
        for (std::size_t i = first; i < first + group; ++i)
          REQUIRE(std::abs(as_double(got.results[1][i]) - as_double(x[i])) <= allowed);
      }
    });
  };
  check(float{});
  check(double{});
  check(half_t{});
  check(bhalf_t{});
}
