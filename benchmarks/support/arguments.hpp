// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// What a user writes on the command line: `--name value`, lists with commas, sizes with k, m or g.
namespace wring_benchmark {

inline std::vector<std::string> split(std::string_view text, char separator = ',') {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, separator))
    if (!part.empty()) parts.emplace_back(part.begin(), part.end());
  return parts;
}

inline double number_from(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value))
    throw std::invalid_argument("'" + text + "' is no number");
  return value;
}

/// "64k" is 65536; so on with m and g.
inline std::size_t size_from(std::string text) {
  std::size_t unit = 1;
  const std::string_view letters = "kmg";
  if (const std::size_t at = text.empty() ? letters.npos : letters.find(text.back()); at != letters.npos)
    unit <<= 10 * (at + 1), text.pop_back();
  const double value = number_from(text) * static_cast<double>(unit);
  if (!(value >= 0 && value < 0x1p63)) throw std::invalid_argument("'" + text + "' is no size");
  return static_cast<std::size_t>(value);
}

/// How many there are of something.
inline int count_from(const std::string& text) {
  const std::size_t count = size_from(text);
  if (!std::in_range<int>(count)) throw std::invalid_argument("'" + text + "' is too many");
  return static_cast<int>(count);
}

/// 65536 becomes "64k"; what is no whole multiple stays as it is.
inline std::string size_text(std::size_t bytes) {
  const char* unit[] = {"", "k", "m", "g"};
  int which = 0;
  for (; which < 3 && bytes >= 1024 && bytes % 1024 == 0; ++which) bytes /= 1024;
  return std::to_string(bytes) + unit[which];
}

/// The arguments of a program. Every name that is asked for counts as known; `expect_all_known` throws for the others.
class Arguments {
 public:
  Arguments(int count, char** texts) {
    for (int i = 1; i < count; ++i) {
      const std::string name = texts[i];
      if (!name.starts_with("--") || i + 1 == count)
        throw std::invalid_argument("expected --name value, not '" + name + "'");
      given_[name.substr(2)] = texts[++i];
    }
  }

  std::string text(const std::string& name, const std::string& otherwise) {
    known_.push_back(name);
    const auto at = given_.find(name);
    return at == given_.end() ? otherwise : at->second;
  }
  std::vector<std::string> list(const std::string& name, const std::string& otherwise) {
    return split(text(name, otherwise));
  }
  std::size_t size(const std::string& name, const std::string& otherwise) {
    return size_from(text(name, otherwise));
  }
  int count(const std::string& name, const std::string& otherwise) {
    return count_from(text(name, otherwise));
  }
  double number(const std::string& name, const std::string& otherwise) {
    return number_from(text(name, otherwise));
  }

  void expect_all_known() const {
    for (const auto& [name, value] : given_)
      if (std::ranges::find(known_, name) == known_.end())
        throw std::invalid_argument("there is no option --" + name);
  }

 private:
  std::map<std::string, std::string> given_;
  std::vector<std::string> known_;
};

}  // namespace wring_benchmark
