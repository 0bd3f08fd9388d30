// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <wring/detail/convert.hpp>
#include <wring/detail/sparse/level.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/operation.hpp>

/// One block on a host.
namespace wring::inline v0::detail::sparse {

static_assert(std::endian::native == std::endian::little, "wring: sparse streams are little endian");

/// The values of a block that are sent.
template <class T> class BlockEncoder {
 public:
  using Key = typename Keys<T>::Key;

  explicit BlockEncoder(const Kernels<T>& kernels) : kernels_(kernels) {}

  /// Takes m values at x, the first of which has the index `first` in its tensor.
  Block take(const T* x, int m, const Selection<T>& selection, std::size_t first) {
    if (first < selection.ties_end && selection.ties_end - first < static_cast<std::size_t>(m)) {
      keep_ties(x, m, selection, first);
      return take_at_least(own_, m, selection.cut);
    }
    const Key above = selection.cut == Keys<T>::nan ? Keys<T>::sign : static_cast<Key>(selection.cut + 1);
    return take_at_least(x, m, first < selection.ties_end ? selection.cut : above);
  }

  /// Takes those of m values at x that are not 0.
  Block take(const T* x, int m) { return take_at_least(x, m, 1); }

  /// Writes what comes after the descriptors.
  void write(std::byte* out) const {
    if (block_.count == 0) return;
    if (block_.dense()) return write_all(out);
    if (block_.has_places()) return write_places(out);
    T values[block_values + spare];
    kernels_.pack(x_, bitmap_, values);
    canonicalise(values, block_.count);
    std::memcpy(out, bitmap_, bitmap_bytes);
    std::memcpy(out + bitmap_bytes, values, static_cast<std::size_t>(block_.count) * sizeof(T));
  }

 private:
  /// The block in which the ties end: those that are not sent become zeros.
  void keep_ties(const T* x, int m, const Selection<T>& selection, std::size_t first) {
    for (int i = 0; i < m; ++i) {
      const bool taken = selection.takes(Keys<T>::pattern(x + i), first + static_cast<std::size_t>(i));
      if (taken)
        own_[i] = x[i];
      else
        std::memset(static_cast<void*>(own_ + i), 0, sizeof(T));
    }
  }

  Block take_at_least(const T* x, int m, Key least) {
    x_ = x, m_ = m;
    if (m < block_values) {
      const auto used = static_cast<std::size_t>(m);
      if (x != own_) std::memcpy(static_cast<void*>(own_), x, used * sizeof(T));
      std::memset(static_cast<void*>(own_ + m), 0, (block_values - used) * sizeof(T));
      x_ = own_;
    }
    marked_ = kernels_.mark(x_, least, bitmap_);
    int in_first_half = 0;
    for (int w = 0; w < bitmap_words / 2; ++w) in_first_half += std::popcount(bitmap_[w]);
    return block_ = block_for<T>(marked_.count, in_first_half, m);
  }

  void write_places(std::byte* out) const {
    std::byte* values = out + block_.count;
    for_each_mark(bitmap_, [&](int i) {
      const Key pattern = Keys<T>::canonical(Keys<T>::pattern(x_ + i));
      *out++ = static_cast<std::byte>(i & 255);
      std::memcpy(values, &pattern, sizeof pattern);
      values += sizeof pattern;
    });
  }

  void write_all(std::byte* out) const {
    T packed[block_values + spare], values[block_values];
    kernels_.pack(x_, bitmap_, packed);
    canonicalise(packed, marked_.count);
    kernels_.unpack(packed, bitmap_, values);
    std::memcpy(out, values, static_cast<std::size_t>(m_) * sizeof(T));
  }

  void canonicalise(T* values, int count) const {
    if (!marked_.any_nan) return;
    for (int i = 0; i < count; ++i) {
      const Key pattern = Keys<T>::canonical(Keys<T>::pattern(values + i));
      std::memcpy(static_cast<void*>(values + i), &pattern, sizeof pattern);
    }
  }

  const Kernels<T>& kernels_;
  const T* x_ = nullptr;
  int m_ = 0;
  Marked marked_;
  Block block_;
  std::uint64_t bitmap_[bitmap_words];
  T own_[block_values];
};

/// A block of m values whose descriptor is valid, opened: the values that were sent, divided by `divisor`, and where they belong.
template <class T> class BlockDecoder {
 public:
  explicit BlockDecoder(const Kernels<T>& kernels, int divisor = 1) : kernels_(kernels), divisor_(divisor) {}

  /// False where the places are not those of a block of m values: it is damaged.
  bool open(const Block& block, int m, const std::byte* payload) {
    block_ = block, m_ = m;
    const bool sound = block.dense() || read_places(payload);
    const int count = block.dense() ? m : block.count;
    std::memcpy(static_cast<void*>(values_), payload + block.places_bytes(),
                static_cast<std::size_t>(count) * sizeof(T));
    if (divisor_ != 1)
      for (int i = 0; i < count; ++i)
        values_[i] = narrow<T>(static_cast<double>(widen(values_[i])) / divisor_);
    return sound;
  }

  /// Writes all m values.
  void store(T* y) const {
    if (block_.dense()) {
      std::memcpy(static_cast<void*>(y), values_, static_cast<std::size_t>(m_) * sizeof(T));
    } else if (block_.count > Block::most_places && m_ == block_values) {
      kernels_.unpack(values_, bitmap_, y);
    } else {
      std::memset(static_cast<void*>(y), 0, static_cast<std::size_t>(m_) * sizeof(T));
      const T* value = values_;
      for_each_mark(bitmap_, [&](int i) { y[i] = *value++; });
    }
  }

  /// Adds to m values.
  void add(T* y) const {
    if (block_.dense()) return add_run(y, y, values_, static_cast<std::size_t>(m_));
    const T* value = values_;
    for_each_mark(bitmap_, [&](int i) { y[i] = add_values(y[i], *value++); });
  }

 private:
  bool read_places(const std::byte* payload) {
    bool ascend = true;
    std::memset(bitmap_, 0, sizeof bitmap_);
    if (!block_.has_places()) {
      std::memcpy(bitmap_, payload, bitmap_bytes);
    } else {
      for (int k = 0, last = -1; k < block_.count; ++k) {
        const int i = static_cast<int>(payload[k]) + (k < block_.in_first_half ? 0 : 256);
        ascend = ascend && i > last, last = i;
        bitmap_[i / 64] |= std::uint64_t{1} << (i % 64);
      }
    }
    if (ascend && places_are_sound()) return true;
    std::memset(bitmap_, 0, sizeof bitmap_);
    return false;
  }

  /// As many as announced, all below m.
  bool places_are_sound() const {
    int count = 0;
    for (int w = 0; w < bitmap_words; ++w) {
      const int below = m_ - 64 * w;
      const std::uint64_t allowed = below >= 64  ? ~std::uint64_t{0}
                                    : below <= 0 ? 0
                                                 : (std::uint64_t{1} << below) - 1;
      if ((bitmap_[w] & ~allowed) != 0) return false;
      count += std::popcount(bitmap_[w]);
    }
    return count == block_.count;
  }

  const Kernels<T>& kernels_;
  int divisor_, m_ = 0;
  Block block_;
  std::uint64_t bitmap_[bitmap_words];
  T values_[block_values + spare];
};

/// Two opened blocks of m values become the values of their combination.
template <class T>
void combine_blocks(const BlockDecoder<T>& a, const BlockDecoder<T>& b, Operation operation, T* y, int m) {
  a.store(y);
  if (adds(operation)) return b.add(y);
  T other[block_values];
  b.store(other);
  for (int i = 0; i < m; ++i)
    y[i] = operation == Operation::min ? select_value<false>(y[i], other[i])
                                       : select_value<true>(y[i], other[i]);
}

}  // namespace wring::inline v0::detail::sparse
