// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Thousands of operations in one process, abandoned and refused ones among them: memory and threads stay as they were.
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/cast.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>

#include "cases/resources.hpp"
#include "support/collect.hpp"
#include "support/executors.hpp"

using namespace wring_test;

namespace {

using View = Kokkos::View<float*, Kokkos::HostSpace>;

/// Two ranks that sum up, each call ending in another way.
template <class Codec> class Pair {
 public:
  explicit Pair(std::size_t n) {
    for (int r = 0; r < 2; ++r) sums_.emplace_back(Codec{}, world_.link(r)), data_.emplace_back("data", n);
  }
  void run(int calls) {
    for (int i = 0; i < calls; ++i) {
      std::optional<wring::Bound> bound;
      if (wring::BoundedCompressor<Codec>) bound = wring::absolute(i % 5 == 4 ? -1 : 0.1);
      for (const View& view : data_) Kokkos::deep_copy(view, 1);
      std::vector<wring::Request> requests;
      for (std::size_t r = 0; r < 2; ++r)
        requests.push_back(sums_[r].start(Exec{}, wring::group(wring::item(data_[r], bound))));
      if (i % 5 == 3) requests[0] = {};  // given up
      const auto outcomes = complete(world_, requests);
      for (const Outcome& o : outcomes) hanging_ += o.hangs, good_ += o.ok();
    }
  }
  int hanging() const { return hanging_; }
  int good() const { return good_; }

 private:
  wring::InProcess world_{2};
  std::deque<wring::Allreduce<Codec, wring::InProcessTransport>> sums_;
  std::vector<View> data_;
  int hanging_ = 0, good_ = 0;
};

template <class Codec> void flat(std::size_t n) {
  Pair<Codec> pair(n);
  pair.run(200);
  const std::size_t threads = threads_running();
  const auto bound = binding();
  REQUIRE(least_growth([&] { pair.run(500); }) == 0);
  REQUIRE((threads_running() == threads && binding() == bound));
  REQUIRE(pair.hanging() == 0);
  REQUIRE(pair.good() > 1000);
}

}  // namespace

TEST_CASE("memory is flat over thousands of operations, abandoned and refused ones included",
          "[cases][resources]") {
  for (const std::size_t n : {10, 5000}) {
    INFO(n << " elements");
    flat<wring::None<float>>(n);
    flat<wring::Grid<float>>(n);
    flat<wring::Cast<wring::half_t>>(n);
  }
}
