// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

/// Range asymmetric numeral systems (J. Duda, arXiv:1311.2540), with states of 32 bits that are kept in [2^16, 2^32) and words of 16.
namespace wring::inline v0::detail::entropy {

inline constexpr int precision = 12;  ///< frequencies of a model add up to 2^12
inline constexpr std::uint32_t total_frequency = 1u << precision, least_state = 1u << 16;

/// How often each symbol is expected, in the forms that the coder looks up. A value is a symbol and some low bits. The symbols are
/// the integers from `lowest` on, then two more: the escape, for what is none of them or has no frequency, which is followed by 32 bits;
/// and perhaps one for a value that is so common that its low bits are not sent.
struct Model {
  static constexpr int most_symbols = 256;

  /// A symbol as it is pushed: the first of its slots, and from bit 16 on how many it has.
  std::uint32_t push[most_symbols];
  /// A slot as it is popped: symbol, from bit 8 on the symbol's frequency less one, from bit 20 on the place among its slots.
  std::uint32_t slot[total_frequency];
  std::int32_t lowest = 0;
  std::uint32_t escape = 0;  ///< the symbol
  bool has_common = false;   ///< its symbol is escape + 1
  std::int32_t common = 0;   ///< the value, all bits of it

  Model() = default;

  /// `frequencies` add up to 4096; that of the escape, the last of them, is not 0.
  Model(std::int32_t lowest_symbol, std::span<const std::uint16_t> frequencies)
      : lowest(lowest_symbol), escape(static_cast<std::uint32_t>(frequencies.size()) - 1) {
    assign(frequencies);
  }

  /// With a common value, whose frequency comes last.
  Model(std::int32_t lowest_symbol, std::span<const std::uint16_t> frequencies, std::int32_t common_value)
      : lowest(lowest_symbol), escape(static_cast<std::uint32_t>(frequencies.size()) - 2), has_common(true),
        common(common_value) {
    assign(frequencies);
  }

  bool is_common(std::int32_t value) const { return has_common && value == common; }

  /// The symbol of a value whose low bits are gone.
  std::uint32_t symbol_of(std::int32_t upper) const {
    const std::uint32_t s = static_cast<std::uint32_t>(upper) - static_cast<std::uint32_t>(lowest);
    return s < escape && push[s] >> 16 != 0 ? s : escape;
  }

 private:
  void assign(std::span<const std::uint16_t> frequencies) {
    std::uint32_t start = 0;
    for (std::uint32_t s = 0; s < frequencies.size(); ++s) {
      const std::uint32_t frequency = frequencies[s];
      push[s] = start | frequency << 16;
      for (std::uint32_t k = 0; k < frequency; ++k) slot[start + k] = s | (frequency - 1) << 8 | k << 20;
      start += frequency;
    }
  }
};

/// Models of values around 0, among which each lane has its own: all their forms one after the other. Symbols are the integers from
/// `lowest` on, then the escape.
struct ModelSet {
  static constexpr int count = 21, symbol_bits = 7, symbols = 1 << symbol_bits, lowest = 1 - symbols / 2;
  static constexpr std::uint32_t escape = symbols - 1, escaped = 1u << 15;

  static std::uint32_t symbol_of(std::int32_t value) {
    const std::uint32_t s = static_cast<std::uint32_t>(value) - static_cast<std::uint32_t>(lowest);
    return s < escape ? s : escape;
  }

  /// As a Model's; symbols without a frequency have the escape's, with a mark.
  std::uint32_t push[count * symbols];
  std::uint32_t slot[count * total_frequency];

  /// From the frequencies of the escape and of the magnitudes 0, 1, 2, ... for one sign.
  void assign(int model, std::span<const std::uint16_t> frequencies) {
    std::uint32_t start = 0, *to = push + model * symbols;
    const auto put = [&](std::uint32_t s, std::uint32_t frequency, std::uint32_t mark) {
      to[s] = start | frequency << 16 | mark;
      for (std::uint32_t k = 0; k < frequency; ++k)
        slot[model * static_cast<int>(total_frequency) + static_cast<int>(start + k)] =
            s | (frequency - 1) << 8 | k << 20;
      start += frequency;
    };
    const auto known = static_cast<std::uint32_t>(frequencies.size() - 1);
    const auto magnitude = [](std::uint32_t s) {
      return static_cast<std::uint32_t>(std::abs(static_cast<int>(s) + lowest));
    };
    for (std::uint32_t s = 0; s < escape; ++s)
      if (magnitude(s) < known) put(s, frequencies[1 + magnitude(s)], 0);
    put(escape, frequencies[0], escaped);
    for (std::uint32_t s = 0; s < escape; ++s)
      if (magnitude(s) >= known) to[s] = to[escape];
  }
};

}  // namespace wring::inline v0::detail::entropy
