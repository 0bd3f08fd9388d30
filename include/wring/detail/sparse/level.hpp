// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <wring/detail/processor.hpp>
#include <wring/detail/sparse/format.hpp>

#if WRING_X86_64
#include <wring/detail/sparse/x86_64.hpp>
#endif

/// What is done with the 512 values of a block, for each level of the instruction set. Bit i of a bitmap is bit i mod 64 of word i div 64.
namespace wring::inline v0::detail::sparse {

inline constexpr int spare = 32;  ///< elements behind packed ones that may be read or written

template <class T> struct Kernels {
  using Key = typename Keys<T>::Key;
  /// Marks values of a magnitude of at least `least`, which is not 0.
  Marked (*mark)(const T* x, Key least, std::uint64_t* bitmap);
  /// The marked values side by side, and the inverse, with zeros elsewhere.
  void (*pack)(const T* x, const std::uint64_t* bitmap, T* out);
  void (*unpack)(const T* in, const std::uint64_t* bitmap, T* y);
};

/// Calls `use(index)` for every mark, in ascending order.
template <class Use> WRING_ALWAYS_INLINE void for_each_mark(const std::uint64_t* bitmap, const Use& use) {
  for (int w = 0; w < bitmap_words; ++w)
    for (std::uint64_t word = bitmap[w]; word != 0; word &= word - 1) use(64 * w + std::countr_zero(word));
}

template <class T> struct PortableLevel {
  using Key = typename Keys<T>::Key;

  static Marked mark(const T* x, Key least, std::uint64_t* bitmap) {
    Marked marked;
    for (int w = 0; w < bitmap_words; ++w) {
      std::uint64_t word = 0;
      for (int i = 0; i < 64; ++i) {
        const Key magnitude = Keys<T>::magnitude(Keys<T>::pattern(x + 64 * w + i));
        word |= std::uint64_t{magnitude >= least} << i;
        marked.any_nan |= magnitude > Keys<T>::infinity;
      }
      bitmap[w] = word, marked.count += std::popcount(word);
    }
    return marked;
  }
  static void pack(const T* x, const std::uint64_t* bitmap, T* out) {
    for_each_mark(bitmap, [&](int i) { *out++ = x[i]; });
  }
  static void unpack(const T* in, const std::uint64_t* bitmap, T* y) {
    std::memset(static_cast<void*>(y), 0, block_values * sizeof(T));
    for_each_mark(bitmap, [&](int i) { y[i] = *in++; });
  }
};

template <Level level, class T> constexpr Kernels<T> make_kernels() {
  using Portable = PortableLevel<T>;
#if WRING_X86_64
  using Avx512 = Avx512Level<T>;
  if constexpr (level == Level::avx512)
    return {Avx512::mark, Avx512::pack, Avx512::unpack};
  else if constexpr (level == Level::avx2)
    return {Avx2Level<T>::mark, Portable::pack, Portable::unpack};
  else
#endif
    return {Portable::mark, Portable::pack, Portable::unpack};
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

}  // namespace wring::inline v0::detail::sparse
