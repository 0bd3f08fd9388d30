// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// What a user writes on the command line: words, `--name value` or `--name=value`, lists with commas, sizes with k, m or g. What
/// cannot be meant is an std::invalid_argument whose text is a sentence for the user.
namespace wring_benchmark {

inline std::vector<std::string> split(std::string_view text, char separator = ',') {
  std::vector<std::string> parts;
  for (const auto part : std::views::split(text, separator))
    if (!part.empty()) parts.emplace_back(part.begin(), part.end());
  return parts;
}

inline std::string joined(const std::vector<std::string>& parts, const std::string& between = ", ") {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

inline double number_from(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    throw std::invalid_argument("'" + std::string(text) + "' is no number");
  return value;
}

/// "64k" is 65536; so on with m and g.
inline double scaled_from(std::string_view text) {
  const std::string_view letters = "kmg";
  double unit = 1;
  if (const std::size_t at = text.empty() ? letters.npos : letters.find(text.back()); at != letters.npos)
    unit = std::exp2(10 * static_cast<double>(at + 1)), text.remove_suffix(1);
  return unit * number_from(text);
}

/// A whole number from `least` on.
inline int count_from(std::string_view text, int least = 0) {
  const double value = scaled_from(text);
  if (value != std::floor(value) || value < least || value > std::numeric_limits<int>::max())
    throw std::invalid_argument("'" + std::string(text) + "' is no whole number from " +
                                std::to_string(least) + " on");
  return static_cast<int>(value);
}

/// In bytes.
inline std::size_t size_from(std::string_view text) {
  try {
    if (const double bytes = scaled_from(text); bytes >= 0 && bytes < 0x1p53)
      return static_cast<std::size_t>(bytes);
  } catch (const std::invalid_argument&) {  // the same to the user
  }
  throw std::invalid_argument("'" + std::string(text) +
                              "' is no size: a number, with k, m or g for KiB, MiB, GiB");
}

/// 65536 becomes "64k"; what is no whole multiple stays as it is.
inline std::string size_text(std::size_t bytes) {
  const char* unit[] = {"", "k", "m", "g"};
  int which = 0;
  for (; which < 3 && bytes >= 1024 && bytes % 1024 == 0; ++which) bytes /= 1024;
  return std::to_string(bytes) + unit[which];
}

/// The arguments of a program. Whatever is asked for counts as known; `expect_all_known` throws for the rest.
class Arguments {
 public:
  Arguments(int count, const char* const* texts) {
    for (int i = 1; i < count; ++i) {
      const std::string text = texts[i];
      if (!text.starts_with("--")) {
        words_.push_back(text);
        continue;
      }
      const std::size_t equals = text.find('=');
      const std::string name = text.substr(2, equals == text.npos ? text.npos : equals - 2);
      help_ = help_ || name == "help";
      if (name == "help") continue;
      if (equals == text.npos && i + 1 == count) throw std::invalid_argument("--" + name + " has no value");
      if (!given_.emplace(name, equals == text.npos ? texts[++i] : text.substr(equals + 1)).second)
        throw std::invalid_argument("--" + name + " is given twice");
    }
  }

  /// Whether the user asks what there is to ask for.
  bool help() const { return help_; }

  std::string text(const std::string& name, const std::string& otherwise) {
    known_.push_back(name);
    const auto at = given_.find(name);
    return at == given_.end() ? otherwise : at->second;
  }
  double number(const std::string& name, const std::string& otherwise) {
    return of(name, otherwise, [](const std::string& text) { return number_from(text); });
  }
  double positive(const std::string& name, const std::string& otherwise) {
    return of(name, otherwise, [](const std::string& text) {
      if (const double value = number_from(text); value > 0) return value;
      throw std::invalid_argument("'" + text + "' is not greater than 0");
    });
  }
  int count(const std::string& name, const std::string& otherwise, int least = 0) {
    return of(name, otherwise, [least](const std::string& text) { return count_from(text, least); });
  }
  std::size_t size(const std::string& name, const std::string& otherwise) {
    return of(name, otherwise, [](const std::string& text) { return size_from(text); });
  }

  /// The parts of a list; none only where `otherwise` has none.
  std::vector<std::string> list(const std::string& name, const std::string& otherwise) {
    const auto parts = split(text(name, otherwise));
    if (parts.empty() && !split(otherwise).empty())
      throw std::invalid_argument("--" + name + ": the list is empty");
    return parts;
  }
  /// Each of them read by `read`, which throws for what it does not understand.
  template <class Read> std::vector<std::invoke_result_t<Read, std::string>>
  list(const std::string& name, const std::string& otherwise, Read read) {
    std::vector<std::invoke_result_t<Read, std::string>> values;
    for (const auto& part : list(name, otherwise)) values.push_back(told(name, part, read));
    return values;
  }
  std::vector<std::size_t> sizes(const std::string& name, const std::string& otherwise) {
    return list(name, otherwise, [](const std::string& text) { return size_from(text); });
  }
  /// Of the names that there are.
  std::vector<std::string> choices(const std::string& name, const std::string& otherwise,
                                   const std::vector<std::string>& names) {
    return list(name, otherwise, [&](const std::string& text) { return one_of(names, text); });
  }
  std::string choice(const std::string& name, const std::string& otherwise,
                     const std::vector<std::string>& names) {
    return of(name, otherwise, [&](const std::string& text) { return one_of(names, text); });
  }
  /// What `read` makes of a value, or of what stands for it where none is given.
  template <class Read>
  std::invoke_result_t<Read, std::string> of(const std::string& name, const std::string& otherwise,
                                             Read read) {
    return told(name, text(name, otherwise), read);
  }

  /// The arguments that belong to no option.
  const std::vector<std::string>& words() {
    words_known_ = true;
    return words_;
  }

  void expect_all_known() const {
    if (!words_known_ && !words_.empty())
      throw std::invalid_argument("expected --name value, not '" + words_.front() + "'");
    for (const auto& [name, value] : given_)
      if (std::ranges::find(known_, name) == known_.end())
        throw std::invalid_argument("there is no option --" + name);
  }

 private:
  /// What is wrong with a value is told with the name of its option.
  template <class Read> static std::invoke_result_t<Read, std::string>
  told(const std::string& name, const std::string& text, Read read) {
    try {
      return read(text);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("--" + name + ": " + error.what());
    }
  }

  static std::string one_of(const std::vector<std::string>& names, const std::string& text) {
    if (std::ranges::find(names, text) != names.end()) return text;
    throw std::invalid_argument("'" + text + "' is none of " + joined(names));
  }

  std::map<std::string, std::string> given_;
  std::vector<std::string> words_, known_;
  bool words_known_ = false, help_ = false;
};

}  // namespace wring_benchmark
