// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Real Kronecker factors, averaged as packed triangles: under the bound of `positive_definite` the damped mean has a Cholesky factorisation.
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstdint>
#include <deque>
#include <fstream>
#include <string>
#include <vector>

#include <wring/collective.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/view.hpp>

#include "cases/compressors.hpp"

using namespace wring_test;
using wring::InProcess;
using wring::InProcessTransport;

namespace {

using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace>;

/// Factors of a layer: of its gradients (g), or of its inputs (a), on some workers.
struct Layer {
  const char* file;
  int workers;
  std::size_t n;
};
constexpr Layer layers[] = {{"tests/data/factor_conv2_g", 4, 64},
                            {"tests/data/factor_fc1_g", 2, 128},
                            {"benchmarks/data/factor", 2, 160}};  // of conv2's inputs

Matrix factor(const Layer& layer, int worker) {
  const std::size_t n = layer.n;
  const Matrix m("m", n, n);
  std::ifstream file(std::string(WRING_SOURCE_DIR "/") + layer.file + "_w" + std::to_string(worker) + ".f32",
                     std::ios::binary);
  file.read(reinterpret_cast<char*>(m.data()), static_cast<std::streamsize>(n * n * sizeof(float)));
  REQUIRE(file);
  return m;
}

/// Whether m + damping I has a Cholesky factorisation, computed in double.
bool is_positive_definite(const Matrix& m, double damping) {
  const std::size_t n = m.extent(0);
  std::vector<double> l(n * n);
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = j; i < n; ++i) {
      double sum = static_cast<double>(m(i, j)) + (i == j ? damping : 0);
      for (std::size_t k = 0; k < j; ++k) sum -= l[i * n + k] * l[j * n + k];
      if (i == j && !(sum > 0)) return false;
      l[i * n + j] = i == j ? std::sqrt(sum) : sum / l[j * n + j];
    }
  return true;
}

/// The mean of the workers' factors within a bound.
Matrix mean_within(const Layer& layer, wring::Bound bound) {
  InProcess world(layer.workers);
  std::deque<wring::Allreduce<wring::Grid<float>, InProcessTransport>> means;
  std::vector<Matrix> m;
  for (int w = 0; w < layer.workers; ++w) {
    m.push_back(factor(layer, w));
    means.emplace_back(wring::Grid<float>{}, world.link(w), wring::Ring{},
                       wring::Options{.operation = wring::mean});
  }
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return means[r].start(Exec{}, wring::symmetric(m[r]), bound);
  });
  INFO(describe(outcomes));
  REQUIRE(all_ok(outcomes));
  return m[0];
}

/// The upper triangle, row by row.
std::vector<float> triangle(const Matrix& m) {
  std::vector<float> x;
  for (std::size_t i = 0; i < m.extent(0); ++i)
    for (std::size_t j = i; j < m.extent(0); ++j) x.push_back(m(i, j));
  return x;
}
Matrix from_triangle(const std::vector<float>& x, std::size_t n) {
  const Matrix m("m", n, n);
  for (std::size_t i = 0, at = 0; i < n; ++i)
    for (std::size_t j = i; j < n; ++j) m(i, j) = m(j, i) = x[at++];
  return m;
}

double mean_diagonal(const Matrix& m) {
  double trace = 0;
  for (std::size_t i = 0; i < m.extent(0); ++i) trace += static_cast<double>(m(i, i));
  return trace / static_cast<double>(m.extent(0));
}

}  // namespace

TEST_CASE("damped factors stay positive definite under the bound, and not under a much larger one",
          "[collective][kfac]") {
  bool one_is_lost = false;
  for (const Layer& layer : layers)
    for (const double part : {1.0, 0.1, 0.001}) {  // of the mean of the diagonal
      const double damping = part * mean_diagonal(factor(layer, 0));
      const wring::Bound bound = wring::positive_definite(damping, layer.n);
      INFO(layer.file << ", damping " << damping << ", bound " << bound.value);
      REQUIRE(bound.value < damping / static_cast<double>(layer.n));
      REQUIRE(is_positive_definite(mean_within(layer, bound), damping));
      const Matrix coarse = mean_within(layer, wring::absolute(30 * bound.value));
      one_is_lost = one_is_lost || !is_positive_definite(coarse, damping);
    }
  REQUIRE(one_is_lost);
}

TEST_CASE("every compressor that keeps a bound keeps damped factors positive definite",
          "[collective][kfac]") {
  for (const Layer& layer : layers) {
    Case<float> all{.inputs = {},
                    .collectives = {wring::Collective::allreduce},
                    .operations = {wring::mean},
                    .algorithms = {wring::Direct{}, wring::RecursiveDoubling{}}};
    for (int w = 0; w < layer.workers; ++w) all.inputs.push_back(triangle(factor(layer, w)));
    for (const double part : {1.0, 0.01}) {
      const double damping = part * mean_diagonal(factor(layer, 0));
      all.bound = wring::positive_definite(damping, layer.n), all.error = all.bound.value;
      everywhere(all, [&](const AnyCompressor<float>& compressor, const AnyCall<float>&,
                          const Collected<float>& got) {
        if (!compressor.bounded) return;
        INFO(layer.file << ", damping " << damping);
        REQUIRE(all_ok(got.outcomes));
        REQUIRE(is_positive_definite(from_triangle(got.results[0], layer.n), damping));
      });
    }
  }
}

// Under the worst error that a bound allows, every element off by E, no larger bound would do.
TEST_CASE("the bound that keeps a matrix positive definite is the largest", "[kfac]") {
  constexpr std::size_t n = 40;
  const double damping = 0.25;
  for (const double times : {1.0, 1.001}) {
    const Matrix m("m", n, n);
    Kokkos::deep_copy(m, static_cast<float>(-times * wring::positive_definite(damping, n).value));
    REQUIRE(is_positive_definite(m, damping) == (times == 1.0));
  }
  REQUIRE_THROWS_AS(wring::positive_definite(0, 3), wring::InvalidArgument);
  REQUIRE_THROWS_AS(wring::positive_definite(std::nan(""), 3), wring::InvalidArgument);
  REQUIRE_THROWS_AS(wring::positive_definite(1, 0), wring::InvalidArgument);
}
