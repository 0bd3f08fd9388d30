// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include <wring/config.hpp>

/// How the operations of a link and the segments of an operation go side by side: the same in the executor and in the cost model, which
/// follows it in virtual time.
namespace wring::inline v0::detail {

/// Pieces begin at multiples of this many values of their block.
inline constexpr std::size_t unit_values = 512;

/// How a block is cut into segments: as few as `most` units each allow, all as long as one another, but for the last one.
struct Segmentation {
  std::size_t units = 1;     ///< of a segment
  std::size_t segments = 1;  ///< at least one, if only an empty one

  constexpr Segmentation() = default;
  constexpr Segmentation(std::size_t block_units, std::size_t most) {
    const std::size_t fewest = block_units / most + (block_units % most != 0);
    if (fewest == 0) return;
    units = block_units / fewest + (block_units % fewest != 0);
    segments = block_units / units + (block_units % units != 0);
  }

  /// Those in flight at once: from four segments on no more than half, which keeps the temporary memory at one and a half vectors
  /// (docs/algorithms.md).
  constexpr std::size_t in_flight(int depth) const {
    const auto most = static_cast<std::size_t>(depth);
    const std::size_t few = segments < 4 ? segments : std::bit_floor(segments) / 2;
    return most < few ? most : few;
  }
};

/// The sends of one segment that may be on their way.
inline constexpr std::size_t sends_in_flight = 4;

/// The header of a message.
inline constexpr std::size_t header_bytes = 64;

/// Every operation has 32 channels: one for its exchanges, the others for its segments. They are used again after 1024 operations.
inline constexpr std::size_t channels_per_operation = 32, segment_channels = channels_per_operation - 1;
inline constexpr std::uint64_t operations_apart = 1024;

/// The operations that may be in flight on a link: fewer than `operations_apart`, so that none meets the channels of another.
inline constexpr std::uint64_t most_in_flight = 1000;

/// The most bytes that travel with an agreement, and, as they travel log2(p) times there, the most of everybody's values together.
inline constexpr std::size_t ride_along_room = 65536, gathered_room = 16384;

}  // namespace wring::inline v0::detail
