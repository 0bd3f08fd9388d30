// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <wring/detail/grid/block.hpp>
#include <wring/detail/processor.hpp>

/// The block kernels for each level of the instruction set.
namespace wring::inline v0::detail::grid {

/// Block kernels for quanta of one type.
template <class Q> struct IntegerKernels {
  using U = std::make_unsigned_t<Q>;
  void (*pack)(int width, const Q* q, std::byte* out);
  void (*unpack)(int width, const std::byte* in, Q* q);
  U (*unpack_add)(int width, const std::byte* in, Q* q);
  U (*measure)(const Q* q);
  bool (*any)(const Q* q);
  U (*add)(Q* q, const Q* other);
  U (*difference)(Q* q);
  U (*integrate)(Q* q, Q base);
  void (*extremum)(Q* q, const Q* other, bool greatest);
  void (*shift)(Q* q, int shift);
  void (*to_doubles)(const Q* q, double step, int divisor, double* y);
};

struct Kernels {
  Measured<i32> (*quantise_floats)(const float* x, const Step& step, bool delta, i32* q, i32& base);
  u64 (*quantise_doubles)(const double* x, const Step& step, i64* q);
  void (*to_floats)(const i32* q, float step, float* y);
  void (*unpack_to_floats)(int width, const std::byte* in, float step, float* y);  ///< width <= 25
  void (*scan_to_floats)(const i32* q, i32 base, float step, float* y);
  IntegerKernels<i32> words;
  IntegerKernels<i64> long_words;

  template <class Q> const IntegerKernels<Q>& of() const {
    if constexpr (std::is_same_v<Q, i32>)
      return words;
    else
      return long_words;
  }
};

/// Whether pack and unpack have a body for each width up to `widest_unrolled`, which is 2 to 3 times faster and takes seconds to compile.
template <Level level, class Q>
inline constexpr bool unrolls = std::is_same_v<Q, i32> && register_bytes<level> >= 32;

template <int Bytes, class Q> WRING_ALWAYS_INLINE void pack_rows_of(int w, const Q* q, std::byte* out) {
  if (w == word_bits<Q>) return void(__builtin_memcpy(out, q, block_values * sizeof(Q)));
  pack_rolled<Bytes == 0 ? static_cast<int>(sizeof(Q)) : Bytes>(w, q, out);
}
template <int Bytes, class Q> WRING_ALWAYS_INLINE void unpack_rows_of(int w, const std::byte* in, Q* q) {
  if (w == word_bits<Q>) return void(__builtin_memcpy(q, in, block_values * sizeof(Q)));
  Keep<Q, Bytes> keep{q};
  unpack_rolled<Bytes == 0 ? static_cast<int>(sizeof(Q)) : Bytes, Q>(w, in, keep);
}

template <Level level, class Q> WRING_ALWAYS_INLINE void pack(int w, const Q* q, std::byte* out) {
  constexpr int bytes = register_bytes<level>;
#if WRING_NATIVE_VECTORS
  if constexpr (unrolls<level, Q>) {
    if (w > widest_unrolled) return compiled<level, pack_rows_of<bytes, Q>>(w, q, out);
    pack_unrolled<bytes>(w, q, out);
  } else
#endif
  {
    pack_rows_of<bytes>(w, q, out);
  }
}
template <Level level, class Q> WRING_ALWAYS_INLINE void unpack(int w, const std::byte* in, Q* q) {
  constexpr int bytes = register_bytes<level>;
#if WRING_NATIVE_VECTORS
  if constexpr (unrolls<level, Q>) {
    if (w > widest_unrolled) return compiled<level, unpack_rows_of<bytes, Q>>(w, in, q);
    KeepColumns<bytes> keep{q};
    unpack_unrolled<bytes>(w, in, keep);
  } else
#endif
  {
    unpack_rows_of<bytes>(w, in, q);
  }
}
template <Level level>
WRING_ALWAYS_INLINE void unpack_to_floats(int w, const std::byte* in, float step, float* y) {
  constexpr int bytes = register_bytes<level>;
#if WRING_NATIVE_VECTORS
  if constexpr (unrolls<level, i32>) {
    DecodeColumns<bytes> decode{step, y};
    unpack_unrolled<bytes>(w, in, decode);
  } else
#endif
  {
    alignas(64) i32 q[block_values];
    compiled<level, unpack<level, i32>>(w, in, q);
    to_floats<bytes, false>(q, 0, step, y);
  }
}
template <Level level, class Q>
WRING_ALWAYS_INLINE std::make_unsigned_t<Q> unpack_add(int w, const std::byte* in, Q* q) {
  alignas(64) Q other[block_values];
  compiled<level, unpack<level, Q>>(w, in, other);
  return add<register_bytes<level>>(q, other);
}

template <Level level>
Measured<i32> quantise_floats_at(const float* x, const Step& s, bool delta, i32* q, i32& base) {
  const auto with = [&]<bool Short, bool Delta>() {
    return compiled<level, quantise_floats<register_bytes<level>, Short, Delta>>(x, s, q, base);
  };
  if (s.power_of_two)
    return delta ? with.template operator()<false, true>() : with.template operator()<false, false>();
  return delta ? with.template operator()<true, true>() : with.template operator()<true, false>();
}
template <int Bytes> WRING_ALWAYS_INLINE u64 quantise_doubles_of(const double* x, const Step& s, i64* q) {
  return s.power_of_two ? quantise_doubles<Bytes, false>(x, s, q) : quantise_doubles<Bytes, true>(x, s, q);
}
template <int Bytes> WRING_ALWAYS_INLINE void quanta_to_floats(const i32* q, float step, float* y) {
  to_floats<Bytes, false>(q, 0, step, y);
}

template <Level level, class Q> constexpr IntegerKernels<Q> integer_kernels() {
  constexpr int bytes = register_bytes<level>;
  return {.pack = compiled<level, grid::pack<level, Q>>,
          .unpack = compiled<level, grid::unpack<level, Q>>,
          .unpack_add = compiled<level, grid::unpack_add<level, Q>>,
          .measure = compiled<level, grid::measure<bytes, Q>>,
          .any = compiled<level, grid::any<bytes, Q>>,
          .add = compiled<level, grid::add<bytes, Q>>,
          .difference = compiled<level, grid::difference<bytes, Q>>,
          .integrate = compiled<level, grid::integrate<bytes, Q>>,
          .extremum = compiled<level, grid::extremum<Q>>,
          .shift = compiled<level, grid::shift_quanta<Q>>,
          .to_doubles = compiled<level, grid::to_doubles<Q>>};
}

/// The table of a level. Most of the files of a program may leave it, and all that it refers to, to one of them:
/// `extern template struct KernelsOf<Level::avx2>`.
template <Level level> struct KernelsOf {
  static const Kernels table;
};
template <Level level> const Kernels KernelsOf<level>::table = {
    .quantise_floats = quantise_floats_at<level>,
    .quantise_doubles = compiled<level, quantise_doubles_of<register_bytes<level>>>,
    .to_floats = compiled<level, quanta_to_floats<register_bytes<level>>>,
    .unpack_to_floats = compiled<level, unpack_to_floats<level>>,
    .scan_to_floats = compiled<level, to_floats<register_bytes<level>, true>>,
    .words = integer_kernels<level, i32>(),
    .long_words = integer_kernels<level, i64>()};

/// For a level that can run.
inline const Kernels& kernels_for(Level level) {
  return with_level(level, []<Level l>() -> const Kernels& { return KernelsOf<l>::table; });
}

/// Those of the fastest level that can run.
inline const Kernels& best_kernels() {
  static const Kernels& best =
      with_best_level([]<Level level>() -> const Kernels& { return KernelsOf<level>::table; });
  return best;
}

}  // namespace wring::inline v0::detail::grid
