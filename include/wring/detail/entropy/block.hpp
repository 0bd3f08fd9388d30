// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <wring/config.hpp>
#include <wring/detail/entropy/model.hpp>

/// The coder of one block, any backend's reference. Value i belongs to lane i % lanes, each of which has a state of its own. Words
/// are written forwards by `push`, which takes the values from the last row to the first, and read backwards by `pop`, which
/// gives them from the first to the last; within a row, lanes that move a word do so in ascending order of addresses.
namespace wring::inline v0::detail::entropy {

inline constexpr std::size_t block_values = 128, wide_lanes = 32, few_lanes = 4;
inline constexpr std::size_t chunk_values = 32768, chunk_blocks = chunk_values / block_values;
/// The most bytes that pushing or popping a block moves: a word for each value, two for its low bits and two for an escape.
inline constexpr std::size_t most_block_bytes = block_values * 5 * 2;

inline std::uint64_t sum_of_magnitudes(const std::int32_t* q, std::size_t m) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < m; ++i)
    sum += q[i] < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(std::int64_t{q[i]})
                    : static_cast<std::uint64_t>(q[i]);
  return sum;
}

/// Thresholds of averages in columns, in 1024ths: 2^((k - 1/2) / 1.6) for k from -4 to 5.
inline constexpr std::array<std::uint16_t, 10> own_thresholds{146,  225,  347,  535,  824,
                                                              1272, 1961, 3025, 4665, 7194};
inline constexpr std::uint32_t greatest_clipped = 2047, greatest_relative = 16 * 1024;

/// A magnitude in 1024ths of what `factor` is 2^12 over.
inline std::int32_t relative_of(std::int32_t q, std::int32_t factor) {
  const std::uint32_t magnitude = q < 0 ? 0u - static_cast<std::uint32_t>(q) : static_cast<std::uint32_t>(q);
  return static_cast<std::int32_t>(std::min(
      std::min(magnitude, greatest_clipped) * static_cast<std::uint32_t>(factor) >> 2, greatest_relative));
}

/// What some sums add up to, and their squares.
struct Sums {
  std::uint64_t of_all = 0, of_squares = 0;
};

/// Sums of 64 neighbouring columns of some rows, modulo 2^8.
WRING_ALWAYS_INLINE void fold_columns(const std::uint8_t* values, std::size_t row, std::size_t rows,
                                      std::uint8_t* sums) {
#if defined(__GNUC__)
  typedef std::uint8_t Bytes __attribute__((vector_size(64)));
  Bytes sum = {};
  for (std::size_t r = 0; r < rows; ++r) {
    Bytes more;
    std::memcpy(&more, values + r * row, sizeof more);
    sum += more;
  }
  std::memcpy(sums, &sum, sizeof sum);
#else
  std::fill_n(sums, 64, std::uint8_t{0});
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t k = 0; k < 64; ++k) sums[k] = static_cast<std::uint8_t>(sums[k] + values[r * row + k]);
#endif
}

/// Where words are written. The caller has seen to it that there is room.
class Writer {
 public:
  explicit Writer(std::byte* at) : at_(at) {}
  std::byte* at() const { return at_; }

  void word_of(std::uint32_t& state) {
    const auto word = static_cast<std::uint16_t>(state);
    std::memcpy(at_, &word, sizeof word);
    at_ += sizeof word;
    state >>= 16;
  }

 private:
  std::byte* at_;
};

/// Where words are read; `failed` once there are none left.
class Reader {
 public:
  Reader(const std::byte* begin, const std::byte* end) : begin_(begin), at_(end) {}
  const std::byte* at() const { return at_; }
  bool failed() const { return failed_; }
  std::size_t left() const { return static_cast<std::size_t>(at_ - begin_); }

  /// Takes `words` words, the first of which is the one at the returned address. Where there are not as many, that of some others, and
  /// what lies there may be read as if there were: 64 bytes behind the words are the states' own.
  const std::byte* take(std::size_t words) {
    if (left() < 2 * words) {
      failed_ = true;
      return begin_;
    }
    at_ -= 2 * words;
    return at_;
  }

 private:
  const std::byte *begin_, *at_;
  bool failed_ = false;
};

/// Blocks by plain C++, for any number of lanes.
class PortableBlocks {
 public:
  explicit PortableBlocks(std::size_t lanes) : lanes_(lanes) {}

  /// Pushes q[0..m): the upper bits q >> shift as symbols of the model, the `shift` bits below as they are.
  std::byte* push(std::uint32_t* states, const Model& model, int shift, const std::int32_t* q, std::size_t m,
                  std::byte* to) const {
    Writer out(to);
    const int lower = shift < 16 ? shift : 16;
    for (std::size_t row = (m + lanes_ - 1) / lanes_; row-- > 0;) {
      const std::int32_t* v = q + row * lanes_;
      const std::size_t active = m - row * lanes_ < lanes_ ? m - row * lanes_ : lanes_;
      const auto in_part = [&](std::size_t l, bool low) {
        return !model.is_common(v[l]) && (low || model.symbol_of(v[l] >> shift) == model.escape);
      };
      for (const Part& part : {Part{0, lower, true}, Part{16, shift - lower, true}, Part{shift, 16, false},
                               Part{shift + 16, 16, false}})
        for (std::size_t l = 0; part.bits != 0 && l < active; ++l)
          if (in_part(l, part.low)) push_bits(out, states[l], std::int64_t{v[l]} >> part.from, part.bits);
      for (std::size_t l = 0; l < active; ++l)
        push_symbol(out, states[l],
                    model.push[model.is_common(v[l]) ? model.escape + 1 : model.symbol_of(v[l] >> shift)]);
    }
    return out.at();
  }

  /// The inverse. Whatever the words are, the values come from them and nothing beyond them is read.
  void pop(std::uint32_t* states, const Model& model, int shift, std::int32_t* q, std::size_t m,
           Reader& in) const {
    const int lower = shift < 16 ? shift : 16;
    for (std::size_t row = 0; row * lanes_ < m && !in.failed(); ++row) {
      std::int32_t* v = q + row * lanes_;
      const std::size_t active = m - row * lanes_ < lanes_ ? m - row * lanes_ : lanes_;
      std::uint32_t symbols[block_values];
      for (std::size_t l = 0; l < active; ++l) {
        symbols[l] = pop_symbol(states[l], model.slot);
        v[l] = static_cast<std::int32_t>(static_cast<std::uint32_t>(model.lowest) + symbols[l]);
      }
      refill(in, states, active);
      for (const Part& part :
           {Part{16, 16, false}, Part{0, 16, false}, Part{16, shift - lower, true}, Part{0, lower, true}}) {
        if (part.bits == 0) continue;
        for (std::size_t l = 0; l < active; ++l)
          if (part.low ? symbols[l] <= model.escape : symbols[l] == model.escape)
            pop_bits(states[l], v[l], part.bits);
        refill(in, states, active);
      }
      for (std::size_t l = 0; l < active; ++l)
        if (symbols[l] > model.escape) v[l] = model.common;
    }
  }

  /// With the model that `which` says for each value.
  std::byte* push_each(std::uint32_t* states, const ModelSet& models, const std::uint16_t* which,
                       const std::int32_t* q, std::size_t m, std::byte* to) const {
    Writer out(to);
    const auto entry = [&](std::size_t i) {
      return models.push[(std::uint32_t{which[i]} << ModelSet::symbol_bits) + ModelSet::symbol_of(q[i])];
    };
    for (std::size_t row = (m + lanes_ - 1) / lanes_; row-- > 0;) {
      const std::size_t first = row * lanes_, active = m - first < lanes_ ? m - first : lanes_;
      for (const int from : {0, 16})
        for (std::size_t l = 0; l < active; ++l)
          if (entry(first + l) & ModelSet::escaped) push_bits(out, states[l], q[first + l] >> from, 16);
      for (std::size_t l = 0; l < active; ++l)
        push_symbol(out, states[l], entry(first + l) & ~ModelSet::escaped);
    }
    return out.at();
  }

  void pop_each(std::uint32_t* states, const ModelSet& models, const std::uint16_t* which, std::int32_t* q,
                std::size_t m, Reader& in) const {
    for (std::size_t row = 0; row * lanes_ < m && !in.failed(); ++row) {
      const std::size_t first = row * lanes_, active = m - first < lanes_ ? m - first : lanes_;
      std::int32_t* v = q + first;
      bool escaped[block_values];
      for (std::size_t l = 0; l < active; ++l) {
        const std::uint32_t symbol =
            pop_symbol(states[l], models.slot + (std::size_t{which[first + l]} << precision));
        escaped[l] = symbol == ModelSet::escape;
        v[l] = static_cast<std::int32_t>(symbol) + ModelSet::lowest;
      }
      refill(in, states, active);
      for (int half = 0; half < 2; ++half) {
        for (std::size_t l = 0; l < active; ++l)
          if (escaped[l]) pop_bits(states[l], v[l], 16);
        refill(in, states, active);
      }
    }
  }

 private:
  /// The symbol; the state loses it.
  static std::uint32_t pop_symbol(std::uint32_t& state, const std::uint32_t* slots) {
    const std::uint32_t slot = slots[state & (total_frequency - 1)];
    state = ((slot >> 8 & 0xfff) + 1) * (state >> precision) + (slot >> 20);
    return slot & 0xff;
  }
  static void push_symbol(Writer& out, std::uint32_t& state, std::uint32_t symbol) {
    const std::uint32_t frequency = symbol >> 16, start = symbol & 0xffff;
    if (state >> 20 >= frequency) out.word_of(state);
    state = (state / frequency << precision) + state % frequency + start;
  }
  static void push_bits(Writer& out, std::uint32_t& state, std::int64_t value, int bits) {
    if (state >> (32 - bits) != 0) out.word_of(state);
    state = state << bits | (static_cast<std::uint32_t>(value) & ((1u << bits) - 1));
  }
  static void pop_bits(std::uint32_t& state, std::int32_t& value, int bits) {
    value =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(value) << bits | (state & ((1u << bits) - 1)));
    state >>= bits;
  }

  /// States that are too small take a word each.
  static void refill(Reader& in, std::uint32_t* states, std::size_t active) {
    std::size_t words = 0;
    for (std::size_t l = 0; l < active; ++l) words += states[l] < least_state;
    const std::byte* from = in.take(words);
    if (in.failed()) return;
    for (std::size_t l = 0; l < active; ++l) {
      if (states[l] >= least_state) continue;
      std::uint16_t word;
      std::memcpy(&word, from, sizeof word);
      states[l] = states[l] << 16 | word, from += sizeof word;
    }
  }

  /// Bits that are sent as they are: low ones, of all values but the common one, or those of escapes.
  struct Part {
    int from, bits;
    bool low;
  };

  std::size_t lanes_;
};

}  // namespace wring::inline v0::detail::entropy
