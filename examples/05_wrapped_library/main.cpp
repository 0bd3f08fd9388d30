// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A codec library that exists, zfp, as a compressor (zfp.hpp, README.md): the laws, then the mean of a smooth field and of noise with a
// bound on the result, beside this library's own compressors. Any number of ranks: mpirun -n 4 wrapped_library
#include "promise.hpp"
#include "zfp.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include <wring/testing/compressor_laws.hpp>
#include <wring/wring.hpp>

using Exec = Kokkos::DefaultHostExecutionSpace;
using Vector = Kokkos::View<float*, Kokkos::HostSpace>;

constexpr std::size_t count = 200000;

float wave(int rank, std::size_t i) {
  return std::sin(0.003F * float(i)) + 0.1F * std::sin(0.1F * float(i) + float(rank));
}
float noise(int rank, std::size_t i) {
  std::uint32_t bits = (std::uint32_t(i) + 7919U * std::uint32_t(rank)) * 2654435761U;
  bits = (bits ^ (bits >> 15)) * 2246822519U;
  return float(bits ^ (bits >> 13)) * 0x1p-31F - 1;
}

template <class T> bool keeps_the_laws() {
  const auto broken = wring::testing::check_compressor_laws(Zfp<T>{});
  for (const std::string& law : broken) std::printf("broken law: %s\n", law.c_str());
  return broken.empty() && worst_part_of_tolerance<T>() <= 0.75;
}

struct Example {
  wring::MpiTransport link{MPI_COMM_WORLD};
  bool good = link.rank() != 0 || (keeps_the_laws<float>() && keeps_the_laws<double>());

  /// One allreduce of what `value` gives for each rank and place.
  template <class Codec>
  void mean(Codec codec, const char* name, const char* data, float (*value)(int, std::size_t), double bound) {
    Vector x("x", count);
    for (std::size_t i = 0; i < count; ++i) x(i) = value(link.rank(), i);
    wring::Allreduce mean(codec, link, wring::Ring{}, {.operation = wring::mean});
    const wring::Report report = mean(Exec{}, x, wring::absolute(bound));
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i) {
      double exact = 0;
      for (int r = 0; r < link.size(); ++r) exact += value(r, i);
      worst = std::max(worst, std::fabs(x(i) - exact / link.size()));
    }
    good = good && worst <= *report.bound && *report.bound <= bound;
    if (link.rank() == 0)
      std::printf("%-6s %-13s %6.2f times fewer bytes, error %.1e of %.0e\n", data, name, report.ratio(),
                  worst, bound);
  }

  void means(const char* data, float (*value)(int, std::size_t), double bound) {
    using Grid = wring::Grid<float>;
    mean(Zfp<float>{}, "zfp", data, value, bound);
    mean(Grid{}, "Grid", data, value, bound);
    mean(Grid{{.delta = true}}, "Grid, delta", data, value, bound);
  }
};

int main(int arguments, char** texts) {
  MPI_Init(&arguments, &texts);
  bool good = false;
  {
    const Kokkos::ScopeGuard kokkos(arguments, texts);
    try {
      Example example;
      example.means("waves", wave, 1e-3);
      example.means("noise", noise, 1e-2);
      Vector special("special", 8);
      special(3) = std::numeric_limits<float>::infinity(), special(5) = NAN, special(6) = 1;
      wring::Allreduce sum(Zfp<float>{}, example.link);
      sum(Exec{}, special, wring::absolute(1e-3));
      good = example.good && std::isinf(special(3)) && std::isnan(special(5)) &&
             std::fabs(special(6) - float(example.link.size())) <= 1e-3F;
      if (example.link.rank() == 0) std::printf("%s\n", good ? "All laws and bounds are kept." : "FAILED");
    } catch (const wring::Error& error) {  // the same one on all ranks
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
  MPI_Finalize();
  return good ? 0 : 1;
}
