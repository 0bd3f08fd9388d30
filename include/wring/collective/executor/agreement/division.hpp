// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <wring/algorithm/plan.hpp>
#include <wring/bound.hpp>
#include <wring/collective/executor/agreement/magnitudes.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/detail/sum_rounding.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// From the user's bound to the error that each encoding may make, for compressors that decode, add and encode again.
namespace wring::inline v0::detail {

/// The greatest double that is not above a * b * c, except for a factor of a few 2^-40: also where the product is subnormal, and with
/// nothing in between that is.
inline double product_below(double a, double b, double c) {
  int ea = 0, eb = 0, ec = 0;
  const double m = std::frexp(a, &ea) * std::frexp(b, &eb) * std::frexp(c, &ec) * down;
  const double y = std::ldexp(m, ea + eb + ec);
  return std::ldexp(y, -(ea + eb + ec)) > m ? std::nextafter(y, 0.0) : y;
}

/// The user's bound in the units of the data, rounded down. `values` is the number of inputs of all ranks together.
inline double absolute_error(const Bound& bound, const Magnitudes& m, Collective collective,
                             Operation operation, int ranks, double values) {
  if (bound.kind == Bound::Kind::absolute) return bound.value;
  if (m.max_abs == 0 || values == 0) return 0;
  if (bound.kind == Bound::Kind::range) {
    const double range = m.greatest * 0.5 - m.least * 0.5;  // halved: the difference may overflow
    return range > 0 ? product_below(bound.value, range, 2) : 0;
  }
  const bool total = reduces(collective) && operation == Operation::sum;
  return product_below(bound.value, m.squares.root_mean(values), total ? ranks : 1);
}

/// What is left of the bound on a scaled view for the reduction of the quotients, which are at most max_abs:
///   E - n (u max_abs + e) - u (n max_abs + E),
/// n the terms of a sum, else 1: the quotients are rounded, e the half of the least subnormal for those that underflow, and the product with the
/// scale is. Throws BoundUnattainable where nothing is left.
template <FloatElement T> double error_of_quotients(double error, double max_abs, const Agreed& a) {
  if (max_abs == 0 && error == 0) return 0;
  const double u = FloatTraits<T>::unit_roundoff * (1 + 0x1p-10), tiny = FloatTraits<T>::least_subnormal;
  const double terms = reduces(a.collective) && a.operation == Operation::sum ? a.ranks : 1;
  const double rounding = (terms * (u * max_abs + tiny) + u * (terms * max_abs + error)) * up;
  const double left = (error - rounding) * down;
  if (left > 0) return left;
  throw BoundUnattainable(
      fmt::format("an error of {:g} cannot be held for quotients of type {} up to {:g}: they "
                  "are rounded by more; ask for a larger bound or use a wider type",
                  error, FloatTraits<T>::name, max_abs));
}

/// The allowed error of each budget class so that (T1) holds: |result - exact| <= sum_j edges_j e_j + the rounding of the additions.
/// (MEAN: what precedes the division counts a p-th, which is not made use of, since a class may come before or after it.)
/// Throws BoundUnattainable when nothing is left to give away, or less than `least`, the smallest error the compressor can obey.
/// `edges` has none for compressors that are lossless. Fills `allowed`, which keeps its memory.
template <FloatElement T>
void divide_error(std::vector<double>& allowed, double error, const Magnitudes& m, Collective collective,
                  Operation operation, int ranks, const EdgeCount& edges, double least) {
  const double left = left_by_sums<T>(error, m.max_abs, collective, operation, ranks);
  allowed.assign(edges.per_budget.size(), left);
  bool attainable = left >= 0;
  if (edges.total() > 0) {
    for (std::size_t j = 0; j < allowed.size(); ++j) {
      if (edges.per_budget[j] == 0) continue;
      allowed[j] = left * edges.share(j) * down;
      attainable = attainable && allowed[j] >= least;
    }
  }
  if (attainable) return;
  const std::string what =
      fmt::format("an error of {:g} cannot be held for {} ranks with values of type {} up to {:g}: ", error,
                  ranks, FloatTraits<T>::name, m.max_abs);
  if (left < 0)
    throw BoundUnattainable(what +
                            "their sum is rounded by more; ask for a larger bound or use a wider type");
  throw BoundUnattainable(
      what + fmt::format("the compressor errs by up to {:.3g} in each of {} encodings; ask for about {:.3g}",
                         least, edges.total(), 1.01 * (error - left + least * edges.total())));
}

}  // namespace wring::inline v0::detail
