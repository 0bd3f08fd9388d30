// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pieces of Lossless: the fast kernels and those for devices, which must agree.
#include <wring/compressor/lossless.hpp>

#include "pieces.hpp"

namespace fuzz {

template <class T> void kernels_agree(std::span<const std::byte> piece, std::size_t n) {
  using namespace wring::detail;
  kernels_agree<T>(
      n, [&](std::span<T> y) { lossless_decode<false, T>(Exec{}, piece, y, lossless::best_kernels<T>()); },
      [&](std::span<T> y) { team_lossless_decode<T>(Exec{}, piece, y); });
}

/// Any bytes as values come back as they were.
template <class T> void comes_back(std::span<const std::byte> bytes) {
  Exactly<T> values(bytes.size() / sizeof(T)), back(bytes.size() / sizeof(T));
  if (values.span().empty()) return;
  std::memcpy(static_cast<void*>(values.span().data()), bytes.data(), values.span().size_bytes());
  wring::Lossless<T> codec;
  wring::Context c;
  c.count = c.total = values.span().size();
  Exactly<std::byte> piece(codec.max_compressed_bytes(c.count));
  const std::size_t size = codec.compress(Exec{}, std::span<const T>(values.span()), piece.span(), c);
  codec.decompress(Exec{}, std::span<const std::byte>(piece.span().first(size)), back.span(), c);
  require(std::memcmp(values.span().data(), back.span().data(), values.span().size_bytes()) == 0,
          "values do not come back");
}

template <class T> void pieces(Input input) {
  const wring::Lossless<T> codec;
  wring::Context c;
  c.count = c.total = input.below(1400);
  const bool team = input.flag();
  const Exactly<std::byte> piece(input.rest());
  decodes(codec, piece.span(), c);
  if (team && c.count < 600) kernels_agree<T>(piece.span(), c.count);
  comes_back<T>(piece.span());
}

void fuzz(Input input) {
  with_type<float, double, wring::half_t, wring::bhalf_t, std::int8_t, std::uint64_t>(
      input, [&]<class T>() { pieces<T>(input); });
}

}  // namespace fuzz
