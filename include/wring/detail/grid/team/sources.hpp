// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

#include <wring/detail/grid/team/team.hpp>
#include <wring/operation.hpp>

/// Where the integers of a new piece come from. A source loads one block into a workspace: residues (the
/// quanta themselves without delta; 0 beyond the last value) and codes, and returns the block's base. `start`
/// gives its position at a block, `load` moves it on. Both are called by all threads of a team; `load` ends
/// with a barrier.
namespace wring::inline v0::detail::grid_team {

/// User's values, quantised.
template <class T, class Word> struct FromValues {
  using word_type = Word;
  static constexpr bool has_raw = true;
  static constexpr const char* measure_label = "wring::measure";
  static constexpr const char* pack_label = "wring::pack";
  struct Position {};

  const T* x;
  std::size_t n;
  Quantiser<T> quantiser;
  std::int64_t
      largest;  ///< |q| that is kept: beyond it a block is raw, or the values exceed what was agreed upon
  bool delta;

  FromValues(const T* values, std::size_t count, const GridParameters& p, bool raw_blocks)
      : x(values), n(count), quantiser(p), largest((std::int64_t(1) << 61) - 1), delta(p.delta) {
    if (sizeof(Word) == 4) largest = raw_blocks ? std::int64_t(1) << 30 : (std::int64_t(1) << 31) - 1;
  }

  template <class Member> KOKKOS_FUNCTION Position start(const Member&, std::size_t) const { return {}; }

  /// The quantum of an element, 0 for special values; `code` says what it is.
  KOKKOS_FUNCTION Word quantum(std::size_t i, unsigned& code) const {
    const auto value = widen(x[i]);
    code = grid::code_of(value);
    if (code != grid::finite_code) return 0;
    const std::int64_t q = quantiser.quantum(value);
    if (q <= largest && q >= -largest) return static_cast<Word>(q);
    code = Workspace<Word>::too_large;
    return 0;
  }

  template <class Member>
  KOKKOS_FUNCTION Word load(const Member& team, std::size_t block, Position&,
                            const Workspace<Word>& w) const {
    const std::size_t first = block * block_values;
    const int count = values_in(n, block);
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      unsigned code = grid::finite_code, ignored = 0;
      Word q = i < count ? quantum(first + i, code) : Word(0);
      if (delta && i < count) q -= quantum(first + (i ? i - 1 : 0), ignored);
      w.residues[i] = q;
      w.codes[i] = static_cast<std::uint8_t>(code);
    });
    team.team_barrier();
    unsigned ignored = 0;
    return delta ? quantum(first, ignored) : Word(0);
  }

  /// The elements themselves, padded with zeros.
  template <class Member>
  KOKKOS_FUNCTION void store_raw(const Member& team, std::size_t block, std::byte* payload) const {
    const T* from = x + block * block_values;
    T* to = reinterpret_cast<T*>(payload);
    const int count = values_in(n, block);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count), [&](const int i) { to[i] = from[i]; });
    pad_line(team, payload, static_cast<std::size_t>(count) * sizeof(T));
  }
};

/// The code and the quantum of an element of a combination.
template <class Word> struct Element {
  Word q;
  unsigned code;
};

/// How two encoded elements become one. Sums wrap; the least and the greatest follow IEEE order, NaN wins.
struct Combination {
  Operation operation;

  KOKKOS_FUNCTION bool sums() const { return operation == Operation::sum || operation == Operation::mean; }

  template <class Word> KOKKOS_FUNCTION Element<Word> of(Element<Word> a, Element<Word> b) const {
    if (sums()) {
      const unsigned code = a.code | b.code;
      return {code != grid::finite_code ? Word(0) : Word(a.q + b.q), code};
    }
    if (a.code == grid::nan_code || b.code == grid::nan_code) return {0, grid::nan_code};
    const bool least = operation == Operation::min;
    const unsigned wins = least ? grid::negative_infinity : grid::positive_infinity;
    const unsigned loses = least ? grid::positive_infinity : grid::negative_infinity;
    if (a.code == wins || b.code == wins) return {0, wins};
    if (a.code == loses) return b;
    if (b.code == loses) return a;
    using Signed = typename Lanes<Word>::Signed;
    const bool a_below = static_cast<Signed>(a.q) < static_cast<Signed>(b.q);
    return a_below == least ? a : b;
  }
};

/// Two pieces, combined. Residues add like quanta; where an element has no quantum, or the operation is no
/// sum, the predictor is undone first and applied again.
template <class Word> struct FromPair {
  using word_type = Word;
  static constexpr bool has_raw = false;
  static constexpr const char* measure_label = "wring::add_size";
  static constexpr const char* pack_label = "wring::add_pack";
  struct Position {
    std::size_t a, b;
  };

  Piece<Word, const std::byte> a, b;
  Combination combination;

  template <class Member> KOKKOS_FUNCTION Position start(const Member& team, std::size_t block) const {
    return {payload_offset(team, a, block), payload_offset(team, b, block)};
  }

  template <class Member>
  KOKKOS_FUNCTION Word load(const Member& team, std::size_t block, Position& at,
                            const Workspace<Word>& w) const {
    const Payload<Word> pa = open_payload(a, block, at.a), pb = open_payload(b, block, at.b);
    const int count = values_in(a.n, block);
    if (a.delta && (pa.specials || pb.specials || !combination.sums()))
      return load_values(team, block, pa, pb, w);
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      Element<Word> sum{0, grid::finite_code};
      if (i < count) sum = combination.of<Word>({pa.residue(i), pa.code(i)}, {pb.residue(i), pb.code(i)});
      w.residues[i] = sum.q;
      w.codes[i] = static_cast<std::uint8_t>(sum.code);
    });
    team.team_barrier();
    return a.delta ? Word(a.base(block) + b.base(block)) : Word(0);
  }

  template <class Member>
  KOKKOS_FUNCTION Word load_values(const Member& team, std::size_t block, const Payload<Word>& pa,
                                   const Payload<Word>& pb, const Workspace<Word>& w) const {
    const int count = values_in(a.n, block);
    unpack_values(team, a, block, pa, w.values, w.carries);
    unpack_values(team, b, block, pb, w.residues, w.carries);
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      Element<Word> sum{0, grid::finite_code};
      if (i < count) sum = combination.of<Word>({w.values[i], pa.code(i)}, {w.residues[i], pb.code(i)});
      w.values[i] = sum.q;
      w.codes[i] = static_cast<std::uint8_t>(sum.code);
    });
    team.team_barrier();
    make_residues(team, w, count, true);
    return w.values[0];
  }
};

/// One piece, its sums rounded to multiples of 2^shift.
template <class Word> struct FromSum {
  using word_type = Word;
  static constexpr bool has_raw = false;
  static constexpr const char* measure_label = "wring::fin_size";
  static constexpr const char* pack_label = "wring::fin_pack";
  struct Position {
    std::size_t at;
  };

  Piece<Word, const std::byte> sum;
  int shift;

  template <class Member> KOKKOS_FUNCTION Position start(const Member& team, std::size_t block) const {
    return {payload_offset(team, sum, block)};
  }

  template <class Member>
  KOKKOS_FUNCTION Word load(const Member& team, std::size_t block, Position& position,
                            const Workspace<Word>& w) const {
    const Payload<Word> payload = open_payload(sum, block, position.at);
    const int count = values_in(sum.n, block);
    unpack_values(team, sum, block, payload, w.values, w.carries);
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      w.values[i] =
          static_cast<Word>(grid::round_shift(static_cast<typename Lanes<Word>::Signed>(w.values[i]), shift));
      w.codes[i] = static_cast<std::uint8_t>(i < count ? payload.code(i) : unsigned(grid::finite_code));
    });
    team.team_barrier();
    make_residues(team, w, count, sum.delta);
    return sum.delta ? w.values[0] : Word(0);
  }
};

}  // namespace wring::inline v0::detail::grid_team
