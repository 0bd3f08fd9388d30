// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <wring/config.hpp>
#include <wring/detail/grid/layout.hpp>
#include <wring/detail/processor.hpp>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // every function here is inlined: no vector is ever passed
#endif

namespace wring::inline v0::detail::grid {

/// Loops over the registers of a row are taken apart: g++ at -O2 would keep rows of four in memory.
#if WRING_NATIVE_VECTORS
#define WRING_GRID_UNROLL _Pragma("GCC unroll 4")
#else
#define WRING_GRID_UNROLL
#endif

#define WRING_LANES_OPERATOR(op)                                                                             \
  friend WRING_ALWAYS_INLINE Lanes operator op(const Lanes& a, const Lanes& b) {                             \
    Lanes r;                                                                                                 \
    WRING_GRID_UNROLL for (int k = 0; k < parts; ++k) r.part[k] = a.part[k] op b.part[k];                    \
    return r;                                                                                                \
  }                                                                                                          \
  friend WRING_ALWAYS_INLINE Lanes operator op(const Lanes& a, T b) {                                        \
    Lanes r;                                                                                                 \
    WRING_GRID_UNROLL for (int k = 0; k < parts; ++k) r.part[k] = a.part[k] op b;                            \
    return r;                                                                                                \
  }
#define WRING_LANES_SHIFT(op)                                                                                \
  friend WRING_ALWAYS_INLINE Lanes operator op(const Lanes& a, int b) {                                      \
    Lanes r;                                                                                                 \
    WRING_GRID_UNROLL for (int k = 0; k < parts; ++k) r.part[k] = static_cast<Native>(a.part[k] op b);       \
    return r;                                                                                                \
  }

template <class T, int Bytes> struct Lanes;

/// + - * of all lanes.
template <class T, int Bytes, bool Integer = std::is_integral_v<T>> struct LanesOf {
  using Lanes = grid::Lanes<T, Bytes>;
  using Native = typename NativeOf<T, Bytes>::type;
  static constexpr int parts = 64 / Bytes;
  WRING_LANES_OPERATOR(+)
  WRING_LANES_OPERATOR(-)
  WRING_LANES_OPERATOR(*)
};
/// Integers have bits as well. Arithmetic is done in unsigned types, where it wraps.
template <class T, int Bytes> struct LanesOf<T, Bytes, true> {
  using Lanes = grid::Lanes<T, Bytes>;
  using Native = typename NativeOf<T, Bytes>::type;
  static constexpr int parts = 64 / Bytes;
  WRING_LANES_OPERATOR(+)
  WRING_LANES_OPERATOR(-)
  WRING_LANES_OPERATOR(&)
  WRING_LANES_OPERATOR(|)
  WRING_LANES_OPERATOR(^)
  WRING_LANES_SHIFT(<<)
  WRING_LANES_SHIFT(>>)
};
#undef WRING_LANES_OPERATOR
#undef WRING_LANES_SHIFT

/// A row: 64 bytes of T in 64 / Bytes registers of the hardware. Never wider than those: compilers take wider
/// ones apart.
template <class T, int Bytes> struct Lanes : LanesOf<T, Bytes> {
  using Base = LanesOf<T, Bytes>;
  using Native = typename Base::Native;
  static constexpr int parts = Base::parts, count = 64 / static_cast<int>(sizeof(T)),
                       per_part = count / parts;
  Native part[parts];
};

/// Register by register: a compiler splits a copy of a whole row by what it tunes for, which may be half a register,
/// and what is stored in halves and loaded whole waits for its stores.
template <class T, int Bytes> WRING_ALWAYS_INLINE void load(Lanes<T, Bytes>& v, const void* p) {
  WRING_GRID_UNROLL
  for (int k = 0; k < Lanes<T, Bytes>::parts; ++k)
    __builtin_memcpy(&v.part[k], static_cast<const std::byte*>(p) + k * Bytes, Bytes);
}
template <class T, int Bytes> WRING_ALWAYS_INLINE void store(void* p, const Lanes<T, Bytes>& v) {
  WRING_GRID_UNROLL
  for (int k = 0; k < Lanes<T, Bytes>::parts; ++k)
    __builtin_memcpy(static_cast<std::byte*>(p) + k * Bytes, &v.part[k], Bytes);
}

/// Asks for the line at p, which need not be memory of the program, ahead of its use: the prefetchers of the
/// hardware stop at pages and do not look behind stores.
WRING_ALWAYS_INLINE void prefetch([[maybe_unused]] const void* p) {
#if WRING_NATIVE_VECTORS
  __builtin_prefetch(p);
#endif
}
WRING_ALWAYS_INLINE void prefetch_for_write([[maybe_unused]] const void* p) {
#if WRING_NATIVE_VECTORS
  __builtin_prefetch(p, 1);
#endif
}

template <class T, int Bytes> WRING_ALWAYS_INLINE void fill(Lanes<T, Bytes>& v, T x) {
  T all[static_cast<std::size_t>(Lanes<T, Bytes>::count)];
  for (T& one : all) one = x;
  load(v, all);
}

/// The same bits as another type of the same size.
template <class To, class T, int Bytes> WRING_ALWAYS_INLINE void reinterpret(Lanes<To, Bytes>& r,
                                                                             const Lanes<T, Bytes>& v) {
  WRING_GRID_UNROLL
  for (int k = 0; k < Lanes<T, Bytes>::parts; ++k) {
    if constexpr (Bytes == sizeof(T))
      r.part[k] = std::bit_cast<To>(v.part[k]);
    else
      r.part[k] = (typename Lanes<To, Bytes>::Native)v.part[k];
  }
}

/// The same values as another type of the same size.
template <class To, class T, int Bytes> WRING_ALWAYS_INLINE void convert(Lanes<To, Bytes>& r,
                                                                         const Lanes<T, Bytes>& v) {
  WRING_GRID_UNROLL
  for (int k = 0; k < Lanes<T, Bytes>::parts; ++k) {
    if constexpr (Bytes == sizeof(T)) r.part[k] = static_cast<To>(v.part[k]);
#if WRING_NATIVE_VECTORS
    else
      r.part[k] = __builtin_convertvector(v.part[k], typename Lanes<To, Bytes>::Native);
#endif
  }
}

/// q += (r > half), q -= (r <= -half). Half open: a compiler's contraction cannot change it.
template <class U, class F, int Bytes>
WRING_ALWAYS_INLINE void correct(Lanes<U, Bytes>& q, const Lanes<F, Bytes>& r, F half) {
  WRING_GRID_UNROLL
  for (int k = 0; k < Lanes<U, Bytes>::parts; ++k) {
    if constexpr (Bytes == sizeof(U)) {
      q.part[k] = q.part[k] + static_cast<U>(r.part[k] > half) - static_cast<U>(r.part[k] <= -half);
    } else {  // one masked instruction each, where there are some
      q.part[k] = r.part[k] > half ? q.part[k] + 1 : q.part[k];
      q.part[k] = r.part[k] <= -half ? q.part[k] - 1 : q.part[k];
    }
  }
}

/// q ^ (q >> all bits): the magnitude bits of a two's complement number.
template <class U, int Bytes> WRING_ALWAYS_INLINE Lanes<U, Bytes> magnitude(const Lanes<U, Bytes>& q) {
  Lanes<std::make_signed_t<U>, Bytes> s;
  Lanes<U, Bytes> sign;
  reinterpret(s, q);
  s = s >> (8 * static_cast<int>(sizeof(U)) - 1);
  reinterpret(sign, s);
  return q ^ sign;
}

template <class U, int Bytes> WRING_ALWAYS_INLINE U reduce_or(const Lanes<U, Bytes>& v) {
  std::uint64_t a[8];
  store(a, v);
  const std::uint64_t all = ((a[0] | a[1]) | (a[2] | a[3])) | ((a[4] | a[5]) | (a[6] | a[7]));
  return static_cast<U>(sizeof(U) == 8 ? all : all | all >> 32);
}

/// Lane l receives lane l - Shift of (earlier, later) laid one after the other.
template <int Shift, class Native, class Index, Index... L>
WRING_ALWAYS_INLINE void shift_lanes(Native& r, const Native& earlier, const Native& later,
                                     std::integer_sequence<Index, L...>) {
#if WRING_NATIVE_VECTORS
  r = __builtin_shufflevector(earlier, later, (static_cast<Index>(sizeof...(L)) - Shift + L)...);
#else
  (void)r, (void)earlier, (void)later;
#endif
}

/// Every lane receives the last one.
template <class Native, class Index, Index... L>
WRING_ALWAYS_INLINE void last_lane(Native& r, const Native& v, std::integer_sequence<Index, L...>) {
#if WRING_NATIVE_VECTORS
  if constexpr (sizeof...(L) > 1)
    r = __builtin_shufflevector(v, v, ((void)L, static_cast<Index>(sizeof...(L)) - 1)...);
  else
#endif
    r = v;
}

/// The row of predecessors of `current`: lane 0 receives the last lane of `previous`.
template <class U, int Bytes>
WRING_ALWAYS_INLINE void predecessors(Lanes<U, Bytes>& r, const Lanes<U, Bytes>& previous,
                                      const Lanes<U, Bytes>& current) {
  using L = Lanes<U, Bytes>;
  WRING_GRID_UNROLL
  for (int k = 0; k < L::parts; ++k) {
    const auto& before = k ? current.part[k ? k - 1 : 0] : previous.part[L::parts - 1];
    if constexpr (L::per_part == 1)
      r.part[k] = before;
    else
      shift_lanes<1>(r.part[k], before, current.part[k], std::make_integer_sequence<int, L::per_part>{});
  }
}

/// Inclusive scan of a row that starts from `carry` (any lane of its first part); `carry` becomes the last
/// sum.
template <class U, int Bytes> WRING_ALWAYS_INLINE void scan(Lanes<U, Bytes>& x, Lanes<U, Bytes>& carry) {
  using L = Lanes<U, Bytes>;
  using Native = typename L::Native;
  constexpr auto lane = std::make_integer_sequence<int, L::per_part>{};
  Native sum = carry.part[0];
  WRING_GRID_UNROLL
  for (int k = 0; k < L::parts; ++k) {
    Native v = x.part[k];
    if constexpr (L::per_part > 1) {
      const Native zero{};
      Native t;
      shift_lanes<1>(t, zero, v, lane), v += t;
      if constexpr (L::per_part > 2) shift_lanes<2>(t, zero, v, lane), v += t;
      if constexpr (L::per_part > 4) shift_lanes<4>(t, zero, v, lane), v += t;
      if constexpr (L::per_part > 8) shift_lanes<8>(t, zero, v, lane), v += t;
    }
    v += sum;
    x.part[k] = v;
    last_lane(sum, v, lane);
  }
  carry.part[0] = sum;
}

}  // namespace wring::inline v0::detail::grid

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
