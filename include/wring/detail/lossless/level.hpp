// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <wring/detail/grid/level.hpp>
#include <wring/detail/lossless/rows.hpp>

/// The block kernels of Lossless for each level of the instruction set.
namespace wring::inline v0::detail::lossless {

template <class T> struct Kernels {
  using Word = typename Format<T>::Word;
  using Signed = typename Format<T>::Signed;
  void (*sample)(const std::byte* x, Sample& sample);
  bool (*is_uniform)(const std::byte* x);
  void (*split)(const std::byte* x, const Codes<T>& codes, Signed* fields, Marks& marks);
  void (*join)(const Signed* fields, const Codes<T>& codes, std::byte* y, Marks& marks);
  void (*find_range)(const std::byte* x, Word& least, Word& greatest);
  void (*to_distances)(const std::byte* x, Word least, Signed* fields);
  void (*from_distances)(const Signed* fields, int width, Word least, std::byte* y);
  void (*pack)(int width, const Signed* fields, std::byte* out);
  void (*unpack)(int width, const std::byte* in, Signed* fields);
};

#if WRING_NATIVE_VECTORS
template <int Width, int Bytes> WRING_ALWAYS_INLINE void pack_columns(const std::int32_t* q, std::byte* out) {
  using V = typename NativeOf<std::uint32_t, Bytes>::type;
  for (int column = 0; column < 64; column += Bytes, q += Bytes / 4, out += Bytes)
    grid::pack_column<Width, V>(q, out);
}
template <int Width, int Bytes> WRING_ALWAYS_INLINE void unpack_columns(const std::byte* in,
                                                                        std::int32_t* q) {
  using V = typename NativeOf<std::uint32_t, Bytes>::type;
  grid::KeepColumns<Bytes> keep{q};
  for (int column = 0; column < 64; column += Bytes, in += Bytes, keep.next_column())
    grid::unpack_column<Width, V>(in, keep);
}
#endif

/// Fields are packed as those of Grid; the widths of floats, wider than what Grid unrolls, have bodies of their own.
template <Level level, class T>
inline constexpr bool unrolls = std::is_same_v<T, float> && register_bytes<level> >= 32;

template <Level level, class T>
void pack(int w, const typename Format<T>::Signed* fields, std::byte* out) {
#if WRING_NATIVE_VECTORS
  if constexpr (unrolls<level, T>) {
    constexpr int bytes = register_bytes<level>;
    if (w == 26) return compiled<level, pack_columns<26, bytes>>(fields, out);
    if (w == 27) return compiled<level, pack_columns<27, bytes>>(fields, out);
    if (w == 28) return compiled<level, pack_columns<28, bytes>>(fields, out);
  }
#endif
  compiled<level, grid::pack<level, typename Format<T>::Signed>>(w, fields, out);
}
template <Level level, class T>
void unpack(int w, const std::byte* in, typename Format<T>::Signed* fields) {
#if WRING_NATIVE_VECTORS
  if constexpr (unrolls<level, T>) {
    constexpr int bytes = register_bytes<level>;
    if (w == 26) return compiled<level, unpack_columns<26, bytes>>(in, fields);
    if (w == 27) return compiled<level, unpack_columns<27, bytes>>(in, fields);
    if (w == 28) return compiled<level, unpack_columns<28, bytes>>(in, fields);
  }
#endif
  compiled<level, grid::unpack<level, typename Format<T>::Signed>>(w, in, fields);
}

template <int Bytes, class T> WRING_ALWAYS_INLINE void
split_block(const std::byte* x, const Codes<T>& codes, typename Format<T>::Signed* fields, Marks& marks) {
  if (codes.zero == codes.escape) return split<Bytes, false, T>(x, codes, fields, marks);
  split<Bytes, true, T>(x, codes, fields, marks);
}
template <int Bytes, class T> WRING_ALWAYS_INLINE void
join_block(const typename Format<T>::Signed* fields, const Codes<T>& codes, std::byte* y, Marks& marks) {
  if (codes.zero == codes.escape) return join<Bytes, false, T>(fields, codes, y, marks);
  join<Bytes, true, T>(fields, codes, y, marks);
}

template <Level level, class T> constexpr Kernels<T> make_kernels() {
  constexpr int bytes = register_bytes<level>;
  Kernels<T> k{};
  k.pack = pack<level, T>, k.unpack = unpack<level, T>;
  if constexpr (Format<T>::is_float) {
    k.sample = compiled<level, take_sample<bytes, T>>;
    k.is_uniform = compiled<level, lossless::is_uniform<bytes, T>>;
    k.split = compiled<level, split_block<bytes, T>>;
    k.join = compiled<level, join_block<bytes, T>>;
  } else {
    k.find_range = compiled<level, lossless::find_range<bytes, T>>;
    k.to_distances = compiled<level, lossless::to_distances<bytes, T>>;
    k.from_distances = compiled<level, lossless::from_distances<bytes, T>>;
  }
  return k;
}
template <Level level, class T> inline constexpr Kernels<T> kernels_at = make_kernels<level, T>();

/// For a level that can run.
template <class T> const Kernels<T>& kernels_for(Level level) {
  return with_level(level, []<Level l>() -> const Kernels<T>& { return kernels_at<l, T>; });
}

/// Those of the fastest level that can run.
template <class T> const Kernels<T>& best_kernels() {
  static const Kernels<T>& best =
      with_best_level([]<Level level>() -> const Kernels<T>& { return kernels_at<level, T>; });
  return best;
}

}  // namespace wring::inline v0::detail::lossless
