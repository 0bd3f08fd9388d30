// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

#include <wring/detail/grid/layout.hpp>
#include <wring/detail/grid/team/sources.hpp>

/// A piece is written in two passes over its source: what each block needs, then the blocks themselves.
namespace wring::inline v0::detail::grid_team {

/// First pass: descriptors and bases, padding included.
template <class Exec, class Source> struct Measure {
  using execution_space = Exec;
  using Word = typename Source::word_type;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;

  Source source;
  Piece<Word, std::byte> out;
  Chunks chunks;
  grid::Widths widths;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Workspace<Word> w = Workspace<Word>::of(team);
    const std::size_t first = chunks.first(team.league_rank()), last = chunks.last(team.league_rank());
    typename Source::Position position = source.start(team, first);
    for (std::size_t block = first; block < last; ++block) {
      const Word base = source.load(team, block, position, w);
      const std::uint8_t descriptor = describe(block, extent(team, w));
      Kokkos::single(Kokkos::PerTeam(team), [&]() {
        out.descriptor(block) = descriptor;
        if (out.delta) out.base(block) = Descriptor::width(descriptor) == Descriptor::raw ? Word(0) : base;
      });
      team.team_barrier();
    }
    if (last == chunks.blocks) {
      pad_line(team, out.bytes, chunks.blocks);
      if (out.delta) pad_line(team, out.bytes, out.bases_at() + chunks.blocks * sizeof(Word));
    }
  }

  KOKKOS_FUNCTION std::uint64_t extent(const Member& team, const Workspace<Word>& w) const {
    std::uint64_t all = 0;
    Kokkos::parallel_reduce(
        all_values(team),
        [&](const int i, std::uint64_t& sum) {
          const unsigned code = w.codes[i];
          sum |= Extent::of(static_cast<typename Lanes<Word>::Signed>(w.residues[i]));
          if (code & grid::nan_code) sum |= Extent::special;
          if (code & Workspace<Word>::too_large) sum |= Extent::too_large;
        },
        Kokkos::BOr<std::uint64_t>(all));
    return all;
  }

  KOKKOS_FUNCTION std::uint8_t describe(std::size_t block, std::uint64_t extent) const {
    const int needed = Extent::width(extent, Lanes<Word>::full_width);
    const int width = widths.always ? widths.widest : needed;
    const auto packed =
        static_cast<std::uint8_t>(width | (extent & Extent::special ? Descriptor::special_bit : 0));
    const bool too_large = Source::has_raw && (extent & Extent::too_large) != 0;
    if (!out.raw_allowed) return too_large || needed > widths.widest ? Descriptor::impossible : packed;
    const bool raw = too_large || out.payload_bytes(block, packed) >= out.raw_bytes(block);
    return raw ? static_cast<std::uint8_t>(Descriptor::raw) : packed;
  }
};

/// Second pass: the payloads, where the descriptors put them. Nothing is written beyond the end of the span.
template <class Exec, class Source> struct Pack {
  using execution_space = Exec;
  using Word = typename Source::word_type;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;

  Source source;
  Piece<Word, std::byte> out;
  Chunks chunks;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Workspace<Word> w = Workspace<Word>::of(team);
    const std::size_t first = chunks.first(team.league_rank()), last = chunks.last(team.league_rank());
    typename Source::Position position = source.start(team, first);
    std::size_t offset = payload_offset(team, out, first);
    for (std::size_t block = first; block < last; ++block) {
      const std::uint8_t descriptor = out.descriptor(block);
      const std::size_t bytes = out.payload_bytes(block, descriptor);
      source.load(team, block, position, w);
      if (offset <= out.size && bytes <= out.size - offset)
        store(team, block, descriptor, out.bytes + offset, w);
      offset += bytes;
      team.team_barrier();
    }
  }

  KOKKOS_FUNCTION void store(const Member& team, std::size_t block, std::uint8_t descriptor,
                             std::byte* payload, const Workspace<Word>& w) const {
    if (Descriptor::width(descriptor) == Descriptor::raw) {
      if constexpr (Source::has_raw) source.store_raw(team, block, payload);
      return;
    }
    if (Descriptor::has_specials(descriptor)) {
      store_planes(team, payload, w);
      payload += 2 * plane_bytes;
    }
    if (Descriptor::width(descriptor) > 0)
      store_words(team, block, Descriptor::width(descriptor), payload, w);
  }

  KOKKOS_FUNCTION void store_planes(const Member& team, std::byte* payload, const Workspace<Word>& w) const {
    auto* planes = reinterpret_cast<std::uint32_t*>(payload);
    constexpr int words = block_values / 32;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, 2 * words), [&](const int k) {
      const int plane = k / words;
      const std::uint8_t* codes = w.codes + 32 * (k % words);
      std::uint32_t word = 0;
      for (int i = 0; i < 32; ++i) word |= ((static_cast<std::uint32_t>(codes[i]) >> plane) & 1u) << i;
      planes[k] = word;
    });
  }

  KOKKOS_FUNCTION void store_words(const Member& team, std::size_t block, int width, std::byte* payload,
                                   const Workspace<Word>& w) const {
    using L = Lanes<Word>;
    auto* words = reinterpret_cast<Word*>(payload);
    const int values = values_in(out.n, block), rows = L::rows_for(values);
    Kokkos::parallel_for(
        Kokkos::TeamVectorRange(team, L::count * L::lines_for(width, values)), [&](const int k) {
          const Word* lane = w.residues + k % L::count;
          words[k] = L::pack(k / L::count, width, rows, [&](const int r) { return lane[r * L::count]; });
        });
  }
};

}  // namespace wring::inline v0::detail::grid_team
