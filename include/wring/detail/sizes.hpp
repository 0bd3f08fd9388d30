// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <limits>
#include <string>

#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

/// Sizes in bytes, checked: what a compressor says about its output and asks of the spans it is given.
namespace wring::inline v0::detail {

/// count * each, refused where it does not fit into 64 bits: a worst case must never be smaller than the truth.
constexpr std::size_t checked_bytes(std::size_t count, std::size_t each) {
  if (each != 0 && count > std::numeric_limits<std::size_t>::max() / each)
    throw InvalidArgument(
        sentence("wring: ", count, " values of ", each, " bytes are more bytes than 64 bits can count"));
  return count * each;
}

/// What `compress` does first: the space it was given must hold what it is about to write.
inline void expect_space(const char* codec, std::size_t given, std::size_t needed) {
  if (given < needed)
    throw CodecError(
        sentence("wring: ", codec, ": compress needs ", needed, " bytes of space and was given ", given));
}

/// What `decompress` of a codec of fixed size does first: any other number of bytes is not what `compress` wrote.
inline void expect_encoded(const char* codec, std::size_t given, std::size_t needed, std::size_t values) {
  if (given != needed)
    throw CodecError(sentence("wring: ", codec, ": ", values, " values are encoded in ", needed,
                              " bytes, but ", given, " arrived"));
}

}  // namespace wring::inline v0::detail
