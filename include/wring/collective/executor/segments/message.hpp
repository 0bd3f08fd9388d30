// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <wring/collective/executor/failure.hpp>
#include <wring/detail/hash.hpp>
#include <wring/detail/pipeline.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

/// The messages of an operation's plan: one header, the sizes of its pieces, the pieces (docs/stream_format.md).
namespace wring::inline v0::detail {

inline constexpr std::uint32_t message_magic = 0x6d676e77;  // "wngm" in little-endian memory order
inline constexpr std::uint16_t stream_version = 1;
inline constexpr std::size_t poison_text_bytes = 192;

/// 64 bytes, little endian. A poisoned message has a cause other than 0 and text instead of pieces.
struct MessageHeader {
  std::uint32_t magic = message_magic;
  std::uint16_t version = stream_version;
  std::uint16_t cause = 0;
  std::uint64_t agreed = 0;  ///< hash of all that the ranks agreed upon, the sequence number included
  std::uint32_t segment = 0;
  std::int32_t first = 0, last = 0;  ///< plan blocks
  std::int32_t failed_rank = -1;
  std::uint32_t pieces = 0;
  std::uint32_t raw = 0;    ///< 1: values as they are, 0: encoded
  std::uint64_t bytes = 0;  ///< of the whole message
  double bound =
      0;  ///< guaranteed for the values in it so far; 0 where the codec answers for the bound on the result
  std::uint64_t checksum = 0;  ///< of the whole message with this field zero
};
static_assert(sizeof(MessageHeader) == header_bytes);

/// One entry of the table after the header: size of a piece in bytes (40 bits) and terms summed up in it (24 bits).
struct PieceEntry {
  std::size_t bytes = 0;
  int terms = 1;
  std::uint64_t word() const { return bytes | static_cast<std::uint64_t>(terms) << 40; }
  static PieceEntry from(std::uint64_t word) {
    return {static_cast<std::size_t>(word & ((std::uint64_t(1) << 40) - 1)), static_cast<int>(word >> 40)};
  }
};

constexpr std::size_t table_bytes(std::size_t pieces) { return (pieces * 8 + 63) / 64 * 64; }

/// Writes header and checksum over a message whose table and pieces are in place.
inline void seal(std::span<std::byte> message, MessageHeader header) {
  header.bytes = message.size(), header.checksum = 0;
  std::memcpy(message.data(), &header, header_bytes);
  header.checksum = checksum(message);
  std::memcpy(message.data(), &header, header_bytes);
}

/// Whether a message that has been sealed is the one that `header` would make.
inline bool sealed_as(std::span<const std::byte> message, const MessageHeader& header) {
  MessageHeader present;
  std::memcpy(&present, message.data(), header_bytes);
  MessageHeader wanted = header;
  wanted.bytes = message.size(), wanted.checksum = present.checksum;
  return std::memcmp(&present, &wanted, header_bytes) == 0;
}

/// Writes a poisoned message into `message` (header_bytes + poison_text_bytes long).
inline void seal_poison(std::span<std::byte> message, MessageHeader header, const Failure& failure) {
  header.cause = static_cast<std::uint16_t>(failure.cause), header.failed_rank = failure.rank,
  header.pieces = 0;
  std::memset(message.data() + header_bytes, 0, poison_text_bytes);
  std::memcpy(message.data() + header_bytes, failure.text.data(),
              std::min(failure.text.size(), poison_text_bytes - 1));
  seal(message, header);
}

/// Checks a message against what the plan says must come. Returns its header; throws TransportError when it is damaged or of another
/// step. An intact message of another operation was left on the channel by one that failed: `agreed` tells.
inline MessageHeader open(std::span<std::byte> message, const MessageHeader& expected) {
  MessageHeader header;
  if (message.size() < header_bytes)
    throw TransportError(sentence("a message of ", message.size(), " bytes is too short"));
  std::memcpy(&header, message.data(), header_bytes);
  if (header.magic != message_magic) throw TransportError("a message is damaged, or not one of this library");
  if (header.version != stream_version)
    throw TransportError(
        sentence("a message has stream version ", header.version, ", this library reads ", stream_version));
  const std::uint64_t sum = header.checksum;
  header.checksum = 0;
  std::memcpy(message.data(), &header, header_bytes);
  if (header.bytes != message.size() || checksum(message) != sum)
    throw TransportError("a message is damaged (checksum)");
  std::memcpy(message.data() + offsetof(MessageHeader, checksum), &sum, sizeof sum);
  if (header.agreed != expected.agreed) return header;
  if (header.segment != expected.segment || header.first != expected.first || header.last != expected.last ||
      (header.cause == 0 && (header.pieces != expected.pieces || header.raw != expected.raw)))
    throw TransportError("a message of another step arrived (the ranks' plans differ)");
  return header;
}

/// The failure that a poisoned message carries.
inline Failure failure_of(std::span<const std::byte> message, const MessageHeader& header) {
  Failure failure{static_cast<Cause>(header.cause), header.failed_rank, {}};
  const char* text = reinterpret_cast<const char*>(message.data()) + header_bytes;
  const std::size_t limit = message.size() - header_bytes;
  std::size_t length = 0;
  while (length < limit && text[length] != 0) ++length;
  failure.text.assign(text, length);
  return failure;
}

}  // namespace wring::inline v0::detail
