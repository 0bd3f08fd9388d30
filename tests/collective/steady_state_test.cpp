// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A repeated operation allocates nothing, fences nothing but its own instance, and asks nobody how long a message will be: operator new,
// Kokkos' allocations and fences, and messages are counted.
#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/collective/timeline.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/error_feedback.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>
#include <wring/compressor/packed_words.hpp>
#include <wring/transport/in_process.hpp>
#include <wring/view/scaled.hpp>

#include "support/algorithms.hpp"
#include "support/executors.hpp"

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

/// What Kokkos fences, and whose name the fences bear.
struct Fences {
  long ours = 0, others = 0, global = 0;
} fences;

void count_fence(const char* name, std::uint32_t device, std::uint64_t*) {
  ++(std::string_view(name).starts_with("wring::") ? fences.ours : fences.others);
  fences.global += Kokkos::Tools::Experimental::identifier_from_devid(device).instance_id == 0;
}

View filled(std::size_t n, int rank) {
  View view("data", n);
  for (std::size_t i = 0; i < n; ++i)
    view(i) = static_cast<float>((i * 7 + static_cast<std::size_t>(rank)) % 13) - 6;
  return view;
}

/// Operations on `ranks` ranks in turn, each started by `start(rank)`.
template <class Start> class Repeated {
 public:
  Repeated(int ranks, Start start) : start_(start), requests_(static_cast<std::size_t>(ranks)) {}

  /// One operation. A request that is polled is held until the next start takes its place.
  void call(bool polled = false) {
    for (std::size_t r = 0; r < requests_.size(); ++r) requests_[r] = start_(r);
    for (wring::Request& request : requests_)
      if (polled)
        while (!request.test()) continue;
      else
        report = request.wait();
  }

  /// How many allocations the later calls make.
  long later_allocations(bool polled = false) {
    for (int i = 0; i < 24; ++i)
      call(polled);  // until the pool has as many buffers of each size as were ever needed at once
    const long before = allocations;
    for (int i = 0; i < 5; ++i) call(polled);
    return allocations - before;
  }

  wring::Report report;  ///< of the last rank

 private:
  Start start_;
  std::vector<wring::Request> requests_;
};

constexpr wring::InProcessOptions without_copies{.eager_limit = 0, .delay = 0, .seed = 0};

/// Allreduces on `ranks` ranks; returns how many allocations the later calls made.
template <class Codec, class Algorithm>
long later_allocations(const Codec& codec, const Algorithm& algorithm, int ranks, std::size_t n,
                       wring::Options options, std::optional<wring::Bound> bound, bool polled = false,
                       wring::Timeline* timeline = nullptr) {
  InProcess world(ranks, without_copies);
  std::deque<wring::Allreduce<Codec, InProcessTransport, Algorithm>> sums;
  std::vector<View> data;
  for (int r = 0; r < ranks; ++r) {
    sums.emplace_back(codec, world.link(r), algorithm, options);
    if (timeline) sums.back().record(*timeline);
    data.push_back(filled(n, r));
  }
  const auto start = [&](std::size_t r) {
    return bound ? sums[r].start(Exec{}, wring::group(wring::item(data[r], bound)))
                 : sums[r].start(Exec{}, data[r]);
  };
  return Repeated(ranks, start).later_allocations(polled);
}

/// A bounded compressor of a user's own, which sends values as they are.
struct Copied {
  using value_type = float;
  wring::Identity identity() const { return {.name = "copied", .version = 1, .options = {}}; }
  std::size_t max_compressed_bytes(std::size_t n) const { return n * sizeof(float); }
  double error(double max_abs) const { return 0x1p-24 * max_abs; }
  template <class E> std::size_t compress(const E&, std::span<const float> values, std::span<std::byte> bytes,
                                          const wring::Context&) const {
    std::memcpy(bytes.data(), values.data(), values.size_bytes());
    return values.size_bytes();
  }
  template <class E> void decompress(const E&, std::span<const std::byte> bytes, std::span<float> values,
                                     const wring::Context&) const {
    std::memcpy(values.data(), bytes.data(), values.size_bytes());
  }
};
static_assert(wring::BoundedCompressor<Copied> && !wring::LosslessCompressor<Copied>);

/// A group of three tensors, one of them with a compressor of its own, then the other collectives, with `Grid`.
template <class Schedule> void check_others(const Schedule& schedule, wring::Bound bound) {
  constexpr int ranks = 4;
  InProcess world(ranks, without_copies);
  std::deque<wring::Allreduce<wring::Grid<float>, InProcessTransport, Schedule>> sums;
  std::deque<wring::ReduceScatter<wring::Grid<float>, InProcessTransport, Schedule>> scatters;
  std::deque<wring::Allgather<wring::Grid<float>, InProcessTransport, Schedule>> gathers;
  std::deque<wring::Broadcast<wring::Grid<float>, InProcessTransport, Schedule>> broadcasts;
  std::vector<View> small, medium, large, part;
  const wring::Options mean{.operation = wring::mean};  // sums in place would grow
  for (int r = 0; r < ranks; ++r) {
    const wring::Grid<float> codec;
    sums.emplace_back(codec, world.link(r), schedule, mean);
    scatters.emplace_back(codec, world.link(r), schedule);
    gathers.emplace_back(codec, world.link(r), schedule);
    broadcasts.emplace_back(codec, world.link(r), schedule);
    small.push_back(filled(10, r)), medium.push_back(filled(3000, r)), large.push_back(filled(20000, r));
    part.push_back(filled(5000, r));
  }
  const wring::Grid<float> smooth(wring::Grid<float>::Options{.delta = true});
  const auto group = [&](std::size_t r) {
    return wring::group(wring::item(small[r], bound), wring::item(medium[r], bound).with(smooth),
                        wring::item(large[r], wring::absolute(0.1)));
  };
  std::vector<decltype(group(0))> groups;
  for (std::size_t r = 0; r < ranks; ++r) groups.push_back(group(r));
  const auto reduce = [&](std::size_t r) { return sums[r].start(Exec{}, groups[r]); };
  const auto scatter = [&](std::size_t r) { return scatters[r].start(Exec{}, large[r], part[r], bound); };
  const auto gather = [&](std::size_t r) { return gathers[r].start(Exec{}, part[r], large[r], bound); };
  const auto broadcast = [&](std::size_t r) { return broadcasts[r].start(Exec{}, large[r], 1, bound); };
  CHECK(Repeated(ranks, reduce).later_allocations() == 0);
  CHECK(Repeated(ranks, scatter).later_allocations() == 0);
  CHECK(Repeated(ranks, gather).later_allocations() == 0);
  CHECK(Repeated(ranks, broadcast).later_allocations() == 0);
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
    CHECK(later_allocations(Copied{}, wring::Ring{}, ranks, n, plain, wring::absolute(1)) == 0);
  }
  Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
}

TEST_CASE("a call of a compressor allocates nothing, in one thread or several", "[collective][steady]") {
  constexpr std::size_t n = 200000;  // more than one thread gets something to do
  const View values = filled(n, 0);
  const std::span<float> x(values.data(), n);
  wring::Grid<float> codec;
  codec.prepare({.ranks = 2, .total = n, .max_abs = 6, .allowed_error = 0.1, .measured = true});
  std::vector<std::byte> bytes(codec.max_compressed_bytes(n)), sum(codec.max_combined_bytes(n, 2));
  const wring::Context context{.ranks = 2, .count = n, .total = n};
  long before = 0;
  for (int call = 0; call < 3; ++call) {
    if (call == 1) before = allocations;
    const std::size_t size = codec.compress(Exec{}, std::span<const float>(x), bytes, context);
    const std::span<const std::byte> piece(bytes.data(), size);
    const std::size_t combined = codec.combine(Exec{}, piece, piece, sum, context);
    codec.decompress(Exec{}, std::span<const std::byte>(sum.data(), combined), x, context);
    for (float& v : x) v /= 2;
  }
  CHECK(allocations == before);
}

TEST_CASE("what looks at all values, in one thread or several, allocates nothing", "[collective][steady]") {
  Kokkos::Tools::Experimental::set_allocate_data_callback(count_allocation);
  constexpr int ranks = 4;
  constexpr std::size_t n = 200000;
  const wring::Options mean{.operation = wring::mean, .segment_bytes = std::size_t{1} << 22};
  const wring::Bound bound = wring::absolute(0.1);
  CHECK(later_allocations(wring::PackedWords<float>{}, wring::Ring{}, ranks, n, mean, bound) == 0);

  using Remembering = wring::ErrorFeedback<wring::Grid<float>>;
  InProcess world(ranks, without_copies);
  std::deque<wring::FeedbackState<float>> states;
  std::deque<wring::Allreduce<Remembering, InProcessTransport, wring::Ring>> remembering;
  std::deque<wring::Allreduce<wring::Grid<float>, InProcessTransport, wring::Ring>> sums;
  std::vector<View> data, scales;
  for (int r = 0; r < ranks; ++r) {
    states.emplace_back(wring::ResidualStorage::eight_bits);
    remembering.emplace_back(Remembering({}, states.back()), world.link(r), wring::Ring{}, mean);
    sums.emplace_back(wring::Grid<float>{}, world.link(r), wring::Ring{}, mean);
    data.push_back(filled(n, r)), scales.push_back(View("scales", n));
    Kokkos::deep_copy(scales.back(), 2.0f);
  }
  const auto remember = [&](std::size_t r) { return remembering[r].start(Exec{}, data[r], bound); };
  const auto divide = [&](std::size_t r) {
    return sums[r].start(Exec{}, wring::scaled(data[r], scales[r]), bound);
  };
  CHECK(Repeated(ranks, remember).later_allocations() == 0);
  CHECK(Repeated(ranks, divide).later_allocations() == 0);
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

TEST_CASE("groups and the other collectives allocate nothing either, whatever algorithm and bound",
          "[collective][steady]") {
  Kokkos::Tools::Experimental::set_allocate_data_callback(count_allocation);
  for (const wring::Bound bound :
       {wring::absolute(0.1), wring::relative_to_range(0.01), wring::relative_to_rms(0.01)}) {
    for (const wring_test::AnyAlgorithm& algorithm : wring_test::all_algorithms(4)) {
      INFO(algorithm.name());
      check_others(algorithm, bound);
    }
    check_others(wring::Automatic{}, bound);
  }
  Kokkos::Tools::Experimental::set_allocate_data_callback(nullptr);
}

TEST_CASE("an operation fences its own instance alone, and all its messages are those of its plan",
          "[collective][steady]") {
  constexpr std::size_t n = 20000;
  for (const int ranks : {2, 4})
    for (const wring_test::AnyAlgorithm& algorithm : wring_test::all_algorithms(ranks))
      for (const wring::Bound bound : {wring::absolute(0.1), wring::relative_to_rms(0.01)}) {
        InProcess world(ranks, without_copies);
        std::deque<wring::Allreduce<wring::Grid<float>, InProcessTransport, wring_test::AnyAlgorithm>> sums;
        std::vector<View> data;
        std::uint64_t sends = 0;
        for (int r = 0; r < ranks; ++r) {
          sums.emplace_back(wring::Grid<float>{}, world.link(r), algorithm,
                            wring::Options{.operation = wring::mean, .segment_bytes = 8192, .depth = 3});
          data.push_back(filled(n, r));
          for (const wring::Step& step : algorithm.plan({}, r, ranks).steps)
            sends += step.kind == wring::Kind::send;
        }
        Repeated operation(ranks, [&](std::size_t r) { return sums[r].start(Exec{}, data[r], bound); });
        INFO(algorithm.name() << ", " << ranks << " ranks");
        CHECK(operation.later_allocations() == 0);
        fences = {};
        const std::uint64_t before = world.messages();
        Kokkos::Tools::Experimental::set_begin_fence_callback(count_fence);
        operation.call();
        Kokkos::Tools::Experimental::set_begin_fence_callback(nullptr);
        CHECK(fences.ours > 0);
        CHECK(fences.others == 0);
        CHECK(fences.global == 0);
        const auto agreement = static_cast<std::uint64_t>(ranks * (std::bit_width(unsigned(ranks)) - 1));
        CHECK(world.messages() - before == agreement + sends * operation.report.segments);
      }
}
