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

#include "support/executors.hpp"
#include "support/ranks.hpp"

using namespace wring_test;
using wring::InProcess;
using wring::InProcessTransport;

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace>;

Matrix factor(const std::string& name, int worker, std::size_t n) {
  const Matrix m("m", n, n);
  std::ifstream file(WRING_SOURCE_DIR "/tests/data/factor_" + name + "_w" + std::to_string(worker) + ".f32",
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
Matrix mean_within(const std::string& name, int workers, std::size_t n, wring::Bound bound) {
  InProcess world(workers);
  std::deque<wring::Allreduce<wring::Grid<float>, InProcessTransport>> means;
  std::vector<Matrix> m;
  for (int w = 0; w < workers; ++w) {
    m.push_back(factor(name, w, n));
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

double mean_diagonal(const Matrix& m) {
  double trace = 0;
  for (std::size_t i = 0; i < m.extent(0); ++i) trace += static_cast<double>(m(i, i));
  return trace / static_cast<double>(m.extent(0));
}

}  // namespace

TEST_CASE("damped factors stay positive definite under the bound, and not under a much larger one",
          "[collective][kfac]") {
  struct Layer {
    const char* name;
    int workers;
    std::size_t n;
  };
  bool one_is_lost = false;
  for (const Layer& layer : {Layer{"conv2_g", 4, 64}, Layer{"fc1_g", 2, 128}})
    for (const double part : {1.0, 0.1, 0.001}) {  // of the mean of the diagonal
      const double damping = part * mean_diagonal(factor(layer.name, 0, layer.n));
      const wring::Bound bound = wring::positive_definite(damping, layer.n);
      INFO(layer.name << ", damping " << damping << ", bound " << bound.value);
      REQUIRE(bound.value < damping / static_cast<double>(layer.n));
      REQUIRE(is_positive_definite(mean_within(layer.name, layer.workers, layer.n, bound), damping));
      const Matrix coarse =
          mean_within(layer.name, layer.workers, layer.n, wring::absolute(30 * bound.value));
      one_is_lost = one_is_lost || !is_positive_definite(coarse, damping);
    }
  REQUIRE(one_is_lost);
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
