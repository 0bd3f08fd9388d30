// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace wring_benchmark {

inline std::string json(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text)
    if (c == '"' || c == '\\')
      quoted += {'\\', c};
    else
      quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  return quoted + "\"";
}
inline std::string json(const std::string& text) { return json(std::string_view(text)); }
inline std::string json(const char* text) { return json(std::string_view(text)); }
inline std::string json(bool fact) { return fact ? "true" : "false"; }
inline std::string json(std::integral auto value) { return std::to_string(value); }
inline std::string json(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null"; }
template <class T> std::string json(const std::optional<T>& value) { return value ? json(*value) : "null"; }

/// An object of JSON that grows by one member after the other.
class JsonObject {
 public:
  template <class T> JsonObject& add(std::string_view name, const T& value) {
    return add_raw(name, json(value));
  }
  JsonObject& add_raw(std::string_view name, std::string_view value) {
    text_ += (text_.empty() ? "" : ", ") + json(name) + ": " + std::string(value);
    return *this;
  }
  std::string text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

/// One object in each line.
inline std::string json_array(const std::vector<std::string>& objects) {
  return fmt::format("[\n  {}\n]", fmt::join(objects, ",\n  "));
}

}  // namespace wring_benchmark
