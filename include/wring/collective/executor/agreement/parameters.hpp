// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <type_traits>

#include <wring/collective/executor/agreement/division.hpp>
#include <wring/collective/executor/shared.hpp>

/// From what all ranks know to the parameters of each tensor's codec.
namespace wring::inline v0::detail {

/// Whether a bound, or a step, that is relative to the inputs is 0 since they are: what a compressor remembers must then stay where it is.
inline bool all_zeros(Bound::Kind kind, const Magnitudes& m) {
  if (kind == Bound::Kind::range)  // least > greatest: nothing is finite
    return m.least > m.greatest || (m.least == 0 && m.greatest == 0);
  return kind == Bound::Kind::rms && m.squares.high == 0 && m.squares.low == 0;
}

/// What the compressor is told of the inputs of all ranks, once `t.magnitudes` are those. Sets `t.error`.
template <class S, class Tensor> Agreed agreed_parameters(const S& s, Tensor& t) {
  Agreed a{.collective = s.task.collective,
           .operation = s.options.operation,
           .ranks = s.plan.ranks,
           .total = t.total,
           .max_abs = t.magnitudes.max_abs,
           .allowed_error = {},
           .measured = s.measures(t),
           .wide = s.wide,
           .wire_speed = s.wire_speed};
  if constexpr (WordSummingCompressor<std::remove_cvref_t<decltype(*t.codec)>>)
    a.finite = t.bound && t.magnitudes.special_values == 0;
  const double values = static_cast<double>(t.total) * (reduces(a.collective) ? a.ranks : 1);
  if (!t.bound) {
    a.root_mean_square = t.magnitudes.squares.root_mean(values), a.survey = t.magnitudes.survey.value();
    return a;
  }
  t.error = absolute_error(*t.bound, t.magnitudes, a.collective, a.operation, a.ranks, values);
  a.allowed_error = t.error;
  using T = typename Tensor::T;
  if constexpr (FloatElement<T>)
    if (t.scaled) a.allowed_error = error_of_quotients<T>(t.error, t.magnitudes.max_abs, a);
  return a;
}

/// No magnitude greater than this is ever encoded: partial sums, or values.
template <class S, class Tensor> double greatest_encoded(const S& s, const Tensor& t) {
  const int terms = reduces(s.task.collective) && adds(s.options.operation) ? s.plan.ranks : 1;
  return terms * (t.magnitudes.max_abs + t.error);
}

/// Prepares one tensor's codec, or divides its bound among the encodings. Whether sums are the same for every order of ranks.
template <class Codec, class Link, class Exec>
bool set_parameters(const Shared<Codec, Link, Exec>& s, Tensor<Codec>& t, const EdgeCount& edges) {
  using T = typename Codec::value_type;
  if constexpr (RememberingCompressor<Codec, Exec>)
    if (t.bound ? all_zeros(t.bound->kind, t.magnitudes)
                : SurveyingCompressor<Codec, Exec> && all_zeros(Bound::Kind::rms, t.magnitudes))
      t.magnitudes.max_abs = 0;
  const Agreed agreed = agreed_parameters(s, t);
  t.allowed.clear();
  if constexpr (PreparedCompressor<Codec, Exec>) t.codec->prepare(agreed);
  if constexpr (CombiningCompressor<Codec, Exec>) return t.codec->reproducible();
  if constexpr (!CombiningCompressor<Codec, Exec> && BoundedCompressor<Codec, Exec> && FloatElement<T>) {
    if (t.bound)
      divide_error<T>(t.allowed, *agreed.allowed_error, t.magnitudes, agreed.collective, agreed.operation,
                      agreed.ranks, edges, t.codec->error(greatest_encoded(s, t)));
  }
  return false;
}

/// Prepares a codec for a tensor whose inputs are up to `max_abs` on all ranks; false if the bound cannot be held for them.
template <class S, class Codec>
bool prepare_for(const S& s, const Tensor<Codec>& tensor, Codec& codec, double max_abs) {
  Tensor<Codec> t;
  t.total = tensor.total, t.bound = tensor.bound, t.scaled = tensor.scaled, t.magnitudes.max_abs = max_abs;
  try {
    codec.prepare(agreed_parameters(s, t));
    return true;
  } catch (const BoundUnattainable&) {
    return false;
  } catch (const InvalidArgument&) {
    return false;
  }
}

/// The greatest bound of a group, if every tensor of it has one.
template <class Codec, class Link, class Exec> void report_bound(Shared<Codec, Link, Exec>& s) {
  double greatest = 0;
  for (const auto& t : s.tensors) {
    if (!t.bound) return;
    greatest = std::max(greatest, t.error);
  }
  s.report.bound = greatest;
}

}  // namespace wring::inline v0::detail
