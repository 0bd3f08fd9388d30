// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <wring/collective/executor/failure.hpp>
#include <wring/collective/executor/segments/message.hpp>
#include <wring/detail/mix.hpp>
#include <wring/detail/pipeline.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

/// What a rank hands to a sum by the transport: laid out like a message, with an empty table; all of it 64-bit words that are added
/// to those of the other ranks (docs/stream_format.md).
namespace wring::inline v0::detail {

/// 64 bytes. Every word is the sum of what the ranks have written.
struct SumHeader {
  std::uint64_t failed = 0;    ///< 1 on a rank that has failed, or has heard of a failure: it has no pieces
  std::uint64_t blamed = 0;    ///< the number of the rank to blame, plus 1
  std::uint64_t squares = 0;   ///< its square: tells whether all blame the same one
  std::uint64_t causes = 0;    ///< the cause
  std::uint64_t mark = 0;      ///< of what the ranks agreed upon, segment and blocks: the same on all
  std::uint64_t checksum = 0;  ///< of all other words
  std::uint64_t reserved[2] = {};
};
static_assert(sizeof(SumHeader) == header_bytes);

/// A checksum whose sum is the checksum of the sum: a polynomial in an odd number, by rows of eight words. A change of a single word
/// always shows.
inline std::uint64_t linear_checksum(std::span<const std::byte> words) {
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15u, lanes = 8;
  std::uint64_t lane[lanes] = {}, row[lanes] = {};
  std::size_t at = 0;
  for (; at + sizeof row <= words.size(); at += sizeof row) {
    std::memcpy(row, words.data() + at, sizeof row);
    for (std::size_t l = 0; l < lanes; ++l) lane[l] = lane[l] * factor + row[l];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t l : lane) sum = sum * (factor + 2) + l;
  return sum;
}

/// The mark of one rank.
inline std::uint64_t sum_mark(const MessageHeader& step) {
  return mix(step.agreed ^ mix(step.segment + 1) ^
             mix(static_cast<std::uint64_t>(step.first) << 32 ^ static_cast<std::uint64_t>(step.last)));
}

/// Writes the header over words whose pieces are in place.
inline void seal_sum(std::span<std::byte> words, SumHeader header) {
  header.checksum = 0;
  std::memcpy(words.data(), &header, header_bytes);
  header.checksum = linear_checksum(words);
  std::memcpy(words.data(), &header, header_bytes);
}

/// Zeros instead of pieces: this rank has failed.
inline void seal_failed_sum(std::span<std::byte> words, std::uint64_t mark, const Failure& failure) {
  std::memset(words.data(), 0, words.size());
  const auto blamed = static_cast<std::uint64_t>(failure.rank + 1);
  seal_sum(words, {.failed = 1,
                   .blamed = blamed,
                   .squares = blamed * blamed,
                   .causes = static_cast<std::uint64_t>(failure.cause),
                   .mark = mark});
}

/// What is known of the rank to blame; of several, that there are. n sum x^2 = (sum x)^2 where all x are equal, and only there.
inline Failure failure_of_sum(const SumHeader& header) {
  if (header.failed * header.squares != header.blamed * header.blamed)
    return {Cause::other, -1, "several ranks failed before the transport had summed"};
  const int rank = static_cast<int>(header.blamed / header.failed) - 1;
  return {static_cast<Cause>(header.causes / header.failed), rank,
          sentence("rank ", rank, " failed before the transport had summed")};
}

/// Checks a sum. Throws TransportError where it is damaged or one of something else. Leaves the failure of a rank that has failed, if
/// one has.
inline Failure open_sum(std::span<std::byte> words, std::uint64_t mark, int ranks) {
  SumHeader header;
  std::memcpy(&header, words.data(), header_bytes);
  const std::uint64_t sum = header.checksum;
  header.checksum = 0;
  std::memcpy(words.data(), &header, header_bytes);
  if (linear_checksum(words) != sum) throw TransportError("a sum by the transport is damaged (checksum)");
  if (header.mark != mark * static_cast<std::uint64_t>(ranks))
    throw TransportError("the transport has summed different things (the ranks' operations differ)");
  return header.failed > 0 ? failure_of_sum(header) : Failure{};
}

}  // namespace wring::inline v0::detail
