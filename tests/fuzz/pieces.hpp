// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/compressor/concept.hpp>
#include <wring/error.hpp>

#include "fuzz.hpp"

/// Pieces that no compressor wrote, given to everything that reads pieces.
namespace fuzz {

using Exec = Kokkos::DefaultHostExecutionSpace;
using Bytes = std::vector<std::byte>;

/// What a call does with bytes that may be damaged: it accepts or refuses them with an error of the library.
template <class Call> bool accepts(Call call) {
  try {
    call();
    return true;
  } catch (const wring::Error&) {
    return false;
  }
}

template <class Codec> std::vector<typename Codec::value_type>
decoded(const Codec& codec, std::span<const std::byte> piece, const wring::Context& context) {
  Exactly<typename Codec::value_type> values(context.count);
  codec.decompress(Exec{}, piece, values.span(), context);
  return {values.span().begin(), values.span().end()};
}

/// Decodes; what is accepted decodes the same way again.
template <class Codec>
void decodes(const Codec& codec, std::span<const std::byte> piece, const wring::Context& context) {
  accepts([&] {
    const auto one = decoded(codec, piece, context), two = decoded(codec, piece, context);
    require(one.empty() || std::memcmp(one.data(), two.data(), one.size() * sizeof one[0]) == 0,
            "the same bytes decode to other values the second time");
  });
}

/// The kernels for devices accept what the fast ones accept, and decode it to the same values.
template <class T, class Fast, class Team>
void kernels_agree(std::size_t n, const Fast& fast_decode, const Team& team_decode) {
  Exactly<T> fast(n), team(n);
  const bool a = accepts([&] { fast_decode(fast.span()); });
  const bool b = accepts([&] { team_decode(team.span()); });
  require(a == b, "only one of two kernels accepts a piece");
  if (a && n > 0)
    require(std::memcmp(fast.span().data(), team.span().data(), n * sizeof(T)) == 0,
            "two kernels decode a piece to different values");
}

}  // namespace fuzz
