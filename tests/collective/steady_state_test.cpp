// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A repeated operation allocates nothing: operator new and Kokkos' allocations are counted.
#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <cstdlib>
#include <deque>
#include <new>
#include <optional>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/collective/timeline.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/none.hpp>
#include <wring/transport/in_process.hpp>

namespace {
std::atomic<long> allocations{0};
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const std::size_t unit = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace {

using Exec = Kokkos::DefaultHostExecutionSpace;
using View = Kokkos::View<float*, Kokkos::HostSpace>;
using wring::InProcess;
using wring::InProcessTransport;

void count_allocation(Kokkos_Profiling_SpaceHandle, const char*, const void*, std::uint64_t) {
  ++allocations;
}

/// Calls on `ranks` ranks in turn; returns how many allocations the later calls made.
template <class Codec, class Algorithm>
long later_allocations(const Codec& codec, const Algorithm& algorithm, int ranks, std::size_t n,
                       wring::Options options, std::optional<wring::Bound> bound, bool polled = false,
                       wring::Timeline* timeline = nullptr) {
  InProcess world(ranks, {.eager_limit = 0, .delay = 0, .seed = 0});
  std::deque<wring::Allreduce<Codec, InProcessTransport, Algorithm>> sums;
  std::vector<View> data;
  std::vector<wring::Request> requests(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    sums.emplace_back(codec, world.link(r), algorithm, options);
    if (timeline) sums.back().record(*timeline);
    data.emplace_back("data", n);
    for (std::size_t i = 0; i < n; ++i)
      data.back()(i) = static_cast<float>((i * 7 + static_cast<std::size_t>(r)) % 13) - 6;
  }
  const auto call = [&] {
    for (std::size_t r = 0; r < data.size(); ++r)
      requests[r] = bound ? sums[r].start(Exec{}, wring::group(wring::item(data[r], bound)))
                          : sums[r].start(Exec{}, data[r]);
    for (std::size_t r = 0; r < data.size(); ++r)
      if (polled)  // and held until the next start takes its place
        while (!requests[r].test()) continue;
      else
        static_cast<void>(requests[r].wait());
  };
  for (int i = 0; i < 24; ++i)
    call();  // until the pool has as many buffers of each size as were ever needed at once
  const long before = allocations;
  for (int i = 0; i < 5; ++i) call();
  return allocations - before;
}

}  // namespace

TEST_CASE("a repeated operation allocates nothing", "[collective][steady]") {
  Kokkos::Tools::Experimental::set_allocate_data_callback(count_allocation);
  const std::size_t n = 20000;
  const wring::Options plain{.operation = wring::mean, .segment_bytes = 8192, .depth = 3},
      confirmed{.confirm = true}, averaged{.operation = wring::mean};
  for (const int ranks : {1, 4}) {
    INFO(ranks << " ranks");
    CHECK(later_allocations(wring::None<float>{}, wring::Ring{}, ranks, n, plain, std::nullopt) == 0);
    CHECK(later_allocations(wring::None<float>{}, wring::Ring{}, ranks, n, plain, wring::absolute(1)) == 0);
    CHECK(later_allocations(wring::None<float>{}, wring::Ring{}, ranks, n, plain, std::nullopt, true) == 0);
    CHECK(later_allocations(wring::None<float>{}, wring::Ring{}, ranks, n, confirmed, std::nullopt) == 0);
    CHECK(later_allocations(wring::None<float>{}, wring::RecursiveDoubling{}, ranks, n, plain,
                            wring::absolute(1)) == 0);
    CHECK(later_allocations(wring::Grid<float>{}, wring::HalvingDoubling{}, ranks, n, plain,
                            wring::absolute(1)) == 0);
    CHECK(later_allocations(wring::Grid<float>{}, wring::Hierarchical<>(2), ranks, n, plain,
                            wring::absolute(1)) == 0);
    CHECK(later_allocations(wring::None<float>{}, wring::Direct{}, ranks, 10, plain, std::nullopt) ==
          0);  // rides along
    CHECK(later_allocations(wring::Cast<wring::half_t>{}, wring::Ring{}, ranks, n, plain, std::nullopt) == 0);
    CHECK(later_allocations(wring::Grid<float>{}, wring::Ring{}, ranks, n, plain, wring::absolute(0.1)) == 0);
    CHECK(later_allocations(wring::Grid<float>{}, wring::Direct{}, ranks, n, plain,
                            wring::relative_to_rms(0.01)) == 0);
    CHECK(later_allocations(wring::Grid<float>{}, wring::Direct{}, ranks, 10, plain, wring::absolute(0.1)) ==
          0);
    for (const std::size_t length : {std::size_t(10), n, 10 * n})
      CHECK(later_allocations(wring::Grid<float>{}, wring::Automatic{}, ranks, length, averaged,
                              wring::absolute(0.1)) == 0);
    CHECK(later_allocations(wring::Cast<wring::half_t>{}, wring::Automatic{}, ranks, n, averaged,
                            std::nullopt) == 0);
  }
  Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
}

TEST_CASE("recording a repeated operation allocates nothing, whether or not there is room",
          "[collective][steady]") {
  Kokkos::Tools::Experimental::set_allocate_data_callback(count_allocation);
  const wring::Options options{.operation = wring::mean, .segment_bytes = 8192, .depth = 3, .confirm = true};
  for (const std::size_t capacity : {10, 100000}) {
    wring::Timeline timeline(capacity);
    CHECK(later_allocations(wring::Grid<float>{}, wring::Ring{}, 4, 20000, options, wring::absolute(0.1),
                            false, &timeline) == 0);
    CHECK((timeline.lost() > 0) == (capacity == 10));
  }
  Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
}
