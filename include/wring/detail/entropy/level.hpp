// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
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

/// `push` and `pop` of a block of 128 values, with one model or with each value's own, and the sum of their magnitudes.
struct BlockCoder {
  std::byte* (*push)(std::uint32_t* states, const Model& model, int shift, const std::int32_t* q,
                     std::byte* to);
  void (*pop)(std::uint32_t* states, const Model& model, int shift, std::int32_t* q, Reader& in);
  std::byte* (*push_each)(std::uint32_t* states, const ModelSet& models, const std::uint16_t* which,
                          const std::int32_t* q, std::byte* to);
  void (*pop_each)(std::uint32_t* states, const ModelSet& models, const std::uint16_t* which, std::int32_t* q,
                   Reader& in);
  std::uint64_t (*magnitudes)(const std::int32_t* q);
  /// The models of values from the averages of their columns; magnitudes, and the averages with them; of sums of columns of some rows,
  /// modulo 2^8, what they and their squares add up to: of the first columns, as many times 64 as there are.
  void (*own_models)(const std::uint16_t* before, int scale, std::uint16_t* which);
  void (*relative)(const std::int32_t* q, std::int32_t factor, std::uint16_t* magnitudes);
  void (*learn)(const std::uint16_t* before, const std::int32_t* q, std::int32_t factor,
                std::uint16_t* after);
  Sums (*fold)(const std::uint8_t* values, std::size_t row, std::size_t rows);
};

struct PortableLevel {
  static std::byte* push(std::uint32_t* states, const Model& model, int shift, const std::int32_t* q,
                         std::byte* to) {
    return PortableBlocks(wide_lanes).push(states, model, shift, q, block_values, to);
  }
  static void pop(std::uint32_t* states, const Model& model, int shift, std::int32_t* q, Reader& in) {
    PortableBlocks(wide_lanes).pop(states, model, shift, q, block_values, in);
  }
  static std::byte* push_each(std::uint32_t* states, const ModelSet& models, const std::uint16_t* which,
                              const std::int32_t* q, std::byte* to) {
    return PortableBlocks(wide_lanes).push_each(states, models, which, q, block_values, to);
  }
  static void pop_each(std::uint32_t* states, const ModelSet& models, const std::uint16_t* which,
                       std::int32_t* q, Reader& in) {
    PortableBlocks(wide_lanes).pop_each(states, models, which, q, block_values, in);
  }
  static std::uint64_t magnitudes(const std::int32_t* q) { return sum_of_magnitudes(q, block_values); }
  static void own_models(const std::uint16_t* before, int scale, std::uint16_t* which) {
    for (std::size_t i = 0; i < block_values; ++i) {
      int k = scale - 1 - static_cast<int>(own_thresholds.size()) / 2;
      for (const std::uint16_t threshold : own_thresholds) k += before[i] >= threshold;
      which[i] = static_cast<std::uint16_t>(std::clamp(k, 0, ModelSet::count - 1));
    }
  }
  static void relative(const std::int32_t* q, std::int32_t factor, std::uint16_t* magnitudes) {
    for (std::size_t i = 0; i < block_values; ++i)
      magnitudes[i] = static_cast<std::uint16_t>(relative_of(q[i], factor));
  }
  static void learn(const std::uint16_t* before, const std::int32_t* q, std::int32_t factor,
                    std::uint16_t* after) {
    for (std::size_t i = 0; i < block_values; ++i)
      after[i] = static_cast<std::uint16_t>(before[i] + ((relative_of(q[i], factor) - before[i]) >> 3));
  }
  static Sums fold(const std::uint8_t* values, std::size_t row, std::size_t rows) {
    Sums all;
    for (std::size_t c = 0; c + 64 <= row; c += 64) {
      std::uint8_t sums[64];
      fold_columns(values + c, row, rows, sums);
      for (const std::uint8_t sum : sums) all.of_all += sum, all.of_squares += std::uint64_t{sum} * sum;
    }
    return all;
  }
};

template <class L> constexpr BlockCoder coder_of() {
  return {L::push,       L::pop,      L::push_each, L::pop_each, L::magnitudes,
          L::own_models, L::relative, L::learn,     L::fold};
}
template <Level level> constexpr BlockCoder make_coder() {
#if WRING_X86_64
  if constexpr (level == Level::avx512)
    return coder_of<Avx512Level>();
  else if constexpr (level == Level::avx2)
    return coder_of<Avx2Level>();
  else
#endif
    return coder_of<PortableLevel>();
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
