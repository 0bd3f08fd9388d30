// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include <wring/compressor/concept.hpp>

/// One readable sentence for each requirement that a compressor lacks. The entry points of the collectives are not constrained by
/// the concept; they call `explain_compressor`, so that a user reads sentences instead of pages of template errors.
namespace wring::inline v0::detail {

/// Arguments of the calls below, of the types that an executor passes.
template <class C, class Exec> struct Call {
  using T = typename C::value_type;
  C& codec;
  const C& constant;
  const Exec& exec;
  std::span<const T> values;
  std::span<T> decoded;
  std::span<const std::byte> encoded;
  std::span<std::byte> bytes;
  const Context& context;
  std::size_t n;
};

template <class C, class Exec> constexpr void explain_sizes() {
  static_assert(
      requires(const C& codec, std::size_t n) {
        { codec.max_compressed_bytes(n) } -> std::convertible_to<std::size_t>;
      }, "wring: the compressor has no const member max_compressed_bytes(std::size_t values) that returns "
         "the greatest number "
         "of bytes which compress can write: see docs/concepts.md");
  static_assert(
      requires(const C& codec) {
        { codec.identity() } -> std::convertible_to<Identity>;
      }, "wring: the compressor has no const member identity() that returns a wring::Identity (name, "
         "version, options): see "
         "docs/concepts.md");
}

template <class C, class Exec> constexpr void explain_calls() {
  static_assert(
      requires(Call<C, Exec> a) {
        { a.codec.compress(a.exec, a.values, a.bytes, a.context) } -> std::convertible_to<std::size_t>;
      }, "wring: the compressor has no member compress(exec, std::span<const value_type> values, "
         "std::span<std::byte> bytes, "
         "const wring::Context&) that returns the number of bytes written: see docs/concepts.md");
  static_assert(
      requires(Call<C, Exec> a) { a.codec.decompress(a.exec, a.encoded, a.decoded, a.context); },
      "wring: the compressor has no member decompress(exec, std::span<const std::byte> bytes, "
      "std::span<value_type> values, "
      "const wring::Context&): see docs/concepts.md");
}

/// `has_NAME<C>`: whether C has a member of that name, whatever its type: it is then ambiguous beside another one. (Final classes cannot
/// be asked.)
struct Nameless {};
#define WRING_FIND_MEMBER(NAME)                                                                              \
  struct Other_##NAME {                                                                                      \
    int NAME;                                                                                                \
  };                                                                                                         \
  template <class C> struct Beside_##NAME : std::conditional_t<std::is_final_v<C>, Nameless, C>,             \
                                            Other_##NAME {};                                                 \
  template <class C> inline constexpr bool has_##NAME = !requires { &Beside_##NAME<C>::NAME; };
WRING_FIND_MEMBER(compressed_bytes)
WRING_FIND_MEMBER(decompress_add)
WRING_FIND_MEMBER(fallback_blocks)
WRING_FIND_MEMBER(inspect)
WRING_FIND_MEMBER(scratch_bytes)
WRING_FIND_MEMBER(survey)
#undef WRING_FIND_MEMBER

/// Abilities of one member. A name that is there must be what it says.
template <class C, class Exec> constexpr void explain_names() {
  static_assert(
      !has_compressed_bytes<C> || FixedSizeCompressor<C, Exec>,
      "wring: the compressor has a member compressed_bytes, which must be const, take the number of values "
      "and return a size: see FixedSizeCompressor in docs/concepts.md");
  static_assert(
      !has_decompress_add<C> || AddingCompressor<C, Exec>,
      "wring: the compressor has a member decompress_add, which must take the arguments of decompress: see "
      "AddingCompressor in docs/concepts.md");
  static_assert(!has_fallback_blocks<C> || CountsFallbacks<C, Exec>,
                "wring: the compressor has a member fallback_blocks, which must be const, without arguments, "
                "and return "
                "a number: see CountsFallbacks in docs/concepts.md");
  static_assert(
      !has_inspect<C> || InspectingCompressor<C, Exec>,
      "wring: the compressor has a member inspect, which must take (exec, std::span<const value_type> "
      "values, const wring::Context&): see InspectingCompressor in docs/concepts.md");
  static_assert(
      !has_scratch_bytes<C> || ScratchCompressor<C, Exec>,
      "wring: the compressor has a member scratch_bytes, which must be const, take the number of values and "
      "return a size: see ScratchCompressor in docs/concepts.md");
  static_assert(
      !has_survey<C> || SurveyingCompressor<C, Exec>,
      "wring: the compressor has a member survey, which must be const, take exec, std::span<const "
      "value_type> "
      "values and double root_mean_square and return a number, beside prepare(const wring::Agreed&): see "
      "SurveyingCompressor in docs/concepts.md");
  constexpr bool lossless = requires { requires C::lossless; };
  static_assert(
      !lossless || LosslessCompressor<C, Exec>,
      "wring: a lossless compressor needs a const member error(double max_abs), which returns 0: see "
      "LosslessCompressor in docs/concepts.md");
  constexpr bool plain = requires { requires C::plain; };
  static_assert(!plain || PlainCompressor<C, Exec>,
                "wring: a plain compressor is lossless, too: see PlainCompressor in docs/concepts.md");
}

/// Abilities that are there by half: a misspelt or forgotten member would otherwise switch the ability off in silence.
template <class C, class Exec> constexpr void explain_abilities() {
  constexpr bool bounds = requires(C& codec) { codec.error(1.0); };
  constexpr bool combines =
      requires(Call<C, Exec> a) { a.codec.combine(a.exec, a.encoded, a.encoded, a.bytes, a.context); };
  constexpr bool finishes =
      requires(Call<C, Exec> a) { a.codec.finish(a.exec, a.encoded, a.bytes, a.context); };
  constexpr bool says_finishes = requires(C& codec) { codec.finishes(); };
  static_assert(!bounds || BoundedCompressor<C, Exec>,
                "wring: the compressor has a member error, which must be const, take max_abs and return a "
                "double: see BoundedCompressor "
                "in docs/concepts.md");
  static_assert(!combines || PreparedCompressor<C, Exec>,
                "wring: the compressor has combine but no member prepare(const wring::Agreed&): see "
                "CombiningCompressor in "
                "docs/concepts.md");
  static_assert(
      !combines ||
          requires(const C& codec, std::size_t n, int terms) {
            { codec.max_combined_bytes(n, terms) } -> std::convertible_to<std::size_t>;
          },
      "wring: the compressor has combine but no const member max_combined_bytes(std::size_t values, int "
      "terms): see "
      "CombiningCompressor in docs/concepts.md");
  static_assert(
      !combines ||
          requires(const C& codec) {
            { codec.reproducible() } -> std::convertible_to<bool>;
          },
      "wring: the compressor has combine but no const member reproducible() that returns a bool: see "
      "CombiningCompressor in "
      "docs/concepts.md");
  static_assert(
      !combines ||
          requires(Call<C, Exec> a) {
            {
              a.codec.combine(a.exec, a.encoded, a.encoded, a.bytes, a.context)
            } -> std::convertible_to<std::size_t>;
          },
      "wring: combine must return the number of bytes written: see CombiningCompressor in docs/concepts.md");
  constexpr bool widens = requires { requires C::has_wide_form; };
  static_assert(!widens || WideFormCompressor<C, Exec>,
                "wring: a compressor with a wide form needs combine with all that belongs to it: see "
                "WideFormCompressor in docs/concepts.md");
  constexpr bool sums = requires { requires C::sums_words; };
  static_assert(!sums || WordSummingCompressor<C, Exec>,
                "wring: a compressor that sums words needs combine with all that belongs to it: see "
                "WordSummingCompressor in "
                "docs/concepts.md");
  constexpr bool anticipates = requires(C& codec) { codec.interchangeable(codec); };
  static_assert(
      !anticipates || AnticipatingCompressor<C, Exec>,
      "wring: an anticipating compressor needs combine with all that belongs to it, and a const member "
      "interchangeable(other) that returns a bool: see AnticipatingCompressor in docs/concepts.md");
  constexpr bool measures = requires(Call<C, Exec> a, double& max_abs) {
    a.codec.compress_and_measure(a.exec, a.values, a.bytes, a.context, max_abs);
  };
  static_assert(!measures || MeasuringCompressor<C, Exec>,
                "wring: a measuring compressor needs interchangeable and combine with all that belongs to "
                "them, and compress_and_measure must return the number of bytes written: see "
                "MeasuringCompressor in docs/concepts.md");
  constexpr bool accumulates = requires(Call<C, Exec> a) {
    a.codec.accumulate(a.exec, a.values, a.encoded, a.bytes, a.decoded, a.context);
  };
  constexpr bool says_accumulates = requires(C& codec) { codec.accumulates(); };
  static_assert(!(accumulates || says_accumulates) || AccumulatingCompressor<C, Exec>,
                "wring: an accumulating compressor needs combine with all that belongs to it, "
                "accumulate(exec, own, piece, out, result, context) for values and for bytes as `own`, that "
                "returns the number of bytes written, and a const member accumulates(): see "
                "AccumulatingCompressor in docs/concepts.md");
  constexpr bool remembers = requires(C& codec, const Opening& opening) { codec.open(opening); };
  constexpr bool closes = requires(C& codec) { codec.close(true); };
  static_assert(
      !(remembers || closes) || RememberingCompressor<C, Exec>,
      "wring: a remembering compressor needs open(const wring::Opening&), begin(exec, std::uint64_t), "
      "close(bool) noexcept, and "
      "const members history() and greatest(exec, max_abs) that return numbers: see "
      "RememberingCompressor in docs/concepts.md");
  static_assert(!(finishes || says_finishes) || FinishingCompressor<C, Exec>,
                "wring: a finishing compressor needs combine with all that belongs to it, finish(exec, sum, "
                "out, context) that returns "
                "the number of bytes written, and a const member finishes(): see FinishingCompressor in "
                "docs/concepts.md");
}

/// Refuses what is no compressor, with one sentence for each requirement that it lacks.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace> constexpr void explain_compressor() {
  static_assert(std::copy_constructible<C>, "wring: the compressor cannot be copied; an operation keeps a "
                                            "copy of it, let it refer to what must not be copied: see "
                                            "docs/concepts.md");
  static_assert(
      requires { typename C::value_type; }, "wring: the compressor has no member type value_type, the type "
                                            "of the values that it encodes: see docs/concepts.md");
  explain_sizes<C, Exec>();
  if constexpr (requires { typename C::value_type; }) {
    static_assert(ElementType<typename C::value_type>,
                  "wring: the compressor's value_type is no element type: float, double, wring::half_t, "
                  "wring::bhalf_t, an integer or a "
                  "complex number: see docs/concepts.md");
    explain_calls<C, Exec>();
    if constexpr (Compressor<C, Exec>) explain_abilities<C, Exec>(), explain_names<C, Exec>();
  }
}

/// Refuses a bound on the result where the compressor promises none.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace> constexpr void explain_bound() {
  static_assert(BoundedCompressor<C, Exec>,
                "wring: this compressor promises no bound, so a bound on the result cannot be asked for; use "
                "Grid or None, or give the "
                "compressor a const member error(double max_abs): see BoundedCompressor in docs/concepts.md");
}

}  // namespace wring::inline v0::detail
