// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

namespace wring::inline v0::detail {

/// Refuses peers and channels that do not exist, the same way in all transports.
inline void require_target(const char* transport, int rank, int size, int peer, int channel) {
  const bool peer_exists = peer >= 0 && peer < size;
  if (peer_exists && channel >= 0 && channel <= 32767) return;
  const std::string whom = sentence(transport, ": rank ", rank, " named ");
  if (!peer_exists) throw InvalidArgument(sentence(whom, "rank ", peer, " of ", size), rank);
  throw InvalidArgument(sentence(whom, "channel ", channel, ", channels are 0 .. 32767"), rank);
}

}  // namespace wring::inline v0::detail
