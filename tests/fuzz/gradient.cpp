// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams of Gradient: pieces that no compressor wrote, and any bytes as values, with and without a bound.
#include <wring/compressor/gradient.hpp>

#include "pieces.hpp"

namespace fuzz {

using wring::Context;
using wring::Gradient;

/// A compressor of any options, and how many values it is for.
template <class T> Gradient<T> any_codec(Input& input, Context& c) {
  using Codec = Gradient<T>;
  typename Codec::Options options{.target = std::ldexp(1.0, -1 - static_cast<int>(input.below(20)))};
  if (input.flag()) options.rounding = wring::StochasticRounding{input.below(4)};
  options.dead_zone = 0.5 + input.below(9) / 16.0;
  options.form = static_cast<typename Codec::Form>(input.below(3));
  c.collective = static_cast<wring::Collective>(input.below(4));
  c.operation = static_cast<wring::Operation>(input.below(4));
  c.ranks = 1 + static_cast<int>(input.below(9));
  c.step = input.below(3), c.first = 128 * input.below(5);
  return Codec(options);
}

/// What all ranks agree upon if all hold these values; false where they cannot agree.
template <class T>
bool prepare(Gradient<T>& codec, std::span<const T> values, const Context& c, std::optional<double> bound) {
  wring::Agreed agreed{.collective = c.collective,
                       .operation = c.operation,
                       .ranks = c.ranks,
                       .total = c.total,
                       .allowed_error = bound,
                       .measured = true};
  double squares = 0;
  for (const T& v : values)
    if (const double x = wring::detail::widen(v); std::isfinite(x))
      agreed.max_abs = std::max(agreed.max_abs, std::fabs(x)), squares += x * x;
  if (!(squares < 1e300) || (squares < 1e-300 && agreed.max_abs > 0)) return false;
  if (!bound && agreed.max_abs > 0) {
    agreed.root_mean_square = std::sqrt(squares / static_cast<double>(values.size()));
    agreed.survey = codec.survey(Exec{}, values, agreed.root_mean_square);
    require(agreed.survey > 0 && std::isfinite(agreed.survey), "a survey finds no step");
  }
  return accepts([&] { codec.prepare(agreed); });
}

/// Any bytes as values: what comes back is within a step, or the bound; what is not finite arrives.
template <class T> void values(Input input) {
  Context c;
  Gradient<T> codec = any_codec<T>(input, c);
  std::optional<double> bound;
  if (input.flag()) bound = std::ldexp(1.0, static_cast<int>(input.below(60)) - 40);
  const auto bytes = input.rest();
  const std::size_t n = bytes.size() / sizeof(T);
  Exactly<T> x(n), y(n);
  if (n > 0) std::memcpy(static_cast<void*>(x.span().data()), bytes.data(), n * sizeof(T));
  c.count = n, c.total = c.first + n;
  if (!prepare<T>(codec, x.span(), c, bound)) return;
  Exactly<std::byte> scratch(codec.scratch_bytes(n)), piece(codec.max_compressed_bytes(n));
  c.scratch = scratch.span();
  const std::size_t size = codec.compress(Exec{}, std::span<const T>(x.span()), piece.span(), c);
  require(size <= piece.span().size(), "a piece is longer than its worst case");
  codec.decompress(Exec{}, std::span<const std::byte>(piece.span().first(size)), y.span(), c);
  const double step = codec.step().value_or(0);
  for (std::size_t i = 0; i < n; ++i) {
    const double u = wring::detail::widen(x.span()[i]), v = wring::detail::widen(y.span()[i]);
    if (!std::isfinite(u)) {
      require(u == v || (u != u && v != v), "a value that is not finite arrives as something else");
      continue;
    }
    const double rounding =
        4 * wring::FloatTraits<T>::unit_roundoff * std::fabs(u) + wring::FloatTraits<T>::least_subnormal;
    require(std::fabs(u - v) <= (bound ? *bound : step * (1 + 1e-6) + rounding),
            "a value is farther off than a step, or the bound");
  }
}

/// Any bytes as pieces.
template <class T> void pieces(Input input) {
  Context c;
  Gradient<T> codec = any_codec<T>(input, c);
  c.phase = static_cast<wring::Phase>(input.below(3));
  c.count = c.total = input.below(3000);
  c.terms = c.ranks, c.first = 0;
  const bool aims = input.flag();
  wring::Agreed agreed{.collective = c.collective,
                       .operation = c.operation,
                       .ranks = c.ranks,
                       .total = c.total,
                       .max_abs = 1,
                       .allowed_error = {},
                       .measured = true,
                       .root_mean_square = 0.1,
                       .survey = 0.3};
  if (!aims) agreed.allowed_error = 0.05;
  if (!accepts([&] { codec.prepare(agreed); })) return;
  const std::size_t room = codec.max_combined_bytes(c.count, c.ranks);
  Exactly<std::byte> scratch(codec.scratch_bytes(c.count)), out(room), finished(room);
  c.scratch = scratch.span();
  const Exactly<std::byte> piece(input.rest());
  decodes(codec, piece.span(), c);
  accepts([&] {
    const std::size_t size = codec.combine(Exec{}, piece.span(), piece.span(), out.span(), c);
    require(size <= room, "a combined piece is longer than its worst case");
    const auto sum = std::span<const std::byte>(out.span()).first(size);
    decodes(codec, sum, c);
    if (!codec.finishes()) return;
    c.phase = wring::Phase::final;
    const std::size_t end = codec.finish(Exec{}, sum, finished.span(), c);
    require(end <= room, "a finished piece is longer than its worst case");
    decodes(codec, std::span<const std::byte>(finished.span()).first(end), c);
  });
}

void fuzz(Input input) {
  switch (input.below(6)) {
  case 0: return values<float>(input);
  case 1: return values<double>(input);
  case 2: return values<wring::half_t>(input);
  case 3: return pieces<float>(input);
  case 4: return pieces<double>(input);
  default: return pieces<wring::bhalf_t>(input);
  }
}

}  // namespace fuzz
