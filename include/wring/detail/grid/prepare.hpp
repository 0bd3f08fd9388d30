// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include <wring/compressor/concept.hpp>
#include <wring/detail/grid/parameters.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

/// How a bound on the result becomes a step. Pure functions of agreed values: every rank computes the same.
///
/// All is computed in binary64 with directed rounding: `up` and `down` move a result one number outwards,
/// which is at least as far as the operation's own rounding, so that up(a op b) >= the exact a op b >= down(a
/// op b).
namespace wring::inline v0::detail::grid {

inline double up(double x) { return std::nextafter(x, std::numeric_limits<double>::infinity()); }
inline double down(double x) { return std::nextafter(x, -std::numeric_limits<double>::infinity()); }

/// What the choice depends on.
struct Request {
  Collective collective;
  Operation operation;
  int ranks;
  double max_abs;
  double error;
  bool power_of_two, delta;
  bool wide = false;  ///< pieces of full width are asked for

  bool reduction() const { return reduces(collective); }
  bool sums() const { return reduction() && adds(operation); }
  bool averages() const { return reduction() && operation == Operation::mean; }
  /// Whether a sum may exceed the greatest element of T, so that a result may have to be an infinity.
  template <class T> bool may_overflow() const {
    return sums() && !averages() && up(ranks * max_abs) > FloatTraits<T>::greatest;
  }
  /// A complete sum is rounded to multiples of 2^shift steps: rate-optimal for allreduce on more than four
  /// ranks.
  int shift() const {
    if (!sums() || collective != Collective::allreduce || ranks <= 4) return 0;
    int s = 0;
    while ((std::int64_t{2} << s) <= ranks) ++s;
    return s;
  }
};

/// Relative rounding error of a result made from a quantum in binary64: q and its product with the step are
/// rounded (2^-53 each, not at all on the int32 grid), MEAN divides (2^-53 more), and the element is rounded,
/// 16-bit ones twice. (1 + 2^-53)^3 (1 + 2^-24) <= 1 + 2^-24 (1 + 2^-27);  (1 + 2^-53)^3 (1 + 2^-24) (1 + u)
/// <= 1 + u (1 + 2^-12) for u >= 2^-11; in binary64 the product is the element: (1 + u)^2 <= 1 + 2u (1 + u),
/// and with the division (1 + u)^3 <= 1 + 3u (1 + 2u).
template <class T> double result_roundoff(bool averages) {
  constexpr double u = FloatTraits<T>::unit_roundoff;
  if constexpr (std::is_same_v<T, double>)
    return averages ? up(3 * u * (1 + 2 * u)) : up(2 * u * (1 + u));
  else if constexpr (std::is_same_v<typename FloatTraits<T>::Wide, T>)
    return u * (1 + 0x1p-27);
  else
    return u * (1 + 0x1p-12);
}

/// What rounding the result may add: u' |y| + half the least subnormal. |y| is at most what the sum or the
/// value can be plus E; above the greatest element it saturates, which brings it closer.
template <class T> double result_rounding(const Request& r) {
  const double ranks = r.averages() || !r.sums() ? 1 : r.ranks;
  const double most = std::min(up(up(ranks * r.max_abs) + r.error), FloatTraits<T>::greatest);
  // Half of the least subnormal of binary64 is no double: its whole serves.
  const double eta = std::max(FloatTraits<T>::least_subnormal / 2, std::numeric_limits<double>::denorm_min());
  return up(up(result_roundoff<T>(r.averages()) * most) + eta);
}

/// The error of one encoding of |values| <= max_abs with a step.
template <class T> double error_of_one(double step, double max_abs) {
  if (max_abs == 0) return 0;
  const double half = 0.5 * step, most = std::min(up(max_abs + half), FloatTraits<T>::greatest);
  const double rounding = up(result_roundoff<T>(false) * most) + FloatTraits<T>::least_subnormal;
  return up(half + up(rounding));
}

template <class T> constexpr int largest_exponent = std::is_same_v<T, double> ? 1021 : 125;

/// The greatest allowed step that is no larger than `most`, and such that 2^shift steps are allowed too;
/// nothing if none is.
template <class T> std::optional<GridParameters> step_below(double most, bool power_of_two, int shift) {
  const int top = largest_exponent<T> - shift;
  if (!(most >= std::ldexp(1.0, -largest_exponent<T>))) return std::nullopt;
  GridParameters p;
  int exponent = 0;
  const double fraction =
      std::frexp(std::min(most, std::ldexp(1.0, top)), &exponent);  // 8 <= 16 * fraction < 16
  p.multiplier = power_of_two ? 8 : static_cast<int>(16 * fraction);
  p.exponent = exponent - 4;
  p.step = std::ldexp(p.multiplier, p.exponent);
  p.inverse = 1 / p.step;
  return p;
}

/// The greatest step that keeps the bound (docs/accuracy.md), or nothing where rounding the result
/// alone may exceed it.
template <class T> std::optional<GridParameters> grid_step(const Request& r) {
  double left = down(r.error - result_rounding<T>(r));
  // A sum S is known as S' alone, so S' <= greatest + E / 2 decides between the greatest element and an infinity. With |S' - S| below
  // E / 2 no finite result is farther than E from S, and no S up to the greatest element becomes infinite. What is taken off
  // outweighs the roundings of S' and of the limit.
  if (r.may_overflow<T>()) left = down(down(left / 2) - FloatTraits<T>::greatest * 0x1p-50);
  const int shift = r.shift();
  if (!(left > 0)) {
    if (r.max_abs == 0)
      return step_below<T>(1, r.power_of_two, shift);  // nothing but zeros: any step will do
    return std::nullopt;
  }
  double most = down(2 * std::min(left, 0x1p1020));
  if (r.sums()) {
    const double terms = r.ranks, phases = terms + (shift != 0 ? std::ldexp(1.0, shift) : 0.0);
    // SUM: p D / 2 + 2^s D / 2.  MEAN: the same, divided by p. Both integers are exact.
    most = r.averages() ? down(std::min(down(most / phases), 0x1p990) * terms) : down(most / phases);
  }
  return step_below<T>(most, r.power_of_two, shift);
}

/// int32 if no partial sum can leave it (W1, W2), else int64 if it holds them and x / D can be computed, else
/// nothing.
template <class T> std::optional<GridParameters::Form> integers_for(const Request& r,
                                                                    const GridParameters& p) {
  using Form = GridParameters::Form;
  const double largest = up(r.max_abs / p.step), terms = r.sums() ? r.ranks : 1;
  const double sum = up(up(terms * largest) + 0.5 * terms);
  const bool int64 = largest < 0x1p51 - 1 && sum <= (p.delta ? 0x1p60 - 1 : 0x1p61 - 1);
  if (p.raw_blocks) {  // outliers are stored as they are; only binary64 has more to gain from wider quanta
    return std::is_same_v<T, double> && largest > 0x1p30 - 1 && int64 ? Form::int64 : Form::int32;
  }
  if (sum <= 0x1p31 - 1) return Form::int32;
  return int64 ? std::optional(Form::int64) : std::nullopt;
}

/// Bits that the quanta and partial sums of agreed inputs need (W1), at most 62; for inputs that are not known yet, max_abs = 0, too, and
/// where blocks of full width will be asked for.
inline int width_for(const Request& r, const GridParameters& p) {
  if (!(r.max_abs > 0) || r.wide) return 62;  // a magnitude from a forged message may be anything
  const double terms = r.sums() ? r.ranks : 1;
  const double sum = up(up(terms * up(r.max_abs / p.step)) + 0.5 * terms);
  if (!(sum < 0x1p60)) return 62;
  return std::min(62,
                  1 + static_cast<int>(std::bit_width(static_cast<std::uint64_t>(sum))) + (p.delta ? 1 : 0));
}

/// The grid that keeps the bound, or nothing.
template <class T> std::optional<GridParameters> on_grid(const Request& r) {
  std::optional<GridParameters> p = grid_step<T>(r);
  if (!p) return std::nullopt;
  p->shift = r.shift();
  p->delta = r.delta && (r.sums() || !r.reduction());
  p->raw_blocks = !r.reduction();
  const auto form = integers_for<T>(r, *p);
  if (!form) return std::nullopt;
  p->form = *form;
  p->widest = width_for(r, *p);
  // Sums that come out just above the greatest element saturate; what cannot exceed it always does.
  if (r.may_overflow<T>()) p->limit = FloatTraits<T>::greatest * 0x1p-64 + r.error * 0x1p-65;
  return p;
}

/// The grid with the allowed step nearest to `step`, which promises nothing; raw elements where no integers or no step serve.
template <class T> GridParameters with_step(Request r, double step) {
  GridParameters values;
  values.form = GridParameters::Form::values;
  std::optional<GridParameters> p = step_below<T>(step, false, 0);
  if (!p) return values;
  const auto above = step_below<T>(p->step + std::ldexp(1.0, p->exponent), false, 0);
  if (above && above->step / step < step / p->step) p = above;
  p->raw_blocks = !r.reduction();
  const auto form = integers_for<T>(r, *p);
  if (!form) return values;
  p->form = *form;
  p->widest = width_for(r, *p);
  r.error = r.ranks * p->step;
  if (r.may_overflow<T>()) p->limit = FloatTraits<T>::greatest * 0x1p-64 + r.error * 0x1p-65;
  return *p;
}

/// Whether raw elements, added in whatever order the plan has, keep the bound: (p - 1) u (A + E) <= E, since
/// every partial sum is at most A + E and is rounded once (16-bit ones twice); MEAN: the same divided by p,
/// plus the rounding of the quotient. Sums in the subnormal range are exact, and nothing but sums ever
/// rounds.
template <class T> bool raw_values_keep(const Request& r) {
  if (!r.sums() || r.ranks == 1) return true;
  constexpr bool twice = !std::is_same_v<typename FloatTraits<T>::Wide, T>;
  const double terms = r.ranks, added = FloatTraits<T>::unit_roundoff * (twice ? 1 + 0x1p-12 : 1);
  const double budget = r.averages() ? up(r.error * terms) : r.error;  // what the sum may be off by
  const double most = up(up(terms * r.max_abs) + budget);
  if (most > FloatTraits<T>::greatest) return false;  // a partial sum could overflow
  const double sum_error = up(up((terms - 1) * added) * most);
  if (!r.averages()) return sum_error <= r.error;
  return up(up(sum_error / terms) + result_rounding<T>(r)) <= r.error;
}

/// The parameters for a request, or nothing where no form keeps the bound.
template <class T> std::optional<GridParameters> parameters_for(const Request& r) {
  if (auto p = on_grid<T>(r)) return p;
  if (!raw_values_keep<T>(r)) return std::nullopt;
  GridParameters p;
  p.form = GridParameters::Form::values;
  return p;
}

/// An error that can be attained, at most 2/15 above the least one: for the message, which shows three digits of it, so that what is
/// asked for may be smaller by a 200th.
template <class T> double attainable_error(Request r) {
  r.error = std::max({r.error, r.max_abs * 0x1p-70, std::numeric_limits<double>::denorm_min()});
  while (!parameters_for<T>(r) && r.error < FloatTraits<T>::greatest)
    r.error = std::max(up(r.error), r.error * 1.125);
  return r.error * 1.006;
}

/// What is asked of a codec of this name. Throws InvalidArgument where it is nothing that can be promised.
inline Request request_of(const char* codec, const Agreed& agreed, bool power_of_two, bool delta) {
  if (!agreed.allowed_error)
    throw InvalidArgument(fmt::format("{} needs a bound on the result: ask for absolute(E), "
                                      "relative_to_range(e) or relative_to_rms(e)",
                                      codec));
  const double error = *agreed.allowed_error;
  if (!(error >= 0) || error > std::numeric_limits<double>::max())
    throw InvalidArgument(fmt::format("{}: the bound {} is not a finite number >= 0", codec, error));
  return {agreed.collective, agreed.operation, agreed.ranks, agreed.max_abs, error, power_of_two, delta,
          agreed.wide};
}

/// Chooses or throws: InvalidArgument where nothing was asked that Grid can promise, BoundUnattainable where
/// it cannot be kept.
template <class T> GridParameters choose_parameters(const Agreed& agreed, bool power_of_two, bool delta) {
  const Request request = request_of("Grid", agreed, power_of_two, delta);
  if (const auto p = parameters_for<T>(request)) return *p;
  throw BoundUnattainable(fmt::format("Grid<{}>: an error of {} cannot be promised for the {} of {} ranks "
                                      "with magnitudes up to {}; {:.3g} can",
                                      FloatTraits<T>::name, request.error, name_of(agreed.operation),
                                      agreed.ranks, agreed.max_abs, attainable_error<T>(request)));
}

}  // namespace wring::inline v0::detail::grid
