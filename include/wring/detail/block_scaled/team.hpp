// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/detail/block_scaled/coding.hpp>
#include <wring/detail/convert.hpp>
#include <wring/detail/grid/team/team.hpp>

/// The same codec over Kokkos' teams, for GPUs: a team takes a block.
namespace wring::inline v0::detail::block_scaled {

/// One block in the scratch memory of a team.
template <class Wide> struct TeamBlock {
  Wide* values;
  std::int32_t* codes;

  template <class Member> KOKKOS_FUNCTION static TeamBlock of(const Member& team) {
    using Space = typename Member::scratch_memory_space;
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    const Kokkos::View<Wide*, Space, Unmanaged> values(team.team_scratch(0), static_cast<int>(block_values));
    const Kokkos::View<std::int32_t*, Space, Unmanaged> codes(team.team_scratch(0),
                                                              static_cast<int>(block_values));
    return {values.data(), codes.data()};
  }
  static constexpr int scratch_bytes() {
    return static_cast<int>(block_values * (sizeof(Wide) + 4)) + 128;  // with room to align both
  }
};

template <class Wide, class Exec, class Functor>
void for_each_block(const char* label, const Exec& exec, std::size_t blocks, const Functor& functor) {
  const grid_team::TeamNeeds needs{static_cast<int>(blocks), lanes, TeamBlock<Wide>::scratch_bytes(),
                                   group_values};
  Kokkos::parallel_for(label, grid_team::team_policy(exec, needs, functor, {}), functor);
}

/// Sums and differences, as on a host. Called by all threads, after a barrier; ends with one.
template <class Member, class Wide> KOKKOS_FUNCTION void team_butterflies(const Member& team, Wide* v) {
  for (int stride = group_values / 2; stride > 0; stride /= 2) {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, group_values / 2), [&](const int k) {
      const int i = k / stride * 2 * stride + k % stride;
      const Wide a = v[i], b = v[i + stride];
      v[i] = a + b, v[i + stride] = a - b;
    });
    team.team_barrier();
  }
}

/// Values into blocks of a piece.
template <class Exec, class T, int Bits> struct TeamEncode {
  using execution_space = Exec;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using Wide = typename FloatTraits<T>::Wide;

  const T* x;
  std::byte* piece;
  Coding coding;
  Layout layout;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto block = static_cast<std::size_t>(team.league_rank());
    const TeamBlock<Wide> own = TeamBlock<Wide>::of(team);
    const int m = static_cast<int>(layout.values_in(block));
    const T* from = x + block * block_values;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, static_cast<int>(block_values)),
                         [&](const int i) { own.values[i] = i < m ? load_element(from[i]) : Wide(0); });
    team.team_barrier();
    for (int group = 0; group < block_groups; ++group)
      encode_group(team, block * block_groups + static_cast<std::size_t>(group),
                   own.values + group * group_values, own.codes + group * group_values);
    team.team_barrier();
    write_fields(team, own.codes, static_cast<int>(layout.word_rows(static_cast<std::size_t>(m))), block);
    if (block + 1 == layout.blocks()) pad_scales(team);
  }

 private:
  KOKKOS_FUNCTION void encode_group(const Member& team, std::size_t group, Wide* v,
                                    std::int32_t* codes) const {
    double greatest = greatest_of(team, v, std::numeric_limits<double>::infinity());
    const bool marked = must_be_marked(coding, greatest);
    if (marked) greatest = greatest_of(team, v, 0);
    if (coding.rotates && !marked) {
      const Words4 signs = coding.signs(group);
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{group_values}),
                           [&](const int i) { v[i] = with_sign(signs, i, v[i]); });
      team.team_barrier();
      team_butterflies(team, v);
      greatest = greatest_of(team, v, 0);
    }
    const Scale scale = scale_of<Bits>(greatest, marked);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{group_values}), [&](const int i) {
      codes[i] = code_of_value<Bits>(static_cast<double>(v[i]), scale, coding.draws,
                                     [&] { return coding.draw(group, i); });
    });
    if (group < layout.groups())
      Kokkos::single(Kokkos::PerTeam(team), [&] { std::memcpy(piece + 2 * group, &scale.pattern, 2); });
  }

  /// The greatest |x| of a group; special values count as `special`.
  KOKKOS_FUNCTION double greatest_of(const Member& team, const Wide* v, double special) const {
    double greatest = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, int{group_values}),
        [&](const int i, double& most) {
          const double magnitude =
              code_of(v[i]) == grid::finite_code ? Kokkos::abs(static_cast<double>(v[i])) : special;
          most = magnitude > most ? magnitude : most;
        },
        Kokkos::Max<double>(greatest));
    return greatest;
  }

  KOKKOS_FUNCTION void write_fields(const Member& team, const std::int32_t* codes, int word_rows,
                                    std::size_t block) const {
    std::byte* out = piece + layout.block_at(block);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, word_rows * lanes), [&](const int w) {
      const std::uint32_t word = packed_word(codes + w % lanes, 32 * (w / lanes));
      std::memcpy(out + 4 * w, &word, 4);
    });
  }

  /// The 32 bits of a lane from `first` on.
  KOKKOS_FUNCTION static std::uint32_t packed_word(const std::int32_t* lane, int first) {
    constexpr std::uint32_t mask = (1u << Bits) - 1;
    std::uint32_t word = 0;
    for (int row = first / Bits; row * Bits < first + 32 && row < block_groups * group_rows; ++row) {
      const std::uint32_t field = static_cast<std::uint32_t>(lane[row * lanes]) & mask;
      const int at = row * Bits - first;
      word |= at >= 0 ? field << at : field >> -at;
    }
    return word;
  }

  KOKKOS_FUNCTION void pad_scales(const Member& team) const {
    const int used = static_cast<int>(2 * layout.groups() % 64);
    std::byte* end = piece + 2 * layout.groups();
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, used == 0 ? 0 : 64 - used),
                         [&](const int i) { end[i] = std::byte{0}; });
  }
};

/// Blocks of a piece into values, or added to them.
template <class Exec, class T, int Bits, bool Add> struct TeamDecode {
  using execution_space = Exec;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using Wide = typename FloatTraits<T>::Wide;

  const std::byte* piece;
  T* y;
  Coding coding;
  Layout layout;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const auto block = static_cast<std::size_t>(team.league_rank());
    const TeamBlock<Wide> own = TeamBlock<Wide>::of(team);
    const int m = static_cast<int>(layout.values_in(block));
    const std::byte* fields = piece + layout.block_at(block);
    const int coded = static_cast<int>(layout.word_rows(static_cast<std::size_t>(m))) * 32 / Bits * lanes;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, static_cast<int>(block_values)), [&](const int i) {
      own.values[i] =
          i < coded ? code_value<T, Bits>(field(fields, i), scale(block, i), coding.rotates) : Wide(0);
    });
    team.team_barrier();
    if (coding.rotates) rotate_groups_back(team, block, own.values);
    T* to = y + block * block_values;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m), [&](const int i) { take(own.values[i], to[i]); });
  }

 private:
  KOKKOS_FUNCTION Scale scale(std::size_t block, int i) const {
    const std::size_t group = block * block_groups + static_cast<std::size_t>(i / group_values);
    Scale scale;
    if (group < layout.groups()) std::memcpy(&scale.pattern, piece + 2 * group, 2);
    return scale;
  }

  /// The field of value i, its sign extended.
  KOKKOS_FUNCTION static int field(const std::byte* fields, int i) {
    const int first = i / lanes * Bits, last = first + Bits - 1, lane = i % lanes;
    std::uint32_t low, high;
    std::memcpy(&low, fields + 4 * (first / 32 * lanes + lane), 4);
    std::memcpy(&high, fields + 4 * (last / 32 * lanes + lane), 4);
    const std::uint64_t both = std::uint64_t{high} << 32 | low;
    const int at = first / 32 == last / 32 ? first % 32 + 32 : first % 32;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(both >> at) << (32 - Bits)) >> (32 - Bits);
  }

  KOKKOS_FUNCTION void rotate_groups_back(const Member& team, std::size_t block, Wide* values) const {
    for (int group = 0; group < block_groups; ++group) {
      Wide* v = values + group * group_values;
      if (scale(block, group * group_values).marked()) continue;
      team_butterflies(team, v);
      const Words4 signs = coding.signs(block * block_groups + static_cast<std::size_t>(group));
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{group_values}), [&](const int i) {
        const Wide x = with_sign(signs, i, v[i] * rotation_norm<Wide>);
        v[i] = static_cast<Wide>(clamped(x, FloatTraits<T>::greatest));
      });
      team.team_barrier();
    }
  }

  KOKKOS_FUNCTION static void take(Wide decoded, T& value) {
    T narrow;
    store_element(narrow, decoded);
    if constexpr (Add)
      store_element(value, load_element(value) + load_element(narrow));
    else
      value = narrow;
  }
};

}  // namespace wring::inline v0::detail::block_scaled
