// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include <wring/detail/entropy/chunk.hpp>
#include <wring/detail/grid/emit.hpp>
#include <wring/detail/grid/parameters.hpp>
#include <wring/detail/grid/runs.hpp>
#include <wring/error.hpp>

/// The entropy stage: a piece of Grid becomes a smaller one that says the same, and the piece again. Only quanta in int32 are coded;
/// other pieces, and chunks that coding does not make smaller, are stored as they are.
namespace wring::inline v0::detail::entropy {

using grid::i32;
using grid::u32;
using grid::u64;

inline constexpr std::size_t grid_blocks_per_chunk = chunk_values / grid::block_values;

/// Where the parts of an entropy-coded piece are: [8 bytes: is it coded?] then the stored piece, or for each chunk its size and that
/// of its payload in Grid's piece, then the chunks.
struct PieceLayout {
  static constexpr std::size_t head_bytes = 8;
  std::size_t blocks, chunks;

  explicit PieceLayout(std::size_t n)
      : blocks(grid::blocks_of(n)), chunks((blocks + grid_blocks_per_chunk - 1) / grid_blocks_per_chunk) {}
  std::size_t chunks_at() const { return head_bytes + chunks * 2 * sizeof(u32); }
  std::size_t first_block(std::size_t chunk) const { return chunk * grid_blocks_per_chunk; }
  std::size_t last_block(std::size_t chunk) const { return std::min(first_block(chunk + 1), blocks); }
};

/// The most bytes that a piece can have whose Grid piece has up to `bytes`, in n values.
inline std::size_t largest_piece(std::size_t bytes, std::size_t n) {
  return grid::saturating_add(grid::saturating_add(bytes, PieceLayout(n).chunks_at()), PieceLayout(n).chunks);
}

/// The first byte of a chunk: sums of the following.
inline constexpr unsigned coded_chunk = 1, special_chunk = 2;

inline void expect_piece(bool holds) {
  if (!holds) throw CodecError("an entropy-coded piece is damaged");
}

/// The integers of a chunk, with the predictor its residues, and what goes with them.
struct ChunkQuanta {
  alignas(64) i32 q[chunk_values];
  std::byte planes[grid_blocks_per_chunk * grid::planes_bytes];
  std::size_t n = 0, specials = 0;  ///< values; blocks with planes
  u64 special = 0;                  ///< which
  i32 base = 0;                     ///< with the predictor: of the first block
  u32 previous = 0;                 ///< with the predictor: the last quantum

  /// Room for the planes of the block that comes next.
  std::byte* add_planes(std::size_t block) {
    special |= u64{1} << block;
    return planes + grid::planes_bytes * specials++;
  }

  /// With the predictor: the block at q + at has come, with this base. Its first residue, which is 0, becomes the step from the block
  /// before.
  void join(std::size_t at, i32 block_base) {
    const u32 own = static_cast<u32>(block_base);
    if (at == 0)
      base = block_base;
    else
      q[at] = static_cast<i32>(own - previous);
    previous = own;
    for (std::size_t i = 1; i < grid::block_values; ++i) previous += static_cast<u32>(q[at + i]);
  }

  /// The inverse, for blocks in order: the base of the block of m values at q + at, whose first residue becomes 0.
  i32 part(std::size_t at, std::size_t m) {
    if (at == 0)
      previous = static_cast<u32>(base);
    else
      previous += static_cast<u32>(q[at]);
    const i32 own = static_cast<i32>(previous);
    q[at] = 0;
    for (std::size_t i = 1; i < m; ++i) previous += static_cast<u32>(q[at + i]);
    return own;
  }

  /// Writes the chunk; returns the number of bytes, 0 where there is too little room.
  std::size_t write(bool delta, std::span<std::byte> out, Tries tries) const {
    const std::size_t before =
        1 + (delta ? sizeof base : 0) + (special ? sizeof special + grid::planes_bytes * specials : 0);
    if (out.size() <= before) return 0;
    const std::size_t coded = encode_chunk(q, n, out.subspan(before), tries);
    if (coded == 0) return 0;
    std::byte* to = out.data();
    *to++ = static_cast<std::byte>(coded_chunk | (special ? special_chunk : 0));
    if (delta) std::memcpy(to, &base, sizeof base), to += sizeof base;
    if (special) {
      std::memcpy(to, &special, sizeof special);
      std::memcpy(to + sizeof special, planes, grid::planes_bytes * specials);
    }
    return before + coded;
  }

  /// Reads a chunk of `count` values in `blocks` blocks that `write` has written, its first byte `form`; zeros behind them. Throws CodecError where it is damaged.
  void read(bool delta, unsigned form, std::span<const std::byte> in, std::size_t blocks, std::size_t count) {
    const auto take = [&](std::size_t bytes) {
      expect_piece(in.size() >= bytes);
      const std::byte* from = in.data();
      in = in.subspan(bytes);
      return from;
    };
    special = 0, n = count;
    if (delta) std::memcpy(&base, take(sizeof base), sizeof base);
    if (form & special_chunk) std::memcpy(&special, take(sizeof special), sizeof special);
    expect_piece(blocks == 64 || special >> blocks == 0);
    specials = static_cast<std::size_t>(std::popcount(special));
    if (specials != 0)
      std::memcpy(planes, take(grid::planes_bytes * specials), grid::planes_bytes * specials);
    decode_chunk(in, q, n);
    std::fill(q + n, q + blocks * grid::block_values, 0);
  }
};

/// Takes the chunks of a Grid piece to coded ones.
struct ChunkEncoder {
  const grid::Kernels& kernels;
  grid::ReadHead<i32> head;
  std::size_t element;  ///< bytes of a value, for raw blocks
  Tries tries;
  int widest;  ///< bits of a quantum: no block has more

  /// Bytes of the payload of blocks [first, last).
  std::size_t payload(std::size_t first, std::size_t last) const {
    std::size_t sum = 0;
    for (std::size_t b = first; b < last; ++b) sum += head.bytes(b, element);
    return sum;
  }

  /// One byte and what Grid has.
  std::size_t stored_bytes(std::size_t first, std::size_t last) const {
    return 1 + (last - first) * (head.delta ? 1 + sizeof(i32) : 1) + payload(first, last);
  }

  /// Writes blocks [first, last), whose `payload` bytes begin at `offset`, into `out`, which has stored_bytes(first, last). Returns the
  /// size, and leaves in `payload` what the decoder will write.
  std::size_t encode(std::size_t first, std::size_t last, std::size_t offset, std::span<std::byte> out,
                     std::size_t& payload) const {
    std::size_t saved = 0;
    const std::size_t size = encode_quanta(first, last, offset, out, saved);
    if (size != 0) {
      payload -= saved;
      return size;
    }
    std::byte* to = out.data();
    *to++ = std::byte{0};
    const auto put = [&](const std::byte* from, std::size_t bytes) {
      std::memcpy(to, from, bytes), to += bytes;
    };
    put(head.piece + first, last - first);
    if (head.delta)
      put(head.piece + head.layout.bases_at + first * sizeof(i32), (last - first) * sizeof(i32));
    put(head.piece + head.layout.payload_at + offset, payload);
    return out.size();
  }

 private:
  /// What a block of the greatest width, which may only have been asked for by `wide`, is longer than need be.
  std::size_t saved_bytes(const grid::Source<i32>& source, const i32* q) const {
    if (source.width() < widest) return 0;
    const u32 ored = kernels.words.measure(q);
    const int needed = grid::width_of<i32>(ored, ored != 0 || kernels.words.any(q));
    return grid::packed_bytes<i32>(source.m, source.width()) - grid::packed_bytes<i32>(source.m, needed);
  }

  std::size_t encode_quanta(std::size_t first, std::size_t last, std::size_t offset, std::span<std::byte> out,
                            std::size_t& saved) const {
    ChunkQuanta chunk;
    for (std::size_t b = first; b < last; ++b) {
      const grid::Source<i32> source = head.source(b, offset);
      if (source.width() == static_cast<int>(grid::raw_width)) return 0;
      const std::size_t at = (b - first) * grid::block_values;
      grid::unpack_block(kernels.words, source, chunk.q + at);
      saved += saved_bytes(source, chunk.q + at);
      if (source.special()) std::memcpy(chunk.add_planes(b - first), source.payload, grid::planes_bytes);
      if (head.delta) chunk.join(at, source.base);
      offset += head.bytes(b, element);
    }
    chunk.n = (last - first - 1) * grid::block_values + head.layout.values_in(last - 1);
    return chunk.write(head.delta, out, tries);
  }
};

/// Takes coded chunks to those of a Grid piece.
struct ChunkDecoder {
  const grid::Kernels& kernels;
  grid::Head<i32> head;
  std::size_t element;
  bool raw_blocks;

  /// Writes blocks [first, last) with their payload at `offset`, `payload` bytes long. Throws CodecError where that is not what
  /// `in` says.
  void decode(std::span<const std::byte> in, std::size_t first, std::size_t last, std::size_t offset,
              std::size_t payload) const {
    expect_piece(!in.empty());
    const auto form = static_cast<unsigned>(in[0]);
    expect_piece(form <= (coded_chunk | special_chunk) && form != special_chunk);
    if (form & coded_chunk)
      decode_quanta(in.subspan(1), form, first, last, offset, payload);
    else
      copy(in.subspan(1), first, last, offset, payload);
  }

 private:
  std::byte* payload_at(std::size_t offset) const { return head.piece + head.layout.payload_at + offset; }

  void copy(std::span<const std::byte> in, std::size_t first, std::size_t last, std::size_t offset,
            std::size_t payload) const {
    const std::size_t blocks = last - first, bases = head.delta ? blocks * sizeof(i32) : 0;
    expect_piece(in.size() == blocks + bases + payload);
    std::size_t sum = 0;
    for (std::size_t b = first; b < last; ++b) {
      const auto d = static_cast<unsigned>(in[b - first]), width = d & grid::width_mask;
      expect_piece(d < 128 && (width <= 32 || (d == grid::raw_width && raw_blocks)));
      sum += grid::payload_bytes<i32>(d, head.layout.values_in(b), element);
    }
    expect_piece(sum == payload);
    std::memcpy(head.piece + first, in.data(), blocks);
    if (bases)
      std::memcpy(head.piece + head.layout.bases_at + first * sizeof(i32), in.data() + blocks, bases);
    std::memcpy(payload_at(offset), in.data() + blocks + bases, payload);
  }

  void decode_quanta(std::span<const std::byte> in, unsigned form, std::size_t first, std::size_t last,
                     std::size_t offset, std::size_t payload) const {
    ChunkQuanta chunk;
    const std::size_t blocks = last - first;
    chunk.read(head.delta, form, in, blocks,
               (blocks - 1) * grid::block_values + head.layout.values_in(last - 1));
    const std::size_t end = offset + payload;
    const std::byte* planes = chunk.planes;
    for (std::size_t b = first; b < last; ++b) {
      const bool has_planes = chunk.special >> (b - first) & 1;
      offset += write(chunk, b, (b - first) * grid::block_values, has_planes ? planes : nullptr, offset, end);
      if (has_planes) planes += grid::planes_bytes;
    }
    expect_piece(offset == end);
  }

  /// Writes block b, which is at q + at; returns its bytes.
  std::size_t write(ChunkQuanta& chunk, std::size_t b, std::size_t at, const std::byte* codes,
                    std::size_t offset, std::size_t end) const {
    const std::size_t m = head.layout.values_in(b);
    i32* const q = chunk.q + at;
    const i32 base = head.delta ? chunk.part(at, m) : 0;
    const u32 ored = kernels.words.measure(q);
    const int width = grid::width_of<i32>(ored, ored != 0 || kernels.words.any(q));
    expect_piece(offset + grid::packed_bytes<i32>(m, width) + (codes ? grid::planes_bytes : 0) <= end);
    grid::Planes planes;
    if (codes) planes.read(codes, m);
    grid::Written<i32> w = grid::emit(kernels.words, grid::Widths{32, false}, q, ored, m,
                                      codes ? &planes : nullptr, payload_at(offset));
    w.base = base;
    head.set(b, w);
    return w.bytes;
  }
};

/// The sizes of a chunk, as they are in the piece: of its bytes and of its payload in Grid's piece.
struct ChunkSizes {
  u32 bytes, payload;

  static ChunkSizes read(const std::byte* piece, std::size_t chunk) {
    ChunkSizes s;
    std::memcpy(&s, piece + PieceLayout::head_bytes + chunk * sizeof s, sizeof s);
    return s;
  }
  void write(std::byte* piece, std::size_t chunk) const {
    std::memcpy(piece + PieceLayout::head_bytes + chunk * sizeof *this, this, sizeof *this);
  }
};

/// Encodes runs of chunks, each where its stored form would be.
struct EncodeChunks {
  ChunkEncoder encoder;
  PieceLayout layout;
  std::span<std::byte> out;

  grid::Progress measure(grid::Run run) const {
    const std::size_t first = layout.first_block(run.first), last = layout.last_block(run.last - 1);
    grid::Progress p;
    p.a = encoder.payload(first, last);
    p.out = encoder.stored_bytes(first, last) + (run.last - run.first - 1);
    return p;
  }
  grid::Progress run(grid::Run run, grid::Progress at) const {
    grid::Progress p;
    for (std::size_t chunk = run.first; chunk < run.last; ++chunk) {
      const std::size_t first = layout.first_block(chunk), last = layout.last_block(chunk);
      const std::size_t most = encoder.stored_bytes(first, last), payload = encoder.payload(first, last);
      const std::span<std::byte> slot = out.subspan(layout.chunks_at() + at.out + p.out, most);
      std::size_t decoded = payload;
      const std::size_t size = encoder.encode(first, last, at.a + p.a, slot, decoded);
      ChunkSizes{static_cast<u32>(size), static_cast<u32>(decoded)}.write(out.data(), chunk);
      p.a += payload, p.out += most;
    }
    return p;
  }

  /// Moves the chunks together; the size of the piece.
  std::size_t close_up() const {
    std::size_t from = layout.chunks_at(), to = from;
    for (std::size_t chunk = 0; chunk < layout.chunks; ++chunk) {
      const std::size_t size = ChunkSizes::read(out.data(), chunk).bytes;
      std::memmove(out.data() + to, out.data() + from, size);
      to += size, from += encoder.stored_bytes(layout.first_block(chunk), layout.last_block(chunk));
    }
    return to;
  }
};

/// Decodes runs of chunks. `too_large` counts those that are damaged.
struct DecodeChunks {
  ChunkDecoder decoder;
  PieceLayout layout;
  std::span<const std::byte> in;

  grid::Progress measure(grid::Run run) const {
    grid::Progress p;
    for (std::size_t chunk = run.first; chunk < run.last; ++chunk) {
      const ChunkSizes sizes = ChunkSizes::read(in.data(), chunk);
      p.a += sizes.bytes, p.b += sizes.payload;
    }
    return p;
  }
  grid::Progress run(grid::Run run, grid::Progress at) const {
    grid::Progress p;
    for (std::size_t chunk = run.first; chunk < run.last; ++chunk) {
      const ChunkSizes sizes = ChunkSizes::read(in.data(), chunk);
      try {
        decoder.decode(in.subspan(layout.chunks_at() + at.a + p.a, sizes.bytes), layout.first_block(chunk),
                       layout.last_block(chunk), at.b + p.b, sizes.payload);
      } catch (const CodecError&) {
        ++p.too_large;
      }
      p.a += sizes.bytes, p.b += sizes.payload;
    }
    return p;
  }
};

/// The head of a piece. What it says makes a piece readable whatever was done with it before.
enum class PieceForm : std::uint8_t { stored, coded };

inline void write_head(std::span<std::byte> out, PieceForm form) {
  std::fill_n(out.data(), PieceLayout::head_bytes, std::byte{0});
  out[0] = static_cast<std::byte>(form);
}

/// Stores what `make(room)` writes as a Grid piece of n values; it returns the number of bytes.
template <class Make> std::size_t store_piece(std::span<std::byte> out, std::size_t n, const Make& make) {
  if (n == 0) return 0;
  write_head(out, PieceForm::stored);
  return PieceLayout::head_bytes + make(out.subspan(PieceLayout::head_bytes));
}

/// The Grid piece in a stored one, or in one of no values.
inline std::optional<std::span<const std::byte>> stored_piece(std::span<const std::byte> in) {
  if (in.empty()) return in;
  expect_piece(in.size() >= PieceLayout::head_bytes && in[0] <= static_cast<std::byte>(PieceForm::coded));
  expect_piece(std::all_of(in.begin() + 1, in.begin() + PieceLayout::head_bytes,
                           [](std::byte b) { return b == std::byte{0}; }));
  if (in[0] != static_cast<std::byte>(PieceForm::stored)) return std::nullopt;
  return in.subspan(PieceLayout::head_bytes);
}

/// Throws CodecError unless the chunks of a coded piece have the bytes that their sizes announce.
inline void expect_coded(std::span<const std::byte> in, const PieceLayout& layout) {
  expect_piece(layout.blocks != 0 && in.size() >= layout.chunks_at());
  std::size_t sum = 0;
  for (std::size_t chunk = 0; chunk < layout.chunks; ++chunk) sum += ChunkSizes::read(in.data(), chunk).bytes;
  expect_piece(sum == in.size() - layout.chunks_at());
}

/// Codes a Grid piece of n values of T at `out`, where largest_piece(piece.size(), n) bytes have room. Returns the size; throws CodecError
/// where it is no such piece. Hosts only.
template <class T, class Exec>
std::size_t encode_piece(const Exec& exec, std::span<const std::byte> piece, std::size_t n,
                         const GridParameters& p, std::span<std::byte> out, Tries tries) {
  if (p.form != GridParameters::Form::int32 || n == 0)
    return store_piece(out, n, [&](std::span<std::byte> to) {
      expect_piece(piece.size() <= to.size());
      std::memcpy(to.data(), piece.data(), piece.size());
      return piece.size();
    });
  const grid::Layout<i32> quanta(n, p.delta);
  grid::check_piece(piece, quanta, p, sizeof(T));
  write_head(out, PieceForm::coded);
  const PieceLayout layout(n);
  const grid::ReadHead<i32> head{piece.data(), quanta, p.delta};
  const EncodeChunks body{
      {grid::best_kernels(), head, sizeof(T), tries, grid::widths_of<i32>(p).widest}, layout, out};
  grid::for_runs(exec, "wring::encode", layout.chunks, grid::RunBody(body), 1);
  return body.close_up();
}

/// The Grid piece of n values that the coded piece `in` stands for, at `out`. Returns its size; throws CodecError where there is none,
/// or one that is larger than `out`. Hosts only.
template <class T, class Exec>
std::size_t decode_piece(const Exec& exec, std::span<const std::byte> in, std::size_t n,
                         const GridParameters& p, std::span<std::byte> out) {
  const PieceLayout layout(n);
  expect_piece(n != 0 && p.form == GridParameters::Form::int32 && in.size() >= layout.chunks_at());
  const grid::Layout<i32> quanta(n, p.delta);
  const grid::Head<i32> head{out.data(), quanta, p.delta};
  const DecodeChunks body{{grid::best_kernels(), head, sizeof(T), p.raw_blocks}, layout, in};
  const grid::Progress sum = body.measure({0, layout.chunks});
  expect_piece(sum.a == in.size() - layout.chunks_at() && quanta.payload_at + sum.b <= out.size());
  head.clear_padding();
  expect_piece(grid::for_runs(exec, "wring::decode", layout.chunks, grid::RunBody(body), 1).too_large == 0);
  return quanta.payload_at + sum.b;
}

}  // namespace wring::inline v0::detail::entropy
