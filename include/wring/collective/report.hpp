// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <wring/config.hpp>

namespace wring::inline v0 {

/// Up to 191 characters of text, in place: reports are copied without an allocation. Streams and fmt print it.
class Name {
 public:
  Name() = default;
  Name(std::string_view text) {
    std::copy_n(text.begin(), std::min(text.size(), text_.size() - 1), text_.begin());
  }
  Name(const char* text) : Name(std::string_view(text)) {}
  Name(const std::string& text) : Name(std::string_view(text)) {}

  const char* c_str() const { return text_.data(); }
  operator std::string_view() const { return text_.data(); }
  std::string str() const { return text_.data(); }
  friend bool operator==(const Name& a, std::string_view b) { return std::string_view(a) == b; }
  friend std::ostream& operator<<(std::ostream& out, const Name& name) { return out << name.c_str(); }
  friend std::string_view format_as(const Name& name) { return name; }  // for fmt

 private:
  std::array<char, 192> text_{};
};

/// What one operation did, as this rank saw it. Times are in seconds, sizes in bytes.
struct Report {
  std::uint64_t bytes_given = 0;  ///< of the values that this rank handed in (broadcast: of the vector)
  std::uint64_t bytes_sent = 0;   ///< by this rank, headers and agreement included
  std::uint64_t bytes_raw = 0;    ///< what the same messages would have held uncompressed, without headers
  std::uint64_t messages = 0;     ///< of data that this rank sent, the agreement's not among them
  std::optional<double>
      bound;  ///< guaranteed: |result - exact| <= *bound for every finite element; empty: no bound
  bool reproducible = false;  ///< the same bits for every algorithm and order of ranks
  bool rode_along = false;    ///< the data travelled with the agreement
  Name algorithm;
  Name compressor;
  Name reason;  ///< why this algorithm and this way, and what that rests on
  std::uint64_t fallback_blocks = 0;
  std::uint64_t encodings =
      0;  ///< pieces encoded by this rank; those added to another in the same pass do not count
  std::size_t segments = 0;
  std::size_t temporary_bytes = 0;  ///< memory that the operation object holds
  double seconds = 0;               ///< from the start to the end
  double measure_seconds = 0;       ///< of the inputs, for a bound
  double encode_seconds = 0, combine_seconds = 0, decode_seconds = 0;
  /// The rest: messages, waiting, whatever the program did meanwhile, and work on less than 1 KiB of values at a time, which takes no
  /// longer than a look at the clock.
  double wire_seconds = 0;

  /// Uncompressed bytes per byte sent; 1 if no compressed message was sent (one rank, or the data rode along).
  double ratio() const {
    return bytes_sent == 0 || bytes_raw == 0
               ? 1.0
               : static_cast<double>(bytes_raw) / static_cast<double>(bytes_sent);
  }
};

namespace detail {

/// Three digits of a number.
inline std::string digits_of(double value) {
  std::array<char, 32> text;
  const int length = std::snprintf(text.data(), text.size(), "%.3g", value);
  return {text.data(), static_cast<std::size_t>(std::max(0, length))};
}

}  // namespace detail

/// A report in a line, for people to read.
inline std::string to_string(const Report& r) {
  const auto ms = [](double seconds) { return detail::digits_of(1e3 * seconds); };
  return r.algorithm.str() + ", " + r.compressor.str() + ": " + std::to_string(r.bytes_given) +
         " bytes given, " + std::to_string(r.bytes_sent) + " sent, ratio " + detail::digits_of(r.ratio()) +
         (r.bound ? ", bound " + detail::digits_of(*r.bound) : ", no bound") + ", " + ms(r.seconds) +
         " ms (measure " + ms(r.measure_seconds) + ", encode " + ms(r.encode_seconds) + ", combine " +
         ms(r.combine_seconds) + ", decode " + ms(r.decode_seconds) + ", wire " + ms(r.wire_seconds) + "); " +
         r.reason.str();
}
inline std::ostream& operator<<(std::ostream& out, const Report& report) { return out << to_string(report); }
inline std::string format_as(const Report& report) { return to_string(report); }  // for fmt

}  // namespace wring::inline v0
