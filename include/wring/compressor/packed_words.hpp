// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <wring/compressor/concept.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/detail/packed_words/kernels.hpp>
#include <wring/detail/sentence.hpp>
#include <wring/detail/sizes.hpp>

namespace wring::inline v0 {

/// The quanta of `Grid` in fields of 64-bit words, wide enough for the sum over all ranks: sums of words are the words of sums. Whatever adds
/// 64-bit integers adds them: the MPI library's own allreduce (`Native`), or any algorithm of this library.
///
/// Step, bound and bits of the result are those of `Grid` with the same options, on every path, as long as Grid's quanta are
/// integers; where it would send elements as they are, BoundUnattainable. All fields of a tensor have the same width, 1 + log2(2 p max|x| / D)
/// bits, so that it pays for loose bounds on up to a few hundred ranks; Grid, which looks at each block, is smaller where
/// magnitudes differ from place to place. The size is known as soon as the ranks have agreed.
///
/// NaN and infinities arrive as IEEE has it, and harm no neighbour. The ranks look for them beforehand; if there are any, on any rank, two
/// counters of log2(p) + 1 bits go with every value. -0 arrives as +0, NaN as the canonical quiet NaN.
///
/// MIN and MAX are refused (InvalidArgument, on all ranks), as is a call without a bound. Memory: none of its own.
template <FloatElement T> class PackedWords {
 public:
  using value_type = T;
  static constexpr bool sums_words = true;

  using StepKind = typename Grid<T>::StepKind;
  struct Options {
    StepKind step = StepKind::short_step;
  };

  PackedWords() = default;
  explicit PackedWords(Options options) : options_(options) {}

  Identity identity() const {
    return {"packed_words", 1,
            std::string("element=") + FloatTraits<T>::name +
                (options_.step == StepKind::power_of_two ? " step=power_of_two" : " step=short")};
  }

  /// Chooses step and width. Throws InvalidArgument for MIN and MAX and without a bound, BoundUnattainable where no integers keep it.
  void prepare(const Agreed& agreed) {
    prepared_ = false;
    parameters_ = detail::packed_words::choose_parameters<T>(agreed, options_.step == StepKind::power_of_two);
    prepared_ = true;
  }

  /// As for Grid: the error of one encoding of |values| <= max_abs with the step that was chosen; 0 before.
  double error(double max_abs) const {
    return prepared_ ? detail::grid::error_of_one<T>(parameters_.grid.step, max_abs) : 0;
  }

  /// What every piece of n values has, once prepared; before, what the widest fields need.
  std::size_t max_compressed_bytes(std::size_t n) const {
    return (prepared_ ? parameters_.layout(n) : detail::packed_words::Layout{n, {64}, 64}).bytes();
  }
  std::size_t max_combined_bytes(std::size_t n, int /*terms*/) const { return max_compressed_bytes(n); }

  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context) const {
    const Parameters p = parameters(context);
    const std::size_t size = p.layout(values.size()).bytes();
    detail::expect_space("packed_words", bytes.size(), size);
    if (detail::packed_words::encode<T>(exec, values, bytes.data(), p) > 0)
      throw CodecError("PackedWords: values exceed the magnitude that the ranks agreed upon, or are not "
                       "finite though all were "
                       "found to be");
    return size;
  }

  template <class Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context& context) const {
    const Parameters p = parameters(context);
    detail::expect_encoded("packed_words", bytes.size(), p.layout(values.size()).bytes(), values.size());
    detail::packed_words::decode<T>(exec, bytes.data(), values, p);
  }

  template <class Exec>
  std::size_t combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                      std::span<std::byte> out, const Context& context) const {
    const std::size_t size = parameters(context).layout(context.count).bytes();
    detail::expect_encoded("packed_words", a.size(), size, context.count);
    detail::expect_encoded("packed_words", b.size(), size, context.count);
    detail::expect_space("packed_words", out.size(), size);
    detail::packed_words::add(exec, a.data(), b.data(), out.data(), size);
    return size;
  }

  /// Always: integers are added.
  bool reproducible() const { return true; }

  /// The distance between neighbours on the grid; nothing before `prepare`.
  std::optional<double> step() const {
    return prepared_ ? std::optional(parameters_.grid.step) : std::nullopt;
  }

  /// Bits of a field; nothing before `prepare`.
  std::optional<int> field_bits() const {
    return prepared_ ? std::optional(parameters_.width) : std::nullopt;
  }

 private:
  using Parameters = detail::packed_words::Parameters;

  /// For one call: only complete sums of a reduction are rounded by Grid's shift and divided.
  Parameters parameters(const Context& context) const {
    if (!prepared_)
      throw CodecError("PackedWords: nothing can be encoded or decoded before prepare() has chosen a step");
    Parameters p = parameters_;
    const bool complete = reduces(context.collective) && context.phase == Phase::final;
    p.grid.shift = complete ? p.grid.shift : 0;
    p.grid.divisor = complete && context.operation == Operation::mean ? context.ranks : 1;
    return p;
  }

  Options options_;
  Parameters parameters_;
  bool prepared_ = false;
};

namespace detail {
template <class C>
concept PackedWordsAbilities =
    BoundedCompressor<C> && WordSummingCompressor<C> && !AnticipatingCompressor<C> && !FinishingCompressor<C>;
}
static_assert(detail::PackedWordsAbilities<PackedWords<float>> &&
              detail::PackedWordsAbilities<PackedWords<double>>);
static_assert(detail::PackedWordsAbilities<PackedWords<half_t>> &&
              detail::PackedWordsAbilities<PackedWords<bhalf_t>>);

}  // namespace wring::inline v0
