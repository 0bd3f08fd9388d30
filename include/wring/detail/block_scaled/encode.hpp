// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <type_traits>

#include <wring/detail/block_scaled/level.hpp>
#include <wring/detail/convert.hpp>
#include <wring/detail/value_kernels.hpp>

/// Encoding on a host.
namespace wring::inline v0::detail::block_scaled {

struct ToFloat {
  WRING_ALWAYS_INLINE void operator()(const double& from, float& to) const { to = static_cast<float>(from); }
};

/// Encodes blocks of T.
template <class T, int Bits> struct BlockEncoder {
  using Wide = typename FloatTraits<T>::Wide;
  const Kernels* kernels;
  Coding coding;
  Layout layout;

  void encode(const T* x, std::size_t block, std::byte* piece, GroupSigns& signs) const {
    const std::size_t m = layout.values_in(block);
    alignas(64) Wide wide[block_values], turned[block_values];
    const Wide* v = widened(x, m, wide);
    Scale scales[block_groups];
    if (coding.rotates) {
      rotate_and_choose(block, v, signs, turned, scales);
      v = turned;
    } else {
      choose(v, scales);
    }
    alignas(64) i32 q[block_values];
    quantise(block * block_groups, v, scales, q);
    write_fields(q, m, piece + layout.block_at(block));
    const std::size_t first = block * block_groups,
                      groups = std::min<std::size_t>(block_groups, layout.groups() - first);
    std::memcpy(piece + 2 * first, scales, 2 * groups);
  }

 private:
  /// The values in their computation type, zeros behind them; themselves where that is what they are.
  static const Wide* widened(const T* x, std::size_t m, Wide* wide) {
    if (m == block_values) {
      if constexpr (std::is_same_v<T, Wide>) {
        return x;
      } else {
        ConvertRun<Widen<T>, T, Wide, block_values>::convert({}, x, wide);
        return wide;
      }
    }
    for (std::size_t i = 0; i < m; ++i) wide[i] = load_element(x[i]);
    std::fill(wide + m, wide + block_values, Wide(0));
    return wide;
  }

  void choose(const Wide* v, Scale* scales) const {
    PatternOf<Wide> greatest[block_groups];
    if constexpr (std::is_same_v<Wide, double>)
      kernels->measure_doubles(v, greatest);
    else
      kernels->measure_floats(v, greatest);
    for (int group = 0; group < block_groups; ++group) {
      const Wide most = std::bit_cast<Wide>(greatest[group]);
      scales[group] =
          must_be_marked(coding, most) ? marked_scale(v + group * group_values) : scale_of<Bits>(most, false);
    }
  }

  /// Groups that are marked stay as they are.
  void rotate_and_choose(std::size_t block, const Wide* v, GroupSigns& signs, Wide* turned,
                         Scale* scales) const {
    for (int group = 0; group < block_groups; ++group, v += group_values, turned += group_values) {
      const auto most = std::bit_cast<Wide>(kernels->rotation<Wide>().forwards(
          signs.of(block * block_groups + static_cast<std::size_t>(group)), v, turned));
      if (!(most < greatest_rotated / 2) && any_must_be_marked(v)) {
        std::copy_n(v, group_values, turned);
        scales[group] = marked_scale(v);
      } else {
        scales[group] = scale_of<Bits>(most, false);
      }
    }
  }

  WRING_COLD bool any_must_be_marked(const Wide* v) const {
    return std::any_of(v, v + group_values, [&](Wide x) { return must_be_marked(coding, std::abs(x)); });
  }
  WRING_COLD static Scale marked_scale(const Wide* v) { return scale_of<Bits>(greatest_finite(v), true); }

  WRING_COLD static double greatest_finite(const Wide* v) {
    double greatest = 0;
    for (int i = 0; i < group_values; ++i)
      if (code_of(v[i]) == grid::finite_code)
        greatest = std::max(greatest, static_cast<double>(std::abs(v[i])));
    return greatest;
  }

  /// `first`: the first group.
  void quantise(std::size_t first, const Wide* v, const Scale* scales, i32* q) const {
    Factors factors;
    unsigned in_doubt = 0;
    for (int group = 0; group < block_groups; ++group) {
      const float scale = scales[group].value();
      const bool quick = !scales[group].marked() && scale <= 0x1p100f &&
                         (!coding.draws || scale == 0 || scale >= least_drawn_scale);
      factors.inverse[group] = quick && scale != 0 ? 1 / scale : 0;
      in_doubt |= static_cast<unsigned>(!quick) << group;
    }
    RandomRows draws[block_groups / 2][2];
    if (coding.draws)
      for (std::size_t pair = 0; pair < std::size(draws); ++pair)
        kernels->draw(RandomPlaces::indices(coding.rounding, coding.first_of(first + 2 * pair), group_values),
                      draws[pair]);
    in_doubt |= quantise_quickly(v, factors, draws[0], q);
    if (in_doubt == 0) return;
    for (int group = 0; group < block_groups; ++group)
      if ((in_doubt >> group & 1u) != 0)
        quantise_carefully(v + group * group_values, scales[group], factors.inverse[group],
                           draws[group / 2][group % 2], q + group * group_values);
  }

  unsigned quantise_quickly(const Wide* v, const Factors& factors, const RandomRows* draws, i32* q) const {
    const float* x;
    alignas(64) float narrowed[std::is_same_v<Wide, double> ? block_values : 1];
    if constexpr (std::is_same_v<Wide, double>)
      ConvertRun<ToFloat, double, float, block_values>::convert({}, v, narrowed), x = narrowed;
    else
      x = v;
    return coding.draws ? kernels->drawn(x, factors, draws, q) : kernels->nearest(x, factors, q);
  }

  /// Those that are in doubt; all, where there is no inverse.
  WRING_COLD void quantise_carefully(const Wide* v, Scale scale, float inverse, const RandomRows& draws,
                                     i32* q) const {
    for (int i = 0; i < group_values; ++i) {
      const std::uint32_t draw = coding.draws ? Coding::draw_of(draws.row[i / lanes % 4][i % lanes], i) : 0;
      const double distance = static_cast<double>(v[i]) * inverse - (draw + 0.5) / units_per_step;
      if (inverse != 0 && coding.draws && std::abs(distance - std::nearbyint(distance)) > 4 / units_per_step)
        continue;
      q[i] = code_of_value<Bits>(v[i], scale, coding.draws, [&] { return draw; });
    }
  }

  void write_fields(const i32* q, std::size_t m, std::byte* out) const {
    if (m == block_values) return kernels->pack(q, out);
    alignas(64) std::byte full[block_values * Bits / 8];
    kernels->pack(q, full);
    std::memcpy(out, full, 64 * layout.word_rows(m));
  }
};

inline constexpr std::size_t blocks_per_task = values_per_task / block_values;

/// Encodes blocks; one call for each task.
template <class T, int Bits> struct EncodeBlocks {
  BlockEncoder<T, Bits> encoder;
  const T* x;
  std::byte* piece;

  void operator()(std::size_t task) const {
    const Layout& layout = encoder.layout;
    const std::size_t last = std::min(layout.blocks(), (task + 1) * blocks_per_task);
    GroupSigns signs(*encoder.kernels, encoder.coding);
    for (std::size_t block = task * blocks_per_task; block < last; ++block)
      encoder.encode(x + block * block_values, block, piece, signs);
    if (last == layout.blocks())
      std::memset(piece + 2 * layout.groups(), 0, layout.fields_at() - 2 * layout.groups());
  }
};

}  // namespace wring::inline v0::detail::block_scaled
