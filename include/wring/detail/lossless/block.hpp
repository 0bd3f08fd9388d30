// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include <wring/detail/lossless/level.hpp>

/// One block on a host.
namespace wring::inline v0::detail::lossless {

static_assert(std::endian::native == std::endian::little, "wring: Lossless streams are little endian");

/// Calls `use(index of the value, lane's order)` for every mark, in the order of lanes.
template <class T, class Use> void for_each_mark(const Marks& marks, const Use& use) {
  using F = Format<T>;
  for (int j = 0; j < 8; ++j)
    for (std::uint64_t w = marks.words[j]; w != 0; w &= w - 1) {
      const int bit = std::countr_zero(w);
      if constexpr (F::lanes == 16)
        use(16 * (bit & 31) + 2 * j + (bit >> 5));
      else
        use(8 * bit + j);
    }
}

inline int count_marks(const Marks& marks) {
  int n = 0;
  for (const std::uint64_t w : marks.words) n += std::popcount(w);
  return n;
}

/// Values from m on have no marks.
template <class T> void clear_marks_from(Marks& marks, int m) {
  using F = Format<T>;
  for (int i = m; i < block_values; ++i) {
    const int lane = i % F::lanes, row = i / F::lanes;
    if constexpr (F::lanes == 16)
      marks.words[lane / 2] &= ~(std::uint64_t{1} << (32 * (lane % 2) + row));
    else
      marks.words[lane] &= ~(std::uint64_t{1} << row);
  }
}

/// A block as fields, or as what it is instead of them.
template <class T> class BlockEncoder {
 public:
  using F = Format<T>;
  using Word = typename F::Word;

  explicit BlockEncoder(const Kernels<T>& kernels) : kernels_(kernels) {}

  /// Takes m values at x. What is beyond them in the last block counts as the last value again.
  const Block& take(const T* x, int m) {
    x_ = reinterpret_cast<const std::byte*>(x), m_ = m;
    if (m < block_values) {
      std::memcpy(own_, x_, static_cast<std::size_t>(m) * sizeof(T));
      for (int i = m; i < block_values; ++i)
        std::memcpy(own_ + static_cast<std::size_t>(i) * sizeof(T), x + m - 1, sizeof(T));
      x_ = own_;
    }
    if constexpr (F::is_float)
      take_floats();
    else
      take_integers();
    if (!shrinks<T>(block_, m)) block_ = {.width = Block::raw_width};
    return block_;
  }

  /// Writes the payload.
  void write_payload(std::byte* out) const {
    const std::size_t bytes = payload_bytes<T>(block_, m_);
    if (block_.raw()) {
      const std::size_t used = static_cast<std::size_t>(m_) * sizeof(T);
      std::memcpy(out, x_, used);
      std::memset(out + used, 0, bytes - used);
    } else if (m_ == block_values) {
      if (block_.width != 0) kernels_.pack(block_.width, fields_, out);
    } else {
      alignas(64) std::byte full[block_values * sizeof(Word)];
      kernels_.pack(block_.width, fields_, full);
      std::memcpy(out, full, bytes);
    }
  }

  /// Writes what is at the side.
  void write_side(std::byte* out) const {
    if (block_.raw()) return;
    if constexpr (!F::is_float) {
      const auto pattern = static_cast<typename F::Bits>(least_ ^ F::bias);
      std::memcpy(out, &pattern, sizeof pattern);
    } else if (block_.width == 0) {
      std::memcpy(out, x_, sizeof(T));
    } else {
      for_each_mark<T>(marks_, [&](int i) {
        const auto exponent = static_cast<Side>(F::exponent(pattern(i)));
        std::memcpy(out, &exponent, sizeof exponent);
        out += sizeof exponent;
      });
    }
  }

 private:
  using Side = std::conditional_t<F::side_bytes == 1, std::uint8_t, std::uint16_t>;

  Word pattern(int i) const {
    typename F::Bits bits;
    std::memcpy(&bits, x_ + static_cast<std::size_t>(i) * sizeof(T), sizeof bits);
    return bits;
  }

  void take_floats() {
    Sample sample;
    kernels_.sample(x_, sample);
    if (sample.uniform && kernels_.is_uniform(x_)) {
      block_ = {};
      return;
    }
    block_ = choose_code<T>(sample.spread);
    split();
    if (block_.width == F::plain_bits && block_.escapes != 0) ++block_.width, split();  // not in the sample
  }

  void split() {
    kernels_.split(x_, Codes<T>(block_), fields_, marks_);
    if (m_ < block_values) clear_marks_from<T>(marks_, m_);
    block_.escapes = count_marks(marks_);
  }

  void take_integers() {
    Word greatest;
    kernels_.find_range(x_, least_, greatest);
    block_ = {.width = static_cast<int>(std::bit_width(static_cast<Word>(greatest - least_)))};
    if (block_.width > F::most_width) block_.width = Block::raw_width;
    if (block_.width != 0 && !block_.raw()) kernels_.to_distances(x_, least_, fields_);
  }

  const Kernels<T>& kernels_;
  const std::byte* x_ = nullptr;
  int m_ = 0;
  Block block_;
  Word least_ = 0;
  Marks marks_;
  alignas(64) typename F::Signed fields_[block_values];
  alignas(64) std::byte own_[block_values * sizeof(T)];
};

/// Decodes a block of m values whose descriptor is valid. False where its escapes are not as many as the descriptor says: it is damaged.
template <class T> bool decode_block(const Kernels<T>& kernels, const Block& block, const std::byte* payload,
                                     const std::byte* side, T* values, int m) {
  using F = Format<T>;
  auto* const y = reinterpret_cast<std::byte*>(values);
  if (block.raw()) {
    std::memcpy(y, payload, static_cast<std::size_t>(m) * sizeof(T));
    return true;
  }
  if (block.width == 0) {
    for (int i = 0; i < m; ++i) std::memcpy(y + static_cast<std::size_t>(i) * sizeof(T), side, sizeof(T));
    return true;
  }
  alignas(64) typename F::Signed fields[block_values];
  alignas(64) std::byte own[block_values * sizeof(typename F::Word)];
  std::byte* const to = m == block_values ? y : own;
  if (m < block_values) {
    const std::size_t bytes = payload_bytes<T>(block, m);
    std::memcpy(own, payload, bytes);
    std::memset(own + bytes, 0, sizeof own - bytes);
    payload = own;
  }
  kernels.unpack(block.width, payload, fields);
  bool sound = true;
  if constexpr (F::is_float) {
    Marks marks;
    kernels.join(fields, Codes<T>(block), to, marks);
    if (m < block_values) clear_marks_from<T>(marks, m);
    sound = count_marks(marks) == block.escapes;
    if (sound)
      for_each_mark<T>(marks, [&](int i) {
        typename F::Word exponent = static_cast<std::uint8_t>(*side++);
        if constexpr (F::side_bytes == 2)
          exponent |= static_cast<typename F::Word>(static_cast<std::uint8_t>(*side++)) << 8;
        const auto bits = static_cast<typename F::Bits>(
            Codes<T>::pattern(static_cast<typename F::Word>(fields[i]), exponent & F::exponent_mask));
        std::memcpy(to + static_cast<std::size_t>(i) * sizeof(T), &bits, sizeof bits);
      });
  } else {
    typename F::Bits least;
    std::memcpy(&least, side, sizeof least);
    kernels.from_distances(fields, block.width, static_cast<typename F::Word>(least) ^ F::bias, to);
  }
  if (m < block_values) std::memcpy(y, own, static_cast<std::size_t>(m) * sizeof(T));
  return sound;
}

}  // namespace wring::inline v0::detail::lossless
