// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

#include <wring/operation.hpp>

/// What happens to each value, on hosts and devices. Kernels are functors with a name and plain members: device compilers have trouble
/// with lambdas in templates.
namespace common_step {

/// Whole numbers of steps, in integers of type Q. The three outermost numbers are kept for special values.
template <class Q> struct Quanta {
  static constexpr Q infinity = std::numeric_limits<Q>::max(), nan = std::numeric_limits<Q>::min(),
                     most = infinity - 1;

  /// Pieces have no alignment.
  KOKKOS_FUNCTION static Q load(const std::byte* from) {
    Q q;
    for (std::size_t k = 0; k < sizeof q; ++k) reinterpret_cast<std::byte*>(&q)[k] = from[k];
    return q;
  }
  KOKKOS_FUNCTION static void store(Q q, std::byte* to) {
    for (std::size_t k = 0; k < sizeof q; ++k) to[k] = reinterpret_cast<const std::byte*>(&q)[k];
  }

  KOKKOS_FUNCTION static bool infinite(Q q) { return q == infinity || q == -infinity; }

  /// As IEEE arithmetic has it: NaN wins, and infinities of both signs are NaN. Damaged bytes may exceed the range, good ones do not.
  KOKKOS_FUNCTION static Q combine(Q a, Q b, wring::Operation operation) {
    if (a == nan || b == nan) return nan;
    if (operation == wring::Operation::min) return a < b ? a : b;
    if (operation == wring::Operation::max) return a < b ? b : a;
    if (infinite(a)) return infinite(b) && a != b ? nan : a;
    if (infinite(b)) return b;
    const std::int64_t sum = std::int64_t{a} + b, limit = most;
    return static_cast<Q>(sum > limit ? limit : sum < -limit ? -limit : sum);
  }
};

template <class T, class Q> struct Encode {
  const T* values;
  std::byte* bytes;
  double step;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    Quanta<Q>::store(quantum(static_cast<double>(values[i])), bytes + i * sizeof(Q));
  }
  KOKKOS_FUNCTION Q quantum(double x) const {
    if (x != x) return Quanta<Q>::nan;
    if (x - x != 0) return x > 0 ? Quanta<Q>::infinity : static_cast<Q>(-Quanta<Q>::infinity);
    const double q = Kokkos::nearbyint(x / step), limit = Quanta<Q>::most;
    return static_cast<Q>(q > limit ? limit : q < -limit ? -limit : q);
  }
};

template <class T, class Q> struct Decode {
  const std::byte* bytes;
  T* values;
  double step, terms;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    const Q q = Quanta<Q>::load(bytes + i * sizeof(Q));
    if (q == Quanta<Q>::nan)
      values[i] = Kokkos::Experimental::quiet_NaN_v<T>;
    else if (Quanta<Q>::infinite(q))
      values[i] = q > 0 ? Kokkos::Experimental::infinity_v<T> : -Kokkos::Experimental::infinity_v<T>;
    else
      values[i] = static_cast<T>(q * step / terms);
  }
};

template <class Q> struct Combine {
  const std::byte *a, *b;
  std::byte* out;
  wring::Operation operation;

  KOKKOS_FUNCTION void operator()(std::size_t i) const {
    const std::size_t at = i * sizeof(Q);
    Quanta<Q>::store(Quanta<Q>::combine(Quanta<Q>::load(a + at), Quanta<Q>::load(b + at), operation),
                     out + at);
  }
};

}  // namespace common_step
