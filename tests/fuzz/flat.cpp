// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pieces of None, Cast, BlockScaled and PackedWords, whose size is known.
#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/none.hpp>
#include <wring/compressor/packed_words.hpp>

#include "pieces.hpp"

namespace fuzz {

template <class Codec> void pieces(Input input, const Codec& codec = Codec()) {
  wring::Context c;
  c.count = c.total = input.below(300);
  const Exactly<std::byte> piece(input.rest());
  const bool right_size = piece.span().size() == codec.compressed_bytes(c.count);
  const bool accepted = accepts([&] { decoded(codec, piece.span(), c); });
  require(accepted == right_size, "a piece of the wrong size is accepted, or one of the right size refused");
  decodes(codec, piece.span(), c);
  if constexpr (wring::AddingCompressor<Codec>) {
    Exactly<typename Codec::value_type> sums(c.count);
    const bool added = accepts([&] { codec.decompress_add(Exec{}, piece.span(), sums.span(), c); });
    require(added == right_size, "decompress_add takes other pieces than decompress");
  }
}

/// PackedWords: what the kernels for devices make of the words, too.
template <class T> void words(Input input) {
  using namespace wring::detail::packed_words;
  wring::Context c;
  c.count = c.total = input.below(1200), c.ranks = 1 + static_cast<int>(input.below(9));
  const wring::Agreed agreed{.ranks = c.ranks,
                             .total = c.total,
                             .max_abs = 1,
                             .allowed_error = std::ldexp(1.0, -static_cast<int>(input.below(12))),
                             .measured = true,
                             .finite = input.below(2) == 0};
  wring::PackedWords<T> codec;
  if (!accepts([&] { codec.prepare(agreed); })) return;
  if (input.below(2) == 0) c.phase = wring::Phase::final;
  Exactly<std::byte> piece(input.below(8) == 0 ? input.below(64) : codec.max_compressed_bytes(c.count));
  for (std::byte& b : piece.span()) b = static_cast<std::byte>(input.below(256));
  const bool right_size = piece.span().size() == codec.max_compressed_bytes(c.count);
  const bool accepted = accepts([&] { decoded(codec, piece.span(), c); });
  require(accepted == right_size, "a piece of the wrong size is accepted, or one of the right size refused");
  decodes(codec, piece.span(), c);
  if (!accepted) return;
  Exactly<std::byte> sum(piece.span().size());
  codec.combine(Exec{}, piece.span(), piece.span(), sum.span(), c);
  decodes(codec, sum.span(), c);
}

void fuzz(Input input) {
  using wring::BlockScaled, wring::RandomRotation;
  using wring::Cast, wring::None, wring::half_t, wring::bhalf_t;
  switch (input.below(11)) {
  case 0: return pieces<None<double>>(input);
  case 1: return pieces<None<std::int16_t>>(input);
  case 2: return pieces<None<Kokkos::complex<float>>>(input);
  case 3: return pieces<Cast<half_t>>(input);
  case 4: return pieces<BlockScaled<float, 4>>(input);
  case 5: return pieces<BlockScaled<double, 8>>(input);
  case 6: return pieces(input, BlockScaled<half_t, 3>({.rounding = {}, .rotation = RandomRotation{1}}));
  case 7: return pieces(input, BlockScaled<float, 2>({.rounding = {}, .rotation = RandomRotation{1}}));
  case 8: return words<float>(input);
  case 9: return words<double>(input);
  default: return pieces<Cast<bhalf_t>>(input);
  }
}

}  // namespace fuzz
