// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// Kernels on plain values, for compressors that do not combine encoded pieces.
namespace wring::inline v0::detail {

inline constexpr std::size_t values_per_task = 4096;

/// A functor of no named type, so that a program has one parallel loop for all kernels on a host: each takes its time to compile.
/// It holds a copy, which lives as long as the loop.
class HostTasks {
 public:
  template <class Functor> explicit HostTasks(const Functor& functor) {
    static_assert(std::is_trivially_copyable_v<Functor> && sizeof(Functor) <= sizeof functor_ &&
                  alignof(Functor) <= alignof(std::max_align_t));
    std::memcpy(functor_, &functor, sizeof functor);
    run_ = [](const std::byte* held, std::size_t task) { (*reinterpret_cast<const Functor*>(held))(task); };
  }
  void operator()(std::size_t task) const { run_(functor_, task); }

 private:
  alignas(std::max_align_t) std::byte functor_[192];
  void (*run_)(const std::byte* functor, std::size_t task);
};

/// Labels of kernels have at most 15 characters: Kokkos makes strings of them, and longer ones would allocate in every call.
template <class Exec, class Functor>
void for_each_task(const char* label, const Exec& exec, std::size_t values, const Functor& functor) {
  if (values == 0) return;
  const std::size_t tasks = (values + values_per_task - 1) / values_per_task;
  if constexpr (std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace>)
    if (tasks == 1 || exec.concurrency() == 1) {  // sooner done than shared out
      exec.fence(label);                          // what was submitted before must be there
      for (std::size_t task = 0; task < tasks; ++task) functor(task);
      return;
    }
  const Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>> policy(exec, 0, tasks);
  if constexpr (std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace>)
    Kokkos::parallel_for(label, policy, HostTasks(functor));
  else
    Kokkos::parallel_for(label, policy, functor);
}

/// Calls `functor(i)` for every i below `values`.
template <class Exec, class Functor>
void for_each_value(const char* label, const Exec& exec, std::size_t values, const Functor& functor) {
  if constexpr (std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace>)
    for_each_task(label, exec, values, [functor, values](std::size_t task) {
      const std::size_t first = task * values_per_task, left = values - first;
      for (std::size_t i = 0; i < values_per_task && i < left; ++i) functor(first + i);
    });
  else
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, values),
                         functor);
}

template <class T> KOKKOS_INLINE_FUNCTION T add_values(T a, T b) {
  if constexpr (FloatElement<T> && !std::is_floating_point_v<T>)
    return T(widen(a) + widen(b));
  else if constexpr (std::is_integral_v<T>) {  // wraps, as MPI_SUM does in practice; never undefined
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else
    return a + b;
}

/// The lesser (or greater) of two values in IEEE order: a NaN wins, -0 < +0; commutative bit by bit.
template <bool greater, class T> KOKKOS_INLINE_FUNCTION T select_value(T a, T b) {
  if constexpr (FloatElement<T>) {
    const auto x = widen(a), y = widen(b);
    if (x != x) return a;
    if (y != y) return b;
    if (x == y) {
      const bool negative = Kokkos::signbit(x);
      return negative != greater ? a : b;
    }
    return (x < y) != greater ? a : b;
  } else if constexpr (std::is_integral_v<T>) {
    return (a < b) != greater ? a : b;
  } else {
    return a;  // refused before any call
  }
}

#if (defined(__GNUC__) || defined(__clang__)) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define WRING_VALUES_IN_VECTORS 1

/// Loops over floats and doubles in registers of 16 bytes, which every x86-64 and ARM processor has: compilers leave them scalar at
/// -O2 where pointers may alias. What is left over is done one by one.
template <class T, class Vector, class Scalar> WRING_ALWAYS_INLINE void
in_vectors(T* out, const T* a, const T* b, std::size_t count, const Vector& vector, const Scalar& scalar) {
  typedef T V __attribute__((vector_size(16)));
  constexpr std::size_t lanes = 16 / sizeof(T);
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    V x[4], y[4];
    __builtin_memcpy(x, a + i, sizeof x);
    __builtin_memcpy(y, b + i, sizeof y);
    for (int k = 0; k < 4; ++k) x[k] = vector(x[k], y[k]);
    __builtin_memcpy(out + i, x, sizeof x);
  }
  for (; i < count; ++i) out[i] = scalar(a[i], b[i]);
}
#endif

/// out[i] = a[i] + b[i].
template <class T>
KOKKOS_INLINE_FUNCTION void add_run(T* out, const T* a, const T* b, std::size_t count) {
#if defined(WRING_VALUES_IN_VECTORS)
  if constexpr (std::is_floating_point_v<T>) {
    const auto add = [](auto x, auto y) { return x + y; };
    return in_vectors(out, a, b, count, add, add);
  }
#endif
  for (std::size_t i = 0; i < count; ++i) out[i] = add_values(a[i], b[i]);
}

/// out[i] = a[i] op b[i]; `out` may be `a`.
template <class T> struct CombineValues {
  T* out;
  const T *a, *b;
  std::size_t count;
  Operation operation;

  KOKKOS_FUNCTION void operator()(std::size_t task) const {
    const std::size_t first = task * values_per_task;
    const std::size_t last = first + values_per_task < count ? first + values_per_task : count;
    if (operation == Operation::min) {
      for (std::size_t i = first; i < last; ++i) out[i] = select_value<false>(a[i], b[i]);
    } else if (operation == Operation::max) {
      for (std::size_t i = first; i < last; ++i) out[i] = select_value<true>(a[i], b[i]);
    } else {
      add_run(out + first, a + first, b + first, last - first);
    }
  }
};

/// Turns complete sums into results: a quiet NaN of one pattern for every NaN, and MEAN's division.
template <class T> struct FinishValues {
  T* values;
  std::size_t count;
  int divisor;

  KOKKOS_FUNCTION void operator()(std::size_t task) const {
    const std::size_t first = task * values_per_task;
    const std::size_t last = first + values_per_task < count ? first + values_per_task : count;
#if defined(WRING_VALUES_IN_VECTORS)
    if constexpr (std::is_floating_point_v<T>)
      if (divisor == 1) {
        const T nan = Kokkos::Experimental::quiet_NaN_v<T>;
        return in_vectors(
            values + first, values + first, values + first, last - first,
            [nan](auto x, auto) { return x == x ? x : decltype(x){} + nan; },
            [this](T x, T) { return finished(x); });
      }
#endif
    for (std::size_t i = first; i < last; ++i) values[i] = finished(values[i]);
  }

  KOKKOS_FUNCTION T finished(T x) const {
    if constexpr (FloatElement<T>) {
      const auto wide = widen(x);
      using Wide = typename FloatTraits<T>::Wide;
      if (wide != wide) return T(Kokkos::Experimental::quiet_NaN_v<Wide>);
      return divisor == 1 ? x : narrow<T>(static_cast<double>(wide) / divisor);
    } else if constexpr (is_complex_v<T>) {
      return divisor == 1 ? x : x / static_cast<typename T::value_type>(divisor);
    } else {
      return x;
    }
  }
};

template <class T> struct CopyValues {
  const T* from;
  T* to;
  std::size_t count;

  KOKKOS_FUNCTION void operator()(std::size_t task) const {
    const std::size_t first = task * values_per_task;
    const std::size_t last = first + values_per_task < count ? first + values_per_task : count;
    KOKKOS_IF_ON_HOST(
        (std::memcpy(static_cast<void*>(to + first), from + first, (last - first) * sizeof(T));))
    KOKKOS_IF_ON_DEVICE((for (std::size_t i = first; i < last; ++i) to[i] = from[i];))
  }
};

template <class T, class Exec>
void combine_values(const Exec& exec, std::span<T> out, std::span<const T> a, std::span<const T> b,
                    Operation operation) {
  for_each_task("wring::combine", exec, out.size(),
                CombineValues<T>{out.data(), a.data(), b.data(), out.size(), operation});
}

template <class T, class Exec>
void combine_values(const Exec& exec, std::span<T> a, std::span<const T> b, Operation operation) {
  combine_values<T>(exec, a, a, b, operation);
}

template <class T, class Exec> void finish_values(const Exec& exec, std::span<T> values, int divisor) {
  for_each_task("wring::finish", exec, values.size(), FinishValues<T>{values.data(), values.size(), divisor});
}

template <class T, class Exec> void copy_values(const Exec& exec, std::span<const T> from, std::span<T> to) {
  if (from.data() == to.data()) return;
  for_each_task("wring::copy", exec, to.size(), CopyValues<T>{from.data(), to.data(), to.size()});
}

}  // namespace wring::inline v0::detail
