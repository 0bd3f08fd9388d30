// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "elements.hpp"

#include <wring/detail/lossless/team.hpp>

namespace wring::inline v0::detail {

#define CHECK(T)                                                                                             \
  template std::size_t team_lossless_encode<T, Device>(const Device&, std::span<const T>,                    \
                                                       std::span<std::byte>, lossless::TeamShape);           \
  template void team_lossless_decode<T, Device>(const Device&, std::span<const std::byte>, std::span<T>,     \
                                                lossless::TeamShape);
WRING_EACH_ELEMENT(CHECK)
CHECK(int)
CHECK(std::uint64_t)

}  // namespace wring::inline v0::detail
