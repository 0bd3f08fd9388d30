// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the user's bound to what each encoding may do: zeros, tiny data, compressors that share the bound out.
#include <catch2/catch_test_macros.hpp>

#include <cmath>

#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>

#include "support/executors.hpp"
#include "support/matrix.hpp"

using namespace wring_test;
using wring::None;

namespace {

/// Multiples of nearly twice the error that each encoding is allowed.
struct Coarse {
  using value_type = double;
  wring::Identity identity() const { return {"coarse", 1, {}}; }
  std::size_t max_compressed_bytes(std::size_t n) const { return 8 * n; }
  void prepare(const wring::Agreed&) {}
  double error(double) const { return 0; }
  template <class E> std::size_t compress(const E&, std::span<const double> x, std::span<std::byte> bytes,
                                          const wring::Context& c) const {
    const double step = 1.999 * c.allowed_error;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double y = std::isfinite(step) && step > 0 ? std::nearbyint(x[i] / step) * step : x[i];
      std::memcpy(bytes.data() + 8 * i, &y, 8);
    }
    return 8 * x.size();
  }
  template <class E> void decompress(const E&, std::span<const std::byte> bytes, std::span<double> x,
                                     const wring::Context&) const {
    if (bytes.size() != 8 * x.size()) throw wring::CodecError("coarse: wrong size");
    if (!x.empty()) std::memcpy(x.data(), bytes.data(), bytes.size());
  }
};

}  // namespace

TEST_CASE("bounds: zeros keep any bound, of any compressor and operation", "[collective][bounds]") {
  for (const wring::Operation operation : {wring::sum, wring::mean, wring::max})
    for (const std::size_t n : {std::size_t{0}, std::size_t{5}, std::size_t{3000}})
      for (const wring::Bound bound :
           {wring::absolute(0), wring::relative_to_rms(0.1), wring::relative_to_range(0.1)}) {
        Call<None<float>> none{.options = {.operation = operation}, .bound = bound};
        Call<wring::Grid<float>> grid{.options = {.operation = operation}, .bound = bound};
        const PerRank<float> zeros(3, std::vector<float>(n, 0));
        CHECK(judge(none, zeros, collect(wring::Ring{}, none, zeros), 0) == "");
        CHECK(judge(grid, zeros, collect(wring::Ring{}, grid, zeros), 0) == "");
      }
}

TEST_CASE("bounds: a compressor that is prepared and divides the bound, on small data and large",
          "[collective][bounds]") {
  static_assert(wring::PreparedCompressor<Coarse> && wring::BoundedCompressor<Coarse>);
  for (const int ranks : {1, 2, 4, 5})
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
      for (const wring::Collective what : {wring::Collective::allreduce, wring::Collective::reduce_scatter,
                                           wring::Collective::allgather, wring::Collective::broadcast})
        for (const std::size_t ride : {std::size_t{0}, std::size_t{65536}}) {
          Call<Coarse> call{
              .collective = what, .options = {.ride_along_bytes = ride}, .bound = wring::absolute(0.5)};
          std::vector<double> values(300);
          for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.0137 * static_cast<double>(i);
          if (what == wring::Collective::allgather)
            call.counts.assign(static_cast<std::size_t>(ranks), values.size());
          if (what == wring::Collective::reduce_scatter) call.counts = even_counts(values.size(), ranks);
          const PerRank<double> inputs(static_cast<std::size_t>(ranks), values);  // errors of one sign add up
          INFO(wring::name_of(what) << ", " << ranks << " ranks, " << algorithm.name() << ", ride " << ride);
          REQUIRE(judge(call, inputs, collect(algorithm, call, inputs), 0.5) == "");
        }
}

TEST_CASE("bounds: relative to tiny data, they are rounded down", "[collective][bounds]") {
  using wring::detail::product_below;
  constexpr double least = 0x1p-1074;
  CHECK(product_below(0.39, 10 * least, 1) == 3 * least);
  CHECK(product_below(0.1, 3 * least, 3) == 0);
  CHECK(product_below(0.5, 6 * least, 3) == 8 * least);  // 9, and the factor that outweighs roundings
  CHECK(product_below(0, 1, 3) == 0);
  const double y = product_below(0.1, 1e300, 7);
  CHECK((y < 7e299 && y > 7e299 * (1 - 0x1p-38)));
}
