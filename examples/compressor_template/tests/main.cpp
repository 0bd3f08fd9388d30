// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The laws of a compressor, a sum of five ranks in this process by every kind of algorithm, and damaged bytes.
#include <common_step/common_step.hpp>

#include <cmath>
#include <cstdio>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include <wring/algorithm.hpp>
#include <wring/collective/allreduce.hpp>
#include <wring/testing/compressor_laws.hpp>
#include <wring/transport/in_process.hpp>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using common_step::CommonStep;
using View = Kokkos::View<float*, Kokkos::HostSpace>;

bool keeps_the_laws(const std::vector<std::string>& broken) {
  for (const std::string& law : broken) std::printf("broken law: %s\n", law.c_str());
  return broken.empty();
}

float input(int rank, std::size_t i) {
  return std::sin(0.01F * static_cast<float>(i) + static_cast<float>(rank));
}

/// What the ranks of this process hold after a sum.
template <class Algorithm> std::vector<View> sums(const Algorithm& algorithm, int ranks, double bound) {
  wring::InProcess world(ranks);
  std::deque<wring::Allreduce<CommonStep<float>, wring::InProcessTransport, Algorithm>> operations;
  std::vector<View> data;
  std::vector<wring::Request> requests;
  for (int r = 0; r < ranks; ++r) {
    View& x = data.emplace_back("x", 5000);
    for (std::size_t i = 0; i < x.size(); ++i) x(i) = input(r, i);
    operations.emplace_back(CommonStep<float>{}, world.link(r), algorithm);
    requests.push_back(operations.back().start(Exec{}, x, wring::absolute(bound)));
  }
  for (wring::Request& request : requests) request.wait();
  return data;
}

/// Every rank is within the bound, and all have the bits of `first`, whatever the algorithm.
template <class Algorithm> bool adds(const Algorithm& algorithm, std::vector<float>& first) {
  constexpr int ranks = 5;
  constexpr double bound = 1e-3;
  for (const View& x : sums(algorithm, ranks, bound))
    for (std::size_t i = 0; i < x.size(); ++i) {
      double exact = 0;
      for (int r = 0; r < ranks; ++r) exact += input(r, i);
      if (first.size() == i) first.push_back(x(i));
      if (std::fabs(x(i) - exact) <= bound && x(i) == first[i]) continue;
      std::printf("%s: element %zu is %g, not %g\n", algorithm.name().c_str(), i, double(x(i)), exact);
      return false;
    }
  return true;
}

bool survives_damage() {
  std::mt19937 random;
  for (int k = 0; k < 1000; ++k) {
    std::string bytes(random() % 200, '\0');
    for (char& b : bytes) b = static_cast<char>(random());
    LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  const Kokkos::ScopeGuard kokkos(count, arguments);
  std::vector<float> first;
  bool good = keeps_the_laws(wring::testing::check_compressor_laws(CommonStep<float>{}));
  good = keeps_the_laws(wring::testing::check_compressor_laws(CommonStep<double>{})) && good;
  good = adds(wring::Ring{}, first) && adds(wring::Direct{}, first) &&
         adds(wring::Hierarchical<>(2), first) && good;
  good = survives_damage() && good;
  std::printf("%s\n", good ? "all tests passed" : "a test failed");
  return good ? 0 : 1;
}
