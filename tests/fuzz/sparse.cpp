// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pieces of TopK and Threshold: the fast kernels and those for devices, which must agree.
#include <wring/compressor/threshold.hpp>
#include <wring/compressor/top_k.hpp>

#include "pieces.hpp"

namespace fuzz {

template <class T> void kernels_agree(std::span<const std::byte> piece, std::size_t n) {
  using namespace wring::detail;
  kernels_agree<T>(
      n, [&](std::span<T> y) { sparse_decode<false, T>(Exec{}, piece, y, 1, sparse::best_kernels<T>()); },
      [&](std::span<T> y) { team_sparse_decode<T>(Exec{}, piece, y, 1); });
}

/// Two pieces that no compressor wrote combine to one that decodes, or are refused.
template <class T> void combines(std::span<const std::byte> a, std::span<const std::byte> b,
                                 wring::Context context, wring::Operation operation) {
  const wring::Threshold<T> codec;
  context.operation = operation;
  Exactly<std::byte> out(codec.max_combined_bytes(context.count, 2));
  std::size_t size = 0;
  if (accepts([&] { size = codec.combine(Exec{}, a, b, out.span(), context); })) {
    require(size <= out.span().size(), "a combined piece is longer than its worst case");
    decodes(codec, std::span<const std::byte>(out.span().first(size)), context);
  }
}

/// Of any bytes as values, no more than k are sent, and those as they were.
template <class T> void selects(std::span<const std::byte> bytes, std::size_t k) {
  Exactly<T> values(bytes.size() / sizeof(T)), back(bytes.size() / sizeof(T));
  const std::size_t n = values.span().size();
  if (n == 0) return;
  std::memcpy(static_cast<void*>(values.span().data()), bytes.data(), values.span().size_bytes());
  const wring::TopK<T> codec({.k = k});
  wring::Context c;
  c.count = c.total = n;
  Exactly<std::byte> piece(codec.max_compressed_bytes(n));
  const std::size_t size = codec.compress(Exec{}, std::span<const T>(values.span()), piece.span(), c);
  codec.decompress(Exec{}, std::span<const std::byte>(piece.span().first(size)), back.span(), c);
  std::size_t sent = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double x = wring::detail::widen(values.span()[i]), y = wring::detail::widen(back.span()[i]);
    sent += y != 0;
    require(y == 0 || y == x || (x != x && y != y), "a value was sent as another one");
  }
  require(sent <= k, "more values were sent than were asked for");
}

template <class T> void pieces(Input input) {
  wring::Context c;
  c.count = c.total = input.below(1400);
  const bool team = input.flag();
  const auto operation = static_cast<wring::Operation>(input.below(4));
  const std::size_t k = 1 + input.below(600), cut = input.below(4096);
  const Exactly<std::byte> piece(input.rest());
  decodes(wring::Threshold<T>(), piece.span(), c);
  if (team && c.count < 600) kernels_agree<T>(piece.span(), c.count);
  combines<T>(piece.span(), piece.span(), c, operation);
  const std::size_t first = std::min(cut, piece.span().size());
  const Exactly<std::byte> left(piece.span().first(first)), right(piece.span().subspan(first));
  combines<T>(left.span(), right.span(), c, operation);
  selects<T>(piece.span(), k);
}

void fuzz(Input input) {
  with_type<float, double, wring::half_t, wring::bhalf_t>(input, [&]<class T>() { pieces<T>(input); });
}

}  // namespace fuzz
