// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include <wring/config.hpp>

namespace wring::inline v0 {

/// What a rank is doing at some moment of an operation.
enum class Work : std::uint8_t { measure, encode, combine, decode, wire };

/// The name under which profiling tools, and timelines, show it.
constexpr const char* region_name(Work work) {
  switch (work) {
  case Work::measure: return "wring::measure";
  case Work::encode: return "wring::encode";
  case Work::combine: return "wring::combine";
  case Work::decode: return "wring::decode";
  default: return "wring::wire";
  }
}

}  // namespace wring::inline v0
