// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <wring/config.hpp>

namespace wring::inline v0::detail {

/// A part of a sentence: characters, which must live as long as it does, or a whole number.
class Word {
 public:
  Word(std::string_view characters) : characters_(characters) {}
  template <std::integral Number> Word(Number number)
      : is_number_(true), is_negative_(std::cmp_less(number, 0)),
        magnitude_(static_cast<unsigned long long>(number)) {
    if (is_negative_) magnitude_ = 0 - magnitude_;
  }

  void append_to(std::string& text) const {
    if (!is_number_)
      text += characters_;
    else
      text += (is_negative_ ? "-" : "") + std::to_string(magnitude_);
  }

 private:
  std::string_view characters_;
  bool is_number_ = false, is_negative_ = false;
  unsigned long long magnitude_ = 0;
};

/// The words in a row. What says that something has gone wrong is seldom run, and is compiled in one place.
WRING_COLD inline std::string join(std::initializer_list<Word> words) {
  std::string text;
  for (const Word& word : words) word.append_to(text);
  return text;
}

/// For messages: sentence("rank ", 3, " has left").
template <class... Words> std::string sentence(const Words&... words) { return join({Word(words)...}); }

}  // namespace wring::inline v0::detail
