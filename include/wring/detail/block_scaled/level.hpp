// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <type_traits>

#include <wring/detail/block_scaled/rotate.hpp>
#include <wring/detail/block_scaled/rows.hpp>
#include <wring/detail/processor.hpp>
#include <wring/detail/random/rows.hpp>

/// The block kernels for each level of the instruction set.
namespace wring::inline v0::detail::block_scaled {

/// How a group is rotated, forwards and backwards.
template <class Wide> struct RotationKernels {
  PatternOf<Wide> (*forwards)(const Words4& signs, const Wide* x, Wide* y);
  void (*backwards)(const Words4& signs, Wide* v);
};

struct Kernels {
  void (*measure_floats)(const float* x, i32* greatest);
  void (*measure_doubles)(const double* x, i64* greatest);
  unsigned (*nearest)(const float* x, const Factors& factors, i32* q);
  unsigned (*drawn)(const float* x, const Factors& factors, const RandomRows* draws, i32* q);
  void (*draw)(const RandomPlaces& at, RandomRows (&rows)[2]);
  RotationKernels<float> rotate_floats;
  RotationKernels<double> rotate_doubles;
  void (*pack)(const i32* q, std::byte* out);
  void (*unpack)(const std::byte* in, i32* q);
  void (*decode)(const std::byte* in, const float* scales, float* y);
  void (*decode_add)(const std::byte* in, const float* scales, float* y);

  template <class Wide> const RotationKernels<Wide>& rotation() const {
    if constexpr (std::is_same_v<Wide, double>)
      return rotate_doubles;
    else
      return rotate_floats;
  }
};

/// Whether fields of `Bits` are packed and unpacked by bodies of their own; x86 without AVX2 is rare enough to go without.
template <Level level> inline constexpr bool unrolls = register_bytes<level> >= (WRING_X86_64 ? 32 : 16);

template <Level level, class Wide> inline constexpr RotationKernels<Wide> rotations_at = {
    compiled<level, rotate<register_bytes<level>, Wide>>,
    compiled<level, rotate_back<register_bytes<level>, Wide>>};

template <Level level, int Bits> constexpr Kernels make_kernels() {
  constexpr int bytes = register_bytes<level>;
  return {.measure_floats = compiled<level, measure<bytes, float, i32>>,
          .measure_doubles = compiled<level, measure<bytes, double, i64>>,
          .nearest = compiled<level, quantise_nearest<bytes>>,
          .drawn = compiled<level, quantise_drawn<bytes>>,
          .draw = random_rows_at<level>,
          .rotate_floats = rotations_at<level, float>,
          .rotate_doubles = rotations_at<level, double>,
          .pack = compiled<level, block_scaled::pack<Bits, bytes, unrolls<level>>>,
          .unpack = compiled<level, block_scaled::unpack<Bits, bytes>>,
          .decode = compiled<level, block_scaled::decode<Bits, bytes, unrolls<level>, false>>,
          .decode_add = compiled<level, block_scaled::decode<Bits, bytes, unrolls<level>, true>>};
}
template <Level level, int Bits> inline constexpr Kernels kernels_at = make_kernels<level, Bits>();

/// For a level that can run.
template <int Bits> const Kernels& kernels_for(Level level) {
  return with_level(level, []<Level l>() -> const Kernels& { return kernels_at<l, Bits>; });
}

/// Those of the fastest level that can run.
template <int Bits> const Kernels& best_kernels() {
  static const Kernels& best =
      with_best_level([]<Level level>() -> const Kernels& { return kernels_at<level, Bits>; });
  return best;
}

/// The signs of groups that come one after the other: those of 32 are made at a time.
class GroupSigns {
 public:
  GroupSigns(const Kernels& kernels, const Coding& coding) : draw_(kernels.draw), coding_(coding) {}

  Words4 of(std::size_t group) {
    if (const std::size_t first = group / 32 * 32; first != held_) {
      draw_(RandomPlaces::every(group_values, coding_.rotation, coding_.first_of(first)), rows_);
      held_ = first;
    }
    return rows_[group / 16 % 2].of(group % 16);
  }

 private:
  void (*draw_)(const RandomPlaces& at, RandomRows (&rows)[2]);
  const Coding& coding_;
  std::size_t held_ = ~std::size_t{0};
  RandomRows rows_[2];
};

}  // namespace wring::inline v0::detail::block_scaled
