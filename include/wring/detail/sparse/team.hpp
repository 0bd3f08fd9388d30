// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <wring/detail/grid/team/audit.hpp>
#include <wring/detail/grid/team/team.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/detail/sparse/format.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/error.hpp>
#include <wring/operation.hpp>

/// Sparse pieces on devices: Kokkos teams, one value per thread and step. The bytes are those of the kernels for hosts. No call allocates;
/// each synchronises `exec`, to learn a size or whether a piece is sound.
namespace wring::inline v0::detail {
namespace sparse {

using grid_team::all_values;
using grid_team::TeamShape;

/// Blocks that a team works on, one after the other.
struct TeamBlocks {
  static constexpr std::size_t most_teams = 2048;
  std::size_t blocks, per_team;

  explicit TeamBlocks(std::size_t n)
      : blocks(blocks_of(n)), per_team(std::max<std::size_t>(1, (blocks + most_teams - 1) / most_teams)) {}
  int teams() const { return static_cast<int>((blocks + per_team - 1) / per_team); }
  KOKKOS_FUNCTION std::size_t begin(int team) const { return static_cast<std::size_t>(team) * per_team; }
  KOKKOS_FUNCTION std::size_t end(int team) const {
    const std::size_t e = begin(team) + per_team;
    return e < blocks ? e : blocks;
  }
};

/// One block in the scratch memory of a team: patterns, 0 for what is not sent, and where there are others.
template <class T> struct TeamBlock {
  using Key = typename Keys<T>::Key;
  static constexpr int words = block_values / 32;
  Key *values, *others;
  std::uint32_t* bitmap;

  template <class Member> KOKKOS_FUNCTION static TeamBlock of(const Member& team) {
    using Space = typename Member::scratch_memory_space;
    using Unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
    const Kokkos::View<Key*, Space, Unmanaged> keys(team.team_scratch(0), 2 * block_values);
    const Kokkos::View<std::uint32_t*, Space, Unmanaged> bits(team.team_scratch(0), int{words});
    return {keys.data(), keys.data() + block_values, bits.data()};
  }
  static constexpr int scratch_bytes() {
    return static_cast<int>(2 * block_values * sizeof(Key) + 4 * words) + 128;  // with room to align both
  }

  /// Marks the values that are not 0. Called by all threads, after a barrier; ends with one.
  template <class Member> KOKKOS_FUNCTION void mark(const Member& team) const {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{words}), [&](const int w) {
      std::uint32_t word = 0;
      for (int i = 0; i < 32; ++i)
        if (values[32 * w + i] != 0) word |= std::uint32_t{1} << i;
      bitmap[w] = word;
    });
    team.team_barrier();
  }
  /// How many marks there are before value i.
  KOKKOS_FUNCTION int before(int i) const {
    int n = 0;
    for (int w = 0; w < i / 32; ++w) n += Kokkos::popcount(bitmap[w]);
    return i % 32 ? n + Kokkos::popcount(bitmap[i / 32] << (32 - i % 32)) : n;
  }
};

/// The bytes of an element wherever they lie.
template <class Key> KOKKOS_INLINE_FUNCTION Key load_key(const std::byte* from) {
  Key key;
  memcpy(&key, from, sizeof key);
  return key;
}
template <class Key> KOKKOS_INLINE_FUNCTION void store_key(std::byte* to, Key key) {
  memcpy(to, &key, sizeof key);
}

/// A piece whose descriptors are valid, as a team reads it.
template <class T> struct TeamPiece {
  using Key = typename Keys<T>::Key;
  const std::byte* bytes;
  Layout layout;

  KOKKOS_FUNCTION Block block(std::size_t b) const { return Block::read(bytes, b); }
  KOKKOS_FUNCTION std::size_t size(std::size_t b) const {
    return payload_bytes<T>(block(b), layout.values(b));
  }
  /// For an audit.
  KOKKOS_FUNCTION void announce(std::size_t b, grid_team::Announced& sum) const {
    if (valid<T>(block(b), layout.values(b)))
      sum.bytes += size(b);
    else
      ++sum.invalid;
  }
  /// Where a block begins. Called by all threads.
  template <class Member> KOKKOS_FUNCTION std::size_t offset(const Member& team, std::size_t b) const {
    std::size_t before = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, b), [&](const std::size_t k, std::size_t& sum) { sum += size(k); },
        before);
    return layout.payload_at + before;
  }

  /// The patterns of block b, whose payload begins at `at`. Returns how much of it is not as announced: it is damaged. Called by all threads;
  /// ends with a barrier.
  template <class Member>
  KOKKOS_FUNCTION int read(const Member& team, std::size_t b, std::size_t at, Key* values,
                           std::uint32_t* bitmap) const {
    const Block own = block(b);
    const int m = layout.values(b);
    const std::byte* payload = bytes + at;
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      values[i] =
          own.dense() && i < m ? load_key<Key>(payload + static_cast<std::size_t>(i) * sizeof(Key)) : Key{0};
    });
    team.team_barrier();
    const int wrong = own.dense()        ? 0
                      : own.has_places() ? read_places(team, own, m, payload, values)
                                         : read_bitmap(team, own, m, payload, values, bitmap);
    team.team_barrier();
    return wrong;
  }

 private:
  KOKKOS_FUNCTION static int place(const Block& block, const std::byte* payload, int k) {
    return static_cast<int>(payload[k]) + (k < block.in_first_half ? 0 : 256);
  }

  template <class Member> KOKKOS_FUNCTION static int
  read_places(const Member& team, const Block& block, int m, const std::byte* payload, Key* values) {
    int wrong = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamVectorRange(team, block.count),
        [&](const int k, int& sum) {
          const int i = place(block, payload, k);
          sum += i >= m || (k > 0 && i <= place(block, payload, k - 1));
        },
        wrong);
    if (wrong == 0)
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, block.count), [&](const int k) {
        values[place(block, payload, k)] =
            load_key<Key>(payload + block.count + static_cast<std::size_t>(k) * sizeof(Key));
      });
    return wrong;
  }

  template <class Member>
  KOKKOS_FUNCTION static int read_bitmap(const Member& team, const Block& block, int m,
                                         const std::byte* payload, Key* values, std::uint32_t* bitmap) {
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{TeamBlock<T>::words}),
                         [&](const int w) { bitmap[w] = load_key<std::uint32_t>(payload + 4 * w); });
    team.team_barrier();
    const TeamBlock<T> marks{values, nullptr, bitmap};
    const auto marked = [&](int i) { return (bitmap[i / 32] >> (i % 32) & 1) != 0; };
    int beyond = 0;
    Kokkos::parallel_reduce(
        all_values(team), [&](const int i, int& sum) { sum += i >= m && marked(i); }, beyond);
    if (beyond != 0 || marks.before(block_values) != block.count) return 1;
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      if (marked(i))
        values[i] =
            load_key<Key>(payload + bitmap_bytes + static_cast<std::size_t>(marks.before(i)) * sizeof(Key));
    });
    return 0;
  }
};

/// What is encoded: values that a selection takes.
template <class T> struct SelectedValues {
  using Key = typename Keys<T>::Key;
  const T* x;
  Layout layout;
  Selection<T> selection;
  std::size_t first;

  struct Place {};
  template <class Member> KOKKOS_FUNCTION Place start(const Member&, std::size_t) const { return {}; }
  template <class Member>
  KOKKOS_FUNCTION int load(const Member& team, const TeamBlock<T>& own, std::size_t b, Place&) const {
    const int m = layout.values(b);
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      const std::size_t at = b * block_values + static_cast<std::size_t>(i);
      const Key pattern = i < m ? Keys<T>::pattern(x + at) : Key{0};
      own.values[i] = selection.takes(pattern, first + at) ? Keys<T>::canonical(pattern) : Key{0};
    });
    team.team_barrier();
    return 0;
  }
};

/// What is encoded: the combination of two pieces.
template <class T> struct CombinedPieces {
  using Key = typename Keys<T>::Key;
  TeamPiece<T> a, b;
  Operation operation;

  struct Place {
    std::size_t a, b;
  };
  template <class Member> KOKKOS_FUNCTION Place start(const Member& team, std::size_t block) const {
    return {a.offset(team, block), b.offset(team, block)};
  }
  template <class Member>
  KOKKOS_FUNCTION int load(const Member& team, const TeamBlock<T>& own, std::size_t block, Place& at) const {
    int wrong = a.read(team, block, at.a, own.values, own.bitmap);
    wrong += b.read(team, block, at.b, own.others, own.bitmap);
    at.a += a.size(block), at.b += b.size(block);
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      const Key pattern = combined(own.values[i], own.others[i]);
      own.values[i] = Keys<T>::magnitude(pattern) == 0 ? Key{0} : Keys<T>::canonical(pattern);
    });
    team.team_barrier();
    return wrong;
  }

 private:
  KOKKOS_FUNCTION Key combined(Key p, Key q) const {
    T x, y;
    memcpy(static_cast<void*>(&x), &p, sizeof x);
    memcpy(static_cast<void*>(&y), &q, sizeof y);
    const T z = operation == Operation::min   ? select_value<false>(x, y)
                : operation == Operation::max ? select_value<true>(x, y)
                : q == 0                      ? x
                : p == 0                      ? y
                                              : add_values(x, y);
    return Keys<T>::pattern(&z);
  }
};

/// First pass: the descriptors. Counts blocks that are damaged.
template <class Exec, class T, class Source> struct Describe {
  using execution_space = Exec;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  Source source;
  Layout layout;
  std::byte* piece;
  TeamBlocks work;

  KOKKOS_FUNCTION void operator()(const Member& team, std::uint64_t& damaged) const {
    const TeamBlock<T> own = TeamBlock<T>::of(team);
    auto at = source.start(team, work.begin(team.league_rank()));
    for (std::size_t b = work.begin(team.league_rank()); b < work.end(team.league_rank()); ++b) {
      const int wrong = source.load(team, own, b, at);
      own.mark(team);
      const Block block =
          block_for<T>(own.before(block_values), own.before(block_values / 2), layout.values(b));
      Kokkos::single(Kokkos::PerTeam(team), [&]() {
        block.write(piece, b);
        damaged += wrong != 0;
      });
      team.team_barrier();
    }
  }
};

/// Second pass: what comes after the descriptors.
template <class Exec, class T, class Source> struct Write {
  using execution_space = Exec;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  using Key = typename Keys<T>::Key;
  Source source;
  Layout layout;
  std::byte* piece;
  TeamBlocks work;

  KOKKOS_FUNCTION void operator()(const Member& team, std::uint64_t&) const {
    const TeamBlock<T> own = TeamBlock<T>::of(team);
    const std::size_t first = work.begin(team.league_rank());
    const TeamPiece<T> written{piece, layout};
    auto from = source.start(team, first);
    std::size_t at = written.offset(team, first);
    for (std::size_t b = first; b < work.end(team.league_rank()); ++b) {
      source.load(team, own, b, from);
      own.mark(team);
      write(team, own, written.block(b), layout.values(b), piece + at);
      at += written.size(b);
      team.team_barrier();
    }
  }

  KOKKOS_FUNCTION static void write(const Member& team, const TeamBlock<T>& own, const Block& block, int m,
                                    std::byte* out) {
    std::byte* const values = out + block.places_bytes();
    const auto put = [&](int place, int i) {
      store_key(values + static_cast<std::size_t>(place) * sizeof(Key), own.values[i]);
    };
    if (block.dense())
      return Kokkos::parallel_for(Kokkos::TeamVectorRange(team, m), [&](const int i) { put(i, i); });
    Kokkos::parallel_for(all_values(team), [&](const int i) {
      if (own.values[i] == 0) return;
      const int place = own.before(i);
      if (block.has_places()) out[place] = static_cast<std::byte>(i & 255);
      put(place, i);
    });
    if (!block.has_places())
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, int{TeamBlock<T>::words}),
                           [&](const int w) { store_key(out + 4 * w, own.bitmap[w]); });
  }
};

/// Decodes a piece, each value divided by `divisor`; counts blocks that are damaged.
template <class Exec, class T> struct Read {
  using execution_space = Exec;
  using Member = typename Kokkos::TeamPolicy<Exec>::member_type;
  TeamPiece<T> piece;
  T* y;
  int divisor;
  TeamBlocks work;

  KOKKOS_FUNCTION void operator()(const Member& team, std::uint64_t& damaged) const {
    const TeamBlock<T> own = TeamBlock<T>::of(team);
    const std::size_t first = work.begin(team.league_rank());
    std::size_t at = piece.offset(team, first);
    for (std::size_t b = first; b < work.end(team.league_rank()); ++b) {
      const int wrong = piece.read(team, b, at, own.values, own.bitmap);
      at += piece.size(b);
      T* const to = y + b * block_values;
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, piece.layout.values(b)),
                           [&](const int i) { put(to + i, own.values[i]); });
      Kokkos::single(Kokkos::PerTeam(team), [&]() { damaged += wrong != 0; });
      team.team_barrier();
    }
  }

  KOKKOS_FUNCTION void put(T* to, typename Keys<T>::Key pattern) const {
    T value;
    memcpy(static_cast<void*>(&value), &pattern, sizeof value);
    *to = divisor == 1 || pattern == 0 ? value : narrow<T>(static_cast<double>(widen(value)) / divisor);
  }
};

/// Runs a functor with as many teams as there is work for; what it counts.
template <class T, class Exec, class Functor>
std::uint64_t run_teams(const char* label, const Exec& exec, const Functor& functor, TeamShape shape) {
  std::uint64_t count = 0;
  Kokkos::parallel_reduce(
      label,
      grid_team::team_policy(exec,
                             grid_team::TeamNeeds{functor.work.teams(), 16, TeamBlock<T>::scratch_bytes()},
                             functor, shape, Kokkos::ParallelReduceTag{}),
      functor, count);
  return count;
}

/// Throws CodecError unless the piece has the size that its descriptors announce.
template <class T, class Exec>
TeamPiece<T> team_open_piece(const Exec& exec, std::span<const std::byte> piece, std::size_t n) {
  const TeamPiece<T> opened{piece.data(), Layout(n)};
  grid_team::expect_announced("sparse", exec, opened, opened.layout.blocks, opened.layout.payload_at, n,
                              piece.size());
  return opened;
}

inline void expect_no_damage(std::uint64_t damaged) {
  if (damaged != 0)
    throw CodecError(sentence("wring: sparse: ", damaged, " blocks have other places than announced"));
}

/// What `source` has into a piece; returns its size.
template <class T, class Exec, class Source>
std::size_t write_piece(const char* label, const Exec& exec, const Source& source, std::size_t n,
                        std::byte* out, TeamShape shape) {
  if (n == 0) return 0;
  const Layout layout(n);
  const TeamBlocks work(n);
  expect_no_damage(
      run_teams<T>("wring::describe", exec, Describe<Exec, T, Source>{source, layout, out, work}, shape));
  run_teams<T>(label, exec, Write<Exec, T, Source>{source, layout, out, work}, shape);
  return layout.payload_at +
         grid_team::announced_bytes("sparse", exec, TeamPiece<T>{out, layout}, layout.blocks);
}

}  // namespace sparse

/// As `sparse_encode`. `shape` is for tests.
template <class T, class Exec>
std::size_t team_sparse_encode(const Exec& exec, std::span<const T> x, std::span<std::byte> out,
                               const sparse::Selection<T>& selection, std::size_t first,
                               sparse::TeamShape shape = {}) {
  using Source = sparse::SelectedValues<T>;
  return sparse::write_piece<T>("wring::encode", exec,
                                Source{x.data(), sparse::Layout(x.size()), selection, first}, x.size(),
                                out.data(), shape);
}

/// As `sparse_decode`.
template <class T, class Exec>
void team_sparse_decode(const Exec& exec, std::span<const std::byte> in, std::span<T> y, int divisor,
                        sparse::TeamShape shape = {}) {
  const auto piece = sparse::team_open_piece<T>(exec, in, y.size());
  if (y.empty()) return;
  const sparse::Read<Exec, T> read{piece, y.data(), divisor, sparse::TeamBlocks(y.size())};
  sparse::expect_no_damage(sparse::run_teams<T>("wring::decode", exec, read, shape));
}

/// As `sparse_combine`.
template <class T, class Exec>
std::size_t team_sparse_combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                                std::size_t n, std::span<std::byte> out, Operation operation,
                                sparse::TeamShape shape = {}) {
  const sparse::CombinedPieces<T> source{sparse::team_open_piece<T>(exec, a, n),
                                         sparse::team_open_piece<T>(exec, b, n), operation};
  return sparse::write_piece<T>("wring::combine", exec, source, n, out.data(), shape);
}

}  // namespace wring::inline v0::detail
