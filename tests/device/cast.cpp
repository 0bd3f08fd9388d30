// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The conversions of Cast, for every pair of types, on a device.
#include "elements.hpp"

#include <wring/compressor/cast.hpp>

template <class To, class T> struct Uses {
  using Codec = wring::Cast<To, T>;
  static void all(const Device& exec, const Codec& codec, std::span<T> values, std::span<std::byte> bytes) {
    const wring::Context context;
    codec.compress(exec, std::span<const T>(values), bytes, context);
    codec.decompress(exec, std::span<const std::byte>(bytes), values, context);
    codec.decompress_add(exec, std::span<const std::byte>(bytes), values, context);
  }
};
template <class T> struct Uses<T, T> {};

#define CHECK(T)                                                                                             \
  template struct Uses<wring::half_t, T>;                                                                    \
  template struct Uses<wring::bhalf_t, T>;
WRING_EACH_ELEMENT(CHECK)
