// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <span>

#include <wring/detail/block_scaled/decode.hpp>
#include <wring/detail/block_scaled/encode.hpp>
#include <wring/detail/block_scaled/team.hpp>
#include <wring/detail/spaces.hpp>

/// Whole pieces, on a host in vectors, elsewhere in teams. Sizes were checked.
namespace wring::inline v0::detail::block_scaled {

template <int Bits, class T, class Exec>
void encode_in_teams(const Exec& exec, std::span<const T> x, std::byte* piece, const Coding& coding,
                     const Layout& layout) {
  const TeamEncode<Exec, T, Bits> kernel{x.data(), piece, coding, layout};
  for_each_block<typename FloatTraits<T>::Wide>("wring::encode", exec, layout.blocks(), kernel);
}

template <int Bits, bool Add, class T, class Exec>
void decode_in_teams(const Exec& exec, const std::byte* piece, std::span<T> y, const Coding& coding,
                     const Layout& layout) {
  const TeamDecode<Exec, T, Bits, Add> kernel{piece, y.data(), coding, layout};
  for_each_block<typename FloatTraits<T>::Wide>(Add ? "wring::add" : "wring::decode", exec, layout.blocks(),
                                                kernel);
}

template <int Bits, class T, class Exec>
void encode(const Exec& exec, std::span<const T> x, std::byte* piece, const Coding& coding,
            const Layout& layout) {
  if (x.empty()) return;
  if constexpr (RunsOnHost<Exec>)
    for_each_task("wring::encode", exec, x.size(),
                  EncodeBlocks<T, Bits>{{&best_kernels<Bits>(), coding, layout}, x.data(), piece});
  else
    encode_in_teams<Bits>(exec, x, piece, coding, layout);
}

template <int Bits, bool Add, class T, class Exec>
void decode(const Exec& exec, const std::byte* piece, std::span<T> y, const Coding& coding,
            const Layout& layout) {
  if (y.empty()) return;
  if constexpr (RunsOnHost<Exec>)
    for_each_task(Add ? "wring::add" : "wring::decode", exec, y.size(),
                  DecodeBlocks<T, Bits, Add>{{&best_kernels<Bits>(), coding, layout}, piece, y.data()});
  else
    decode_in_teams<Bits, Add>(exec, piece, y, coding, layout);
}

}  // namespace wring::inline v0::detail::block_scaled
