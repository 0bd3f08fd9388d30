// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <wring/compressor/concept.hpp>
#include <wring/detail/grid/accumulate.hpp>
#include <wring/detail/grid/combine.hpp>
#include <wring/detail/grid/decode.hpp>
#include <wring/detail/grid/encode.hpp>
#include <wring/detail/grid/prepare.hpp>
#include <wring/detail/grid/team/kernels.hpp>
#include <wring/detail/spaces.hpp>

namespace wring::inline v0 {

template <FloatElement T> class EntropyGrid;
template <FloatElement T> class Gradient;

/// Values rounded to multiples of a step that all ranks share, packed in as few bits as each block of 512
/// needs.
///
/// Quanta add as integers, so a reduction is exact but for the rounding of the inputs and of the result: its
/// bound is arithmetic, and its bits are the same for every algorithm, order of ranks, number of threads,
/// compiler setting and backend. Special values travel beside the quanta with the meaning that IEEE gives
/// them. -0 arrives as +0, NaN as the canonical quiet NaN.
///
/// The step follows from what all ranks agreed upon (`prepare`): it is the greatest one with which |result -
/// exact| stays within the bound. Where no integer grid is wide enough, elements are sent as they are and
/// combined in the order of the plan; `reproducible()` is then false for sums. Memory: none of its own. Half
/// types are computed in float.
template <FloatElement T> class Grid {
 public:
  using value_type = T;
  static constexpr bool has_wide_form = true;

  enum class StepKind {
    short_step,    ///< 8..15 times a power of two: costs 0.08 bits on average against an arbitrary step
    power_of_two,  ///< a little faster, costs half a bit on average
  };

  struct Options {
    StepKind step = StepKind::short_step;
    /// Differences of neighbours are packed instead of values: for smooth fields. Not used for MIN and MAX.
    bool delta = false;
  };

  Grid() = default;
  explicit Grid(Options options) : options_(options) {}

  Identity identity() const {
    return {"grid", 1,
            std::string("element=") + FloatTraits<T>::name +
                (options_.step == StepKind::power_of_two ? " step=power_of_two" : " step=short") +
                (options_.delta ? " delta=on" : " delta=off")};
  }

  /// Chooses step and form. Throws InvalidArgument without a bound, BoundUnattainable where none of them
  /// keeps it.
  void prepare(const Agreed& agreed) {
    prepared_ = false;
    take(detail::grid::choose_parameters<T>(agreed, options_.step == StepKind::power_of_two, options_.delta),
         agreed);
  }

  /// The error of one encoding of |values| <= max_abs with the step that was chosen; 0 before, for any error
  /// can be prepared for.
  double error(double max_abs) const {
    if (!prepared_ || parameters_.form == Form::values) return 0;
    return detail::grid::error_of_one<T>(parameters_.step, max_abs);
  }

  std::size_t max_compressed_bytes(std::size_t n) const {
    using namespace detail::grid;
    const std::size_t values = n > std::numeric_limits<std::size_t>::max() / sizeof(T) - 63
                                   ? std::numeric_limits<std::size_t>::max()
                                   : padded(n * sizeof(T));
    if (!prepared_) return std::max(values, largest_piece<i64>(n, options_.delta, sizeof(T)));
    if (parameters_.form == Form::values) return values;
    const std::size_t raw = parameters_.raw_blocks ? sizeof(T) : 0;
    return parameters_.form == Form::int32
               ? largest_piece<i32>(n, parameters_.delta, raw, widths_of<i32>(parameters_).widest)
               : largest_piece<i64>(n, parameters_.delta, raw, widths_of<i64>(parameters_).widest);
  }
  std::size_t max_combined_bytes(std::size_t n, int /*terms*/) const { return max_compressed_bytes(n); }

  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context) {
    const Parameters p = parameters(context);
    if constexpr (detail::RunsOnHost<Exec>) {
      const std::size_t size = detail::grid_encode<T>(exec, values, bytes, p);
      if (p.raw_blocks && p.form != Form::values)
        fallback_blocks_ += count_raw(bytes.first(detail::grid::blocks_of(values.size())));
      return size;
    } else {
      return detail::team_grid_encode<T>(exec, values, bytes, p);
    }
  }

  /// The bound of the magnitudes is a power of two times the step. Hosts only.
  template <class Exec>
    requires detail::RunsOnHost<Exec>
  std::size_t compress_and_measure(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                                   const Context& context, double& max_abs) {
    const Parameters p = parameters(context);
    const detail::grid::Progress total =
        detail::grid_encode_and_measure<T>(exec, values, bytes, p, detail::grid::best_kernels());
    const bool known = total.too_large == 0 && p.form != Form::values;
    const double most = known ? (std::ldexp(1.0, static_cast<int>(std::bit_width(total.quanta))) + 1) * p.step
                              : std::numeric_limits<double>::infinity();
    max_abs = std::max(max_abs, most);
    return total.out;
  }

  /// Only quanta in int32 are added in one pass. Hosts only.
  bool accumulates() const { return prepared_ && parameters_.form == Form::int32; }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  std::size_t accumulate(const Exec& exec, std::span<const T> values, std::span<const std::byte> piece,
                         std::span<std::byte> out, std::span<T> result, const Context& context) const {
    return accumulate(exec, values, {}, piece, out, result, context);
  }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  std::size_t accumulate(const Exec& exec, std::span<const std::byte> own, std::span<const std::byte> piece,
                         std::span<std::byte> out, std::span<T> result, const Context& context) const {
    return accumulate(exec, {}, own, piece, out, result, context);
  }

  template <class Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context& context) const {
    if constexpr (detail::RunsOnHost<Exec>)
      detail::grid_decode<T>(exec, bytes, values, parameters(context), is_streamed(context));
    else
      detail::team_grid_decode<T>(exec, bytes, values, parameters(context));
  }

  template <class Exec>
  std::size_t combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                      std::span<std::byte> out, const Context& context) const {
    const Parameters p = parameters(context);
    if constexpr (detail::RunsOnHost<Exec>)
      return detail::grid_combine<T>(exec, a, b, context.count, out, context.operation, p);
    else
      return detail::team_grid_combine<T>(exec, a, b, context.count, out, context.operation, p);
  }

  /// Whether two objects were given the same parameters by `prepare`. Inputs are too large for those that serve zeros where they call
  /// for int64 sums or for raw elements, or where rounding the result takes a part of the bound that shows in the step.
  bool interchangeable(const Grid& other) const {
    return prepared_ && other.prepared_ && parameters_.reads_like(other.parameters_);
  }

  /// Exact, hence the same bits in any order: always on integers; elements themselves only where nothing is
  /// added.
  bool reproducible() const { return exact_; }

  bool finishes() const { return prepared_ && parameters_.shift != 0; }

  template <class Exec>
  std::size_t finish(const Exec& exec, std::span<const std::byte> sum, std::span<std::byte> out,
                     const Context& context) const {
    Parameters p = parameters(context);
    p.shift = parameters_.shift;
    if constexpr (detail::RunsOnHost<Exec>)
      return detail::grid_finish<T>(exec, sum, context.count, out, p);
    else
      return detail::team_grid_finish<T>(exec, sum, context.count, out, p);
  }

  /// Blocks stored as they were, in broadcast and allgather on the host, since the object was made.
  std::uint64_t fallback_blocks() const { return fallback_blocks_; }

  /// The distance between neighbours on the grid; nothing before `prepare`, and where elements are sent as
  /// they are.
  std::optional<double> step() const {
    if (!prepared_ || parameters_.form == Form::values) return std::nullopt;
    return parameters_.step;
  }

 private:
  using Parameters = detail::GridParameters;
  using Form = Parameters::Form;

  void take(const Parameters& parameters, const Agreed& agreed) {
    parameters_ = parameters;
    exact_ = parameters_.form != Form::values || !reduces(agreed.collective) || !adds(agreed.operation);
    prepared_ = true;
  }

  /// Large tensors are decoded past the caches.
  static bool is_streamed(const Context& context) { return context.total >= (32u << 20) / sizeof(T); }

  /// For one call: only complete sums of a reduction have been rounded by the shift, and only those are
  /// divided.
  Parameters parameters(const Context& context) const {
    if (!prepared_)
      throw CodecError("Grid: nothing can be encoded or decoded before prepare() has chosen a step");
    Parameters p = parameters_;
    const bool complete = reduces(context.collective) && context.phase == Phase::final;
    p.shift = complete ? p.shift : 0;
    p.divisor = complete && context.operation == Operation::mean ? context.ranks : 1;
    p.wide = context.wide && reduces(context.collective);  // where nothing is added, outliers need raw blocks
    return p;
  }

  template <class Exec>
  std::size_t accumulate(const Exec& exec, std::span<const T> values, std::span<const std::byte> own,
                         std::span<const std::byte> piece, std::span<std::byte> out, std::span<T> result,
                         const Context& context) const {
    Context complete = context;
    complete.phase = Phase::final;
    return detail::grid_accumulate<T>(exec, values, own, piece, context.count, out, result, context.operation,
                                      parameters(context), parameters(complete), detail::grid::best_kernels(),
                                      is_streamed(context));
  }

  static std::uint64_t count_raw(std::span<const std::byte> descriptors) {
    std::uint64_t raw = 0;
    for (const std::byte d : descriptors) raw += static_cast<unsigned>(d) == detail::grid::raw_width;
    return raw;
  }

  friend class EntropyGrid<T>;
  friend class Gradient<T>;

  Options options_;
  Parameters parameters_;
  bool prepared_ = false;
  bool exact_ = true;
  std::uint64_t fallback_blocks_ = 0;
};

namespace detail {
template <class C>
concept GridAbilities = BoundedCompressor<C> && FinishingCompressor<C> && MeasuringCompressor<C> &&
                        AccumulatingCompressor<C> && CountsFallbacks<C>;
}
static_assert(detail::GridAbilities<Grid<float>> && detail::GridAbilities<Grid<double>>);
static_assert(detail::GridAbilities<Grid<half_t>> && detail::GridAbilities<Grid<bhalf_t>>);

}  // namespace wring::inline v0
