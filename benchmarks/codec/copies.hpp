// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace wring_benchmark {

/// Copies with stores that pass by the caches, as fast as memory allows where the data do not fit into them. `to` is aligned to 64
/// bytes. Where the compiler has no such stores it is memcpy.
inline void streaming_copy(void* to, const void* from, std::size_t bytes) {
  std::size_t done = 0;
#if defined(__SSE2__)
  for (; done + 64 <= bytes; done += 64) {
    const auto* source = reinterpret_cast<const __m128i*>(static_cast<const char*>(from) + done);
    auto* target = reinterpret_cast<__m128i*>(static_cast<char*>(to) + done);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(target + i, _mm_loadu_si128(source + i));
  }
  _mm_sfence();
#endif
  std::memcpy(static_cast<char*>(to) + done, static_cast<const char*>(from) + done, bytes - done);
}

}  // namespace wring_benchmark
