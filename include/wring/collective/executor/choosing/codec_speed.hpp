// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <wring/collective/executor/agreement/magnitudes.hpp>
#include <wring/collective/executor/memory/buffers.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/detail/hash.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/machine.hpp>
#include <wring/transport/concept.hpp>
#include <wring/work.hpp>

namespace wring::inline v0::detail {

/// Seconds on this rank's clock, of which the link may have a virtual one.
template <class Link> double clock_of(Link& link) {
  if constexpr (VirtualTimeTransport<Link>)
    return link.now();
  else
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds for each byte of uncompressed values.
struct WorkSpeed {
  double measure = 0, encode = 0, combine = 0, decode = 0, add = 0;
};

/// The same for values in the caches and for values that come from memory, and of messages; and seconds for each call.
struct CodecSpeed {
  WorkSpeed cached, from_memory;
  double copy = 0, launch = 0;
};

/// Measures a compressor on this rank, with made values: first 256 KiB of them, which stay in the caches as small vectors do, then as many
/// again and again in other places of 8 MiB.
template <class Codec, class Link, class Exec> class CodecStopwatch {
 public:
  using T = typename Codec::value_type;

  CodecStopwatch(Link& link, const Codec& codec, const Exec& exec)
      : link_(link), codec_(codec), exec_(exec), values_(memory<T>(places * count)),
        others_(memory<T>(count)) {
    make_values();
    prepare();
    room_ = codec_.max_compressed_bytes(count);
    bytes_ = memory<std::byte>(places * room_), sum_ = memory<std::byte>(most_bytes());
  }

  CodecSpeed measure() {
    CodecSpeed speed;
    const double few = in_cache(Work::encode, few_values, [&](const Place& p) { encode(p, few_values); });
    const double many =
        in_cache(Work::encode, count, [&](const Place& p) { piece_bytes_ = encode(p, count); });
    const double each = std::max(many - few, many / 2) / bytes_of(count - few_values);
    speed.launch = std::max(0.0, few - each * bytes_of(few_values));
    speed.copy = copy_seconds() / bytes_of(count);
    speed.cached = work_speed(speed, [&](Work work, auto call) { return in_cache(work, count, call); });
    speed.cached.encode = each;
    for (std::size_t i = 0; i < places; ++i) encode(place(i), count);
    speed.from_memory = work_speed(speed, [&](Work work, auto call) { return from_memory(work, call); });
    return speed;
  }

 private:
  using Space = typename Exec::memory_space;
  template <class V> using Memory = Kokkos::View<V*, Space>;
  static constexpr std::size_t count = cached_bytes / sizeof(T),
                               few_values = std::min<std::size_t>(512, count / 4),
                               places = memory_bytes / cached_bytes;
  static constexpr int most_ranks = 2, repetitions = 4;
  static constexpr double enough_seconds = 3e-3;  ///< for each kind of work

  template <class V> static Memory<V> memory(std::size_t n) {
    return Memory<V>(Kokkos::view_alloc(Kokkos::WithoutInitializing, "wring::calibration"), n);
  }
  /// What a piece of work reads and writes.
  struct Place {
    std::span<const T> values;
    std::span<T> results;
    std::span<std::byte> bytes;
  };
  Place cached_place() const { return {values(0), {others_.data(), count}, {bytes_.data(), room_}}; }
  /// Results replace values.
  Place place(std::size_t i) const {
    return {values(i), {values_.data() + i * count, count}, {bytes_.data() + i * room_, room_}};
  }
  std::span<const T> values(std::size_t i) const { return {values_.data() + i * count, count}; }
  std::span<const std::byte> encoded(const Place& place) const { return place.bytes.first(piece_bytes_); }
  static double bytes_of(std::size_t n) { return static_cast<double>(n * sizeof(T)); }

  /// Of many magnitudes up to 4, as gradients are; the same in each place.
  void make_values() {
    const auto first = Kokkos::subview(values_, std::pair<std::size_t, std::size_t>(0, count));
    const auto host = Kokkos::create_mirror_view(first);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = mix(i + 1);
      const double unit = static_cast<double>(bits >> 12) * 0x1p-51 - 1;
      host(i) = made(4 * unit * unit * unit, bits);
    }
    Kokkos::deep_copy(exec_, first, host);
    for (std::size_t place = 1; place < places; ++place)
      Kokkos::deep_copy(exec_, Kokkos::subview(values_, std::pair(place * count, (place + 1) * count)),
                        first);
    Kokkos::deep_copy(exec_, others_, first);
    exec_.fence("wring::calibrate");
  }
  static T made(double real, std::uint64_t bits) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(bits % 4);
    else if constexpr (FloatElement<T> && sizeof(T) == 2)
      return T(static_cast<float>(real));
    else
      return T(static_cast<RealPart>(real));
  }
  using RealPart = std::conditional_t<sizeof(T) % 8 == 0, double, float>;

  /// Well above the rounding of a sum of two to the type.
  static constexpr double allowed_error() {
    if constexpr (FloatElement<T>)
      return std::max(0.02, 40 * FloatTraits<T>::unit_roundoff);
    else
      return 0.02;
  }

  void prepare() {
    constexpr double error = allowed_error();
    if constexpr (PreparedCompressor<Codec, Exec>) {
      Agreed agreed{.ranks = most_ranks, .total = count, .max_abs = 4, .allowed_error = {}, .measured = true};
      if (BoundedCompressor<Codec, Exec>) agreed.allowed_error = error;
      codec_.prepare(agreed);
    }
    if constexpr (BoundedCompressor<Codec, Exec> && !PreparedCompressor<Codec, Exec>)
      allowed_ = std::max<double>(error, codec_.error(4));
    if constexpr (ScratchCompressor<Codec, Exec>) scratch_ = memory<std::byte>(codec_.scratch_bytes(count));
    if constexpr (InspectingCompressor<Codec, Exec>) codec_.inspect(exec_, values(0), context(count));
  }

  std::size_t most_bytes() const {
    std::size_t most = codec_.max_compressed_bytes(count);
    if constexpr (CombiningCompressor<Codec, Exec>)
      most = std::max<std::size_t>(most, codec_.max_combined_bytes(count, most_ranks));
    return most;
  }

  Context context(std::size_t n, Phase phase = Phase::own, int terms = 1) {
    Context c{.phase = phase,
              .ranks = most_ranks,
              .terms = terms,
              .count = n,
              .total = n,
              .allowed_error = allowed_};
    if constexpr (ScratchCompressor<Codec, Exec>) c.scratch = {scratch_.data(), codec_.scratch_bytes(n)};
    return c;
  }

  /// What `seconds_of(work, call)` finds for each kind of work; `call(place)` does it.
  template <class SecondsOf> WorkSpeed work_speed(const CodecSpeed& known, SecondsOf seconds_of) {
    const auto each = [&](Work work, auto call) {
      return std::max(seconds_of(work, call) - known.launch, 1e-9) / bytes_of(count);
    };
    WorkSpeed speed;
    speed.encode = each(Work::encode, [&](const Place& p) { encode(p, count); });
    if constexpr (InspectingCompressor<Codec, Exec>)
      speed.measure =
          each(Work::measure, [&](const Place& p) { codec_.inspect(exec_, p.values, context(count)); });
    else if constexpr (FloatElement<T>)
      speed.measure = seconds_of(Work::measure,
                                 [&](const Place& p) {
                                   wring::detail::measure<T>(exec_, p.values, Bound::Kind::rms, workspace_);
                                 }) /
                      bytes_of(count);
    else
      speed.measure = known.copy;
    speed.decode = each(Work::decode, [&](const Place& p) {
      codec_.decompress(exec_, encoded(p), p.results, context(count));
    });
    speed.combine = each(Work::combine, [&](const Place& p) { combine(p); });
    speed.add = seconds_of(Work::combine, [&](const Place& p) { add(p); }) / bytes_of(count);
    return speed;
  }

  std::size_t encode(const Place& p, std::size_t n) {
    return codec_.compress(exec_, p.values.first(n), p.bytes.first(codec_.max_compressed_bytes(n)),
                           context(n));
  }

  void combine(const Place& p) {
    if constexpr (CombiningCompressor<Codec, Exec>) {
      codec_.combine(exec_, encoded(p), encoded(p), std::span<std::byte>(sum_.data(), sum_.size()),
                     context(count, Phase::hop, 2));
    } else if constexpr (AddingCompressor<Codec, Exec>) {
      codec_.decompress_add(exec_, encoded(p), p.results, context(count));
    } else {
      codec_.decompress(exec_, encoded(p), p.results, context(count));
      add(p);
    }
  }

  void add(const Place& p) { combine_values<T>(exec_, p.results, p.values, Operation::sum); }

  /// Bytes are copied into a message and sealed.
  double copy_seconds() {
    std::vector<std::byte> from(count * sizeof(T)), to(from.size());
    return in_cache(Work::wire, count, [&](const Place&) {
      from[0] = static_cast<std::byte>(sums_);
      std::memcpy(to.data(), from.data(), from.size());
      sums_ += checksum(to);
    });
  }

  template <class Call> double seconds(Work work, std::size_t n, const Place& place, Call call) {
    const double begin = clock_of(link_);
    call(place);
    exec_.fence("wring::calibrate");
    if constexpr (VirtualTimeTransport<Link>) link_.spend(work, n * sizeof(T));
    return std::max(clock_of(link_) - begin, 1e-9);
  }

  /// Of the same values again and again: the least time of several, after one that warms up.
  template <class Call> double in_cache(Work work, std::size_t n, Call call) {
    double least = std::numeric_limits<double>::infinity(), spent = 0;
    for (int i = 0; i <= repetitions && (i < 3 || spent < enough_seconds); ++i) {
      const double time = seconds(work, n, cached_place(), call);
      if (i > 0) least = std::min(least, time);
      spent += time;
    }
    return least;
  }

  /// In all places, one after the other: when the first comes again it has left the caches. The median of the times, so that what
  /// disturbs a few does not count.
  template <class Call> double from_memory(Work work, Call call) {
    std::array<double, places> times;
    for (std::size_t i = 0; i < places; ++i) times[i] = seconds(work, count, place(i), call);
    std::nth_element(times.begin(), times.begin() + places / 2, times.end());
    return times[places / 2];
  }

  Link& link_;
  Codec codec_;
  Exec exec_;
  Memory<T> values_, others_;
  Memory<std::byte> bytes_, sum_, scratch_;
  std::size_t room_ = 0,
              piece_bytes_ = 0;  ///< for what is encoded, and of it; the values are the same in each place
  std::uint64_t sums_ = 0;
  double allowed_ = std::numeric_limits<double>::infinity();
  std::unique_ptr<Buffer<typename MessageSpace<Exec>::type>> workspace_;
};

}  // namespace wring::inline v0::detail
