// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <wring/config.hpp>

namespace wring::inline v0 {

/// What one operation did, as this rank saw it. Times are in seconds, sizes in bytes.
struct Report {
  std::uint64_t bytes_given = 0;  ///< of the values that this rank handed in (broadcast: of the vector)
  std::uint64_t bytes_sent = 0;   ///< by this rank, headers and agreement included
  std::uint64_t bytes_raw = 0;    ///< what the same messages would have held uncompressed, without headers
  std::uint64_t messages = 0;
  std::optional<double>
      bound;  ///< guaranteed: |result - exact| <= *bound for every finite element; empty: no bound
  bool reproducible = false;  ///< the same bits for every algorithm and order of ranks
  bool rode_along = false;    ///< the data travelled with the agreement
  std::string algorithm;
  std::string compressor;
  std::string reason;  ///< why this algorithm and this way
  std::uint64_t fallback_blocks = 0;
  std::uint64_t encodings = 0;  ///< pieces encoded by this rank
  std::size_t segments = 0;
  std::size_t temporary_bytes = 0;  ///< memory that the operation object holds
  double seconds = 0, encode_seconds = 0, wire_seconds = 0, combine_seconds = 0, decode_seconds = 0;

  /// Uncompressed bytes per byte sent; 1 if no compressed message was sent (one rank, or the data rode along).
  double ratio() const {
    return bytes_sent == 0 || bytes_raw == 0
               ? 1.0
               : static_cast<double>(bytes_raw) / static_cast<double>(bytes_sent);
  }
};

}  // namespace wring::inline v0
