// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

#include <wring/detail/grid/team/team.hpp>

namespace wring::inline v0::detail::grid_team {

/// A piece back into values.
template <class Exec, class T, class Word> struct Unpack {
  using execution_space = Exec;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;

  Piece<Word, const std::byte> in;
  T* y;
  Reconstruction<T> reconstruction;
  Chunks chunks;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Workspace<Word> w = Workspace<Word>::of(team);
    const std::size_t first = chunks.first(team.league_rank()), last = chunks.last(team.league_rank());
    std::size_t offset = payload_offset(team, in, first);
    for (std::size_t block = first; block < last; ++block) {
      const Payload<Word> payload = open_payload(in, block, offset);
      T* values = y + block * block_values;
      const int count = values_in(in.n, block);
      if (payload.raw)
        read_raw(team, payload, values, count);
      else if (in.delta)
        read_residues(team, block, payload, w, values, count);
      else
        read_quanta(team, payload, values, count);
    }
  }

  KOKKOS_FUNCTION T value(const Payload<Word>& payload, int i, Word q) const {
    return reconstruction.element(static_cast<typename Lanes<Word>::Signed>(q), payload.code(i));
  }

  KOKKOS_FUNCTION void read_raw(const Member& team, const Payload<Word>& payload, T* values,
                                int count) const {
    const T* stored = reinterpret_cast<const T*>(payload.bytes);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count),
                         [&](const int i) { values[i] = grid::canonical(stored[i]); });
  }

  KOKKOS_FUNCTION void read_quanta(const Member& team, const Payload<Word>& payload, T* values,
                                   int count) const {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count),
                         [&](const int i) { values[i] = value(payload, i, payload.residue(i)); });
  }

  KOKKOS_FUNCTION void read_residues(const Member& team, std::size_t block, const Payload<Word>& payload,
                                     const Workspace<Word>& w, T* values, int count) const {
    unpack_values(team, in, block, payload, w.values, w.carries);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count),
                         [&](const int i) { values[i] = value(payload, i, w.values[i]); });
    team.team_barrier();
  }
};

}  // namespace wring::inline v0::detail::grid_team
