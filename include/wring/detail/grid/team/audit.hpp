// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include <wring/detail/grid/team/layout.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

/// Sizes and validity of pieces, from their descriptors alone.
namespace wring::inline v0::detail::grid_team {

/// Up to three pieces of one operation, counted together: one launch and one synchronisation for all.
struct Tally {
  static constexpr int most_pieces = 3;
  std::uint64_t payload_bytes[most_pieces] = {};
  std::uint64_t invalid[most_pieces] = {};
};

template <class Exec, class Word> struct Audit {
  using execution_space = Exec;
  using value_type = Tally;

  Piece<Word, const std::byte> pieces[Tally::most_pieces];
  int count = 0;

  KOKKOS_FUNCTION void operator()(std::size_t block, Tally& tally) const {
    for (int k = 0; k < count; ++k) {
      const std::uint8_t d = pieces[k].descriptor(block);
      tally.payload_bytes[k] += pieces[k].payload_bytes(block, d);
      tally.invalid[k] += pieces[k].valid(d) ? 0u : 1u;
    }
  }
  KOKKOS_FUNCTION void init(Tally& tally) const { tally = Tally{}; }
  KOKKOS_FUNCTION void join(Tally& into, const Tally& from) const {
    for (int k = 0; k < Tally::most_pieces; ++k) {
      into.payload_bytes[k] += from.payload_bytes[k];
      into.invalid[k] += from.invalid[k];
    }
  }
};

/// Reads a piece that has just been written.
template <class Word> Piece<Word, const std::byte> written(const Piece<Word, std::byte>& piece) {
  return {piece.bytes, piece.size, piece.n, piece.element_bytes, piece.delta, piece.raw_allowed};
}

/// Waits for `exec`. Every piece has the same number of values, and a span that holds at least its
/// descriptors and bases.
template <class Exec, class Word, class... Pieces>
Tally audit(const Exec& exec, const Piece<Word, const std::byte>& first, const Pieces&... others) {
  static_assert(1 + sizeof...(others) <= Tally::most_pieces);
  const Audit<Exec, Word> functor{{first, others...}, 1 + static_cast<int>(sizeof...(others))};
  Tally tally;
  Kokkos::parallel_reduce("wring::audit",
                          Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, first.blocks()),
                          functor, tally);
  return tally;
}

/// The two ways in which bytes from outside can fail to be a piece.
template <class Word, class Byte> void expect_head(const Piece<Word, Byte>& piece) {
  if (piece.size < piece.payload_at())
    throw CodecError(sentence("Grid: ", piece.size, " bytes cannot hold a piece of ", piece.n, " values"));
}
template <class Word> void expect_sound(const Piece<Word, const std::byte>& piece, const Tally& tally,
                                        int k) {
  if (tally.invalid[k] != 0)
    throw CodecError(sentence("Grid: ", tally.invalid[k], " of ", piece.blocks(),
                              " block descriptors are none that Grid writes here"));
  const std::uint64_t expected = piece.payload_at() + tally.payload_bytes[k];
  if (expected != piece.size)
    throw CodecError(sentence("Grid: a piece of ", piece.n, " values has ", piece.size,
                              " bytes, its descriptors say ", expected));
}

/// The size of the piece just written.
template <class Word> std::size_t expect_room(const Piece<Word, const std::byte>& piece, const Tally& tally,
                                              int k) {
  if (tally.invalid[k] != 0)
    throw CodecError(sentence("Grid: ", tally.invalid[k],
                              " blocks are wider than sums of the magnitudes that were agreed upon can be"));
  const std::uint64_t needed = piece.payload_at() + tally.payload_bytes[k];
  if (needed > piece.size)
    throw CodecError(sentence("Grid: a piece of ", needed, " bytes does not fit into the ", piece.size,
                              " bytes given for it"));
  return static_cast<std::size_t>(needed);
}

/// What the descriptors of a piece of another codec say.
struct Announced {
  std::uint64_t bytes = 0, invalid = 0;
};
/// Adds up what `piece.announce(i, sum)` says of its parts.
template <class Exec, class Described> struct AuditParts {
  using execution_space = Exec;
  using value_type = Announced;
  Described piece;

  KOKKOS_FUNCTION void operator()(std::size_t i, Announced& sum) const { piece.announce(i, sum); }
  KOKKOS_FUNCTION void init(Announced& sum) const { sum = Announced{}; }
  KOKKOS_FUNCTION void join(Announced& into, const Announced& from) const {
    into.bytes += from.bytes, into.invalid += from.invalid;
  }
};

/// The bytes that the descriptors of a piece announce, which must all be valid.
template <class Exec, class Described>
std::size_t announced_bytes(const char* codec, const Exec& exec, const Described& piece, std::size_t parts) {
  Announced announced;
  Kokkos::parallel_reduce("wring::audit",
                          Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::size_t>>(exec, 0, parts),
                          AuditParts<Exec, Described>{piece}, announced);
  if (announced.invalid != 0)
    throw CodecError(sentence("wring: ", codec, ": ", announced.invalid,
                              " blocks have descriptors which compress never writes"));
  return static_cast<std::size_t>(announced.bytes);
}

/// Throws CodecError unless a piece of n values that has `size` bytes, `head` of them before what the descriptors announce, has as many as
/// they do.
template <class Exec, class Described>
void expect_announced(const char* codec, const Exec& exec, const Described& piece, std::size_t parts,
                      std::size_t head, std::size_t n, std::size_t size) {
  if (size < head || (n == 0 && size != 0))
    throw CodecError(sentence("wring: ", codec, ": ", size, " bytes cannot hold a piece of ", n, " values"));
  const std::size_t announced = n == 0 ? 0 : head + announced_bytes(codec, exec, piece, parts);
  if (announced != size)
    throw CodecError(
        sentence("wring: ", codec, ": the descriptors announce ", announced, " bytes, the piece has ", size));
}

}  // namespace wring::inline v0::detail::grid_team
