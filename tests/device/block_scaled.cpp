// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BlockScaled on a device: every element type.
#include "elements.hpp"

#include <wring/compressor/block_scaled.hpp>

template <class T, int Bits> struct Uses {
  using Codec = wring::BlockScaled<T, Bits>;
  static void all(const Device& exec, const Codec& codec, std::span<T> values, std::span<std::byte> bytes) {
    const wring::Context context;
    codec.compress(exec, std::span<const T>(values), bytes, context);
    codec.decompress(exec, std::span<const std::byte>(bytes), values, context);
    codec.decompress_add(exec, std::span<const std::byte>(bytes), values, context);
  }
};

// Fields that cross words, and fields that do not.
#define CHECK(T)                                                                                             \
  template struct Uses<T, 3>;                                                                                \
  template struct Uses<T, 8>;
WRING_EACH_ELEMENT(CHECK)
