// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>

#include <wring/detail/entropy/block.hpp>
#include <wring/detail/entropy/columns.hpp>
#include <wring/detail/entropy/level.hpp>
#include <wring/detail/entropy/scales.hpp>
#include <wring/detail/entropy/table.hpp>
#include <wring/error.hpp>

/// Integers as bytes: [head][first scale and length of rows, or table][words, last first][states]. What is popped: where blocks have scales, the steps from
/// one to the next; then the values.
namespace wring::inline v0::detail::entropy {

/// Where words are written. A block for which there may be too little room is written aside first.
class Room {
 public:
  Room(std::byte* begin, const std::byte* end) : at_(begin), end_(end) {}
  std::byte* at() const { return at_; }  ///< nullptr once something did not fit

  /// Takes what `write(to)` writes, no more than a block; it returns the end.
  template <class Write> void take(const Write& write) {
    if (at_ == nullptr) return;
    if (left() >= sizeof aside_) {
      at_ = write(at_);
      return;
    }
    const auto bytes = static_cast<std::size_t>(write(aside_) - aside_);
    if (bytes <= left()) std::memcpy(at_, aside_, bytes);
    at_ = bytes <= left() ? at_ + bytes : nullptr;
  }

 private:
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  std::byte* at_;
  const std::byte* end_;
  std::byte aside_[most_block_bytes + 32];  ///< vectors are stored whole
};

/// So many lanes as their states are no part of the size that shows.
constexpr std::size_t lanes_for(std::size_t n) { return n < 4096 ? few_lanes : wide_lanes; }

/// The states of the lanes, and the blocks' coder.
struct Lanes {
  std::uint32_t states[wide_lanes];
  std::size_t count;
  const BlockCoder& coder;

  Lanes(std::size_t lanes, const BlockCoder& wide) : count(lanes), coder(wide) {
    std::fill_n(states, count, least_state);
  }
  std::size_t bytes() const { return count * sizeof(std::uint32_t); }

  void push(const Model& model, int shift, const std::int32_t* q, std::size_t m, Room& room) {
    room.take([&](std::byte* to) {
      if (count == wide_lanes && m == block_values) return coder.push(states, model, shift, q, to);
      return PortableBlocks(count).push(states, model, shift, q, m, to);
    });
  }
  void push_each(const ModelSet& models, const std::uint16_t* which, const std::int32_t* q, std::size_t m,
                 Room& room) {
    room.take([&](std::byte* to) {
      if (count == wide_lanes && m == block_values) return coder.push_each(states, models, which, q, to);
      return PortableBlocks(count).push_each(states, models, which, q, m, to);
    });
  }
  void pop(const Model& model, int shift, std::int32_t* q, std::size_t m, Reader& in) {
    if (count == wide_lanes && m == block_values) return coder.pop(states, model, shift, q, in);
    PortableBlocks(count).pop(states, model, shift, q, m, in);
  }
  void pop_each(const ModelSet& models, const std::uint16_t* which, std::int32_t* q, std::size_t m,
                Reader& in) {
    if (count == wide_lanes && m == block_values) return coder.pop_each(states, models, which, q, in);
    PortableBlocks(count).pop_each(states, models, which, q, m, in);
  }
};

/// The first byte: which of these there are, and in bits 2 and 3 the model of the steps between scales.
inline constexpr unsigned with_table = 1, with_few_lanes = 2, steps_bit = 2, with_own = 16, with_rows = 32,
                          all_of_head = 63;

/// What `encode_chunk` tries besides a model for the scale of each block.
struct Tries {
  /// A table of the chunk's own: costs a second pass, and is for values that no distribution describes: in a full chunk, where every
  /// eighth block says so.
  bool tables = false;
  bool own = false;  ///< a model for each value (chunk::Own): encoding takes twice as long
};

namespace chunk {

inline std::size_t blocks_of(std::size_t n) { return (n + block_values - 1) / block_values; }
inline std::size_t values_in(std::size_t block, std::size_t n) {
  return std::min(block_values, n - block * block_values);
}

/// The scales of n integers, block by block, and how they are sent: the first one, then steps.
struct Scales {
  std::int32_t of[chunk_blocks];
  std::size_t blocks, coded = 0;  ///< coded: those that are not zeros

  Scales(const std::int32_t* q, std::size_t n, const BlockCoder& coder) : blocks(blocks_of(n)) {
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::int32_t* values = q + b * block_values;
      const std::size_t m = values_in(b, n);
      of[b] = scale_of(m == block_values ? coder.magnitudes(values) : sum_of_magnitudes(values, m), m);
      coded += of[b] != 0;
    }
  }

  std::size_t lanes() const { return lanes_for(coded * block_values); }

  /// Steps to each block but the first; the number of the model that suits them.
  unsigned steps(std::int32_t* to) const {
    std::size_t sum = 0;
    for (std::size_t b = 1; b < blocks; ++b) {
      to[b - 1] = of[b] - of[b - 1];
      sum += static_cast<std::size_t>(std::abs(to[b - 1]));
    }
    return ScaleModels::steps_for(sum, blocks - 1);
  }
};

/// Models that values have each for its own, where a block's scale does not say all: by the block's scale alone, as their distribution
/// has shorter tails than that of scales, or by scale and column.
struct Own {
  bool used = false;
  std::size_t row = 0;
  std::uint16_t which[chunk_values];  ///< for blocks that have such models

  static bool has(int scale) { return scale != 0 && scale <= greatest_modelled; }

  Own(const Scales& scales, const std::int32_t* q, std::size_t n, const BlockCoder& coder) {
    row = RowFinder::find(q, scales.of, n / block_values, coder);
    if (row != 0) follow_columns(scales, q, n, coder);
    std::uint64_t plain = 0, by_scale = 0, by_column = 0;
    const ScaleModels& models = ScaleModels::get();
    const std::size_t stride = n < chunk_values / 4 ? 1 : 8;
    for (std::size_t b = stride / 2; b < n / block_values; b += stride) {
      if (!has(scales.of[b])) continue;
      const auto &costs = models.costs(scales.of[b]),
                 &own = models.own_costs(static_cast<std::size_t>(scales.of[b]) - 1);
      for (std::size_t i = b * block_values; i < (b + 1) * block_values; ++i) {
        const std::uint32_t s = ModelSet::symbol_of(q[i]);
        plain += costs[s], by_scale += own[s];
        if (row != 0) by_column += models.own_costs(which[i])[s];
      }
    }
    // what costs time to decode should save a hundredth
    if (row == 0 || 100 * by_column > 99 * std::min(plain, by_scale)) row = 0, by_column = by_scale;
    used = 200 * by_column < 199 * plain;
    if (!used || row != 0) return;
    for (std::size_t b = 0; b < scales.blocks; ++b)
      if (has(scales.of[b]))
        std::fill_n(which + b * block_values, block_values, static_cast<std::uint16_t>(scales.of[b] - 1));
  }

 private:
  void follow_columns(const Scales& scales, const std::int32_t* q, std::size_t n, const BlockCoder& coder) {
    Columns columns(row, coder);
    for (std::size_t b = 0; b < scales.blocks; ++b) {
      const std::size_t at = b * block_values;
      if (has(scales.of[b])) columns.models(b, scales.of[b], which + at);
      if (values_in(b, n) == block_values) columns.learn(b, scales.of[b], q + at);
    }
  }
};

/// [head][first scale][length of rows, if there are any][words], without the states. `own` may be nullptr.
inline void push_scales(Lanes& lanes, const Scales& scales, const Own* own, const std::int32_t* q,
                        std::size_t n, Room& room) {
  const ScaleModels& models = ScaleModels::get();
  std::int32_t steps[chunk_blocks];
  const unsigned kind = scales.steps(steps);
  const bool owns = own != nullptr && own->used;
  room.take([&](std::byte* to) {
    const auto row = static_cast<std::uint16_t>(owns ? own->row : 0);
    *to++ = static_cast<std::byte>((lanes.count == few_lanes ? with_few_lanes : 0) | kind << steps_bit |
                                   (owns ? with_own : 0) | (row != 0 ? with_rows : 0));
    *to++ = static_cast<std::byte>(scales.of[0]);
    if (row != 0) std::memcpy(to, &row, sizeof row), to += sizeof row;
    return to;
  });
  for (std::size_t b = scales.blocks; b-- > 0;) {
    const int scale = scales.of[b];
    const std::size_t at = b * block_values, m = values_in(b, n);
    if (owns && Own::has(scale))
      lanes.push_each(models.each(), own->which + at, q + at, m, room);
    else if (scale != 0)
      lanes.push(models.of(scale), shift_of(scale), q + at, m, room);
  }
  for (std::size_t last = scales.blocks - 1; last != 0;) {
    const std::size_t first = (last - 1) / block_values * block_values;
    lanes.push(models.steps(kind), 0, steps + first, last - first, room);
    last = first;
  }
}

/// What was sent of a chunk before its values.
struct ScalesHead {
  unsigned head;
  std::uint32_t first;  ///< scale
  std::size_t row;
};

/// Block b of m values, by its scale and, where there are rows, by its columns.
inline void pop_block(Lanes& lanes, int scale, std::size_t b, bool owns, std::optional<Columns>& columns,
                      std::int32_t* q, std::size_t m, Reader& in) {
  const ScaleModels& models = ScaleModels::get();
  if (scale == 0) {
    std::fill_n(q, m, 0);
  } else if (owns && Own::has(scale)) {
    std::uint16_t which[block_values];
    if (columns)
      columns->models(b, scale, which);
    else
      std::fill_n(which, block_values, static_cast<std::uint16_t>(scale - 1));
    lanes.pop_each(models.each(), which, q, m, in);
  } else {
    lanes.pop(models.of(scale), shift_of(scale), q, m, in);
  }
  if (columns && m == block_values && !in.failed()) columns->learn(b, scale, q);
}

inline bool pop_scales(Lanes& lanes, const ScalesHead& sent, std::int32_t* q, std::size_t n, Reader& in) {
  const Model& model = ScaleModels::get().steps(sent.head >> steps_bit & 3);
  std::int32_t steps[chunk_blocks];
  const std::size_t blocks = blocks_of(n);
  std::optional<Columns> columns;
  if (sent.row != 0) columns.emplace(sent.row, lanes.coder);
  for (std::size_t first = 0; first + 1 < blocks; first += block_values)
    lanes.pop(model, 0, steps + first, std::min(block_values, blocks - 1 - first), in);
  std::uint32_t scale = sent.first;
  for (std::size_t b = 0; b < blocks; ++b) {
    if (b != 0) scale += static_cast<std::uint32_t>(steps[b - 1]);
    if (in.failed() || scale > greatest_scale) return false;
    pop_block(lanes, static_cast<int>(scale), b, (sent.head & with_own) != 0, columns, q + b * block_values,
              values_in(b, n), in);
  }
  return true;
}

/// [head][table][words], without the states.
inline void push_table(Lanes& lanes, const Table& table, const std::int32_t* q, std::size_t n, Room& room) {
  static_assert(1 + Table::most_bytes <= most_block_bytes);
  const Model model = table.model();
  room.take([&](std::byte* to) {
    *to++ = static_cast<std::byte>(with_table | (lanes.count == few_lanes ? with_few_lanes : 0));
    return table.write(to);
  });
  for (std::size_t b = blocks_of(n); b-- > 0;)
    lanes.push(model, table.shift, q + b * block_values, values_in(b, n), room);
}

inline bool pop_table(Lanes& lanes, const Table& table, std::int32_t* q, std::size_t n, Reader& in) {
  const Model model = table.model();
  for (std::size_t b = 0; b < blocks_of(n) && !in.failed(); ++b)
    lanes.pop(model, table.shift, q + b * block_values, values_in(b, n), in);
  return true;
}

/// What `push(lanes, room)` writes, then the states; returns the number of bytes, 0 where they do not fit.
template <class Push>
std::size_t write(std::span<std::byte> out, std::size_t count, const BlockCoder& coder, const Push& push) {
  Lanes lanes(count, coder);
  if (out.size() < lanes.bytes()) return 0;
  Room room(out.data(), out.data() + out.size() - lanes.bytes());
  push(lanes, room);
  if (room.at() == nullptr) return 0;
  std::memcpy(room.at(), lanes.states, lanes.bytes());
  return static_cast<std::size_t>(room.at() - out.data()) + lanes.bytes();
}

inline std::size_t write_scales(std::span<std::byte> out, const Scales& scales, const Own* own,
                                const std::int32_t* q, std::size_t n, const BlockCoder& coder) {
  return write(out, scales.lanes(), coder,
               [&](Lanes& lanes, Room& room) { push_scales(lanes, scales, own, q, n, room); });
}

inline std::size_t write_scales_or_own(std::span<std::byte> out, const Scales& scales, const std::int32_t* q,
                                       std::size_t n, const BlockCoder& coder) {
  const Own own(scales, q, n, coder);
  return write_scales(out, scales, &own, q, n, coder);
}

/// Where n values take fewer bits with a table of their own, as some of their blocks show it, the table of those blocks.
inline std::optional<Table> suitable_table(const std::int32_t* q, std::size_t n, const BlockCoder& coder) {
  constexpr std::size_t stride = 8, most = chunk_values / stride;
  alignas(64) std::int32_t some[most];
  std::byte bytes[most / block_values * most_block_bytes + 2 * most_block_bytes];
  std::size_t m = 0;
  for (std::size_t at = stride / 2 * block_values; at + block_values <= n; at += stride * block_values)
    std::copy_n(q + at, block_values, some + m), m += block_values;
  const Scales scales(some, m, coder);
  const std::uint64_t parts = n / m, states = scales.lanes() * sizeof(std::uint32_t),
                      size = write_scales(bytes, scales, nullptr, some, m, coder);
  TableMaker maker;
  const TableMaker::Made made = maker.make(some, m, parts);
  const std::uint64_t with_scales = 64 * (size - states + states / parts),
                      with_table = made.eighths + 64 * (wide_lanes * sizeof(std::uint32_t) / parts);
  if (with_table < with_scales) return made.table;
  return std::nullopt;
}

}  // namespace chunk

/// Codes 1 to `chunk_values` integers at `out`; returns the number of bytes, 0 where they do not fit.
inline std::size_t encode_chunk(const std::int32_t* q, std::size_t n, std::span<std::byte> out, Tries tries,
                                const BlockCoder& coder = best_coder()) {
  const bool samples = n >= chunk_values / 4;
  std::size_t size = 0;
  std::optional<Table> table;
  if (tries.tables && samples) table = chunk::suitable_table(q, n, coder);
  if (!table) {
    const chunk::Scales scales(q, n, coder);
    size = tries.own ? chunk::write_scales_or_own(out, scales, q, n, coder)
                     : chunk::write_scales(out, scales, nullptr, q, n, coder);
    if (!tries.tables || samples) return size;
  }
  TableMaker maker;
  const TableMaker::Made made = table ? maker.make_like(*table, q, n) : maker.make(q, n);
  const std::size_t lanes = lanes_for(n);
  if (size != 0 && made.eighths / 64 + lanes * sizeof(std::uint32_t) >= size) return size;
  return chunk::write(out, lanes, coder,
                      [&](Lanes& to, Room& room) { chunk::push_table(to, made.table, q, n, room); });
}

/// The inverse; n integers at q. Throws CodecError where `bytes` are not what `encode_chunk` wrote for n integers, as far as that
/// shows.
inline void decode_chunk(std::span<const std::byte> bytes, std::int32_t* q, std::size_t n,
                         const BlockCoder& coder = best_coder()) {
  const auto expect = [](bool holds) {
    if (!holds) throw CodecError("entropy-coded values are damaged");
  };
  expect(!bytes.empty());
  const auto head = static_cast<unsigned>(bytes[0]);
  Lanes lanes(head & with_few_lanes ? few_lanes : wide_lanes, coder);
  expect(head <= all_of_head && bytes.size() >= 2 + lanes.bytes());
  const std::span<const std::byte> words = bytes.first(bytes.size() - lanes.bytes());
  std::memcpy(lanes.states, words.data() + words.size(), lanes.bytes());
  Reader in(words.data() + 2, words.data() + words.size());
  if (head & with_table) {
    expect(head <= (with_table | with_few_lanes));
    const Table table = Table::read(words.subspan(1));
    in = Reader(words.data() + 1 + table.bytes(), words.data() + words.size());
    expect(chunk::pop_table(lanes, table, q, n, in));
  } else {
    std::uint16_t row = 0;
    if (head & with_rows) {
      expect((head & with_own) && words.size() >= 2 + sizeof row);
      std::memcpy(&row, words.data() + 2, sizeof row);
      expect(row >= shortest_row && row <= longest_row);
      in = Reader(words.data() + 2 + sizeof row, words.data() + words.size());
    }
    expect(chunk::pop_scales(lanes, {head, static_cast<std::uint32_t>(words[1]), row}, q, n, in));
  }
  expect(!in.failed() && in.left() == 0);
  expect(std::all_of(lanes.states, lanes.states + lanes.count,
                     [](std::uint32_t s) { return s == least_state; }));
}

}  // namespace wring::inline v0::detail::entropy
