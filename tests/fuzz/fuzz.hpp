// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

/// What all targets share. A target is a file with `fuzz(Input)`, which must neither crash nor break what it checks.
namespace fuzz {

/// The bytes of one run, taken from the front; zeros when there are no more.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::uint32_t number() { return std::uint32_t{byte()} | std::uint32_t{byte()} << 8; }
  std::uint32_t below(std::uint32_t limit) { return number() % limit; }
  bool flag() { return byte() & 1; }
  std::span<const std::byte> rest() const { return std::as_bytes(bytes_); }

 private:
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t b = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return b;
  }
  std::span<const std::uint8_t> bytes_;
};

/// Memory of exactly this size, so that a sanitizer sees what goes beyond it.
template <class T> class Exactly {
 public:
  explicit Exactly(std::size_t n) : size_(n), memory_(new T[n]()) {}
  explicit Exactly(std::span<const T> from) : Exactly(from.size()) {
    std::copy(from.begin(), from.end(), memory_.get());
  }
  std::span<T> span() { return {memory_.get(), size_}; }
  std::span<const T> span() const { return {memory_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<T[]> memory_;
};

/// `use.template operator()<T>()` for one of the types, which the input chooses.
template <class... T, class Use> void with_type(Input& input, const Use& use) {
  const std::uint32_t chosen = input.below(sizeof...(T));
  std::uint32_t at = 0;
  ((at++ == chosen ? use.template operator()<T>() : void()), ...);
}

/// Ends the run as a finding.
[[noreturn]] inline void broken(const char* what) {
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}
inline void require(bool holds, const char* what) {
  if (!holds) broken(what);
}

void fuzz(Input input);

}  // namespace fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  Kokkos::initialize(Kokkos::InitializationSettings().set_num_threads(1).set_disable_warnings(true));
  std::atexit([] { Kokkos::finalize(); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::fuzz(fuzz::Input({data, size}));
  return 0;
}
