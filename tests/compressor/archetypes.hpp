// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <wring/compressor/concept.hpp>

/// Archetypes: the least that each concept asks for, and the same without one requirement at a time.
namespace archetype {

enum class Without {
  nothing,
  copying,
  value_type,
  element_type,
  max_compressed_bytes,
  max_compressed_bytes_const,
  compress,
  compress_result,
  decompress,
  identity,
  identity_const,
  identity_type,
  error,
  error_const,
  prepare,
  combine,
  combine_result,
  max_combined_bytes,
  max_combined_bytes_const,
  reproducible,
  reproducible_const,
  interchangeable,
  interchangeable_const,
  finish,
  finish_result,
  finishes,
  finishes_const,
  decompress_add,
  compressed_bytes,
  compressed_bytes_const,
  scratch_bytes,
  scratch_bytes_const,
  fallback_blocks,
  inspect,
  survey,
  survey_const,
  compress_and_measure,
  accumulate_values,
  accumulate_pieces,
  accumulates,
  accumulates_const,
  open,
  begin,
  close,
  close_noexcept,
  history,
  history_const,
  greatest,
  greatest_const,
  sums_words,
  count  ///< how many there are
};

struct NoValueType {};
template <class T> struct ValueType {
  using value_type = T;
};
template <Without lacks>
using ValueTypeOf =
    std::conditional_t<lacks == Without::value_type, NoValueType,
                       ValueType<std::conditional_t<lacks == Without::element_type, void*, float>>>;

using Bytes = std::span<const std::byte>;
using Space = std::span<std::byte>;
using wring::Context;

/// The minimal definition, and nothing else.
template <Without lacks = Without::nothing> struct Minimal : ValueTypeOf<lacks> {
  using V = std::conditional_t<lacks == Without::element_type, void*, float>;
  using Size = std::size_t;
  struct NoSize {};

  Minimal() = default;
  Minimal(const Minimal&)
    requires(lacks != Without::copying)
  = default;
  Minimal(const Minimal&)
    requires(lacks == Without::copying)
  = delete;
  Minimal& operator=(const Minimal&) = delete;

  Size max_compressed_bytes(Size) const
    requires(lacks != Without::max_compressed_bytes && lacks != Without::max_compressed_bytes_const);
  Size max_compressed_bytes(Size)
    requires(lacks == Without::max_compressed_bytes_const);

  template <class Exec>
    requires(lacks != Without::compress)
  std::conditional_t<lacks == Without::compress_result, NoSize, Size>
  compress(const Exec&, std::span<const V>, Space, const Context&);

  template <class Exec>
    requires(lacks != Without::decompress)
  void decompress(const Exec&, Bytes, std::span<V>, const Context&);

  std::conditional_t<lacks == Without::identity_type, NoSize, wring::Identity> identity() const
    requires(lacks != Without::identity && lacks != Without::identity_const);
  wring::Identity identity()
    requires(lacks == Without::identity_const);
};

struct SumsWords {
  static constexpr bool sums_words = true;
};
struct SumsNoWords {};

/// All abilities at once.
template <Without lacks = Without::nothing>
struct Able : Minimal<lacks>, std::conditional_t<lacks == Without::sums_words, SumsNoWords, SumsWords> {
  using typename Minimal<lacks>::V;
  using typename Minimal<lacks>::Size;
  using typename Minimal<lacks>::NoSize;

  double error(double) const
    requires(lacks != Without::error && lacks != Without::error_const);
  double error(double)
    requires(lacks == Without::error_const);

  void prepare(const wring::Agreed&)
    requires(lacks != Without::prepare);

  Size max_combined_bytes(Size, int) const
    requires(lacks != Without::max_combined_bytes && lacks != Without::max_combined_bytes_const);
  Size max_combined_bytes(Size, int)
    requires(lacks == Without::max_combined_bytes_const);
  template <class Exec>
    requires(lacks != Without::combine)
  std::conditional_t<lacks == Without::combine_result, NoSize, Size> combine(const Exec&, Bytes, Bytes, Space,
                                                                             const Context&);
  bool reproducible() const
    requires(lacks != Without::reproducible && lacks != Without::reproducible_const);
  bool reproducible()
    requires(lacks == Without::reproducible_const);

  bool interchangeable(const Able&) const
    requires(lacks != Without::interchangeable && lacks != Without::interchangeable_const);
  bool interchangeable(const Able&)
    requires(lacks == Without::interchangeable_const);

  template <class Exec>
    requires(lacks != Without::finish)
  std::conditional_t<lacks == Without::finish_result, NoSize, Size> finish(const Exec&, Bytes, Space,
                                                                           const Context&);
  bool finishes() const
    requires(lacks != Without::finishes && lacks != Without::finishes_const);
  bool finishes()
    requires(lacks == Without::finishes_const);

  template <class Exec>
    requires(lacks != Without::decompress_add)
  void decompress_add(const Exec&, Bytes, std::span<V>, const Context&);

  Size compressed_bytes(Size) const
    requires(lacks != Without::compressed_bytes && lacks != Without::compressed_bytes_const);
  Size compressed_bytes(Size)
    requires(lacks == Without::compressed_bytes_const);
  Size scratch_bytes(Size) const
    requires(lacks != Without::scratch_bytes && lacks != Without::scratch_bytes_const);
  Size scratch_bytes(Size)
    requires(lacks == Without::scratch_bytes_const);
  std::uint64_t fallback_blocks() const
    requires(lacks != Without::fallback_blocks);
  template <class Exec>
    requires(lacks != Without::inspect)
  void inspect(const Exec&, std::span<const V>, const Context&);

  template <class Exec>
    requires(lacks != Without::survey && lacks != Without::survey_const)
  double survey(const Exec&, std::span<const V>, double) const;
  template <class Exec>
    requires(lacks == Without::survey_const)
  double survey(const Exec&, std::span<const V>, double);
  template <class Exec>
    requires(lacks != Without::compress_and_measure)
  Size compress_and_measure(const Exec&, std::span<const V>, Space, const Context&, double&);

  template <class Exec>
    requires(lacks != Without::accumulate_values)
  Size accumulate(const Exec&, std::span<const V>, Bytes, Space, std::span<V>, const Context&);
  template <class Exec>
    requires(lacks != Without::accumulate_pieces)
  Size accumulate(const Exec&, Bytes, Bytes, Space, std::span<V>, const Context&);
  bool accumulates() const
    requires(lacks != Without::accumulates && lacks != Without::accumulates_const);
  bool accumulates()
    requires(lacks == Without::accumulates_const);

  void open(const wring::Opening&)
    requires(lacks != Without::open);
  template <class Exec>
    requires(lacks != Without::begin)
  void begin(const Exec&, std::uint64_t);
  void close(bool) noexcept(lacks != Without::close_noexcept)
    requires(lacks != Without::close);
  std::uint64_t history() const
    requires(lacks != Without::history && lacks != Without::history_const);
  std::uint64_t history()
    requires(lacks == Without::history_const);
  template <class Exec>
    requires(lacks != Without::greatest && lacks != Without::greatest_const)
  double greatest(const Exec&, double) const;
  template <class Exec>
    requires(lacks == Without::greatest_const)
  double greatest(const Exec&, double);
};

}  // namespace archetype
