// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PackedWords on a device, and scales that ranks have in common: every element type.
#include "elements.hpp"

#include <wring/compressor/packed_words.hpp>
#include <wring/view/common_scale.hpp>

template <class T> struct Uses {
  using Codec = wring::PackedWords<T>;
  using Scale = typename wring::detail::ScaleOf<T>::type;
  static void all(const Device& exec, const Codec& codec, std::span<T> values, std::span<std::byte> bytes) {
    const wring::Context context;
    const std::span<const std::byte> piece(bytes);
    codec.compress(exec, std::span<const T>(values), bytes, context);
    codec.combine(exec, piece, piece, bytes, context);
    codec.decompress(exec, piece, values, context);
  }
  static void scales(const Device& exec, const Kokkos::View<const T*, typename Device::memory_space>& values,
                     const Kokkos::View<Scale*, typename Device::memory_space>& scales) {
    wring::measure_scales<4>(exec, values, scales);
  }
};

#define CHECK(T) template struct Uses<T>;
WRING_EACH_ELEMENT(CHECK)
