// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pieces of Lossless: the fast kernels and those for devices, which must agree.
#include <wring/compressor/lossless.hpp>

#include "pieces.hpp"

namespace fuzz {

/// The kernels for devices accept what the fast ones accept, and decode it to the same values.
template <class T> void kernels_agree(std::span<const std::byte> piece, std::size_t n) {
  Exactly<T> fast(n), team(n);
  const auto& kernels = wring::detail::lossless::best_kernels<T>();
  const bool a =
      accepts([&] { wring::detail::lossless_decode<false, T>(Exec{}, piece, fast.span(), kernels); });
  const bool b = accepts([&] { wring::detail::team_lossless_decode<T>(Exec{}, piece, team.span()); });
  require(a == b, "only one of two kernels accepts a piece");
  if (a && n > 0)
    require(std::memcmp(fast.span().data(), team.span().data(), n * sizeof(T)) == 0,
            "two kernels decode a piece to different values");
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
  switch (input.below(6)) {
  case 0: return pieces<float>(input);
  case 1: return pieces<double>(input);
  case 2: return pieces<wring::half_t>(input);
  case 3: return pieces<wring::bhalf_t>(input);
  case 4: return pieces<std::int8_t>(input);
  default: return pieces<std::uint64_t>(input);
  }
}

}  // namespace fuzz
