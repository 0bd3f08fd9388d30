// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <wring/detail/grid/parameters.hpp>
#include <wring/detail/grid/team/audit.hpp>
#include <wring/detail/grid/team/pack.hpp>
#include <wring/detail/grid/team/sources.hpp>
#include <wring/detail/grid/team/team.hpp>
#include <wring/detail/grid/team/unpack.hpp>
#include <wring/detail/grid/team/values.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/detail/value_kernels.hpp>

/// The Grid codec for devices: Kokkos teams, one value per thread and step. The bytes are those of the CPU
/// kernels.
///
/// All spans lie in memory that `exec` can access, pieces aligned to 64 bytes. Every call synchronises `exec`
/// at most once, to learn a size or to check what it reads; no call allocates.
namespace wring::inline v0::detail {
namespace grid_team {

/// How to read or write a piece of n values of `element_bytes` each.
template <class Word, class Byte>
Piece<Word, Byte> piece_of(std::span<Byte> bytes, std::size_t n, std::size_t element_bytes,
                           const GridParameters& p, bool raw_allowed) {
  return {bytes.data(), bytes.size(), n, element_bytes, p.delta, raw_allowed};
}

/// Both passes over a source.
template <class Exec, class Source, class Word>
void write_piece(const Exec& exec, const Source& source, const Piece<Word, std::byte>& out,
                 const GridParameters& p, TeamShape shape) {
  const Chunks chunks(out.n);
  const Measure<Exec, Source> measure{source, out, chunks, grid::widths_of<typename Lanes<Word>::Signed>(p)};
  Kokkos::parallel_for(Source::measure_label, team_policy<Word>(exec, chunks.teams(), measure, shape),
                       measure);
  const Pack<Exec, Source> pack{source, out, chunks};
  Kokkos::parallel_for(Source::pack_label, team_policy<Word>(exec, chunks.teams(), pack, shape), pack);
}

template <class Word, class T, class Exec>
std::size_t encode(const Exec& exec, std::span<const T> x, std::span<std::byte> bytes,
                   const GridParameters& p, TeamShape shape) {
  const auto out = piece_of<Word>(bytes, x.size(), sizeof(T), p, p.raw_blocks && !p.wide);
  expect_head(out);
  const FromValues<T, Word> source(x.data(), x.size(), p, out.raw_allowed);
  write_piece(exec, source, out, p, shape);
  const Tally tally = audit(exec, written(out));
  if (tally.invalid[0] != 0)
    throw CodecError(
        sentence("Grid: values of ", tally.invalid[0],
                 " blocks exceed the magnitude that was agreed upon; did the input change meanwhile?"));
  return expect_room(written(out), tally, 0);
}

template <class Word, class T, class Exec>
void decode(const Exec& exec, std::span<const std::byte> bytes, std::span<T> y, const GridParameters& p,
            TeamShape shape) {
  const auto in = piece_of<Word>(bytes, y.size(), sizeof(T), p, p.raw_blocks);
  expect_head(in);
  expect_sound(in, audit(exec, in), 0);
  const Chunks chunks(in.n);
  const Unpack<Exec, T, Word> unpack{in, y.data(), Reconstruction<T>(p), chunks};
  Kokkos::parallel_for("wring::unpack", team_policy<Word>(exec, chunks.teams(), unpack, shape), unpack);
}

template <class Word, class Exec>
std::size_t combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                    std::size_t n, std::span<std::byte> bytes, Operation operation, const GridParameters& p,
                    TeamShape shape) {
  const auto first = piece_of<Word>(a, n, 0, p, false), second = piece_of<Word>(b, n, 0, p, false);
  const auto out = piece_of<Word>(bytes, n, 0, p, false);
  expect_head(first);
  expect_head(second);
  expect_head(out);
  write_piece(exec, FromPair<Word>{first, second, {operation}}, out, p, shape);
  const Tally tally = audit(exec, first, second, written(out));
  expect_sound(first, tally, 0);
  expect_sound(second, tally, 1);
  return expect_room(written(out), tally, 2);
}

template <class Word, class Exec>
std::size_t finish(const Exec& exec, std::span<const std::byte> in, std::size_t n, std::span<std::byte> bytes,
                   const GridParameters& p, TeamShape shape) {
  const auto sum = piece_of<Word>(in, n, 0, p, false);
  const auto out = piece_of<Word>(bytes, n, 0, p, false);
  expect_head(sum);
  expect_head(out);
  write_piece(exec, FromSum<Word>{sum, p.shift}, out, p, shape);
  const Tally tally = audit(exec, sum, written(out));
  expect_sound(sum, tally, 0);
  return expect_room(written(out), tally, 1);
}

/// Sizes in the form of values are known beforehand.
inline void expect_bytes(std::size_t given, std::size_t needed, bool exactly) {
  if (exactly ? given == needed : given >= needed) return;
  throw CodecError(sentence("Grid: ", given, " bytes where a piece of values has ", needed));
}

template <class T, class Exec>
std::size_t encode_values(const Exec& exec, std::span<const T> x, std::span<std::byte> out) {
  const std::size_t bytes = values_bytes<T>(x.size());
  expect_bytes(out.size(), bytes, false);
  for_each_value("wring::store", exec, bytes / sizeof(T),
                 StoreValues<Exec, T>{x.data(), out.data(), x.size()});
  return bytes;
}

template <class T, class Exec>
std::size_t combine_values(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                           std::size_t n, std::span<std::byte> out, Operation operation) {
  const std::size_t bytes = values_bytes<T>(n);
  expect_bytes(a.size(), bytes, true);
  expect_bytes(b.size(), bytes, true);
  expect_bytes(out.size(), bytes, false);
  for_each_value("wring::combine", exec, bytes / sizeof(T),
                 CombineValues<Exec, T>{a.data(), b.data(), out.data(), n, operation});
  return bytes;
}

template <class T, class Exec>
void decode_values(const Exec& exec, std::span<const std::byte> in, std::span<T> y, const GridParameters& p) {
  expect_bytes(in.size(), values_bytes<T>(y.size()), true);
  for_each_value("wring::load", exec, y.size(),
                 LoadValues<Exec, T>{in.data(), y.data(), static_cast<double>(p.divisor)});
}

/// No values, no bytes.
inline void expect_nothing(std::size_t bytes) {
  if (bytes != 0) throw CodecError(sentence("Grid: ", bytes, " bytes where there are no values"));
}

}  // namespace grid_team

/// Values -> piece; returns its size. `shape` is for tests.
template <class T, class Exec>
std::size_t team_grid_encode(const Exec& exec, std::span<const T> x, std::span<std::byte> out,
                             const GridParameters& p, grid_team::TeamShape shape = {}) {
  if (x.empty()) return 0;
  if (p.form == GridParameters::Form::values) return grid_team::encode_values(exec, x, out);
  if (p.form == GridParameters::Form::int64) return grid_team::encode<std::uint64_t>(exec, x, out, p, shape);
  return grid_team::encode<std::uint32_t>(exec, x, out, p, shape);
}

/// Piece -> values, scaled by 2^shift and divided by the divisor of the parameters. CodecError leaves `y`
/// untouched.
template <class T, class Exec>
void team_grid_decode(const Exec& exec, std::span<const std::byte> in, std::span<T> y,
                      const GridParameters& p, grid_team::TeamShape shape = {}) {
  if (y.empty()) return grid_team::expect_nothing(in.size());
  if (p.form == GridParameters::Form::values) return grid_team::decode_values(exec, in, y, p);
  if (p.form == GridParameters::Form::int64) return grid_team::decode<std::uint64_t>(exec, in, y, p, shape);
  grid_team::decode<std::uint32_t>(exec, in, y, p, shape);
}

/// Two pieces of n values -> one; returns its size. `out` overlaps neither. After a CodecError `out` holds
/// nothing of use.
template <class T, class Exec>
std::size_t team_grid_combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                              std::size_t n, std::span<std::byte> out, Operation operation,
                              const GridParameters& p, grid_team::TeamShape shape = {}) {
  if (n == 0) return grid_team::expect_nothing(a.size() + b.size()), 0;
  if (p.form == GridParameters::Form::values)
    return grid_team::combine_values<T>(exec, a, b, n, out, operation);
  if (p.form == GridParameters::Form::int64)
    return grid_team::combine<std::uint64_t>(exec, a, b, n, out, operation, p, shape);
  return grid_team::combine<std::uint32_t>(exec, a, b, n, out, operation, p, shape);
}

/// The complete sum -> the result, rounded to multiples of 2^shift; returns its size. `out` does not overlap
/// `in`.
template <class T, class Exec>
std::size_t team_grid_finish(const Exec& exec, std::span<const std::byte> in, std::size_t n,
                             std::span<std::byte> out, const GridParameters& p,
                             grid_team::TeamShape shape = {}) {
  if (n == 0) return grid_team::expect_nothing(in.size()), 0;
  if (p.form == GridParameters::Form::int64)
    return grid_team::finish<std::uint64_t>(exec, in, n, out, p, shape);
  if (p.form == GridParameters::Form::int32)
    return grid_team::finish<std::uint32_t>(exec, in, n, out, p, shape);
  // Values have nothing to round: the sum with itself under MIN is the sum, its NaNs canonical.
  return grid_team::combine_values<T>(exec, in, in, n, out, Operation::min);
}

}  // namespace wring::inline v0::detail
