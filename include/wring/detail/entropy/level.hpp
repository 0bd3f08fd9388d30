// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <wring/detail/entropy/block.hpp>
#include <wring/detail/entropy/model.hpp>
#include <wring/detail/processor.hpp>

#if WRING_X86_64
#include <wring/detail/entropy/x86_64.hpp>
#endif

/// The coder of full blocks in 32 lanes for each level of the instruction set. All move the same words.
namespace wring::inline v0::detail::entropy {

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

template <Level level> constexpr BlockCoder make_coder() {
#if WRING_X86_64
  if constexpr (level == Level::avx512)
    return {Avx512Level::push, Avx512Level::pop, Avx512Level::magnitudes};
  else if constexpr (level == Level::avx2)
    return {Avx2Level::push, Avx2Level::pop, Avx2Level::magnitudes};
  else
#endif
    return {PortableLevel::push, PortableLevel::pop, PortableLevel::magnitudes};
}
template <Level level> inline constexpr BlockCoder coder_at = make_coder<level>();

/// For a level that can run.
inline const BlockCoder& coder_for(Level level) {
  return with_level(level, []<Level l>() -> const BlockCoder& { return coder_at<l>; });
}

/// That of the fastest level that can run.
inline const BlockCoder& best_coder() {
  static const BlockCoder& best =
      with_best_level([]<Level level>() -> const BlockCoder& { return coder_at<level>; });
  return best;
}

}  // namespace wring::inline v0::detail::entropy
