// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <span>

#include <wring/detail/entropy/block.hpp>
#include <wring/detail/entropy/level.hpp>
#include <wring/detail/entropy/scales.hpp>
#include <wring/detail/entropy/table.hpp>
#include <wring/error.hpp>

/// Integers as bytes: [coding][table, if there is one][words, last first][states]. What is popped: where blocks have scales, the
/// steps from one to the next; then the values.
namespace wring::inline v0::detail::entropy {

inline constexpr std::size_t chunk_values = 32768, chunk_blocks = chunk_values / block_values;

/// Few lanes where their states would be a part of the size that shows.
constexpr std::size_t lanes_for(std::size_t n) { return n < 4096 ? 4 : wide_lanes; }

/// The states of the lanes, and the blocks' coder.
struct Lanes {
  std::uint32_t states[wide_lanes];
  std::size_t count;
  const BlockCoder& coder;

  Lanes(std::size_t n, const BlockCoder& wide) : count(lanes_for(n)), coder(wide) {
    std::fill_n(states, count, least_state);
  }
  std::size_t bytes() const { return count * sizeof(std::uint32_t); }

  std::byte* push(const Model& model, int shift, const std::int32_t* q, std::size_t m, std::byte* to) {
    if (count == wide_lanes && m == block_values) return coder.push(states, model, shift, q, to);
    return PortableBlocks(count).push(states, model, shift, q, m, to);
  }
  void pop(const Model& model, int shift, std::int32_t* q, std::size_t m, Reader& in) {
    if (count == wide_lanes && m == block_values) return coder.pop(states, model, shift, q, in);
    PortableBlocks(count).pop(states, model, shift, q, m, in);
  }
  int scale_of(const std::int32_t* q, std::size_t m) const {
    return entropy::scale_of(m == block_values ? coder.magnitudes(q) : sum_of_magnitudes(q, m), m);
  }
};

/// How a chunk is coded: its first byte.
enum class Coding : std::uint8_t { scales, table };

/// Which codings `encode_chunk` tries. A table costs a second pass, and is for values that no distribution describes: in a full chunk,
/// where every eighth block says so.
enum class Tables { none, where_smaller };

namespace chunk {

inline std::size_t blocks_of(std::size_t n) { return (n + block_values - 1) / block_values; }

/// The end of what is written; nullptr where there may be too little room before `end`.
inline std::byte* push_scales(Lanes& lanes, const std::int32_t* q, std::size_t n, std::byte* to,
                              const std::byte* end) {
  const ScaleModels& models = ScaleModels::get();
  const auto fits = [&] { return static_cast<std::size_t>(end - to) >= most_block_bytes + lanes.bytes(); };
  std::int32_t scales[chunk_blocks], steps[chunk_blocks];
  const std::size_t blocks = blocks_of(n);
  for (std::size_t b = blocks; b-- > 0;) {
    if (!fits()) return nullptr;
    const std::int32_t* values = q + b * block_values;
    const std::size_t m = std::min(block_values, n - b * block_values);
    const int scale = scales[b] = lanes.scale_of(values, m);
    if (scale != 0) to = lanes.push(models.of(scale), shift_of(scale), values, m, to);
  }
  for (std::size_t b = 0; b < blocks; ++b) steps[b] = scales[b] - (b == 0 ? 0 : scales[b - 1]);
  for (std::size_t last = blocks; last != 0;) {
    if (!fits()) return nullptr;
    const std::size_t first = (last - 1) / block_values * block_values;
    to = lanes.push(models.steps(), 0, steps + first, last - first, to);
    last = first;
  }
  return to;
}

inline bool pop_scales(Lanes& lanes, std::int32_t* q, std::size_t n, Reader& in) {
  const ScaleModels& models = ScaleModels::get();
  std::int32_t steps[chunk_blocks];
  const std::size_t blocks = blocks_of(n);
  for (std::size_t first = 0; first < blocks; first += block_values)
    lanes.pop(models.steps(), 0, steps + first, std::min(block_values, blocks - first), in);
  std::uint32_t scale = 0;
  for (std::size_t b = 0; b < blocks; ++b) {
    scale += static_cast<std::uint32_t>(steps[b]);
    if (in.failed() || scale > greatest_scale) return false;
    std::int32_t* values = q + b * block_values;
    const std::size_t m = std::min(block_values, n - b * block_values);
    const int known = static_cast<int>(scale);
    if (known == 0)
      std::fill_n(values, m, 0);
    else
      lanes.pop(models.of(known), shift_of(known), values, m, in);
  }
  return true;
}

inline std::byte* push_table(Lanes& lanes, const Table& table, const std::int32_t* q, std::size_t n,
                             std::byte* to, const std::byte* end) {
  const Model model = table.model();
  for (std::size_t b = blocks_of(n); b-- > 0;) {
    if (static_cast<std::size_t>(end - to) < most_block_bytes + lanes.bytes()) return nullptr;
    to = lanes.push(model, table.shift, q + b * block_values, std::min(block_values, n - b * block_values),
                    to);
  }
  return to;
}

inline bool pop_table(Lanes& lanes, const Table& table, std::int32_t* q, std::size_t n, Reader& in) {
  const Model model = table.model();
  for (std::size_t b = 0; b < blocks_of(n) && !in.failed(); ++b)
    lanes.pop(model, table.shift, q + b * block_values, std::min(block_values, n - b * block_values), in);
  return true;
}

/// Where n values take fewer bits with a table of their own, as some of their blocks show it, the table of those blocks.
inline std::optional<Table> suitable_table(const std::int32_t* q, std::size_t n, const BlockCoder& coder) {
  constexpr std::size_t stride = 8, most = chunk_values / stride;
  alignas(64) std::int32_t some[most];
  std::byte bytes[most / block_values * most_block_bytes + most_block_bytes + wide_lanes * 4];
  std::size_t m = 0;
  for (std::size_t at = stride / 2 * block_values; at + block_values <= n; at += stride * block_values)
    std::copy_n(q + at, block_values, some + m), m += block_values;
  Lanes lanes(n, coder);
  const std::byte* const end = push_scales(lanes, some, m, bytes, std::end(bytes));
  TableMaker maker;
  const TableMaker::Made made = maker.make(some, m, n / m);
  if (made.eighths < static_cast<std::uint64_t>(end - bytes) * 64) return made.table;
  return std::nullopt;
}

/// Writes the states behind the words; the number of bytes from `begin` on.
inline std::size_t finish(const Lanes& lanes, const std::byte* begin, std::byte* to) {
  if (!to) return 0;
  std::memcpy(to, lanes.states, lanes.bytes());
  return static_cast<std::size_t>(to - begin) + lanes.bytes();
}

}  // namespace chunk

/// Codes 1 to `chunk_values` integers at `out`; returns the number of bytes, 0 where there might be too little room.
inline std::size_t encode_chunk(const std::int32_t* q, std::size_t n, std::span<std::byte> out, Tables tables,
                                const BlockCoder& coder = best_coder()) {
  std::byte* const begin = out.data();
  const std::byte* const end = begin + out.size();
  if (out.size() < 1 + Table::most_bytes) return 0;
  const bool samples = n >= chunk_values / 4;
  std::size_t size = 0;
  std::optional<Table> table;
  if (tables == Tables::where_smaller && samples) table = chunk::suitable_table(q, n, coder);
  if (!table) {
    Lanes lanes(n, coder);
    size = chunk::finish(lanes, begin, chunk::push_scales(lanes, q, n, begin + 1, end));
    begin[0] = static_cast<std::byte>(Coding::scales);
    if (tables == Tables::none || samples) return size;
  }
  TableMaker maker;
  const TableMaker::Made made = table ? maker.make_like(*table, q, n) : maker.make(q, n);
  if (size != 0 && made.eighths / 64 + lanes_for(n) * sizeof(std::uint32_t) >= size) return size;
  begin[0] = static_cast<std::byte>(Coding::table);
  Lanes again(n, coder);
  return chunk::finish(again, begin,
                       chunk::push_table(again, made.table, q, n, made.table.write(begin + 1), end));
}

/// The inverse; n integers at q. Throws CodecError where `bytes` are not what `encode_chunk` wrote for n integers, as far as that
/// shows.
inline void decode_chunk(std::span<const std::byte> bytes, std::int32_t* q, std::size_t n,
                         const BlockCoder& coder = best_coder()) {
  const auto expect = [](bool holds) {
    if (!holds) throw CodecError("entropy-coded values are damaged");
  };
  Lanes lanes(n, coder);
  expect(bytes.size() >= 1 + lanes.bytes());
  const std::span<const std::byte> words = bytes.first(bytes.size() - lanes.bytes());
  std::memcpy(lanes.states, words.data() + words.size(), lanes.bytes());
  Reader in(words.data() + 1, words.data() + words.size());
  if (bytes[0] == static_cast<std::byte>(Coding::table)) {
    const Table table = Table::read(words.subspan(1));
    in = Reader(words.data() + 1 + table.bytes(), words.data() + words.size());
    expect(chunk::pop_table(lanes, table, q, n, in));
  } else {
    expect(bytes[0] == static_cast<std::byte>(Coding::scales));
    expect(chunk::pop_scales(lanes, q, n, in));
  }
  expect(!in.failed() && in.left() == 0);
  expect(std::all_of(lanes.states, lanes.states + lanes.count,
                     [](std::uint32_t s) { return s == least_state; }));
}

}  // namespace wring::inline v0::detail::entropy
