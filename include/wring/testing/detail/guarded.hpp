// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace wring::inline v0::testing {

/// Values or bytes between two guards, aligned to 64 bytes, with a known filling. Without guards the allocation ends exactly where
/// the span does, so that an address sanitiser sees any read beyond it.
template <class T> class Guarded {
 public:
  explicit Guarded(std::size_t count, std::byte fill = std::byte{0xa5}, std::size_t guard = 64)
      : count_(count), guard_(guard),
        memory_(
            static_cast<std::byte*>(::operator new(count * sizeof(T) + 2 * guard, std::align_val_t{64}))) {
    std::fill_n(memory_.get(), guard, mark);
    std::fill_n(memory_.get() + guard, count * sizeof(T), fill);
    std::fill_n(memory_.get() + guard + count * sizeof(T), guard, mark);
  }

  /// A copy without guards.
  static Guarded exactly(std::span<const T> from) {
    Guarded copy(from.size(), std::byte{0}, 0);
    if (!from.empty()) std::memcpy(copy.memory_.get(), from.data(), from.size_bytes());
    return copy;
  }

  std::span<T> span() { return {reinterpret_cast<T*>(memory_.get() + guard_), count_}; }
  std::span<const T> constant() const { return {reinterpret_cast<const T*>(memory_.get() + guard_), count_}; }

  bool intact() const {
    const auto marked = [this](const std::byte* at) {
      return std::all_of(at, at + guard_, [](std::byte b) { return b == mark; });
    };
    return marked(memory_.get()) && marked(memory_.get() + guard_ + count_ * sizeof(T));
  }

 private:
  static constexpr std::byte mark{0xc3};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, std::align_val_t{64}); }
  };
  std::size_t count_, guard_;
  std::unique_ptr<std::byte[], Free> memory_;
};

template <class T> bool same_bytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace wring::inline v0::testing
