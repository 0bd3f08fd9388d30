// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <wring/compressor/concept.hpp>
#include <wring/detail/hash.hpp>

namespace wring::inline v0::detail {

/// What ranks compare of a compressor.
inline std::uint64_t hash_of(const Identity& identity) {
  return Hasher().add(identity.name).add(identity.version).add(identity.options).value();
}

}  // namespace wring::inline v0::detail
