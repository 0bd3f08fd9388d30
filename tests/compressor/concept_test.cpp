// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each requirement of each Compressor concept is needed, and no other: an archetype that lacks one requirement fails the concepts
// that ask for it and keeps all others.
#include <utility>

#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/concept.hpp>

#include "archetypes.hpp"

using namespace wring;
using archetype::Able;
using archetype::Minimal;
using archetype::Without;

namespace {

constexpr bool between(Without x, Without first, Without last) { return first <= x && x <= last; }

/// Whether a concept asks for a requirement, said once more and independently.
constexpr bool breaks_compressor(Without x) { return between(x, Without::copying, Without::identity_type); }
constexpr bool breaks_bounded(Without x) {
  return breaks_compressor(x) || between(x, Without::error, Without::error_const);
}
constexpr bool breaks_prepared(Without x) { return breaks_compressor(x) || x == Without::prepare; }
constexpr bool breaks_combining(Without x) {
  return breaks_prepared(x) || between(x, Without::combine, Without::reproducible_const);
}
constexpr bool breaks_word_summing(Without x) { return breaks_combining(x) || x == Without::sums_words; }
constexpr bool breaks_anticipating(Without x) {
  return breaks_combining(x) || between(x, Without::interchangeable, Without::interchangeable_const);
}
constexpr bool breaks_finishing(Without x) {
  return breaks_combining(x) || between(x, Without::finish, Without::finishes_const);
}
constexpr bool breaks_adding(Without x) { return breaks_compressor(x) || x == Without::decompress_add; }
constexpr bool breaks_fixed_size(Without x) {
  return breaks_compressor(x) || between(x, Without::compressed_bytes, Without::compressed_bytes_const);
}
constexpr bool breaks_scratch(Without x) {
  return breaks_compressor(x) || between(x, Without::scratch_bytes, Without::scratch_bytes_const);
}
constexpr bool breaks_counts(Without x) { return breaks_compressor(x) || x == Without::fallback_blocks; }
constexpr bool breaks_inspecting(Without x) { return breaks_compressor(x) || x == Without::inspect; }
constexpr bool breaks_surveying(Without x) {
  return breaks_prepared(x) || between(x, Without::survey, Without::survey_const);
}
constexpr bool breaks_measuring(Without x) {
  return breaks_anticipating(x) || x == Without::compress_and_measure;
}
constexpr bool breaks_accumulating(Without x) {
  return breaks_combining(x) || between(x, Without::accumulate_values, Without::accumulates_const);
}
constexpr bool breaks_remembering(Without x) {
  return breaks_compressor(x) || between(x, Without::open, Without::greatest_const);
}

template <Without lacks> constexpr bool breaks_exactly() {
  using A = Able<lacks>;
  static_assert(Compressor<A> == !breaks_compressor(lacks));
  static_assert(BoundedCompressor<A> == !breaks_bounded(lacks));
  static_assert(PreparedCompressor<A> == !breaks_prepared(lacks));
  static_assert(CombiningCompressor<A> == !breaks_combining(lacks));
  static_assert(WordSummingCompressor<A> == !breaks_word_summing(lacks));
  static_assert(AnticipatingCompressor<A> == !breaks_anticipating(lacks));
  static_assert(FinishingCompressor<A> == !breaks_finishing(lacks));
  static_assert(AddingCompressor<A> == !breaks_adding(lacks));
  static_assert(FixedSizeCompressor<A> == !breaks_fixed_size(lacks));
  static_assert(ScratchCompressor<A> == !breaks_scratch(lacks));
  static_assert(CountsFallbacks<A> == !breaks_counts(lacks));
  static_assert(InspectingCompressor<A> == !breaks_inspecting(lacks));
  static_assert(SurveyingCompressor<A> == !breaks_surveying(lacks));
  static_assert(MeasuringCompressor<A> == !breaks_measuring(lacks));
  static_assert(AccumulatingCompressor<A> == !breaks_accumulating(lacks));
  static_assert(RememberingCompressor<A> == !breaks_remembering(lacks));
  static_assert(Compressor<Minimal<lacks>> == !breaks_compressor(lacks));
  return true;
}

template <std::size_t... each> constexpr bool all_archetypes(std::index_sequence<each...>) {
  return (breaks_exactly<static_cast<Without>(each)>() && ...);
}
static_assert(all_archetypes(std::make_index_sequence<static_cast<std::size_t>(Without::count)>{}));

// The minimal definition has no ability.
static_assert(Compressor<Minimal<>>);
static_assert(!BoundedCompressor<Minimal<>> && !PreparedCompressor<Minimal<>> &&
              !CombiningCompressor<Minimal<>>);
static_assert(!AnticipatingCompressor<Minimal<>> && !WordSummingCompressor<Minimal<>>);
static_assert(!FinishingCompressor<Minimal<>> && !AddingCompressor<Minimal<>> &&
              !FixedSizeCompressor<Minimal<>>);
static_assert(!ScratchCompressor<Minimal<>> && !CountsFallbacks<Minimal<>> &&
              !InspectingCompressor<Minimal<>>);
static_assert(!RememberingCompressor<Minimal<>> && !SurveyingCompressor<Minimal<>>);
static_assert(!MeasuringCompressor<Minimal<>> && !AccumulatingCompressor<Minimal<>>);
static_assert(!Compressor<int> && !Compressor<void*>);

}  // namespace

TEST_CASE("archetypes of the Compressor concepts break exactly their requirement", "[compressor][concept]") {
  SUCCEED("when compiled");
}
