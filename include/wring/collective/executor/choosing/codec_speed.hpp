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
#include <vector>

#include <wring/collective/executor/agreement/magnitudes.hpp>
#include <wring/collective/executor/memory/buffers.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/detail/hash.hpp>
#include <wring/detail/value_kernels.hpp>
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

/// Seconds for each byte of uncompressed values, and for each call.
struct CodecSpeed {
  double measure = 0, encode = 0, combine = 0, decode = 0, launch = 0, add = 0, copy = 0;
};

/// Measures a compressor on this rank, with made values: 256 KiB of them, which stay in the cache, as segments do.
template <class Codec, class Link, class Exec> class CodecStopwatch {
 public:
  using T = typename Codec::value_type;

  CodecStopwatch(Link& link, const Codec& codec, const Exec& exec)
      : link_(link), codec_(codec), exec_(exec), values_(memory<T>(count)), others_(memory<T>(count)) {
    make_values();
    prepare();
    bytes_ = memory<std::byte>(most_bytes()), sum_ = memory<std::byte>(most_bytes());
  }

  CodecSpeed measure() {
    CodecSpeed speed;
    std::size_t size = 0;
    const double few = seconds(Work::encode, few_values, [&] { size = encode(few_values); });
    const double many = seconds(Work::encode, count, [&] { size = encode(count); });
    speed.encode = std::max(many - few, many / 2) / bytes_of(count - few_values);
    speed.launch = std::max(0.0, few - speed.encode * bytes_of(few_values));
    const std::span<const std::byte> piece(bytes_.data(), size);
    const auto each = [&](Work work, auto call) {
      return std::max(seconds(work, count, call) - speed.launch, 1e-9) / bytes_of(count);
    };
    speed.decode = each(Work::decode, [&] { codec_.decompress(exec_, piece, all(others_), context(count)); });
    speed.combine = each(Work::combine, [&] { combine(piece); });
    if constexpr (FloatElement<T>)
      speed.measure =
          seconds(Work::measure, count,
                  [&] { wring::detail::measure<T>(exec_, values(), Bound::Kind::rms, workspace_); }) /
          bytes_of(count);
    speed.add = seconds(Work::combine, count,
                        [&] { combine_values<T>(exec_, all(others_), values(), Operation::sum); }) /
                bytes_of(count);
    speed.copy = copy_seconds() / bytes_of(count);
    if (speed.measure <= 0) speed.measure = speed.copy;
    return speed;
  }

 private:
  using Space = typename Exec::memory_space;
  template <class V> using Memory = Kokkos::View<V*, Space>;
  static constexpr std::size_t count = 256 * 1024 / sizeof(T),
                               few_values = std::min<std::size_t>(512, count / 4);
  static constexpr int most_ranks = 2, repetitions = 3;
  static constexpr double enough_seconds = 3e-3;  ///< for each kind of work

  template <class V> static Memory<V> memory(std::size_t n) {
    return Memory<V>(Kokkos::view_alloc(Kokkos::WithoutInitializing, "wring::calibration"), n);
  }
  static std::span<T> all(const Memory<T>& view) { return {view.data(), count}; }
  std::span<const T> values(std::size_t n = count) const { return {values_.data(), n}; }
  static double bytes_of(std::size_t n) { return static_cast<double>(n * sizeof(T)); }

  /// Of many magnitudes up to 4, as gradients are.
  void make_values() {
    const auto host = Kokkos::create_mirror_view(values_);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bits = mix(i + 1);
      const double unit = static_cast<double>(bits >> 12) * 0x1p-51 - 1;
      host(i) = made(4 * unit * unit * unit, bits);
    }
    Kokkos::deep_copy(values_, host);
    Kokkos::deep_copy(others_, values_);
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

  void prepare() {
    constexpr double error = 0.02;
    if constexpr (PreparedCompressor<Codec, Exec>)
      codec_.prepare(
          {.ranks = most_ranks, .total = count, .max_abs = 4, .allowed_error = error, .measured = true});
    if constexpr (BoundedCompressor<Codec, Exec> && !PreparedCompressor<Codec, Exec>)
      allowed_ = std::max<double>(error, codec_.error(4));
    if constexpr (ScratchCompressor<Codec, Exec>) scratch_ = memory<std::byte>(codec_.scratch_bytes(count));
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

  std::size_t encode(std::size_t n) {
    const std::span<std::byte> out(bytes_.data(), codec_.max_compressed_bytes(n));
    return codec_.compress(exec_, values(n), out, context(n));
  }

  void combine(std::span<const std::byte> piece) {
    if constexpr (CombiningCompressor<Codec, Exec>) {
      codec_.combine(exec_, piece, piece, std::span<std::byte>(sum_.data(), sum_.size()),
                     context(count, Phase::hop, 2));
    } else if constexpr (AddingCompressor<Codec, Exec>) {
      codec_.decompress_add(exec_, piece, all(others_), context(count));
    } else {
      codec_.decompress(exec_, piece, all(others_), context(count));
      combine_values<T>(exec_, all(others_), values(), Operation::sum);
    }
  }

  /// Bytes are copied into a message and sealed.
  double copy_seconds() {
    std::vector<std::byte> from(count * sizeof(T)), to(from.size());
    return seconds(Work::wire, count, [&] {
      from[0] = static_cast<std::byte>(sums_);
      std::memcpy(to.data(), from.data(), from.size());
      sums_ += checksum(to);
    });
  }

  /// The least time of several, after one that warms up.
  template <class Call> double seconds(Work work, std::size_t n, Call call) {
    double least = std::numeric_limits<double>::infinity(), spent = 0;
    for (int i = 0; i <= repetitions && (i < 2 || spent < enough_seconds); ++i) {
      const double begin = clock_of(link_);
      call();
      exec_.fence("wring::calibrate");
      if constexpr (VirtualTimeTransport<Link>) link_.spend(work, n * sizeof(T));
      const double time = clock_of(link_) - begin;
      if (i > 0) least = std::min(least, time);
      spent += time;
    }
    return std::max(least, 1e-9);
  }

  Link& link_;
  Codec codec_;
  Exec exec_;
  Memory<T> values_, others_;
  Memory<std::byte> bytes_, sum_, scratch_;
  std::uint64_t sums_ = 0;
  double allowed_ = std::numeric_limits<double>::infinity();
  std::unique_ptr<Buffer<typename MessageSpace<Exec>::type>> workspace_;
};

}  // namespace wring::inline v0::detail
