// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pieces of Grid: everything that reads them, the fast kernels and those for devices, which must agree.
#include <wring/compressor/grid.hpp>

#include "pieces.hpp"

namespace fuzz {

using wring::Context;
using wring::Phase;

template <class T> wring::Grid<T> prepared(Input& input, Context& c, wring::detail::GridParameters& p) {
  const bool delta = input.flag(), power = input.flag();
  using Grid = wring::Grid<T>;
  Grid codec({.step = power ? Grid::StepKind::power_of_two : Grid::StepKind::short_step, .delta = delta});
  c.collective = static_cast<wring::Collective>(input.below(4));
  c.operation = static_cast<wring::Operation>(input.below(4));
  c.ranks = 1 + static_cast<int>(input.below(9));
  c.count = c.total = input.below(1400);
  c.terms = c.ranks;
  const double error = std::ldexp(1.0, static_cast<int>(input.below(60)) - 40);
  const wring::Agreed agreed{.collective = c.collective,
                             .operation = c.operation,
                             .ranks = c.ranks,
                             .total = c.total,
                             .max_abs = error * std::ldexp(1.0, static_cast<int>(input.below(48))),
                             .allowed_error = error,
                             .measured = true};
  codec.prepare(agreed);
  p = wring::detail::grid::choose_parameters<T>(agreed, power, delta);
  return codec;
}

template <class T>
void kernels_agree(std::span<const std::byte> piece, std::size_t n, wring::detail::GridParameters p) {
  p.shift = 0;
  kernels_agree<T>(
      n, [&](std::span<T> y) { wring::detail::grid_decode<T>(Exec{}, piece, y, p); },
      [&](std::span<T> y) { wring::detail::team_grid_decode<T>(Exec{}, piece, y, p); });
}

template <class T> void combines(wring::Grid<T>& codec, const Context& c, std::span<const std::byte> a,
                                 std::span<const std::byte> b) {
  Exactly<std::byte> out(codec.max_combined_bytes(c.count, c.ranks));
  accepts([&] {
    const std::size_t bytes = codec.combine(Exec{}, a, b, out.span(), c);
    require(bytes <= out.span().size(), "combine says that it wrote more than it may");
    decodes(codec, out.span().first(bytes), c);
    if (!codec.finishes()) return;
    Exactly<std::byte> finished(codec.max_combined_bytes(c.count, c.ranks));
    Context last = c;
    last.phase = Phase::final;
    accepts([&] {
      const std::size_t n = codec.finish(Exec{}, out.span().first(bytes), finished.span(), last);
      decodes(codec, finished.span().first(n), last);
    });
  });
}

/// Own values, or a piece, added to a piece in the pass that decodes the sum: accepted where combining is, with the same bytes and values.
template <class T> void accumulates(wring::Grid<T>& codec, const Context& c, std::span<const std::byte> a,
                                    std::span<const std::byte> b) {
  if (!codec.accumulates()) return;
  Exactly<std::byte> expected(codec.max_combined_bytes(c.count, c.ranks)), out(expected.span().size());
  Exactly<T> result(c.count);
  std::size_t bytes = 0, most = 0;
  const bool one = accepts([&] { bytes = codec.combine(Exec{}, a, b, expected.span(), c); });
  const bool two = accepts([&] { most = codec.accumulate(Exec{}, a, b, out.span(), result.span(), c); });
  require(one == two, "only one of combine and accumulate accepts two pieces");
  if (one)
    require(bytes == most && std::memcmp(expected.span().data(), out.span().data(), bytes) == 0,
            "combine and accumulate write different bytes");
  const Exactly<T> zeros(c.count);
  accepts([&] {
    most = codec.accumulate(Exec{}, std::span<const T>(zeros.span()), b, out.span(), result.span(), c);
    require(most <= out.span().size(), "accumulate says that it wrote more than it may");
  });
}

template <class T> void pieces(Input input) {
  Context c;
  wring::detail::GridParameters p;
  std::optional<wring::Grid<T>> codec;
  if (!accepts([&] { codec.emplace(prepared<T>(input, c, p)); })) return;
  const std::size_t cut = input.number();
  const bool team = input.flag();
  const Exactly<std::byte> all(input.rest());
  decodes(*codec, all.span(), c);
  if (team && c.count < 600) kernels_agree<T>(all.span(), c.count, p);
  if (!wring::reduces(c.collective)) return;
  c.phase = Phase::hop;
  const std::size_t at = std::min(cut, all.span().size());
  const Exactly<std::byte> a(all.span().first(at)), b(all.span().subspan(at));
  combines(*codec, c, a.span(), b.span());
  combines(*codec, c, all.span(), all.span());
  accumulates(*codec, c, a.span(), b.span());
  accumulates(*codec, c, all.span(), all.span());
}

void fuzz(Input input) {
  with_type<float, double, wring::half_t, wring::bhalf_t>(input, [&]<class T>() { pieces<T>(input); });
}

}  // namespace fuzz
