// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How a bound becomes a step, a shift and a form; where the forms change; what is refused, and in which
// words. (T-6, T-10)

#include <catch2/catch_message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <compressor/grid_support.hpp>

using namespace grid_test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using wring::Collective;
using wring::Operation;
using Form = GridParameters::Form;

namespace {

wring::Agreed agreed(Collective collective, Operation operation, int ranks, double max_abs, double error) {
  wring::Agreed a;
  a.collective = collective, a.operation = operation, a.ranks = ranks, a.max_abs = max_abs,
  a.allowed_error = error;
  a.measured = true;
  return a;
}

template <class T>
GridParameters chosen(Collective collective, Operation operation, int ranks, double max_abs, double error,
                      bool power_of_two = false, bool delta = false) {
  return wring::detail::grid::choose_parameters<T>(agreed(collective, operation, ranks, max_abs, error),
                                                   power_of_two, delta);
}

}  // namespace

TEST_CASE("the step is the greatest allowed one", "[grid]") {
  // 2 * 0.9 / 2 = 0.9, less a rounding: 14/16 = 0.875 is the short step below, 0.5 the power of two.
  CHECK(chosen<float>(Collective::allreduce, wring::sum, 2, 1, 0.9).step == 0.875);
  CHECK(chosen<float>(Collective::allreduce, wring::sum, 2, 1, 0.9, true).step == 0.5);
  CHECK(chosen<float>(Collective::allreduce, wring::mean, 2, 1, 0.9).step == 1.75);
  CHECK(chosen<float>(Collective::allreduce, wring::max, 7, 1, 0.9).step == 1.75);
  CHECK(chosen<float>(Collective::broadcast, wring::sum, 7, 1, 0.9).step == 1.75);
  // With a shift of 2 on 5 ranks: 2 E / (5 + 4), and for the mean 2 E / (1 + 4/5).
  CHECK(chosen<float>(Collective::allreduce, wring::sum, 5, 1, 4.6).step == 1);
  CHECK(chosen<float>(Collective::allreduce, wring::mean, 5, 1, 0.91).step == 1);
  CHECK(chosen<float>(Collective::reduce_scatter, wring::sum, 5, 1, 2.6).step == 1);
}

TEST_CASE("the shift is for allreduce of sums on more than four ranks", "[grid]") {
  const int expected[] = {0, 0, 0, 0, 2, 2, 2, 3, 3};
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (const Operation operation : {wring::sum, wring::mean, wring::min, wring::max}) {
      const int shift = wring::adds(operation) ? expected[ranks - 1] : 0;
      CHECK(chosen<float>(Collective::allreduce, operation, ranks, 1, 0.1).shift == shift);
      CHECK(chosen<float>(Collective::reduce_scatter, operation, ranks, 1, 0.1).shift == 0);
    }
  CHECK(chosen<float>(Collective::allreduce, wring::sum, 1000, 1, 0.1).shift == 9);
}

TEST_CASE("predictor and raw blocks belong to some collectives only", "[grid]") {
  for (const Operation operation : {wring::sum, wring::mean, wring::min, wring::max}) {
    const auto p = chosen<float>(Collective::allreduce, operation, 2, 1, 0.1, false, true);
    CHECK(p.delta == wring::adds(operation));
    CHECK_FALSE(p.raw_blocks);
  }
  for (const Collective collective : {Collective::broadcast, Collective::allgather}) {
    const auto p = chosen<float>(collective, wring::min, 2, 1, 0.1, false, true);
    CHECK(p.delta);
    CHECK(p.raw_blocks);
  }
}

TEST_CASE("int32, int64 and raw elements at their switches", "[grid]") {
  // p max / D + p / 2 <= 2^31 - 1 decides; D is a power of two here: 2 E / 3 falls just below 2^-28 (1 +
  // 1/8).
  const double step = 0x1p-28, error = 1.5 * step * 1.125;
  const auto form = [&](double max_abs) {
    const GridParameters p = chosen<double>(Collective::allreduce, wring::sum, 3, max_abs, error, true);
    CHECK(p.step == step);
    return p.form;
  };
  const double last = (0x1p31 - 1 - 1.5) / 3;  // greatest |q| of one rank, not an integer
  CHECK(form(std::floor(last) * step) == Form::int32);
  CHECK(form(std::ceil(last) * step) == Form::int64);
  // Both sides of the switch sum correctly at the extremes.
  for (const double q : {std::floor(last), std::ceil(last), 0x1p40}) {
    const std::vector<double> x{q * step, -q * step, 0, step};
    Reduction<double> r({wring::Grid<double>::StepKind::power_of_two, true}, Collective::allreduce,
                        wring::sum, 3, 4, q * step, error);
    const Bytes piece = r.compress(x);
    CHECK(r.decompress(r.combine(r.combine(piece, piece), piece)) ==
          std::vector<double>{3 * q * step, -3 * q * step, 0, 3 * step});
  }
  // X / D < 2^51 is the end of the int64 grid.
  CHECK(chosen<double>(Collective::allreduce, wring::max, 3, 1, 0x1.9p-51, true).form == Form::int64);
  CHECK(chosen<double>(Collective::allreduce, wring::max, 3, 1, 0x1.1p-53, true).form == Form::values);
  CHECK(chosen<double>(Collective::allreduce, wring::sum, 3, 1, 0x1.9p-51).form == Form::values);
  // binary32 needs int64 when many ranks ask for a tight bound.
  CHECK(chosen<float>(Collective::allreduce, wring::sum, 1000, 1, 0.01).form == Form::int32);
  CHECK(chosen<float>(Collective::allreduce, wring::sum, 1000, 1, 1e-4).form == Form::int64);
  // Where nothing is added, outliers are raw instead, but binary64 gains from wider quanta.
  CHECK(chosen<float>(Collective::broadcast, wring::sum, 3, 3e38, 1e32).form == Form::int32);
  CHECK(chosen<double>(Collective::broadcast, wring::sum, 3, 1e12, 1e-2).form == Form::int64);
  CHECK(chosen<double>(Collective::broadcast, wring::sum, 3, 1e300, 1e290).form == Form::int64);
}

TEST_CASE("a bound of zero is kept by raw elements where nothing is added, else refused", "[grid]") {
  for (const Collective collective : {Collective::broadcast, Collective::allgather})
    CHECK(chosen<float>(collective, wring::sum, 3, 1, 0).form == Form::values);
  CHECK(chosen<float>(Collective::allreduce, wring::min, 3, 1, 0).form == Form::values);
  CHECK(chosen<float>(Collective::allreduce, wring::sum, 1, 1, 0).form == Form::values);
  CHECK(chosen<float>(Collective::allreduce, wring::sum, 3, 0, 0).form == Form::int32);  // nothing but zeros
  CHECK_THROWS_MATCHES(
      chosen<float>(Collective::allreduce, wring::sum, 3, 1, 0), wring::BoundUnattainable,
      MessageMatches(ContainsSubstring(
          "Grid<float>: an error of 0 cannot be promised for the sum of 3 ranks with magnitudes up to 1; ")));
}

TEST_CASE("the error named as attainable is attainable", "[grid]") {
  for (const double max_abs : {1e-40, 1.0, 1e30})
    for (const int ranks : {2, 5, 64}) {
      wring::detail::grid::Request r{Collective::allreduce, wring::sum, ranks, max_abs, 0, false, false};
      const double least = wring::detail::grid::attainable_error<float>(r);
      r.error = least;
      CHECK(wring::detail::grid::parameters_for<float>(r).has_value());
      r.error = least / 1.2;
      CHECK_FALSE(wring::detail::grid::parameters_for<float>(r).has_value());
    }
}

TEST_CASE("what a message says can be promised is promised", "[grid]") {
  for (const double max_abs : {5.900859832763672e-06, 0.37, 64.0, 1e4})
    for (int ranks = 2; ranks < 9; ++ranks)
      for (double error = max_abs * 1e-12; error < max_abs * 1e-9; error *= 1.01) {
        std::string text;
        try {
          chosen<wring::bhalf_t>(Collective::allreduce, wring::mean, ranks, max_abs, error);
        } catch (const wring::BoundUnattainable& refusal) {
          text = refusal.what();
        }
        INFO(text);
        const std::size_t at = text.rfind("; ");
        REQUIRE(at != std::string::npos);
        const double can = std::stod(text.substr(at + 2));
        CHECK_NOTHROW(chosen<wring::bhalf_t>(Collective::allreduce, wring::mean, ranks, max_abs, can));
      }
}

TEST_CASE("what is not a bound is refused", "[grid]") {
  wring::Agreed none;
  wring::Grid<float> grid;
  CHECK_THROWS_MATCHES(grid.prepare(none), wring::InvalidArgument,
                       MessageMatches(ContainsSubstring("Grid needs a bound")));
  for (const double error : {-1.0, infinity, -infinity, not_a_number})
    CHECK_THROWS_AS(grid.prepare(agreed(Collective::allreduce, wring::sum, 2, 1, error)),
                    wring::InvalidArgument);
}

TEST_CASE("huge and tiny bounds stay within the allowed steps", "[grid]") {
  for (const double max_abs : {0.0, 1e-300, 1.0, 1e300})
    for (const double error : {1e-305, 1e-10, 1.0, 1e10, 1e308})
      for (const int ranks : {1, 2, 9}) {
        wring::detail::grid::Request r{
            Collective::allreduce, wring::mean, ranks, max_abs, error, false, false};
        const auto p = wring::detail::grid::parameters_for<double>(r);
        if (!p || p->form == Form::values) continue;
        CHECK(p->step >= 0x1p-1021);
        CHECK(std::ldexp(p->step, p->shift) <= 0x1p1021);
        CHECK((p->multiplier >= 8 && p->multiplier <= 15));
        CHECK(p->step == std::ldexp(p->multiplier, p->exponent));
        if (max_abs > 0) CHECK(p->step / 2 <= error);
      }
  CHECK(chosen<float>(Collective::allreduce, wring::max, 2, 1, 3e38).step == 0x1p125);
}

TEST_CASE("a grid without a step cannot encode, one with old magnitudes notices", "[grid]") {
  wring::Grid<float> grid;
  wring::Context context;
  std::vector<float> x(100, 1.0f);
  context.count = 100;
  Bytes room = room_for(100);
  const auto compress = [&] { return grid.compress(Exec(), std::span<const float>(x), room, context); };
  CHECK_THROWS_MATCHES(compress(), wring::CodecError, MessageMatches(ContainsSubstring("before prepare()")));
  grid.prepare(agreed(Collective::allreduce, wring::sum, 1, 1, 1e-6));
  const std::size_t size = compress();
  CHECK(size > 0);
  x[50] = 1e30f;
  CHECK_THROWS_MATCHES(compress(), wring::CodecError,
                       MessageMatches(ContainsSubstring("exceed the magnitude")));
  x[50] = 1;
  room.resize(64);
  CHECK_THROWS_AS(compress(), wring::CodecError);
}

TEST_CASE("identity and error", "[grid]") {
  CHECK(wring::Grid<float>().identity().name == "grid");
  CHECK(wring::Grid<float>().identity().options == "element=float step=short delta=off");
  CHECK(wring::Grid<wring::half_t>({wring::Grid<wring::half_t>::StepKind::power_of_two, true})
            .identity()
            .options == "element=half_t step=power_of_two delta=on");
  wring::Grid<float> grid;
  CHECK(grid.error(1) == 0);
  grid.prepare(agreed(Collective::broadcast, wring::sum, 2, 1, 0.01));
  CHECK(grid.error(1) <= 0.01);
  CHECK(grid.error(1) >= *grid.step() / 2);
}
