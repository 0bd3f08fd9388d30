// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <wring/detail/entropy/block.hpp>
#include <wring/detail/entropy/model.hpp>

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__) && !defined(__CUDACC__) &&              \
    !defined(__HIPCC__)
#define WRING_ENTROPY_X86_64 1
#include <wring/detail/entropy/x86_64.hpp>
#else
#define WRING_ENTROPY_X86_64 0
#endif

/// The coder of full blocks in 32 lanes for each level of the instruction set; the level is chosen when the program runs. All move
/// the same words.
namespace wring::inline v0::detail::entropy {

enum class Level { portable, avx2, avx512 };

/// `push` and `pop` of a block of 128 values, and the sum of their magnitudes.
struct BlockCoder {
  std::byte* (*push)(std::uint32_t* states, const Model& model, int shift, const std::int32_t* q,
                     std::byte* to);
  void (*pop)(std::uint32_t* states, const Model& model, int shift, std::int32_t* q, Reader& in);
  std::uint64_t (*magnitudes)(const std::int32_t* q);
};

struct PortableLevel {
  static std::byte* push(std::uint32_t* states, const Model& model, int shift, const std::int32_t* q,
                         std::byte* to) {
    return PortableBlocks(wide_lanes).push(states, model, shift, q, block_values, to);
  }
  static void pop(std::uint32_t* states, const Model& model, int shift, std::int32_t* q, Reader& in) {
    PortableBlocks(wide_lanes).pop(states, model, shift, q, block_values, in);
  }
  static std::uint64_t magnitudes(const std::int32_t* q) { return sum_of_magnitudes(q, block_values); }
};

/// Whether this machine can run a level.
inline bool can_run(Level level) {
  switch (level) {
  case Level::portable: return true;
#if WRING_ENTROPY_X86_64
  case Level::avx2:
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  case Level::avx512:
    return can_run(Level::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
  default: return false;
  }
}

inline const BlockCoder& coder_for(Level level) {
  static constexpr BlockCoder portable{PortableLevel::push, PortableLevel::pop, PortableLevel::magnitudes};
#if WRING_ENTROPY_X86_64
  static constexpr BlockCoder avx2{Avx2Level::push, Avx2Level::pop, Avx2Level::magnitudes},
      avx512{Avx512Level::push, Avx512Level::pop, Avx512Level::magnitudes};
  if (level == Level::avx512) return avx512;
  if (level == Level::avx2) return avx2;
#endif
  return portable;
}

inline const BlockCoder& best_coder() {
  static const BlockCoder& best = coder_for(can_run(Level::avx512) ? Level::avx512
                                            : can_run(Level::avx2) ? Level::avx2
                                                                   : Level::portable);
  return best;
}

}  // namespace wring::inline v0::detail::entropy
