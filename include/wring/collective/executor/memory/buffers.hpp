// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include <wring/config.hpp>

namespace wring::inline v0::detail {

template <class Exec>
inline constexpr bool host_accessible_v =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Exec::memory_space>::accessible;

constexpr std::size_t round_up(std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; }

/// Memory in `Space`, aligned to 64 bytes, not initialised. A view would do, and takes far longer to compile.
template <class Space> class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : capacity_(round_up(bytes, 64)), data_(allocate(capacity_)) {}
  ~Buffer() { Kokkos::kokkos_free<Space>(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t capacity() const { return capacity_; }

 private:
  /// Versions of Kokkos throw exceptions of various types where there is no more memory.
  static void* allocate(std::size_t bytes) {
    try {
      return Kokkos::kokkos_malloc<Space>("wring::buffer", bytes);
    } catch (const std::exception&) {
      throw std::bad_alloc();
    }
  }

  std::size_t capacity_;
  void* data_;
};

/// Bytes that several owners may hold: a piece and the message it came in share one buffer.
template <class Space> struct Bytes {
  std::shared_ptr<Buffer<Space>> buffer;
  std::span<std::byte> span{};
  std::byte* image = nullptr;  ///< where the message begins that these bytes are a part of, if they are

  explicit operator bool() const { return buffer != nullptr; }
  void reset() { buffer.reset(), span = {}, image = nullptr; }
};

/// Buffers that are used again as soon as nobody but the pool holds them, so that a repeated operation allocates nothing.
template <class Space> class Pool {
 public:
  Bytes<Space> take(std::size_t bytes) {
    std::shared_ptr<Buffer<Space>>* best = nullptr;
    for (auto& buffer : buffers_) {
      if (buffer.use_count() != 1 || buffer->capacity() < bytes) continue;
      if (best == nullptr || buffer->capacity() < (*best)->capacity()) best = &buffer;
    }
    if (best == nullptr) {
      drop_smallest_idle(bytes);
      buffers_.push_back(std::make_shared<Buffer<Space>>(std::max<std::size_t>(bytes, 64)));
      allocated_ += buffers_.back()->capacity();
      best = &buffers_.back();
    }
    return {*best, {(*best)->data(), bytes}, nullptr};
  }

  /// Bytes held now, idle ones included: the temporary memory of the operation.
  std::size_t allocated() const { return allocated_; }

 private:
  /// A buffer too small for a request is given up for the larger one that takes its place: the pool holds no more buffers than
  /// were ever needed at once.
  void drop_smallest_idle(std::size_t bytes) {
    auto smallest = buffers_.end();
    for (auto it = buffers_.begin(); it != buffers_.end(); ++it) {
      if (it->use_count() != 1 || (*it)->capacity() >= bytes) continue;
      if (smallest == buffers_.end() || (*it)->capacity() < (*smallest)->capacity()) smallest = it;
    }
    if (smallest == buffers_.end()) return;
    allocated_ -= (*smallest)->capacity();
    buffers_.erase(smallest);
  }

  std::vector<std::shared_ptr<Buffer<Space>>> buffers_;
  std::size_t allocated_ = 0;
};

/// Where messages live: host memory that transports can reach, pinned where a device copies from it.
template <class Exec> struct MessageSpace {
  using type = Kokkos::HostSpace;
};
#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
template <class Exec>
  requires(!host_accessible_v<Exec>)
struct MessageSpace<Exec> {
  using type = Kokkos::SharedHostPinnedSpace;
};
#endif

/// Copies bytes between the memory of `exec` and message memory; asynchronous on devices, at once on hosts.
template <class ToSpace, class FromSpace, class Exec>
void copy_bytes(const Exec& exec, std::span<const std::byte> from, std::byte* to) {
  if (from.empty()) return;
  if constexpr (host_accessible_v<Exec>) {
    std::copy(from.begin(), from.end(), to);
  } else {
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    Kokkos::deep_copy(exec, Kokkos::View<std::byte*, ToSpace, Unmanaged>(to, from.size()),
                      Kokkos::View<const std::byte*, FromSpace, Unmanaged>(from.data(), from.size()));
  }
}

}  // namespace wring::inline v0::detail
