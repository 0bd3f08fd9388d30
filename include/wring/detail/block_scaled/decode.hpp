// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <wring/detail/block_scaled/level.hpp>
#include <wring/detail/convert.hpp>
#include <wring/detail/value_kernels.hpp>

/// Decoding on a host.
namespace wring::inline v0::detail::block_scaled {

/// A decoded value as an element, in place of one or added to it: the same as narrowing first, then adding elements.
template <class T, bool Add> struct TakeDecoded {
  using Wide = typename FloatTraits<T>::Wide;
  WRING_ALWAYS_INLINE void operator()(const Wide& decoded, T& value) const {
    if constexpr (Add) {
      T narrow;
      store_element(narrow, decoded);
      store_element(value, load_element(value) + load_element(narrow));
    } else {
      store_element(value, decoded);
    }
  }
};

/// Decodes blocks to elements of T.
template <class T, int Bits, bool Add> struct BlockDecoder {
  using Wide = typename FloatTraits<T>::Wide;
  const Kernels* kernels;
  Coding coding;
  Layout layout;

  void decode(const std::byte* piece, std::size_t block, T* y, GroupSigns& signs) const {
    const std::size_t m = layout.values_in(block), first = block * block_groups;
    Scale scales[block_groups];
    std::memcpy(scales, piece + 2 * first, 2 * std::min<std::size_t>(block_groups, layout.groups() - first));
    const std::byte* fields = piece + layout.block_at(block);
    alignas(64) std::byte full[block_values * Bits / 8];
    if (m != block_values) {
      std::memset(full, 0, sizeof full);
      std::memcpy(full, fields, 64 * layout.word_rows(m));
      fields = full;
    }
    if constexpr (std::is_same_v<T, float>)
      if (m == block_values && !coding.rotates && plain(scales)) return decode_floats(fields, scales, y);
    alignas(64) Wide own[block_values];
    decode_values(fields, block, scales, signs, own);
    take(own, m, y);
  }

 private:
  /// Whether products of levels and scales are right as the fast kernels make them.
  bool plain(const Scale* scales) const {
    constexpr double greatest = std::min(FloatTraits<T>::greatest, FloatTraits<float>::greatest);
    bool plain = true;
    for (int group = 0; group < block_groups; ++group)
      plain &= !scales[group].marked() && scales[group].value() <= static_cast<float>(greatest / (1 << Bits));
    return plain;
  }

  void decode_floats(const std::byte* fields, const Scale* scales, float* y) const {
    float values[block_groups];
    for (int group = 0; group < block_groups; ++group) values[group] = scales[group].value();
    if constexpr (Add)
      kernels->decode_add(fields, values, y);
    else
      kernels->decode(fields, values, y);
  }

  void decode_values(const std::byte* fields, std::size_t block, const Scale* scales, GroupSigns& signs,
                     Wide* own) const {
    if (!plain(scales)) {
      decode_carefully(fields, scales, own);
    } else if constexpr (std::is_same_v<Wide, float>) {
      BlockDecoder<float, Bits, false>{kernels, {}, layout}.decode_floats(fields, scales, own);
    } else {
      alignas(64) float floats[block_values];
      BlockDecoder<float, Bits, false>{kernels, {}, layout}.decode_floats(fields, scales, floats);
      for (std::size_t i = 0; i < block_values; ++i) own[i] = floats[i];
    }
    if (!coding.rotates) return;
    for (std::size_t group = 0; group < block_groups; ++group)
      if (!scales[group].marked())
        rotate_group_back(signs.of(block * block_groups + group), scales[group].value(),
                          own + group * group_values);
  }

  void rotate_group_back(const Words4& signs, float scale, Wide* v) const {
    kernels->rotation<Wide>().backwards(signs, v);
    // No value exceeds 2^Bits scales, no sum on the way 128 times as much.
    constexpr double most =
        std::min(FloatTraits<T>::greatest, FloatTraits<Wide>::greatest / group_values) / (1 << Bits);
    if (static_cast<double>(scale) <= most) return;
    for (int i = 0; i < group_values; ++i) v[i] = static_cast<Wide>(clamped(v[i], FloatTraits<T>::greatest));
  }

  WRING_COLD void decode_carefully(const std::byte* fields, const Scale* scales, Wide* own) const {
    alignas(64) i32 q[block_values];
    kernels->unpack(fields, q);
    for (std::size_t i = 0; i < block_values; ++i)
      own[i] = code_value<T, Bits>(q[i], scales[i / group_values], coding.rotates);
  }

  static void take(const Wide* own, std::size_t m, T* y) {
    const TakeDecoded<T, Add> element;
    if (m == block_values)
      return ConvertRun<TakeDecoded<T, Add>, Wide, T, block_values>::convert(element, own, y);
    for (std::size_t i = 0; i < m; ++i) element(own[i], y[i]);
  }

  template <class, int, bool> friend struct BlockDecoder;
};

/// Decodes blocks; one call for each task.
template <class T, int Bits, bool Add> struct DecodeBlocks {
  BlockDecoder<T, Bits, Add> decoder;
  const std::byte* piece;
  T* y;

  void operator()(std::size_t task) const {
    const std::size_t last = std::min(decoder.layout.blocks(), (task + 1) * (values_per_task / block_values));
    GroupSigns signs(*decoder.kernels, decoder.coding);
    for (std::size_t block = task * (values_per_task / block_values); block < last; ++block)
      decoder.decode(piece, block, y + block * block_values, signs);
  }
};

}  // namespace wring::inline v0::detail::block_scaled
