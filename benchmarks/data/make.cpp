// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes data of any size for the benchmarks: see README.md.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/arguments.hpp"
#include "support/program.hpp"
#include "support/result_file.hpp"

namespace {

using namespace wring_benchmark;

constexpr const char* usage = R"(usage: benchmark.data.make KIND FILE [--OPTION VALUE ...]
  KIND       field, gradient or factor
  FILE       for the values, float32 without a header
  --values   how many, with k, m, g     (default 1m)
  --seed     what workers have in common (default 1)
  --worker   whose values               (default 0)
)";

using Generator = std::mt19937_64;

/// What all workers have in common, and what is a worker's own.
struct Seeds {
  std::uint64_t seed, worker;
  Generator common() const { return Generator(seed); }
  Generator own() const { return Generator(seed * 1000003 + worker + 1); }
};

std::size_t side_of(std::size_t values) {
  return static_cast<std::size_t>(std::sqrt(static_cast<double>(values)));
}

/// A sum of plane waves with amplitude k^-3/2 and random directions and phases; workers' phases differ a little.
std::vector<float> make_field(std::size_t values, const Seeds& seeds) {
  Generator common = seeds.common(), own = seeds.own();
  std::normal_distribution<double> normal;
  const std::size_t side = side_of(values);
  std::vector<float> field(side * side);
  for (int mode = 1; mode <= 64; ++mode) {
    const double k = std::exp2(mode / 8.0), angle = 2 * std::numbers::pi * normal(common),
                 unit = 2 * std::numbers::pi * k / static_cast<double>(side), amplitude = std::pow(k, -1.5),
                 phase = 10 * normal(common) + 0.3 * normal(own);
    const std::complex<double> turn = std::polar(1.0, unit * std::cos(angle));
    for (std::size_t y = 0; y < side; ++y) {
      std::complex<double> wave =
          std::polar(amplitude, phase + unit * std::sin(angle) * static_cast<double>(y));
      for (std::size_t x = 0; x < side; ++x, wave *= turn)
        field[y * side + x] += static_cast<float>(wave.real());
    }
  }
  return field;
}

/// Layers of a hundred to a million values, one after the other, each with a scale of its own.
std::vector<float> make_gradient(std::size_t values, const Seeds& seeds) {
  Generator common = seeds.common(), own = seeds.own();
  std::normal_distribution<double> normal;
  std::vector<float> gradient;
  gradient.reserve(values);
  while (gradient.size() < values) {
    const double scale = 1e-3 * std::exp(1.2 * normal(common));
    auto left = static_cast<std::size_t>(std::clamp(std::exp(9 + 2.5 * normal(common)), 100.0, 1e6));
    for (left = std::min(left, values - gradient.size()); left > 0; --left) {
      const double size = scale * std::exp(0.8 * normal(common)), shared = normal(common), mine = normal(own);
      gradient.push_back(static_cast<float>(size * (0.4 * shared + 0.9 * mine)));
    }
  }
  return gradient;
}

/// X^T X / samples for samples of rectified inputs that are mixed from a few sources.
std::vector<float> make_factor(std::size_t values, const Seeds& seeds) {
  constexpr std::size_t sources = 16;
  Generator common = seeds.common(), own = seeds.own();
  std::normal_distribution<double> normal;
  const std::size_t side = side_of(values), samples = 2 * side;
  std::vector<double> mixing(side * sources), scale(side), input(side), sum(side * side);
  for (double& m : mixing) m = normal(common);
  for (double& s : scale) s = std::exp(0.7 * normal(common)) / sources;
  for (std::size_t sample = 0; sample < samples; ++sample) {
    std::vector<double> source(sources);
    for (double& s : source) s = normal(own);
    for (std::size_t i = 0; i < side; ++i) {
      input[i] = normal(own);
      for (std::size_t k = 0; k < sources; ++k) input[i] += mixing[i * sources + k] * source[k];
      input[i] = std::max(0.0, scale[i] * input[i]);
    }
    for (std::size_t i = 0; i < side; ++i)
      for (std::size_t j = 0; input[i] > 0 && j <= i; ++j) sum[i * side + j] += input[i] * input[j];
  }
  std::vector<float> factor(side * side);
  for (std::size_t i = 0; i < side; ++i)
    for (std::size_t j = 0; j < side; ++j)
      factor[i * side + j] =
          static_cast<float>(sum[std::max(i, j) * side + std::min(i, j)] / static_cast<double>(samples));
  return factor;
}

/// How values are made, by kind.
auto maker_of(const std::string& kind) {
  if (kind == "field") return make_field;
  if (kind == "gradient") return make_gradient;
  if (kind == "factor") return make_factor;
  throw std::invalid_argument("'" + kind + "' is none of field, gradient, factor");
}

struct Settings {
  decltype(&make_field) make;
  std::size_t values;
  Seeds seeds;
  ResultFile file;
};

Settings settings_from(Arguments& arguments) {
  const std::size_t values = arguments.size("values", "1m");
  const Seeds seeds{arguments.size("seed", "1"), arguments.size("worker", "0")};
  const auto& words = arguments.words();
  arguments.expect_all_known();
  if (words.size() != 2) throw std::invalid_argument("expected a kind of data, and a file");
  if (values == 0) throw std::invalid_argument("--values: there must be one at least");
  return {maker_of(words[0]), values, seeds, ResultFile(words[1])};
}

int run(Settings& settings) {
  const auto made = settings.make(settings.values, settings.seeds);
  settings.file.write({reinterpret_cast<const char*>(made.data()), made.size() * sizeof(float)});
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  return run_program("data.make", usage, count, arguments, settings_from, run);
}
