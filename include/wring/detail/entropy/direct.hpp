// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <wring/detail/entropy/piece.hpp>
#include <wring/detail/grid/combine.hpp>
#include <wring/detail/grid/decode.hpp>
#include <wring/detail/grid/encode.hpp>
#include <wring/error.hpp>

/// The entropy stage without a Grid piece in between: the same bytes and values, a chunk at a time in the caches. For quanta in int32.
namespace wring::inline v0::detail::entropy {

/// Leaves values as they are; what takes its place may write others for block b into `own`.
struct AsTheyAre {
  template <class T> const T* operator()(const T* x, std::size_t, std::size_t, T*) const { return x; }
};

/// The most bytes that a stored chunk of these blocks can have.
struct Slots {
  PieceLayout layout;
  grid::Layout<i32> quanta;
  std::size_t element;  ///< bytes of a value, where blocks may be raw, else 0
  int widest;
  bool delta;

  std::size_t bytes(std::size_t chunk) const {
    std::size_t sum = 1;
    for (std::size_t b = layout.first_block(chunk); b < layout.last_block(chunk); ++b) {
      const std::size_t m = quanta.values_in(b);
      sum += 1 + (delta ? sizeof(i32) : 0) +
             std::max(grid::packed_bytes<i32>(m, widest) + grid::planes_bytes, grid::padded(m * element));
    }
    return sum;
  }
  std::size_t bytes(grid::Run run) const {
    std::size_t sum = 0;
    for (std::size_t chunk = run.first; chunk < run.last; ++chunk) sum += bytes(chunk);
    return sum;
  }

  /// Moves chunks from their slots together; the size of the piece.
  std::size_t close_up(std::span<std::byte> out) const {
    std::size_t from = layout.chunks_at(), to = from;
    for (std::size_t chunk = 0; chunk < layout.chunks; ++chunk) {
      const std::size_t size = ChunkSizes::read(out.data(), chunk).bytes;
      if (from != to) std::memmove(out.data() + to, out.data() + from, size);
      to += size, from += bytes(chunk);
    }
    return to;
  }
};

/// Values to coded chunks. `b` counts raw blocks.
template <class T, class Change> struct EncodeValues {
  grid::BlockEncoder<T, i32> encoder;
  Slots slots;
  const T* x;
  std::span<std::byte> out;
  Tries tries;
  Change change;

  grid::Progress measure(grid::Run run) const {
    grid::Progress p;
    p.out = slots.bytes(run);
    return p;
  }
  grid::Progress run(grid::Run run, grid::Progress at) const {
    grid::Progress p;
    for (std::size_t chunk = run.first; chunk < run.last; ++chunk) {
      std::byte* const slot = out.data() + slots.layout.chunks_at() + at.out + p.out;
      encode(chunk, slot, p).write(out.data(), chunk);
      p.out += slots.bytes(chunk);
    }
    return p;
  }

 private:
  ChunkSizes encode(std::size_t number, std::byte* slot, grid::Progress& p) const {
    const std::size_t first = slots.layout.first_block(number), last = slots.layout.last_block(number);
    ChunkQuanta chunk;
    std::size_t payload = 0, too_large = 0;
    bool raw = false;
    for (std::size_t b = first; b < last; ++b) {
      const std::size_t m = slots.quanta.values_in(b), at = (b - first) * grid::block_values;
      alignas(64) T own[grid::block_values];
      grid::Quanta<i32> block;
      encoder.quantise(change(x + b * grid::block_values, b, m, own), m, block);
      const unsigned descriptor = encoder.descriptor(block);
      const bool stays_raw = encoder.stays_raw(block, m);
      raw = raw || stays_raw, p.b += stays_raw;
      too_large += !stays_raw && (block.too_large || too_wide(block));
      payload += stays_raw ? grid::padded(m * sizeof(T)) : grid::payload_bytes<i32>(descriptor, m, sizeof(T));
      std::memcpy(chunk.q + at, block.q, sizeof block.q);
      if (block.special) block.planes.write(chunk.add_planes(b - first));
      if (encoder.delta) chunk.join(at, block.base);
      p.quanta |= block.magnitudes;
    }
    chunk.n = (last - first - 1) * grid::block_values + slots.quanta.values_in(last - 1);
    p.too_large += too_large;
    const std::size_t stored = 1 + (last - first) * (encoder.delta ? 1 + sizeof(i32) : 1) + payload;
    std::size_t size = raw || too_large ? 0 : chunk.write(encoder.delta, {slot, stored}, tries);
    if (size == 0) store(first, last, slot), size = stored;
    return {static_cast<u32>(size), static_cast<u32>(payload)};
  }

  bool too_wide(const grid::Quanta<i32>& block) const {
    return grid::width_of<i32>(block.ored, block.ored != 0 || encoder.kernels.words.any(block.q)) >
           encoder.widths.widest;
  }

  /// As Grid has them.
  void store(std::size_t first, std::size_t last, std::byte* slot) const {
    const std::size_t blocks = last - first;
    *slot = std::byte{0};
    std::byte *const descriptors = slot + 1, *const bases = descriptors + blocks,
                     *to = bases + (encoder.delta ? blocks * sizeof(i32) : 0);
    grid::Progress seen;
    for (std::size_t b = first; b < last; ++b) {
      const std::size_t m = slots.quanta.values_in(b);
      alignas(64) T own[grid::block_values];
      const grid::Written<i32> w = encoder.encode(change(x + b * grid::block_values, b, m, own), m, to, seen);
      descriptors[b - first] = static_cast<std::byte>(w.descriptor);
      if (encoder.delta) std::memcpy(bases + (b - first) * sizeof(i32), &w.base, sizeof w.base);
      to += w.bytes;
    }
  }
};

/// A stored chunk as it is read.
struct StoredChunk {
  const std::byte *descriptors, *bases, *payload;

  /// Throws CodecError unless `in` has what its descriptors announce, `payload` bytes of payload among them.
  StoredChunk(std::span<const std::byte> in, const grid::Layout<i32>& quanta, std::size_t first,
              std::size_t last, bool delta, std::size_t element, std::size_t payload_size) {
    const std::size_t blocks = last - first, bases_size = delta ? blocks * sizeof(i32) : 0;
    expect_piece(in.size() == blocks + bases_size + payload_size);
    descriptors = in.data(), bases = descriptors + blocks, payload = bases + bases_size;
    std::size_t sum = 0;
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto d = static_cast<unsigned>(descriptors[b]), width = d & grid::width_mask;
      expect_piece(d < 128 && (width <= 32 || (d == grid::raw_width && element != 0)));
      sum += grid::payload_bytes<i32>(d, quanta.values_in(first + b), element);
    }
    expect_piece(sum == payload_size);
  }

  /// Of blocks in order.
  grid::Source<i32> next(std::size_t b, std::size_t m, bool delta, std::size_t element) {
    const i32 base = delta ? grid::read_word<i32>(bases + b * sizeof(i32)) : 0;
    const grid::Source<i32> source{static_cast<unsigned>(descriptors[b]), payload, m, base};
    payload += grid::payload_bytes<i32>(source.descriptor, m, element);
    return source;
  }
};

/// Coded chunks to values. `too_large` counts those that are damaged.
template <class T> struct DecodeValues {
  grid::BlockDecoder<T, i32> decoder;
  Slots slots;
  std::span<const std::byte> in;
  T* y;

  grid::Progress measure(grid::Run run) const {
    grid::Progress p;
    for (std::size_t chunk = run.first; chunk < run.last; ++chunk)
      p.a += ChunkSizes::read(in.data(), chunk).bytes;
    return p;
  }
  grid::Progress run(grid::Run run, grid::Progress at) const {
    grid::Progress p;
    for (std::size_t chunk = run.first; chunk < run.last; ++chunk) {
      const ChunkSizes sizes = ChunkSizes::read(in.data(), chunk);
      try {
        decode(in.subspan(slots.layout.chunks_at() + at.a + p.a, sizes.bytes), chunk, sizes.payload);
      } catch (const CodecError&) {
        ++p.too_large;
      }
      p.a += sizes.bytes;
    }
    if (decoder.streaming) grid::end_streaming();
    return p;
  }

 private:
  void decode(std::span<const std::byte> bytes, std::size_t number, std::size_t payload) const {
    expect_piece(!bytes.empty());
    const std::size_t first = slots.layout.first_block(number), last = slots.layout.last_block(number);
    const auto form = static_cast<unsigned>(bytes[0]);
    expect_piece(form <= (coded_chunk | special_chunk) && form != special_chunk);
    bytes = bytes.subspan(1);
    if (form & coded_chunk) return decode_coded(form, bytes, first, last, payload);
    StoredChunk stored(bytes, slots.quanta, first, last, slots.delta, slots.element, payload);
    for (std::size_t b = first; b < last; ++b)
      decoder.decode(stored.next(b - first, slots.quanta.values_in(b), slots.delta, slots.element),
                     y + b * grid::block_values);
  }

  void decode_coded(unsigned form, std::span<const std::byte> bytes, std::size_t first, std::size_t last,
                    std::size_t payload) const {
    ChunkQuanta chunk;
    const std::size_t blocks = last - first;
    chunk.read(slots.delta, form, bytes, blocks,
               (blocks - 1) * grid::block_values + slots.quanta.values_in(last - 1));
    const std::byte* planes = chunk.planes;
    std::size_t size = 0;
    for (std::size_t b = first; b < last; ++b) {
      const std::size_t m = slots.quanta.values_in(b), at = (b - first) * grid::block_values;
      const bool special = chunk.special >> (b - first) & 1;
      const i32 base = slots.delta ? chunk.part(at, m) : 0;
      const u32 ored = decoder.kernels.words.measure(chunk.q + at);
      const int width = grid::width_of<i32>(ored, ored != 0 || decoder.kernels.words.any(chunk.q + at));
      size += grid::packed_bytes<i32>(m, width) + (special ? grid::planes_bytes : 0);
      decoder.decode(chunk.q + at, width, base, m, y + b * grid::block_values);
      if (!special) continue;
      decoder.put_specials({grid::specials_bit, planes, m, 0}, y + b * grid::block_values);
      planes += grid::planes_bytes;
    }
    expect_piece(size == payload);
  }
};

/// Sums of the chunks of two pieces, without a predictor. `too_large` counts those that are damaged, or wider than was agreed upon.
struct CombineChunks {
  const grid::Kernels& kernels;
  Slots slots;
  std::span<const std::byte> a, b;
  std::span<std::byte> out;
  Tries tries;

  grid::Progress measure(grid::Run run) const {
    grid::Progress p;
    for (std::size_t chunk = run.first; chunk < run.last; ++chunk) advance(chunk, p);
    return p;
  }
  grid::Progress run(grid::Run run, grid::Progress at) const {
    grid::Progress p;
    const std::size_t begin = slots.layout.chunks_at();
    for (std::size_t chunk = run.first; chunk < run.last; ++chunk) {
      try {
        ChunkQuanta sum;
        open(a, begin + at.a + p.a, chunk, sum);
        add(sum, b, begin + at.b + p.b, chunk);
        write(sum, chunk, out.data() + begin + at.out + p.out);
      } catch (const CodecError&) {
        ++p.too_large;
        ChunkSizes{0, 0}.write(out.data(), chunk);
      }
      advance(chunk, p);
    }
    return p;
  }

 private:
  void advance(std::size_t chunk, grid::Progress& p) const {
    p.a += ChunkSizes::read(a.data(), chunk).bytes, p.b += ChunkSizes::read(b.data(), chunk).bytes;
    p.out += slots.bytes(chunk);
  }

  /// The integers of a chunk whose bytes begin at `offset`.
  void open(std::span<const std::byte> piece, std::size_t offset, std::size_t number, ChunkQuanta& to) const {
    const ChunkSizes sizes = ChunkSizes::read(piece.data(), number);
    const std::span<const std::byte> bytes = piece.subspan(offset, sizes.bytes);
    expect_piece(!bytes.empty());
    const std::size_t first = slots.layout.first_block(number), last = slots.layout.last_block(number),
                      n = (last - first - 1) * grid::block_values + slots.quanta.values_in(last - 1);
    const auto form = static_cast<unsigned>(bytes[0]);
    expect_piece(form <= (coded_chunk | special_chunk) && form != special_chunk);
    if (form & coded_chunk) return to.read(false, form, bytes.subspan(1), last - first, n);
    to.n = n;
    StoredChunk stored(bytes.subspan(1), slots.quanta, first, last, false, 0, sizes.payload);
    for (std::size_t block = first; block < last; ++block) {
      const auto source = stored.next(block - first, slots.quanta.values_in(block), false, 0);
      grid::unpack_block(kernels.words, source, to.q + (block - first) * grid::block_values);
      if (source.special()) std::memcpy(to.add_planes(block - first), source.payload, grid::planes_bytes);
    }
  }

  void add(ChunkQuanta& sum, std::span<const std::byte> piece, std::size_t offset, std::size_t number) const {
    ChunkQuanta other;
    open(piece, offset, number, other);
    const std::size_t blocks = slots.layout.last_block(number) - slots.layout.first_block(number);
    for (std::size_t k = 0; k < blocks; ++k)
      kernels.words.add(sum.q + k * grid::block_values, other.q + k * grid::block_values);
    if ((sum.special | other.special) != 0) merge_specials(sum, other, blocks);
  }

  /// Codes of a sum: as `BlockCombiner` has them.
  static void merge_specials(ChunkQuanta& sum, const ChunkQuanta& other, std::size_t blocks) {
    std::byte before[sizeof sum.planes];
    std::memcpy(before, sum.planes, grid::planes_bytes * sum.specials);
    const std::byte *mine = before, *theirs = other.planes;
    const u64 special = sum.special;
    sum.special = 0, sum.specials = 0;
    for (std::size_t k = 0; k < blocks; ++k) {
      grid::Planes planes, more;
      if (special >> k & 1) planes.read(mine, grid::block_values), mine += grid::planes_bytes;
      if (other.special >> k & 1) more.read(theirs, grid::block_values), theirs += grid::planes_bytes;
      for (std::size_t w = 0; w < 8; ++w) {
        planes.low[w] |= more.low[w], planes.high[w] |= more.high[w];
        for (u64 rest = planes.special(w); rest != 0; rest &= rest - 1)
          sum.q[k * grid::block_values + 64 * w + static_cast<std::size_t>(std::countr_zero(rest))] = 0;
      }
      if (planes.any()) planes.write(sum.add_planes(k));
    }
  }

  void write(const ChunkQuanta& sum, std::size_t number, std::byte* slot) const {
    const std::size_t first = slots.layout.first_block(number), last = slots.layout.last_block(number);
    unsigned descriptors[grid_blocks_per_chunk];
    std::size_t payload = 0;
    for (std::size_t block = first; block < last; ++block) {
      const i32* const q = sum.q + (block - first) * grid::block_values;
      const u32 ored = kernels.words.measure(q);
      const int width = grid::width_of<i32>(ored, ored != 0 || kernels.words.any(q));
      expect_piece(width <= slots.widest);
      const bool special = sum.special >> (block - first) & 1;
      descriptors[block - first] = static_cast<unsigned>(width) | (special ? grid::specials_bit : 0);
      payload += grid::payload_bytes<i32>(descriptors[block - first], slots.quanta.values_in(block), 0);
    }
    const std::size_t stored = 1 + (last - first) + payload;
    std::size_t size = sum.write(false, {slot, stored}, tries);
    if (size == 0) store(sum, first, last, descriptors, slot), size = stored;
    ChunkSizes{static_cast<u32>(size), static_cast<u32>(payload)}.write(out.data(), number);
  }

  void store(const ChunkQuanta& sum, std::size_t first, std::size_t last, const unsigned* descriptors,
             std::byte* slot) const {
    *slot++ = std::byte{0};
    for (std::size_t k = 0; k < last - first; ++k) *slot++ = static_cast<std::byte>(descriptors[k]);
    const std::byte* from = sum.planes;
    for (std::size_t block = first; block < last; ++block) {
      const std::size_t m = slots.quanta.values_in(block);
      const i32* const q = sum.q + (block - first) * grid::block_values;
      grid::Planes planes;
      const bool special = sum.special >> (block - first) & 1;
      if (special) planes.read(from, m), from += grid::planes_bytes;
      slot += grid::emit(kernels.words, grid::Widths{32, false}, q, kernels.words.measure(q), m,
                         special ? &planes : nullptr, slot)
                  .bytes;
    }
  }
};

inline Slots slots_of(std::size_t n, const GridParameters& p, std::size_t element) {
  return {PieceLayout(n), grid::Layout<i32>(n, p.delta), p.raw_blocks ? element : 0,
          grid::widths_of<i32>(p).widest, p.delta};
}

/// What `encode_piece` makes of Grid's encoding of x, at `out`, where largest_piece bytes have room. Returns the size; throws CodecError
/// where a value exceeds the magnitude that the parameters were made for. Adds to `raw_blocks` how many there are.
template <class T, class Exec, class Change>
std::size_t encode_values(const Exec& exec, std::span<const T> x, const GridParameters& p,
                          std::span<std::byte> out, Tries tries, const Change& change,
                          std::uint64_t& raw_blocks) {
  if (x.empty()) return 0;
  const Slots slots = slots_of(x.size(), p, sizeof(T));
  if (out.size() < slots.layout.chunks_at() + slots.bytes(grid::Run{0, slots.layout.chunks}))
    throw CodecError("the room for an entropy-coded piece is too small");
  write_head(out, PieceForm::coded);
  const EncodeValues<T, Change> body{{grid::best_kernels(), p}, slots, x.data(), out, tries, change};
  const grid::Progress total =
      grid::for_runs(exec, "wring::encode", slots.layout.chunks, grid::RunBody(body), 1);
  grid::expect_agreed(total);
  raw_blocks += total.b;
  return slots.close_up(out);
}

/// The values of a coded piece. Throws CodecError where it is none; what y then holds is undefined.
template <class T, class Exec>
void decode_values(const Exec& exec, std::span<const std::byte> in, std::span<T> y, const GridParameters& p,
                   bool streaming) {
  const Slots slots = slots_of(y.size(), p, sizeof(T));
  expect_coded(in, slots.layout);
  const DecodeValues<T> body{{grid::best_kernels(), p, streaming}, slots, in, y.data()};
  expect_piece(grid::for_runs(exec, "wring::decode", slots.layout.chunks, grid::RunBody(body), 1).too_large ==
               0);
}

/// The sum of two coded pieces of n values without a predictor, at `out`, where largest_piece bytes have room.
template <class Exec>
std::size_t combine_pieces(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                           std::size_t n, const GridParameters& p, std::span<std::byte> out, Tries tries) {
  const Slots slots = slots_of(n, p, 0);
  expect_coded(a, slots.layout), expect_coded(b, slots.layout);
  if (out.size() < slots.layout.chunks_at() + slots.bytes(grid::Run{0, slots.layout.chunks}))
    throw CodecError("the room for an entropy-coded piece is too small");
  write_head(out, PieceForm::coded);
  const CombineChunks body{grid::best_kernels(), slots, a, b, out, tries};
  expect_piece(
      grid::for_runs(exec, "wring::combine", slots.layout.chunks, grid::RunBody(body), 1).too_large == 0);
  return slots.close_up(out);
}

}  // namespace wring::inline v0::detail::entropy
