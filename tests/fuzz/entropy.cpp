// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Entropy-coded chunks and pieces: all levels of the instruction set read the same, and what is coded comes back.
#include <wring/compressor/entropy_grid.hpp>

#include "pieces.hpp"

namespace fuzz {

using namespace wring::detail::entropy;
using wring::detail::Level;

/// Any bytes as a chunk of n integers: read alike by all coders, or by none.
void chunks(Input input) {
  const std::size_t n = 1 + input.below(9000);
  const Exactly<std::byte> bytes(input.rest());
  Exactly<std::int32_t> portable(n), other(n);
  const bool good =
      accepts([&] { decode_chunk(bytes.span(), portable.span().data(), n, coder_for(Level::scalar)); });
  for (const Level level : {Level::avx2, Level::avx512}) {
    if (!can_run(level)) continue;
    const bool also = accepts([&] { decode_chunk(bytes.span(), other.span().data(), n, coder_for(level)); });
    require(good == also, "only one of two coders accepts a chunk");
    if (good)
      require(std::memcmp(portable.span().data(), other.span().data(), n * 4) == 0,
              "two coders read different integers");
  }
}

/// Any bytes as integers come back, by whichever coding.
void integers(Input input) {
  const bool tables = input.flag();
  const Tries tries{.tables = tables, .own = input.flag()};
  const int shift = static_cast<int>(input.below(32));
  const std::span<const std::byte> rest = input.rest();
  const std::size_t n = std::min<std::size_t>(rest.size() / 4, chunk_values);
  if (n == 0) return;
  Exactly<std::int32_t> q(n), back(n);
  std::memcpy(q.span().data(), rest.data(), 4 * n);
  for (std::int32_t& x : q.span()) x >>= shift;
  Exactly<std::byte> out(n * 12 + 4096);
  const std::size_t size = encode_chunk(q.span().data(), n, out.span(), tries);
  require(size != 0, "a chunk does not fit where there is room");
  const Exactly<std::byte> coded{std::span<const std::byte>(out.span().first(size))};
  decode_chunk(coded.span(), back.span().data(), n);
  require(std::memcmp(q.span().data(), back.span().data(), 4 * n) == 0, "integers do not come back");
}

/// Any bytes as a piece.
template <class T> void pieces(Input input) {
  using Stage = typename wring::EntropyGrid<T>::Stage;
  const bool delta = input.flag(), exact = input.flag();  // exact: elements in place of integers
  wring::EntropyGrid<T> codec(
      {.grid = {.delta = delta}, .stage = input.flag() ? Stage::distribution : Stage::everywhere});
  wring::Context c;
  c.operation = exact ? wring::Operation::max : wring::Operation::sum;
  c.collective = input.flag() ? wring::Collective::broadcast : wring::Collective::allreduce;
  c.ranks = 1 + static_cast<int>(input.below(9));
  c.count = c.total = input.below(3000);
  c.phase = wring::Phase::final;
  codec.prepare({.collective = c.collective,
                 .operation = c.operation,
                 .ranks = c.ranks,
                 .total = c.total,
                 .max_abs = 1,
                 .allowed_error = exact ? 0x1p-60 : 0.05,
                 .measured = true});
  Exactly<std::byte> scratch(codec.scratch_bytes(c.count)), out(codec.max_combined_bytes(c.count, c.ranks));
  c.scratch = scratch.span();
  const Exactly<std::byte> piece(input.rest());
  decodes(codec, piece.span(), c);
  accepts([&] { codec.combine(Exec{}, piece.span(), piece.span(), out.span(), c); });
  accepts([&] { codec.finish(Exec{}, piece.span(), out.span(), c); });
}

void fuzz(Input input) {
  switch (input.below(4)) {
  case 0: return chunks(input);
  case 1: return integers(input);
  case 2: return pieces<float>(input);
  default: return pieces<wring::half_t>(input);
  }
}

}  // namespace fuzz
