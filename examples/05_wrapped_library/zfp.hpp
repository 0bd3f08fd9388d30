// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>

#include <zfp.h>

#include <wring/compressor.hpp>

/// zfp (P. Lindstrom, "Fixed-rate compressed floating-point arrays", 2014) as a compressor: its fixed-accuracy mode, in blocks of four
/// neighbours, the tolerance being the error that each call is allowed. It is not told the shape of a field: a tensor is a run of values.
///
/// zfp keeps its tolerance for finite values, unless the tolerance is too small for them: README.md says when. What it would not
/// keep, or not make smaller, is sent as it is; so is everything where no bound is asked for. Thus every bound is kept, and NaN and
/// infinities arrive bit by bit. Hosts only, one thread; zfp allocates two small objects in each call.
template <class T>
  requires std::same_as<T, float> || std::same_as<T, double>
class Zfp {
 public:
  using value_type = T;

  /// What zfp was built with is part of it: ranks that are linked with another one are refused.
  wring::Identity identity() const {
    return {.name = "zfp",
            .version = 1,
            .options = std::string(wide ? "element=double" : "element=float") + " codec=" +
                       std::to_string(zfp_codec_version) + " word=" + std::to_string(stream_word_bits)};
  }

  /// The tolerance, 0 where the values follow as they are, and zfp's stream.
  std::size_t max_compressed_bytes(std::size_t n) const {
    if (n > std::numeric_limits<std::size_t>::max() / 32)
      throw wring::InvalidArgument("zfp: too many values");
    return sizeof(double) + n * sizeof(T);
  }

  /// zfp reads and writes aligned words, and may need more bytes than the values have.
  std::size_t scratch_bytes(std::size_t n) const { return (n / 4 + 1) * most_block_bytes + margin; }

  /// What zfp cannot keep is sent as it is, so that any error may be asked for.
  double error(double /*largest*/) const { return 0; }

  std::size_t compress(const auto&, std::span<const T> values, std::span<std::byte> bytes,
                       const wring::Context& context) const {
    const double tolerance = std::min(context.allowed_error, greatest);
    if (std::isfinite(context.allowed_error) && keeps(values, tolerance)) {
      const std::span<std::byte> stream = scratch(context);
      const std::size_t size = encode(values, stream, tolerance);
      if (size < values.size_bytes()) return write(bytes, tolerance, stream.data(), size);
    }
    return write(bytes, 0, values.data(), values.size_bytes());
  }

  void decompress(const auto&, std::span<const std::byte> bytes, std::span<T> values,
                  const wring::Context& context) const {
    double tolerance = -1;
    if (bytes.size() >= sizeof tolerance) std::memcpy(&tolerance, bytes.data(), sizeof tolerance);
    expect(tolerance >= 0 && tolerance <= greatest);
    const auto stream = bytes.subspan(sizeof tolerance);
    if (tolerance > 0) return decode(stream, values, scratch(context), tolerance);
    expect(stream.size() == values.size_bytes());
    if (!stream.empty()) std::memcpy(values.data(), stream.data(), stream.size());
  }

 private:
  static constexpr bool wide = std::same_as<T, double>;
  /// Within these zfp keeps its tolerance (README.md): a part of the greatest magnitude, a tolerance, a magnitude.
  static constexpr double least_part = wide ? 0x1p-49 : 0x1p-20, least_tolerance = wide ? 0x1p-956 : 0x1p-92,
                          greatest = wide ? 0x1p1022 : 0x1p126;
  static constexpr std::size_t most_block_bytes = wide ? 34 : 18, margin = 64;

  /// zfp's own objects, for as long as a call takes.
  struct Coder {
    bitstream* bits;
    zfp_stream* zfp;

    Coder(std::span<std::byte> memory, double tolerance)
        : bits(stream_open(memory.data(), memory.size())), zfp(zfp_stream_open(bits)) {
      zfp_stream_set_accuracy(zfp, tolerance);
    }
    Coder(const Coder&) = delete;
    ~Coder() { zfp_stream_close(zfp), stream_close(bits); }

    void put(const float* x) { zfp_encode_block_float_1(zfp, x); }
    void put(const double* x) { zfp_encode_block_double_1(zfp, x); }
    void get(float* x) { zfp_decode_block_float_1(zfp, x); }
    void get(double* x) { zfp_decode_block_double_1(zfp, x); }
  };

  static void expect(bool holds) {
    if (!holds) throw wring::CodecError("zfp: the bytes are damaged");
  }

  std::span<std::byte> scratch(const wring::Context& context) const {
    if (context.scratch.size() >= scratch_bytes(context.count)) return context.scratch;
    throw wring::CodecError("zfp: scratch memory of scratch_bytes() is missing");
  }

  static bool keeps(std::span<const T> values, double tolerance) {
    double largest = 0;
    for (const T x : values) {
      if (!std::isfinite(x)) return false;
      largest = std::max(largest, std::fabs(double{x}));
    }
    return tolerance >= std::max(least_tolerance, least_part * largest) && largest <= greatest;
  }

  static std::size_t write(std::span<std::byte> bytes, double tolerance, const void* from, std::size_t size) {
    std::memcpy(bytes.data(), &tolerance, sizeof tolerance);
    if (size != 0) std::memcpy(bytes.data() + sizeof tolerance, from, size);
    return sizeof tolerance + size;
  }

  /// The last block is filled up with its last value, which costs least.
  static std::size_t encode(std::span<const T> values, std::span<std::byte> memory, double tolerance) {
    Coder coder(memory, tolerance);
    const std::size_t whole = values.size() / 4 * 4;
    for (std::size_t i = 0; i < whole; i += 4) coder.put(values.data() + i);
    if (whole < values.size()) {
      T last[4];
      for (std::size_t i = 0; i < 4; ++i) last[i] = values[std::min(whole + i, values.size() - 1)];
      coder.put(last);
    }
    zfp_stream_flush(coder.zfp);
    return stream_size(coder.bits);
  }

  /// zfp trusts what it reads: it gets a copy with zeros behind it, and is stopped in the block in which it passes the end.
  static void decode(std::span<const std::byte> stream, std::span<T> values, std::span<std::byte> memory,
                     double tolerance) {
    expect(stream.size() < values.size_bytes());
    if (!stream.empty()) std::memcpy(memory.data(), stream.data(), stream.size());
    std::memset(memory.data() + stream.size(), 0, margin);
    Coder coder(memory, tolerance);
    for (std::size_t i = 0; i < values.size(); i += 4) {
      T block[4];
      coder.get(block);
      expect(stream_rtell(coder.bits) <= 8 * stream.size());
      std::copy_n(block, std::min<std::size_t>(4, values.size() - i), values.data() + i);
    }
    expect(8 * stream.size() < stream_rtell(coder.bits) + stream_word_bits);
  }
};

static_assert(wring::BoundedCompressor<Zfp<float>> && wring::ScratchCompressor<Zfp<double>>);
