// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
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
    const std::size_t bytes = static_cast<std::size_t>(m_) * sizeof(T);
    if (marked_.count == m_ && !marked_.any_nan) return void(std::memcpy(out, x_, bytes));
    T packed[block_values + spare], values[block_values];
    kernels_.pack(x_, bitmap_, packed);
    canonicalise(packed, marked_.count);
    kernels_.unpack(packed, bitmap_, values);
    std::memcpy(out, values, bytes);
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

/// value += other, in the computation type: a loop over it vectorises for 16-bit elements, too. For hosts.
template <class T> struct AddElement {
  void operator()(const T& other, T& value) const {
    store_element(value, load_element(value) + load_element(other));
  }
};

/// A block of m values whose descriptor is valid, opened: the values that were sent, divided by `divisor`, and where they belong.
template <class T> class BlockDecoder {
 public:
  explicit BlockDecoder(const Kernels<T>& kernels, int divisor = 1) : kernels_(kernels), divisor_(divisor) {}

  /// False where the places are not those of a block of m values: it is damaged.
  bool open(const Block& block, int m, const std::byte* payload) {
    block_ = block, m_ = m;
    const bool sound = block.dense() || (block.has_places() ? read_places(payload) : read_bitmap(payload));
    if (!sound) block_ = {};
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
      if (block_.has_places())
        for (int k = 0; k < block_.count; ++k) y[places_[k]] = *value++;
      else
        for_each_mark(bitmap_, [&](int i) { y[i] = *value++; });
    }
  }

  /// Adds to m values.
  void add(T* y) const {
    if (!block_.has_places()) return add_all(y);
    for (int k = 0; k < block_.count; ++k) {
      T& to = y[places_[k]];
      to = Keys<T>::pattern(&to) == 0 ? values_[k] : add_values(to, values_[k]);
    }
  }

 private:
  void add_all(T* y) const {
    T own[block_values];
    if (!block_.dense()) store(own);
    const T* const values = block_.dense() ? values_ : own;
    if (m_ == block_values)
      ConvertRun<AddElement<T>, T, T, block_values>::convert({}, values, y);
    else
      for (int i = 0; i < m_; ++i) AddElement<T>()(values[i], y[i]);
  }

  /// Ascending, all below m.
  bool read_places(const std::byte* payload) {
    bool ascend = true;
    int last = -1;
    for (int k = 0; k < block_.count; ++k) {
      const int i = static_cast<int>(payload[k]) + (k < block_.in_first_half ? 0 : 256);
      ascend = ascend && i > last;
      places_[k] = static_cast<std::uint16_t>(last = i);
    }
    return ascend && last < m_;
  }

  /// As many marks as announced, all below m.
  bool read_bitmap(const std::byte* payload) {
    std::memcpy(bitmap_, payload, bitmap_bytes);
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
  std::uint16_t places_[Block::most_places];
  std::uint64_t bitmap_[bitmap_words];
  T values_[block_values + spare];
};

/// The sum of two full blocks that have places, without all the zeros between them.
template <class T> class MergedPlaces {
 public:
  using Key = typename Keys<T>::Key;

  /// Whether the sum has places for certain.
  static bool serves(const Block& a, const Block& b, int m) {
    return m == block_values && a.count + b.count <= Block::most_places;
  }

  /// False where places do not ascend: a block is damaged.
  bool take(const Block& a, const std::byte* payload, const Block& b, const std::byte* other) {
    const Places one(a, payload), two(b, other);
    if (!one.ascend() || !two.ascend()) return false;
    count_ = in_first_half_ = 0;
    for (int i = 0, j = 0; i < a.count || j < b.count;) {
      const int p = one.at(i), q = two.at(j);
      if (p == q)
        keep(p, add_values(one.value(i++), two.value(j++)));
      else
        keep(std::min(p, q), p < q ? one.value(i++) : two.value(j++));
    }
    return true;
  }
  Block block() const { return {count_, in_first_half_}; }

  void write(std::byte* out) const {
    std::memcpy(out, places_, static_cast<std::size_t>(count_));
    std::memcpy(out + count_, values_, static_cast<std::size_t>(count_) * sizeof(Key));
  }

 private:
  struct Places {
    Block block;
    const std::byte* payload;
    Places(const Block& b, const std::byte* bytes) : block(b), payload(bytes) {}

    /// block_values behind the last one.
    int at(int k) const {
      if (k >= block.count) return block_values;
      return static_cast<int>(payload[k]) + (k < block.in_first_half ? 0 : 256);
    }
    T value(int k) const {
      T x;
      std::memcpy(static_cast<void*>(&x), payload + block.count + static_cast<std::size_t>(k) * sizeof(T),
                  sizeof x);
      return x;
    }
    bool ascend() const {
      bool all = true;
      for (int k = 1; k < block.count; ++k) all = all && at(k - 1) < at(k);
      return all;
    }
  };

  void keep(int place, T x) {
    const Key pattern = Keys<T>::pattern(&x);
    if (Keys<T>::magnitude(pattern) == 0) return;
    places_[count_] = static_cast<std::byte>(place & 255);
    values_[count_++] = Keys<T>::canonical(pattern);
    in_first_half_ += place < 256;
  }

  int count_ = 0, in_first_half_ = 0;
  std::byte places_[Block::most_places];
  Key values_[Block::most_places];
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
