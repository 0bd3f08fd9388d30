// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include <wring/bound.hpp>

#include "support/arguments.hpp"

namespace wring_benchmark {

inline const char* name_of(wring::Bound::Kind kind) {
  using enum wring::Bound::Kind;
  return kind == rms ? "rms" : kind == range ? "range" : "absolute";
}

/// "rms:0.1", as users write it and as tables show it.
inline std::string text_of(const wring::Bound& bound) {
  return fmt::format("{}:{}", name_of(bound.kind), bound.value);
}

inline wring::Bound bound_from(const std::string& text) {
  using enum wring::Bound::Kind;
  const auto at = text.find(':');
  for (const auto kind : {rms, range, absolute})
    if (at != text.npos && text.substr(0, at) == name_of(kind)) {
      const double value = number_from(text.substr(at + 1));
      if (value > 0) return {kind, value};
      throw std::invalid_argument("the bound '" + text + "' is not greater than 0");
    }
  throw std::invalid_argument("'" + text + "' is no bound: rms:, range: or absolute: and a number");
}

}  // namespace wring_benchmark
