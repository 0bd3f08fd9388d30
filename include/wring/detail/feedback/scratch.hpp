// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <wring/compressor/concept.hpp>
#include <wring/detail/sizes.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>

namespace wring::inline v0::detail::feedback {

/// How the scratch memory of a call is divided: a vector; for compressors that finish another one, a piece of what is paid back to a sum and
/// the sum with it; residuals of 8 bits, expanded; and what the compressor inside needs.
template <class Inner> class Scratch {
 public:
  using T = typename Inner::value_type;
  using Wide = typename FloatTraits<T>::Wide;

  Scratch(const Inner& inner, bool eight_bits) : inner_(inner), eight_bits_(eight_bits) {}

  std::size_t bytes(std::size_t n) const { return own_bytes(n) + inner_bytes(n); }

  void expect(const Context& c) const {
    if (c.scratch.size() < bytes(c.count))
      throw CodecError("error feedback: scratch memory of scratch_bytes() is missing");
  }

  std::span<T> vector(const Context& c, std::size_t k) const {
    return {reinterpret_cast<T*>(c.scratch.data() + k * vector_bytes(c.count)), c.count};
  }
  std::span<std::byte> piece(const Context& c) const {
    return c.scratch.subspan(2 * vector_bytes(c.count), piece_bytes(c.count));
  }
  std::span<std::byte> sum(const Context& c) const {
    return c.scratch.subspan(2 * vector_bytes(c.count) + piece_bytes(c.count), sum_bytes(c.count));
  }
  /// Where residuals of 8 bits are expanded to: the last of what is not the inner compressor's.
  Wide* residuals(const Context& c) const {
    return reinterpret_cast<Wide*>(c.scratch.data() + own_bytes(c.count) - expanded_bytes(c.count));
  }
  /// What is left for the compressor inside; empty where there is no scratch memory.
  std::span<std::byte> rest(const Context& c) const {
    return c.scratch.subspan(std::min(own_bytes(c.count), c.scratch.size()));
  }

 private:
  static std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  static std::size_t vector_bytes(std::size_t n) { return padded(checked_bytes(n, sizeof(T))); }
  std::size_t expanded_bytes(std::size_t n) const {
    return eight_bits_ ? padded(checked_bytes(n, sizeof(Wide))) : 0;
  }
  std::size_t piece_bytes(std::size_t n) const { return padded(inner_.max_compressed_bytes(n)); }
  std::size_t sum_bytes(std::size_t n) const {
    if constexpr (FinishingCompressor<Inner>) return padded(inner_.max_combined_bytes(n, 2));
    return 0;
  }
  std::size_t own_bytes(std::size_t n) const {
    if constexpr (LosslessCompressor<Inner>)
      return 0;
    else if constexpr (FinishingCompressor<Inner>)
      return 2 * vector_bytes(n) + piece_bytes(n) + sum_bytes(n) + expanded_bytes(n);
    else
      return vector_bytes(n) + expanded_bytes(n);
  }
  std::size_t inner_bytes(std::size_t n) const {
    if constexpr (ScratchCompressor<Inner>) return inner_.scratch_bytes(n);
    return 0;
  }

  const Inner& inner_;
  bool eight_bits_;
};

}  // namespace wring::inline v0::detail::feedback
