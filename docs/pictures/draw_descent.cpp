// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Draws the picture of docs/stability.md from what it runs: four ranks in one process minimise a quadratic function by gradient descent, the mean of
// their gradients reduced in 2 bits. Prints the last distances. From the top folder, with Kokkos and fmt installed:
//   c++ -std=c++20 -O2 -fopenmp -Iinclude docs/pictures/draw_descent.cpp -lkokkoscore -lfmt -o draw_descent && ./draw_descent docs/pictures

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdio>
#include <deque>
#include <fstream>
#include <string>
#include <vector>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor.hpp>
#include <wring/transport/in_process.hpp>

namespace {

constexpr int ranks = 4, steps = 2000;
constexpr std::size_t n = 512;
using View = Kokkos::View<float*, Kokkos::HostSpace>;

/// Between -1 and 1, the same on every machine.
double number(std::uint64_t index) {
  return static_cast<double>(wring::detail::mix(index + 1) >> 11) * 0x1p-52 - 1;
}
double curvature(std::size_t i) { return std::pow(10.0, -1.5 * static_cast<double>(i) / n); }
/// Where rank r's own function has its minimum: far from that of the mean.
double minimum(int r, std::size_t i) { return number(n * static_cast<std::uint64_t>(r) + i); }

/// Distances of all steps from the minimum of the mean, relative to the first.
template <class MakeCodec> std::vector<double> descend(const MakeCodec& make_codec, double rate) {
  using Codec = decltype(make_codec(0));
  wring::InProcess world(ranks);
  std::deque<wring::Allreduce<Codec, wring::InProcessTransport, wring::Ring>> mean;
  std::vector<View> gradient;
  for (int r = 0; r < ranks; ++r) {
    mean.emplace_back(make_codec(r), world.link(r), wring::Ring{}, wring::Options{.operation = wring::mean});
    gradient.emplace_back("gradient", n);
  }
  std::vector<double> x(n, 0), distances;
  for (int step = 0; step <= steps; ++step) {
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double best = 0;
      for (int r = 0; r < ranks; ++r) best += minimum(r, i) / ranks;
      squares += (x[i] - best) * (x[i] - best);
      for (int r = 0; r < ranks; ++r)
        gradient[static_cast<std::size_t>(r)](i) = static_cast<float>(curvature(i) * (x[i] - minimum(r, i)));
    }
    distances.push_back(std::sqrt(squares));
    std::vector<wring::Request> requests;
    for (std::size_t r = 0; r < ranks; ++r) {
      mean[r].options().step = static_cast<std::uint64_t>(step);
      requests.push_back(mean[r].start(Kokkos::DefaultHostExecutionSpace(), gradient[r]));
    }
    for (auto& request : requests) request.wait();
    for (std::size_t i = 0; i < n; ++i) x[i] -= rate * static_cast<double>(gradient[0](i));
  }
  const double first = distances[0];
  for (double& d : distances) d /= first;
  return distances;
}

struct Curve {
  std::string name, colour;
  std::vector<double> distances;
};

void draw(const std::vector<Curve>& curves, const std::string& path) {
  constexpr double left = 60, top = 20, width = 480, height = 240, decades = 3;
  std::ofstream svg(path);
  svg << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"310\" font-family=\"sans-serif\" "
         "font-size=\"12\">\n<rect width=\"760\" height=\"310\" fill=\"white\"/>\n";
  for (int d = 0; d <= decades; ++d) {
    const double y = top + height * d / decades;
    svg << "<path d=\"M" << left << " " << y << "h" << width << "\" stroke=\"#ddd\"/>\n<text x=\"" << left - 8
        << "\" y=\"" << y + 4 << "\" text-anchor=\"end\">" << std::pow(10.0, -d) << "</text>\n";
  }
  for (int s = 0; s <= steps; s += 500)
    svg << "<text x=\"" << left + width * s / steps << "\" y=\"" << top + height + 18
        << "\" text-anchor=\"middle\">" << s << "</text>\n";
  svg << "<text x=\"" << left + width / 2 << "\" y=\"" << top + height + 38
      << "\" text-anchor=\"middle\">step</text>\n";
  double line = top + 12;
  for (const Curve& curve : curves) {
    svg << "<path fill=\"none\" stroke-width=\"1.8\" stroke=\"" << curve.colour << "\" d=\"";
    for (std::size_t s = 0; s < curve.distances.size(); ++s) {
      const double y = std::min(decades, std::max(-0.05, -std::log10(curve.distances[s])));
      char point[48];
      std::snprintf(point, sizeof point, "%c%.1f %.1f", s == 0 ? 'M' : 'L',
                    left + width * static_cast<double>(s) / steps, top + height * y / decades);
      svg << point;
    }
    svg << "\"/>\n<path d=\"M" << left + width + 15 << " " << line - 4
        << "h18\" stroke-width=\"1.8\" stroke=\"" << curve.colour << "\"/>\n<text x=\"" << left + width + 38
        << "\" y=\"" << line << "\">" << curve.name << "</text>\n";
    line += 20;
  }
  svg << "</svg>\n";
}

void run(const std::string& folder) {
  using namespace wring;
  using Two = BlockScaled<float, 2>;
  const Two nearest, stochastic({.rounding = StochasticRounding{1}, .rotation = {}});
  constexpr double rate = 0.05;
  std::deque<FeedbackState<float>> states(ranks), more(ranks);
  const auto with = [&](std::deque<FeedbackState<float>>& all) {
    return [&](int r) { return ErrorFeedback(nearest, all[static_cast<std::size_t>(r)]); };
  };
  const std::vector<Curve> curves{
      {"uncompressed", "#000000", descend([](int) { return None<float>(); }, rate)},
      {"2 bits, nearest", "#cc3311", descend([&](int) { return nearest; }, rate)},
      {"2 bits, stochastic", "#ee7733", descend([&](int) { return stochastic; }, rate)},
      {"2 bits, nearest, feedback", "#0077bb", descend(with(states), rate)},
      {"the same, 4 times the rate", "#33bbee", descend(with(more), 4 * rate)},
  };
  for (const Curve& curve : curves) {
    std::printf("%-28s", curve.name.c_str());
    for (const std::size_t s : {std::size_t{100}, std::size_t{300}, std::size_t{1000}, std::size_t{2000}})
      std::printf(" %10.2e", curve.distances[s]);
    std::printf("\n");
  }
  draw(curves, folder + "/descent.svg");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  run(argc > 1 ? argv[1] : ".");
}
