// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/checksum.hpp>
#include <wring/detail/mix.hpp>

namespace wring::inline v0::detail {

/// Collects what identifies a thing (lengths, names, options) into one number.
class Hasher {
 public:
  Hasher& add(std::string_view text) {
    add(text.size());
    h_ = mix(h_ ^ checksum(std::as_bytes(std::span(text.data(), text.size()))));
    return *this;
  }
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  Hasher& add(T value) {
    std::uint64_t word = 0;
    if constexpr (std::is_floating_point_v<T>)
      word = std::bit_cast<std::uint64_t>(static_cast<double>(value));
    else
      word = static_cast<std::uint64_t>(value);
    h_ = mix(h_ * 0x9e3779b97f4a7c15u ^ word);
    return *this;
  }
  std::uint64_t value() const { return h_; }

 private:
  std::uint64_t h_ = 0x77726e67;
};

}  // namespace wring::inline v0::detail
