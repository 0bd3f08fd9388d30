// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pieces of None, Cast and BlockScaled, whose size is known.
#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/compressor/none.hpp>

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

void fuzz(Input input) {
  using wring::BlockScaled, wring::RandomRotation;
  using wring::Cast, wring::None, wring::half_t, wring::bhalf_t;
  switch (input.below(9)) {
  case 0: return pieces<None<double>>(input);
  case 1: return pieces<None<std::int16_t>>(input);
  case 2: return pieces<None<Kokkos::complex<float>>>(input);
  case 3: return pieces<Cast<half_t>>(input);
  case 4: return pieces<BlockScaled<float, 4>>(input);
  case 5: return pieces<BlockScaled<double, 8>>(input);
  case 6: return pieces(input, BlockScaled<half_t, 3>({.rounding = {}, .rotation = RandomRotation{1}}));
  case 7: return pieces(input, BlockScaled<float, 2>({.rounding = {}, .rotation = RandomRotation{1}}));
  default: return pieces<Cast<bhalf_t>>(input);
  }
}

}  // namespace fuzz
