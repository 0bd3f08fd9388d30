// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <tuple>

#include <wring/bound.hpp>
#include <wring/collective/executor/agreement/experience.hpp>
#include <wring/collective/executor/agreement/magnitudes.hpp>
#include <wring/collective/executor/segments/message.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/version.hpp>

namespace wring::inline v0::detail {

/// What must be equal on all ranks, in the order in which a disagreement is reported.
enum class Field {
  version,
  sequence,
  collective,
  type,
  length,
  operation,
  root,
  compressor,
  bound,
  algorithm,
  layout,
  options
};
inline constexpr int field_count = 12;
inline constexpr std::array<const char*, field_count> field_names = {
    "library version",
    "order of starts",
    "collective",
    "element type",
    "length",
    "operation",
    "root",
    "compressor (its options, or what error feedback remembers)",
    "error bound (or scale)",
    "algorithm",
    "node layout, or machine of Automatic",
    "options (segments, riding along, confirm, step)"};

/// The 256 bytes that open every operation. Their size, their meaning and the pattern of their exchange are the same in every
/// version of the library. A merge keeps the least and the greatest value of each field with their ranks.
struct Head {
  struct Extent {
    std::uint32_t least = 0, greatest = 0;
    std::int32_t least_rank = 0, greatest_rank = 0;
  };
  enum Flags : std::uint16_t { disagree = 1, damaged = 2 };  ///< the others: RatioMarks

  std::uint32_t magic = 0x686e7277;
  std::uint16_t flags = 0;
  std::uint16_t epoch =
      0;  ///< how often channels have been used: tells messages that nobody took from those of today
  std::uint64_t checksum = 0;
  std::uint64_t agreed = 0;  ///< hash of all fields in full
  std::int32_t failed_rank = -1, cause = 0;
  Extent fields[field_count];
  struct {
    double max_abs = 0;
    union {
      struct {
        double least, greatest;
      } range;
      struct {
        std::uint64_t high, low;
      } squares = {0, 0};
    };
    std::int32_t index = 0;  ///< of the squares; else the sample
    std::int8_t kind = 0, special_values = 0;
    Survey survey;
  } input;

  /// Where a rank has failed, words take the place of all behind the first field, the version: what else could be compared?
  static constexpr std::size_t text_begin = 48, text_bytes = 208;

  void set(Field field, std::uint64_t value, int rank) {
    const auto folded = static_cast<std::uint32_t>(mix(value + 1) >> 32);
    fields[static_cast<int>(field)] = {folded, folded, rank, rank};
    agreed = mix(agreed * 0x9e3779b97f4a7c15u ^ value);
  }

  void set_input(const Magnitudes& m, Bound::Kind kind) {
    input = {};
    input.max_abs = m.max_abs, input.kind = static_cast<std::int8_t>(kind);
    input.special_values = static_cast<std::int8_t>(m.special_values);
    input.survey = m.survey;
    if (kind == Bound::Kind::rms) {
      input.squares.high = m.squares.high, input.squares.low = m.squares.low, input.index = m.squares.index;
    } else {
      input.range.least = m.least, input.range.greatest = m.greatest;
      input.index = static_cast<std::int32_t>(m.sample);
    }
  }

  Magnitudes magnitudes() const {
    Magnitudes m;
    m.max_abs = input.max_abs, m.special_values = static_cast<std::uint64_t>(input.special_values);
    m.survey = input.survey;
    if (input.kind == static_cast<std::int8_t>(Bound::Kind::rms)) {
      m.squares = {input.squares.high, input.squares.low, input.index};
    } else {
      m.least = input.range.least, m.greatest = input.range.greatest;
      m.sample = static_cast<std::uint32_t>(input.index);
    }
    return m;
  }

  void fail(const Failure& failure) {
    if (cause != 0 && !before(failure, this->failure())) return;  // everyone keeps the same one
    cause = static_cast<std::int32_t>(failure.cause), failed_rank = failure.rank;
    std::memset(text(), 0, text_bytes);
    std::memcpy(text(), failure.text.data(), std::min(failure.text.size(), text_bytes - 1));
  }

  Failure failure() const {
    if (cause == 0) return {};
    const char* words = reinterpret_cast<const char*>(this) + text_begin;
    return {static_cast<Cause>(cause), failed_rank, std::string(words, strnlen(words, text_bytes))};
  }

  void merge(const Head& other) {
    if (other.agreed != agreed) flags |= disagree;
    flags |= other.flags;
    merge(fields[0], other.fields[0]);
    if (other.cause != 0) return fail(other.failure());
    if (cause != 0) return;
    for (int f = 1; f < field_count; ++f) merge(fields[f], other.fields[f]);
    if (input.kind == other.input.kind) {
      Magnitudes m = magnitudes();
      m.merge(other.magnitudes());
      set_input(m, static_cast<Bound::Kind>(input.kind));
    }
  }

  /// The first field on which the ranks disagree. None where a rank has failed: its words are in their place.
  std::optional<Field> disagreement() const {
    if (cause != 0 || !(flags & disagree)) return std::nullopt;
    for (int f = 0; f < field_count; ++f)
      if (fields[f].least != fields[f].greatest) return static_cast<Field>(f);
    return std::nullopt;
  }

  /// The error that all ranks see alike, if there is one. A rank that knows what is wrong comes before a mere disagreement.
  Failure verdict() const {
    if (cause != 0) return failure();
    if (!(flags & disagree)) return {};
    const std::optional<Field> field = disagreement();
    if (!field) return {Cause::mismatch, -1, "the ranks disagree on the operation"};
    const auto f = static_cast<std::size_t>(*field);
    return {Cause::mismatch, -1,
            sentence("the ranks disagree on the ", field_names[f], ": rank ", fields[f].least_rank,
                     " and rank ", fields[f].greatest_rank, " differ")};
  }

 private:
  static bool before(const Failure& a, const Failure& b) {
    return std::tie(a.rank, a.cause, a.text) < std::tie(b.rank, b.cause, b.text);
  }
  char* text() { return reinterpret_cast<char*>(this) + text_begin; }

  static void merge(Extent& a, const Extent& b) {
    if (b.least < a.least || (b.least == a.least && b.least_rank < a.least_rank))
      a.least = b.least, a.least_rank = b.least_rank;
    if (b.greatest > a.greatest || (b.greatest == a.greatest && b.greatest_rank < a.greatest_rank))
      a.greatest = b.greatest, a.greatest_rank = b.greatest_rank;
  }
};
static_assert(sizeof(Head) == 256 && std::is_trivially_copyable_v<Head> && std::is_standard_layout_v<Head>);
static_assert(offsetof(Head, fields) + sizeof(Head::Extent) == Head::text_begin);

}  // namespace wring::inline v0::detail
