// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <wring/algorithm/concept.hpp>
#include <wring/compressor/concept.hpp>
#include <wring/transport/concept.hpp>

/// One readable sentence for each reason why the transport cannot sum what a collective would give it.
namespace wring::inline v0::detail {

template <class Codec, class Link>
inline constexpr bool can_sum_words = WordSummingCompressor<Codec> && WordSummingTransport<Link>;

template <class Codec, class Link, class Schedule> constexpr void explain_sums() {
  if constexpr (SummingAlgorithm<Schedule>) {
    static_assert(WordSummingCompressor<Codec>, "wring: this algorithm lets the transport add up words, but "
                                                "the pieces of this compressor are none that can be "
                                                "added up so: use PackedWords, or another algorithm");
    static_assert(WordSummingTransport<Link>, "wring: this algorithm lets the transport add up words, which "
                                              "this transport cannot (it has no sum_words): use "
                                              "another algorithm");
  }
}

}  // namespace wring::inline v0::detail
