// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <wring/detail/grid/team/layout.hpp>

/// What the kernels ask of a team: its shape, its scratch memory, and the steps that its threads take
/// together.
namespace wring::inline v0::detail::grid_team {

/// Threads of a team and vector lanes of a thread; 0 chooses for the execution space. No bit depends on it.
struct TeamShape {
  int team_size = 0, vector_length = 0;
};

/// One block, unpacked. Lives in the scratch memory of a team.
template <class Word> struct Workspace {
  Word* values;
  Word* residues;
  Word* carries;        ///< one for each row
  std::uint8_t* codes;  ///< grid::Code, or too_large

  static constexpr unsigned too_large = 4;
  static constexpr int words = 2 * block_values + Lanes<Word>::rows;

  template <class Member> KOKKOS_FUNCTION static Workspace of(const Member& team) {
    using Space = typename Member::scratch_memory_space;
    const Kokkos::View<Word*, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> all(team.team_scratch(0),
                                                                                  int{words});
    const Kokkos::View<std::uint8_t*, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> codes(
        team.team_scratch(0), int{block_values});
    return {all.data(), all.data() + block_values, all.data() + 2 * block_values, codes.data()};
  }
  static int scratch_bytes() {
    return words * sizeof(Word) + block_values + 128;
  }  // with room to align both views
};

/// The places of a block, spread over the threads and lanes of a team.
template <class Member> KOKKOS_INLINE_FUNCTION auto all_values(const Member& team) {
  return Kokkos::TeamVectorRange(team, int{block_values});
}

/// How many teams there are, and what each asks for: so many vector lanes and threads, where it may choose, and scratch memory.
struct TeamNeeds {
  int teams, lanes, scratch_bytes, threads = 256;
};

/// A policy for a functor, to be run by `tag`. Host spaces take one thread a team: nothing is gained there by splitting a block.
template <class Exec, class Functor, class Tag = Kokkos::ParallelForTag>
Kokkos::TeamPolicy<Exec> team_policy(const Exec& exec, const TeamNeeds& needs, const Functor& functor,
                                     TeamShape shape, Tag tag = {}) {
  using Policy = Kokkos::TeamPolicy<Exec>;
  constexpr bool host = std::is_same_v<typename Exec::memory_space, Kokkos::HostSpace>;
  const int lanes = shape.vector_length ? shape.vector_length : host ? 1 : needs.lanes;
  const int vector_length = std::min(lanes, static_cast<int>(Policy::vector_length_max()));
  const int wanted = shape.team_size ? shape.team_size : host ? 1 : needs.threads / vector_length;
  const auto scratch = Kokkos::PerTeam(needs.scratch_bytes);
  Policy smallest(exec, needs.teams, 1, vector_length);
  smallest.set_scratch_size(0, scratch);
  Policy policy(exec, needs.teams, std::min(wanted, smallest.team_size_max(functor, tag)), vector_length);
  policy.set_scratch_size(0, scratch);
  return policy;
}
/// Of teams with a workspace each.
template <class Word, class Exec, class Functor, class Tag = Kokkos::ParallelForTag>
Kokkos::TeamPolicy<Exec> team_policy(const Exec& exec, int teams, const Functor& functor, TeamShape shape,
                                     Tag tag = {}) {
  return team_policy(exec, TeamNeeds{teams, Lanes<Word>::count, Workspace<Word>::scratch_bytes()}, functor,
                     shape, tag);
}

/// Where the payload of a block starts. Called by all threads of a team.
template <class Member, class Word, class Byte>
KOKKOS_FUNCTION std::size_t payload_offset(const Member& team, const Piece<Word, Byte>& piece,
                                           std::size_t block) {
  std::size_t before = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamVectorRange(team, block),
      [&](const std::size_t b, std::size_t& sum) { sum += piece.payload_bytes(b, piece.descriptor(b)); },
      before);
  return piece.payload_at() + before;
}

/// The payload of a block at `offset`, which moves on to the next one. What does not lie inside the piece, or
/// cannot be a payload, reads as zeros: the audit of the piece reports it.
template <class Word>
KOKKOS_FUNCTION Payload<Word> open_payload(const Piece<Word, const std::byte>& piece, std::size_t block,
                                           std::size_t& offset) {
  const std::uint8_t d = piece.descriptor(block);
  const std::size_t at = offset, bytes = piece.payload_bytes(block, d);
  offset += bytes;
  Payload<Word> payload;
  if (!piece.valid(d) || at > piece.size || bytes > piece.size - at) return payload;
  payload.bytes = piece.bytes + at;
  payload.raw = Descriptor::width(d) == Descriptor::raw;
  payload.width = payload.raw ? 0 : Descriptor::width(d);
  payload.specials = Descriptor::has_specials(d);
  return payload;
}

/// Residues become values, in place: an inclusive scan from `base`. Called by all threads, after a barrier;
/// ends with one.
template <class Word, class Member>
KOKKOS_FUNCTION void undo_delta(const Member& team, Word* values, Word* carries, Word base) {
  using L = Lanes<Word>;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, int{L::rows}), [&](const int r) {
    Word* row = values + r * L::count;
    Kokkos::parallel_scan(Kokkos::ThreadVectorRange(team, int{L::count}),
                          [&](const int l, Word& sum, const bool last) {
                            sum += row[l];
                            if (last) row[l] = sum;
                          });
  });
  team.team_barrier();
  Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, int{L::rows}),
                        [&](const int r, Word& sum, const bool last) {
                          if (last) carries[r] = base + sum;
                          sum += values[r * L::count + L::count - 1];
                        });
  team.team_barrier();
  Kokkos::parallel_for(all_values(team), [&](const int i) { values[i] += carries[i / L::count]; });
  team.team_barrier();
}

/// The inverse, for the first `count` values; 0 beyond them. The base is values[0]. The same of barriers.
template <class Word, class Member>
KOKKOS_FUNCTION void make_residues(const Member& team, const Workspace<Word>& w, int count, bool delta) {
  Kokkos::parallel_for(all_values(team), [&](const int i) {
    const Word before = delta ? w.values[i ? i - 1 : 0] : Word(0);
    w.residues[i] = i < count ? Word(w.values[i] - before) : Word(0);
  });
  team.team_barrier();
}

/// Unpacks a block into `to`, as residues or, with the predictor undone, as values. The same of barriers.
template <class Word, class Member>
KOKKOS_FUNCTION void unpack_block(const Member& team, const Payload<Word>& payload, int count, Word* to) {
  Kokkos::parallel_for(all_values(team),
                       [&](const int i) { to[i] = i < count ? payload.residue(i) : Word(0); });
  team.team_barrier();
}
template <class Word, class Member>
KOKKOS_FUNCTION void unpack_values(const Member& team, const Piece<Word, const std::byte>& piece,
                                   std::size_t block, const Payload<Word>& payload, Word* to, Word* carries) {
  unpack_block(team, payload, values_in(piece.n, block), to);
  if (piece.delta) undo_delta(team, to, carries, piece.base(block));
}

/// Zeros from `first` to the next multiple of 64 bytes.
template <class Member> KOKKOS_FUNCTION void pad_line(const Member& team, std::byte* bytes,
                                                      std::size_t first) {
  const int rest = static_cast<int>(round_up(first, line) - first);
  Kokkos::parallel_for(Kokkos::TeamVectorRange(team, rest),
                       [&](const int i) { bytes[first + i] = std::byte{0}; });
}

}  // namespace wring::inline v0::detail::grid_team
