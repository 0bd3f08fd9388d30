// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <wring/detail/grid/team/audit.hpp>
#include <wring/detail/grid/team/team.hpp>
#include <wring/detail/lossless/format.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/error.hpp>

/// Lossless for devices: Kokkos teams, one value per thread and step. The bytes are those of the kernels for hosts. No call allocates; each
/// synchronises `exec`, to learn a size or whether a piece is sound.
namespace wring::inline v0::detail {
namespace lossless {

using grid_team::all_values;
using grid_team::TeamShape;

/// The sign, exponent and mantissa of element i of a block of m; beyond them the last one again.
template <class T> struct Patterns {
  const T* x;
  int m;
  KOKKOS_FUNCTION typename Format<T>::Word operator()(int i) const {
    typename Format<T>::Bits bits;
    memcpy(&bits, x + (i < m ? i : m - 1), sizeof bits);
    return bits;
  }
};

/// The least integer of a block, in the order of `bias`. Called by all threads.
template <class T, class Member>
KOKKOS_FUNCTION typename Format<T>::Word least_key(const Member& team, const Patterns<T>& pattern) {
  using Word = typename Format<T>::Word;
  Word least = 0;
  Kokkos::parallel_reduce(
      all_values(team),
      [&](const int i, Word& low) {
        const Word key = pattern(i) ^ Format<T>::bias;
        low = key < low ? key : low;
      },
      Kokkos::Min<Word>(least));
  return least;
}

template <class To> KOKKOS_INLINE_FUNCTION To load_as(const std::byte* from) {
  To value;
  memcpy(&value, from, sizeof value);
  return value;
}

/// Chunks that a team works on.
struct TeamChunks {
  std::size_t chunks, per_team;
  explicit TeamChunks(std::size_t n)
      : chunks(chunks_of(n)),
        per_team((chunks + grid_team::Chunks::most_teams - 1) / grid_team::Chunks::most_teams) {}
  int teams() const { return static_cast<int>((chunks + per_team - 1) / per_team); }
};

/// The descriptors of a piece.
template <class T> struct Descriptors {
  Layout layout;
  const std::byte* piece;

  KOKKOS_FUNCTION Block block(std::size_t b) const {
    return Block::from(load_as<std::uint32_t>(piece + 4 * b));
  }
  KOKKOS_FUNCTION std::size_t payload(std::size_t b) const {
    return payload_bytes<T>(block(b), layout.values(b));
  }
  KOKKOS_FUNCTION std::size_t side(std::size_t b) const { return side_bytes<T>(block(b)); }

  /// For an audit.
  KOKKOS_FUNCTION void announce(std::size_t chunk, grid_team::Announced& sum) const {
    std::size_t sides = 0;
    for (std::size_t b = chunk * blocks_per_chunk; b < layout.last_of(chunk); ++b) {
      if (!valid<T>(load_as<std::uint32_t>(piece + 4 * b), layout.values(b))) {
        ++sum.invalid;
        continue;
      }
      sum.bytes += payload(b), sides += side(b);
    }
    sum.bytes += padded(sides);
  }

  /// Where a chunk starts. Called by all threads of a team.
  template <class Member>
  KOKKOS_FUNCTION std::size_t chunk_offset(const Member& team, std::size_t chunk) const {
    std::size_t before = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, chunk),
        [&](const std::size_t c, std::size_t& sum) {
          std::size_t sides = 0;
          for (std::size_t b = c * blocks_per_chunk; b < layout.last_of(c); ++b)
            sum += payload(b), sides += side(b);
          sum += padded(sides);
        },
        before);
    return layout.chunks_at + before;
  }

  /// For the blocks of a team's chunks, one after the other, `use(b, block, where its payload is, where what is at its side)`, and `end(where
  /// a chunk ends)`. Called by all threads.
  template <class Member, class Use, class End>
  KOKKOS_FUNCTION void for_each_block(const Member& team, const TeamChunks& work, const Use& use,
                                      const End& end) const {
    const std::size_t first = static_cast<std::size_t>(team.league_rank()) * work.per_team;
    std::size_t at = chunk_offset(team, first);
    for (std::size_t c = first; c < first + work.per_team && c < work.chunks; ++c) {
      std::size_t sides = at;
      for (std::size_t b = c * blocks_per_chunk; b < layout.last_of(c); ++b) sides += payload(b);
      for (std::size_t b = c * blocks_per_chunk; b < layout.last_of(c); ++b) {
        use(b, block(b), at, sides);
        at += payload(b), sides += side(b);
      }
      end(sides);
      at = padded(sides);
    }
  }
};

/// First pass: the descriptors, padding included.
template <class Exec, class T> struct Describe {
  using execution_space = Exec;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using F = Format<T>;
  using Word = typename F::Word;
  using Workspace = grid_team::Workspace<Word>;

  const T* x;
  Layout layout;
  std::byte* piece;
  TeamChunks work;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Workspace w = Workspace::of(team);
    const std::size_t first = static_cast<std::size_t>(team.league_rank()) * work.per_team * blocks_per_chunk;
    const std::size_t end = first + work.per_team * blocks_per_chunk;
    const std::size_t last = end < layout.blocks ? end : layout.blocks;
    for (std::size_t b = first; b < last; ++b) {
      const int m = layout.values(b);
      Block block = described(team, w, Patterns<T>{x + b * block_values, m}, m);
      if (!shrinks<T>(block, m)) block = Block{Block::raw_width, 0, 0, false};
      Kokkos::single(Kokkos::PerTeam(team), [&]() {
        const std::uint32_t word = block.word();
        memcpy(piece + 4 * b, &word, sizeof word);
      });
      team.team_barrier();
    }
    if (last == layout.blocks) grid_team::pad_line(team, piece, 4 * layout.blocks);
  }

  KOKKOS_FUNCTION Block described(const Member& team, const Workspace& w, const Patterns<T>& pattern,
                                  int m) const {
    if constexpr (F::is_float)
      return described_floats(team, w, pattern, m);
    else
      return described_integers(team, pattern);
  }

  KOKKOS_FUNCTION Block described_integers(const Member& team, const Patterns<T>& pattern) const {
    const Word least = least_key(team, pattern);
    Word greatest = 0;
    Kokkos::parallel_reduce(
        all_values(team),
        [&](const int i, Word& high) {
          const Word key = pattern(i) ^ F::bias;
          high = key > high ? key : high;
        },
        Kokkos::Max<Word>(greatest));
    int width = 0;
    for (Word range = greatest - least; range != 0; range >>= 1) ++width;
    return {width > F::most_width ? int{Block::raw_width} : width, 0, 0, false};
  }

  KOKKOS_FUNCTION Block described_floats(const Member& team, const Workspace& w, const Patterns<T>& pattern,
                                         int m) const {
    Word differ = 0;
    Kokkos::parallel_reduce(
        all_values(team), [&](const int i, Word& all) { all |= pattern(i) ^ pattern(0); },
        Kokkos::BOr<Word>(differ));
    if (differ == 0) return {};
    Block block = choose_code<T>(spread(team, w, pattern));
    block.escapes = escapes(team, pattern, block, m);
    if (block.width == F::plain_bits && block.escapes != 0) {
      ++block.width;
      block.escapes = escapes(team, pattern, block, m);
    }
    return block;
  }

  KOKKOS_FUNCTION Spread spread(const Member& team, const Workspace& w, const Patterns<T>& pattern) const {
    Word greatest = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, int{sample_values}),
        [&](const int k, Word& most) {
          const Word e = F::exponent(pattern(sample_index(k)));
          most = e > most ? e : most;
        },
        Kokkos::Max<Word>(greatest));
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{sample_values}), [&](const int k) {
      w.values[k] = greatest - F::exponent(pattern(sample_index(k)));
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, Spread::distances + 1), [&](const int d) {
      Word n = 0;
      for (int k = 0; k < sample_values; ++k)
        n += d < Spread::distances ? w.values[k] < static_cast<Word>(d) : w.values[k] == greatest;
      w.residues[d] = n;
    });
    team.team_barrier();
    Spread s;
    s.greatest = static_cast<unsigned>(greatest);
    for (int d = 0; d < Spread::distances; ++d) s.below[d] = static_cast<std::uint8_t>(w.residues[d]);
    s.zeros = static_cast<int>(w.residues[Spread::distances]);
    team.team_barrier();
    return s;
  }

  KOKKOS_FUNCTION int escapes(const Member& team, const Patterns<T>& pattern, const Block& block,
                              int m) const {
    const Codes<T> codes(block);
    int n = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, m),
        [&](const int i, int& sum) { sum += codes.code(F::exponent(pattern(i))) == codes.escape; }, n);
    return n;
  }
};

/// The escapes of a block of m by lane, one bit for each row, in the scratch memory of a team.
template <class T> struct LaneMarks {
  using Word = typename Format<T>::Word;
  Word* of_lane;

  /// `is_escape(i)` is asked for i < m. Ends with a barrier.
  template <class Member, class Ask>
  KOKKOS_FUNCTION void set(const Member& team, int m, const Ask& is_escape) const {
    using F = Format<T>;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{F::lanes}), [&](const int lane) {
      Word marks = 0;
      for (int row = 0; row < F::rows; ++row) {
        const int i = index_of<T>(lane, row);
        if (i < m && is_escape(i)) marks |= Word{1} << row;
      }
      of_lane[lane] = marks;
    });
    team.team_barrier();
  }
  KOKKOS_FUNCTION static int count(Word marks) {
    int n = 0;
    for (; marks != 0; marks &= marks - 1) ++n;
    return n;
  }
  KOKKOS_FUNCTION bool at(int i) const {
    return (of_lane[i % Format<T>::lanes] >> (i / Format<T>::lanes) & 1) != 0;
  }
  /// How many come before element i; of i = lanes all.
  KOKKOS_FUNCTION int before(int i) const {
    using F = Format<T>;
    const int lane = i % F::lanes, row = i / F::lanes;
    int n = count(of_lane[lane] & ((Word{1} << row) - 1));
    for (int l = 0; l < lane; ++l) n += count(of_lane[l]);
    return n;
  }
  KOKKOS_FUNCTION int all() const {
    int n = 0;
    for (int l = 0; l < Format<T>::lanes; ++l) n += count(of_lane[l]);
    return n;
  }
};

/// Second pass: payloads and what is at their side.
template <class Exec, class T> struct Write {
  using execution_space = Exec;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using F = Format<T>;
  using Word = typename F::Word;
  using Workspace = grid_team::Workspace<Word>;

  const T* x;
  Layout layout;
  std::byte* piece;
  TeamChunks work;

  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const Workspace w = Workspace::of(team);
    Descriptors<T>{layout, piece}.for_each_block(
        team, work,
        [&](std::size_t b, const Block& block, std::size_t at, std::size_t side) {
          write(team, w, block, b, piece + at, piece + side);
        },
        [&](std::size_t end) { grid_team::pad_line(team, piece, end); });
  }

  KOKKOS_FUNCTION void write(const Member& team, const Workspace& w, const Block& block, std::size_t b,
                             std::byte* payload, std::byte* side) const {
    const int m = layout.values(b);
    const Patterns<T> pattern{x + b * block_values, m};
    if (block.raw()) return write_raw(team, pattern, m, payload);
    if (block.width == 0)
      return Kokkos::single(Kokkos::PerTeam(team), [&]() { put(side, pattern(0), sizeof(T)); });
    if constexpr (F::is_float) {
      const Codes<T> codes(block);
      Kokkos::parallel_for(all_values(team), [&](const int i) { w.values[i] = codes.field(pattern(i)); });
      const LaneMarks<T> marks{w.residues};
      marks.set(team, m, [&](int i) { return codes.code(F::exponent(pattern(i))) == codes.escape; });
      if (block.escapes != 0)
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m), [&](const int i) {
          if (marks.at(i))
            put(side + marks.before(i) * F::side_bytes, F::exponent(pattern(i)), F::side_bytes);
        });
    } else {
      const Word least = least_key(team, pattern);
      Kokkos::parallel_for(all_values(team),
                           [&](const int i) { w.values[i] = (pattern(i) ^ F::bias) - least; });
      Kokkos::single(Kokkos::PerTeam(team), [&]() { put(side, least ^ F::bias, sizeof(T)); });
      team.team_barrier();
    }
    write_fields(team, w, block, m, payload);
  }

  KOKKOS_FUNCTION void write_fields(const Member& team, const Workspace& w, const Block& block, int m,
                                    std::byte* payload) const {
    using L = grid_team::Lanes<Word>;
    constexpr int rows = L::rows;  // those beyond the values hold the last one again
    const int words = static_cast<int>(payload_bytes<T>(block, m) / sizeof(Word));
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, words), [&](const int at) {
      const int lane = at % L::count;
      const Word word =
          L::pack(at / L::count, block.width, rows, [&](int r) { return w.values[r * L::count + lane]; });
      memcpy(payload + static_cast<std::size_t>(at) * sizeof(Word), &word, sizeof word);
    });
    team.team_barrier();
  }

  KOKKOS_FUNCTION static void write_raw(const Member& team, const Patterns<T>& pattern, int m,
                                        std::byte* payload) {
    const int slots = static_cast<int>(padded(static_cast<std::size_t>(m) * sizeof(T)) / sizeof(T));
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, slots), [&](const int i) {
      put(payload + static_cast<std::size_t>(i) * sizeof(T), i < m ? pattern(i) : Word{0}, sizeof(T));
    });
  }

  KOKKOS_FUNCTION static void put(std::byte* to, Word value, std::size_t bytes) {
    for (std::size_t k = 0; k < bytes; ++k) to[k] = static_cast<std::byte>(value >> (8 * k));
  }
};

/// Decodes a piece whose descriptors were audited; counts blocks with other numbers of escapes than announced.
template <class Exec, class T> struct Read {
  using execution_space = Exec;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using F = Format<T>;
  using Word = typename F::Word;
  using Workspace = grid_team::Workspace<Word>;

  T* y;
  Layout layout;
  const std::byte* piece;
  TeamChunks work;

  KOKKOS_FUNCTION void operator()(const Member& team, std::uint64_t& damaged) const {
    const Workspace w = Workspace::of(team);
    Descriptors<T>{layout, piece}.for_each_block(
        team, work,
        [&](std::size_t b, const Block& block, std::size_t at, std::size_t side) {
          const bool sound = read(team, w, block, b, piece + at, piece + side);
          Kokkos::single(Kokkos::PerTeam(team), [&]() { damaged += sound ? 0 : 1; });
        },
        [](std::size_t) {});
  }

  KOKKOS_FUNCTION bool read(const Member& team, const Workspace& w, const Block& block, std::size_t b,
                            const std::byte* payload, const std::byte* side) const {
    const int m = layout.values(b);
    T* const to = y + b * block_values;
    if (block.raw() || block.width == 0) {
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m), [&](const int i) {
        memcpy(static_cast<void*>(to + i),
               block.raw() ? payload + static_cast<std::size_t>(i) * sizeof(T) : side, sizeof(T));
      });
      return true;
    }
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      w.values[i] = i < m ? field(payload, i, block.width) : Word{0};
    });
    team.team_barrier();
    const bool sound = join(team, w, block, m, to, side);
    team.team_barrier();
    return sound;
  }

  KOKKOS_FUNCTION bool join(const Member& team, const Workspace& w, const Block& block, int m, T* to,
                            const std::byte* side) const {
    if constexpr (F::is_float) {
      const Codes<T> codes(block);
      const LaneMarks<T> marks{w.residues};
      marks.set(team, m, [&](int i) { return codes.code_of_field(w.values[i]) == codes.escape; });
      if (marks.all() != block.escapes) return false;
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m), [&](const int i) {
        Word exponent = codes.exponent(codes.code_of_field(w.values[i]));
        if (marks.at(i)) exponent = side_value(side + marks.before(i) * F::side_bytes, F::side_bytes);
        put(to + i, Codes<T>::pattern(w.values[i], exponent & F::exponent_mask));
      });
    } else {
      const Word least = side_value(side, sizeof(T)) ^ F::bias;
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m),
                           [&](const int i) { put(to + i, (w.values[i] + least) ^ F::bias); });
    }
    return true;
  }

  KOKKOS_FUNCTION static Word field(const std::byte* payload, int i, int width) {
    constexpr int bits = 8 * static_cast<int>(sizeof(Word));
    const int lane = i % F::lanes, first = i / F::lanes * width, k = first / bits, s = first % bits;
    const auto word = [&](int at) {
      return load_as<Word>(payload + static_cast<std::size_t>(at * F::lanes + lane) * sizeof(Word));
    };
    Word v = word(k) >> s;
    if (s + width > bits) v |= word(k + 1) << (bits - s);
    return v & ((Word{1} << width) - 1);
  }
  KOKKOS_FUNCTION static Word side_value(const std::byte* from, int bytes) {
    Word value = 0;
    for (int k = 0; k < bytes; ++k) value |= static_cast<Word>(from[k]) << (8 * k);
    return value;
  }
  KOKKOS_FUNCTION static void put(T* to, Word pattern) {
    const auto bits = static_cast<typename F::Bits>(pattern);
    memcpy(static_cast<void*>(to), &bits, sizeof bits);
  }
};

}  // namespace lossless

/// Values -> piece; returns its size. `out` has room for the largest piece. `shape` is for tests.
template <class T, class Exec>
std::size_t team_lossless_encode(const Exec& exec, std::span<const T> x, std::span<std::byte> out,
                                 lossless::TeamShape shape = {}) {
  using namespace lossless;
  using grid_team::team_policy;
  using Word = typename Format<T>::Word;
  if (x.empty()) return 0;
  const Layout layout(x.size());
  const TeamChunks work(x.size());
  const Describe<Exec, T> describe{x.data(), layout, out.data(), work};
  Kokkos::parallel_for("wring::describe", team_policy<Word>(exec, work.teams(), describe, shape), describe);
  const Write<Exec, T> write{x.data(), layout, out.data(), work};
  Kokkos::parallel_for("wring::encode", team_policy<Word>(exec, work.teams(), write, shape), write);
  return layout.chunks_at +
         grid_team::announced_bytes("lossless", exec, Descriptors<T>{layout, out.data()}, work.chunks);
}

/// Piece -> values. CodecError leaves `y` untouched, unless it is of a number of escapes.
template <class T, class Exec>
void team_lossless_decode(const Exec& exec, std::span<const std::byte> in, std::span<T> y,
                          lossless::TeamShape shape = {}) {
  using namespace lossless;
  using grid_team::team_policy;
  using Word = typename Format<T>::Word;
  const Layout layout(y.size());
  grid_team::expect_announced("lossless", exec, Descriptors<T>{layout, in.data()}, chunks_of(layout.n),
                              layout.chunks_at, y.size(), in.size());
  if (y.empty()) return;
  const Read<Exec, T> read{y.data(), layout, in.data(), TeamChunks(y.size())};
  std::uint64_t damaged = 0;
  Kokkos::parallel_reduce(
      "wring::decode", team_policy<Word>(exec, read.work.teams(), read, shape, Kokkos::ParallelReduceTag{}),
      read, damaged);
  if (damaged != 0)
    throw CodecError(
        sentence("wring: lossless: ", damaged, " blocks have other numbers of escapes than announced"));
}

}  // namespace wring::inline v0::detail
