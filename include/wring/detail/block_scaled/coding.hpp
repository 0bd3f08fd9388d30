// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

#include <wring/config.hpp>
#include <wring/detail/block_scaled/layout.hpp>
#include <wring/detail/random/philox.hpp>

/// How the groups of a piece are coded, beyond their bits: rounding, rotation, and where the random numbers for them come from.
namespace wring::inline v0::detail::block_scaled {

/// Groups with greater magnitudes are not rotated: sums of 128 of them could overflow.
inline constexpr double greatest_rotated = 0x1p100;

struct Coding {
  bool draws = false, rotates = false;
  RandomStream rounding{}, rotation{};
  std::uint64_t first = 0;  ///< index of the piece's first value within its tensor

  KOKKOS_INLINE_FUNCTION std::uint64_t first_of(std::size_t group) const {
    return first + group * group_values;
  }
  /// The draw for value i of a group, 16 bits.
  KOKKOS_INLINE_FUNCTION std::uint32_t draw(std::size_t group, int i) const {
    const Words4 words = rounding.words(first_of(group), static_cast<std::uint32_t>(i % lanes));
    return draw_of(words.word[i / lanes % 4], i);
  }
  /// Of the word that two values share the half that belongs to value i.
  KOKKOS_INLINE_FUNCTION static std::uint32_t draw_of(std::uint32_t word, int i) {
    return (word >> (i / lanes < 4 ? 0 : 16)) & 0xffffu;
  }
  /// Bit i of these 128 is set where value i of a group changes its sign before the group is rotated.
  KOKKOS_INLINE_FUNCTION Words4 signs(std::size_t group) const { return rotation.words(first_of(group), 0); }
};

/// Whether a group, given its greatest magnitude (infinite where it has special values), is of the other form.
KOKKOS_INLINE_FUNCTION bool must_be_marked(const Coding& coding, double greatest) {
  return !(greatest <= std::numeric_limits<double>::max()) ||
         (coding.rotates && greatest >= greatest_rotated);
}

/// The scale of a group, given its greatest finite magnitude.
template <int Bits> KOKKOS_INLINE_FUNCTION Scale scale_of(double greatest, bool marked) {
  Scale scale = Scale::for_levels(greatest, levels_of(Bits, marked));
  if (marked) scale.pattern |= Scale::mark;
  return scale;
}

/// The code of one value. `draw()` is asked for its draw where one is needed.
template <int Bits, class Draw>
KOKKOS_INLINE_FUNCTION int code_of_value(double x, Scale scale, bool draws, const Draw& draw) {
  const unsigned special = code_of(x);
  if (special != grid::finite_code) return MarkedCodes<Bits>::of(special);  // in marked groups alone
  const int levels = levels_of(Bits, scale.marked());
  if (draws) return drawn_level(x, scale.value(), levels, draw());
  return nearest_level(x, scale.value(), levels);
}

template <class Wide> KOKKOS_INLINE_FUNCTION Wide with_sign(const Words4& signs, int i, Wide x) {
  return ((signs.word[i / 32] >> (i % 32)) & 1u) != 0 ? -x : x;
}

/// After the inverse: the rotation multiplies lengths by the square root of 128, twice.
template <class Wide> inline constexpr Wide rotation_norm = Wide(1) / group_values;

}  // namespace wring::inline v0::detail::block_scaled
