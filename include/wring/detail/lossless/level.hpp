// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <wring/detail/grid/level.hpp>
#include <wring/detail/lossless/rows.hpp>

/// The block kernels of Lossless compiled for each level of the instruction set; the level is chosen when the program runs.
namespace wring::inline v0::detail::lossless {

using grid::Level;

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

#if WRING_GRID_NATIVE_VECTORS
/// The widths of floats, unrolled: wider than what Grid unrolls.
inline constexpr int first_wide = 26, last_wide = 28;

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

/// A level of Grid packs the fields; `Wide` packs those of floats.
#define WRING_LOSSLESS_LEVEL(NAME, TARGET, BYTES, GRID_LEVEL)                                                \
  template <class T> struct NAME {                                                                           \
    using K = Kernels<T>;                                                                                    \
    using Word = typename K::Word;                                                                           \
    using Signed = typename K::Signed;                                                                       \
    using Packs =                                                                                            \
        std::conditional_t<sizeof(Word) == 4, grid::GRID_LEVEL##Words, grid::GRID_LEVEL##LongWords>;         \
    static constexpr bool unrolls = BYTES >= 32 && std::is_same_v<T, float>;                                 \
    TARGET WRING_GRID_NOINLINE static void sample(const std::byte* x, Sample& s) {                           \
      take_sample<BYTES, T>(x, s);                                                                           \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static bool is_uniform(const std::byte* x) {                                  \
      return lossless::is_uniform<BYTES, T>(x);                                                              \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void split(const std::byte* x, const Codes<T>& c, Signed* f,           \
                                                 Marks& m) {                                                 \
      if (c.zero == c.escape) return lossless::split<BYTES, false, T>(x, c, f, m);                           \
      lossless::split<BYTES, true, T>(x, c, f, m);                                                           \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void join(const Signed* f, const Codes<T>& c, std::byte* y,            \
                                                Marks& m) {                                                  \
      if (c.zero == c.escape) return lossless::join<BYTES, false, T>(f, c, y, m);                            \
      lossless::join<BYTES, true, T>(f, c, y, m);                                                            \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void find_range(const std::byte* x, Word& least, Word& greatest) {     \
      lossless::find_range<BYTES, T>(x, least, greatest);                                                    \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void to_distances(const std::byte* x, Word least, Signed* f) {         \
      lossless::to_distances<BYTES, T>(x, least, f);                                                         \
    }                                                                                                        \
    TARGET WRING_GRID_NOINLINE static void from_distances(const Signed* f, int w, Word least,                \
                                                          std::byte* y) {                                    \
      lossless::from_distances<BYTES, T>(f, w, least, y);                                                    \
    }                                                                                                        \
    template <int Width> TARGET WRING_GRID_NOINLINE static void pack_wide(const Signed* f, std::byte* out) { \
      pack_columns<Width, BYTES>(f, out);                                                                    \
    }                                                                                                        \
    template <int Width> TARGET WRING_GRID_NOINLINE static void unpack_wide(const std::byte* in,             \
                                                                            Signed* f) {                     \
      unpack_columns<Width, BYTES>(in, f);                                                                   \
    }                                                                                                        \
    static void pack(int w, const Signed* f, std::byte* out) {                                               \
      if constexpr (unrolls) {                                                                               \
        if (w == 26) return pack_wide<26>(f, out);                                                           \
        if (w == 27) return pack_wide<27>(f, out);                                                           \
        if (w == 28) return pack_wide<28>(f, out);                                                           \
      }                                                                                                      \
      Packs::pack(w, f, out);                                                                                \
    }                                                                                                        \
    static void unpack(int w, const std::byte* in, Signed* f) {                                              \
      if constexpr (unrolls) {                                                                               \
        if (w == 26) return unpack_wide<26>(in, f);                                                          \
        if (w == 27) return unpack_wide<27>(in, f);                                                          \
        if (w == 28) return unpack_wide<28>(in, f);                                                          \
      }                                                                                                      \
      Packs::unpack(w, in, f);                                                                               \
    }                                                                                                        \
    static constexpr K table() {                                                                             \
      if constexpr (Format<T>::is_float)                                                                     \
        return {sample, is_uniform, split, join, nullptr, nullptr, nullptr, pack, unpack};                   \
      else                                                                                                   \
        return {nullptr, nullptr, nullptr, nullptr, find_range, to_distances, from_distances, pack, unpack}; \
    }                                                                                                        \
  };

#define WRING_LOSSLESS_NO_TARGET
WRING_LOSSLESS_LEVEL(ScalarLevel, WRING_LOSSLESS_NO_TARGET, 0, ScalarLevel)
#if WRING_GRID_NATIVE_VECTORS
WRING_LOSSLESS_LEVEL(Vector16Level, WRING_LOSSLESS_NO_TARGET, 16, Vector16Level)
#endif
#if WRING_GRID_X86_64
WRING_LOSSLESS_LEVEL(Avx2Level, __attribute__((target("avx2,fma,bmi2"))), 32, Avx2Level)
WRING_LOSSLESS_LEVEL(Avx512Level, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2"))),
                     64, Avx512Level)
#endif
#undef WRING_LOSSLESS_LEVEL
#undef WRING_LOSSLESS_NO_TARGET

template <class L> inline constexpr auto kernels_of = L::table();

/// For a level that can run.
template <class T> const Kernels<T>& kernels_for(Level level) {
  switch (level) {
#if WRING_GRID_X86_64
  case Level::avx512: return kernels_of<Avx512Level<T>>;
  case Level::avx2: return kernels_of<Avx2Level<T>>;
#endif
#if WRING_GRID_NATIVE_VECTORS
  case Level::vector16: return kernels_of<Vector16Level<T>>;
#endif
  default: return kernels_of<ScalarLevel<T>>;
  }
}

/// Those of the fastest level that can run.
template <class T> const Kernels<T>& best_kernels() {
  static const Kernels<T>& best = kernels_for<T>(grid::best_level());
  return best;
}

}  // namespace wring::inline v0::detail::lossless
