// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include <fmt/format.h>

#include <wring/compressor/concept.hpp>
#include <wring/compressor/entropy_grid.hpp>
#include <wring/detail/gradient/shape.hpp>
#include <wring/detail/gradient/step.hpp>
#include <wring/detail/spaces.hpp>
#include <wring/error.hpp>
#include <wring/rounding.hpp>

namespace wring::inline v0 {

/// The compressor for gradients: a step that all ranks share, values become multiples of it, sooner the lower one, and these are coded in
/// few bits, by the scale of each block and, where rows of 128 to 1024 values show, by the magnitudes in its column so far. Sums are sums of
/// integers, as with Grid: the same bits for every algorithm, order of ranks, number of threads and backend.
///
/// Without a bound in the call, the step follows from `Options::target`, the squared error that is aimed at, as a part of the squared
/// values: |x - C(x)|^2 = target |x|^2. Every rank finds the step that does so for its own values, from a sample of them, in units of
/// their root mean square; the least of these, times the root mean square of all ranks' inputs, is the step of all. A rank whose values are
/// like the others' has that error, but for the sample's and for the choice of steps (1/8 to 1/15 apart):
/// within 20 % of it on real gradients.
///
/// With a bound in the call, that is kept, as by Grid: the target does not count, and values become the nearest multiple.
///
/// With stochastic rounding results are right on average; draws depend on what StochasticRounding says, not on how a tensor is cut. A value of
/// so many steps that its type hardly resolves them (2^22 in float, 2^9 and 2^6 in the half types) is rounded to the nearest. With a bound the
/// step is half as large as with nearest rounding.
///
/// Values of which all are below the least step (2^-1021, for double) stay as they are. Special values as with Grid. Cost on one core with AVX-512, coded: 0.8 to 1.2 GB/s of floats to encode, 1.8 to 2.5 to
/// decode; the survey about 0.15 ms, beside the pass for the magnitudes. Scratch memory: three Grid pieces and the values. Hosts
/// only.
template <FloatElement T> class Gradient {
 public:
  using value_type = T;
  static constexpr bool has_wide_form = true;

  /// coded: through the entropy stage. packed: as Grid packs its blocks, in up to 2 bits more, many times as fast. automatic: packed on
  /// links that are known, by the machine of `Automatic`, to bring each rank more than `fast_link`; else coded.
  enum class Form { automatic, coded, packed };

  /// Bytes per second: where one core that codes, adds and decodes is about as fast as the link.
  static constexpr double fast_link = 1e8;

  struct Options {
    double target = 1e-2;  ///< 0 < target < 1; where the call has no bound
    Rounding rounding = NearestRounding{};
    /// Magnitudes are rounded up from so many steps above a multiple on, 1/2 to 1; with nearest rounding and no bound. 1/2 rounds to the
    /// nearest; without a value it grows with the step, from 0.52 to 0.75. Fewer bits at the same error; but what is small is lost, again
    /// and again unless errors are fed back.
    std::optional<double> dead_zone = std::nullopt;
    Form form = Form::automatic;
    friend bool operator==(const Options&, const Options&) = default;
  };

  Gradient() = default;
  explicit Gradient(const Options& options) : options_(options) {}

  const Options& options() const noexcept { return options_; }

  Identity identity() const {
    const auto* stochastic = std::get_if<StochasticRounding>(&options_.rounding);
    return {.name = "gradient",
            .version = 1,
            .options = fmt::format(
                "element={} target={} dead_zone={} rounding={} form={}", FloatTraits<T>::name,
                options_.target, options_.dead_zone ? fmt::format("{}", *options_.dead_zone) : "by_step",
                stochastic ? fmt::format("stochastic seed={}", stochastic->seed) : std::string("nearest"),
                static_cast<int>(options_.form))};
  }

  /// The step, in units of the root mean square, with which these values have the target's error. Throws InvalidArgument where options are
  /// out of range.
  template <class Exec>
    requires detail::RunsOnHost<Exec>
  double survey(const Exec& exec, std::span<const T> values, double root_mean_square) const {
    exec.fence("wring::survey");
    expect_options();
    return detail::gradient::step_for(values, root_mean_square, options_.target,
                                      [this](double step) { return rule(step); });
  }

  /// Throws InvalidArgument where there is neither a bound nor a survey, or where options are out of range; BoundUnattainable as Grid does.
  void prepare(const Agreed& agreed) {
    entropy_.grid_.prepared_ = false;
    expect_options();
    const bool packed =
        options_.form == Form::packed || (options_.form == Form::automatic && agreed.wire_speed > fast_link);
    entropy_.options_.stage = packed ? Entropy::Stage::nowhere : Entropy::Stage::everywhere;
    less_ = 0;
    if (agreed.allowed_error)
      prepare_for_bound(agreed);
    else
      prepare_for_target(agreed);
  }

  double error(double max_abs) const {
    using detail::grid::up;
    if (draws()) return 2 * entropy_.error(max_abs);
    return less_ == 0 ? entropy_.error(max_abs)
                      : up(entropy_.error(max_abs) + up(less_ + FloatTraits<T>::unit_roundoff * max_abs));
  }
  bool reproducible() const { return entropy_.reproducible(); }
  std::optional<double> step() const { return entropy_.step(); }
  bool interchangeable(const Gradient& other) const {
    return less_ == other.less_ && entropy_.interchangeable(other.entropy_);
  }
  std::uint64_t fallback_blocks() const { return entropy_.fallback_blocks(); }

  std::size_t max_compressed_bytes(std::size_t n) const { return entropy_.max_compressed_bytes(n); }
  std::size_t max_combined_bytes(std::size_t n, int terms) const {
    return entropy_.max_combined_bytes(n, terms);
  }
  std::size_t scratch_bytes(std::size_t n) const { return shaped_bytes(n) + entropy_.scratch_bytes(n); }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context) {
    const detail::gradient::Shape shape = this->shape(context);
    if (!shape.changes()) return entropy_.compress(exec, values, bytes, inner(context));
    if (entropy_.codes(context) && entropy_.quanta_are_coded())
      return entropy_.compress(exec, values, bytes, context, detail::gradient::ShapeBlock<T>{shape});
    const Context rest = inner(context);
    T* const shaped = reinterpret_cast<T*>(context.scratch.data());
    detail::gradient::shape_values(exec, shape, values, shaped);
    return entropy_.compress(exec, std::span<const T>(shaped, values.size()), bytes, rest);
  }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context& context) const {
    entropy_.decompress(exec, bytes, values, inner(context));
  }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  std::size_t combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                      std::span<std::byte> out, const Context& context) const {
    return entropy_.combine(exec, a, b, out, inner(context));
  }

  bool finishes() const { return entropy_.finishes(); }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  std::size_t finish(const Exec& exec, std::span<const std::byte> sum, std::span<std::byte> out,
                     const Context& context) const {
    return entropy_.finish(exec, sum, out, inner(context));
  }

 private:
  using Entropy = EntropyGrid<T>;

  bool draws() const { return std::holds_alternative<StochasticRounding>(options_.rounding); }

  /// With a step in units of the root mean square.
  detail::gradient::Rule rule(double step) const {
    using detail::gradient::Rule;
    return {options_.dead_zone ? static_cast<std::int32_t>(std::lround(*options_.dead_zone * Rule::unit))
                               : detail::gradient::dead_zone_for(step),
            draws()};
  }

  void expect_options() const {
    if (!(options_.target > 0 && options_.target < 1))
      throw InvalidArgument(fmt::format("Gradient: the target {} is not between 0 and 1", options_.target));
    if (const auto zone = options_.dead_zone; zone && !(*zone >= 0.5 && *zone <= 1))
      throw InvalidArgument(fmt::format("Gradient: the dead zone {} is not from 0.5 to 1", *zone));
  }

  /// The greatest magnitude of a multiple that may be drawn for values up to max_abs. Infinite ones are not.
  static double drawn_max(double max_abs, double step) {
    return std::min(detail::grid::up(max_abs + step), std::numeric_limits<double>::max());
  }

  /// Drawn values may be a whole step off, which is what is promised for half the bound.
  void prepare_for_bound(Agreed agreed) {
    if (!draws()) return entropy_.prepare(agreed);
    const double error = *agreed.allowed_error;
    *agreed.allowed_error /= 2;
    try {
      entropy_.prepare(agreed);
      if (!step() || agreed.max_abs == 0) return;
      agreed.max_abs = drawn_max(agreed.max_abs, *step());
      entropy_.prepare(agreed);
    } catch (const BoundUnattainable& refusal) {
      throw BoundUnattainable(fmt::format("Gradient: stochastic rounding takes half of the bound of {:g}: {}",
                                          error, refusal.what()));
    }
  }

  void prepare_for_target(const Agreed& agreed) {
    using namespace detail::grid;
    const double unit = agreed.root_mean_square;
    const bool vanishes = agreed.max_abs > 0 && agreed.max_abs < 0x1p-1000 && unit == 0;  // below all steps
    if (!agreed.measured || (agreed.max_abs > 0 && !vanishes && !(agreed.survey > 0 && unit > 0)))
      throw InvalidArgument("Gradient needs a bound on the result, or the agreement's survey of the values");
    const double wanted = agreed.max_abs > 0 ? agreed.survey * unit : 1;
    const double most =
        draws() && agreed.max_abs > 0 ? drawn_max(agreed.max_abs, 2 * wanted) : agreed.max_abs;
    const detail::grid::Request request{
        agreed.collective, agreed.operation, agreed.ranks, most, 0, false, false, agreed.wide};
    entropy_.grid_.take(with_step<T>(request, wanted), agreed);
    if (const auto d = step(); d && !draws() && unit > 0) {
      using detail::gradient::Rule;
      less_ = (rule(agreed.survey).up - Rule::unit / 2) * (*d / Rule::unit);
    }
  }

  detail::gradient::Shape shape(const Context& context) const {
    detail::gradient::Shape s{.less = less_};
    const auto d = step();
    if (!d || !draws()) return s;
    s.draws = true, s.kernels = detail::gradient::best_draw_kernels(), s.step = *d, s.inverse = 1 / *d,
    s.first = context.first;
    s.random = detail::RandomStream::of_encoding(std::get<StochasticRounding>(options_.rounding).seed,
                                                 detail::Purpose::rounding, context);
    return s;
  }

  static constexpr std::size_t shaped_bytes(std::size_t n) { return detail::grid::padded(n * sizeof(T)); }

  /// The scratch memory that is left to the entropy stage.
  Context inner(const Context& context) const {
    const std::size_t own = shaped_bytes(context.count);
    if (context.scratch.size() < own)
      throw CodecError("Gradient: scratch memory of scratch_bytes() is missing");
    Context rest = context;
    rest.scratch = context.scratch.subspan(own);
    return rest;
  }

  Options options_;
  Entropy entropy_{detail::entropy::Tries{.tables = true, .own = true}};
  double less_ = 0;  ///< what magnitudes lose before they are rounded to the nearest
};

namespace detail {
template <class C>
concept GradientAbilities = EntropyGridAbilities<C> && SurveyingCompressor<C>;
}
static_assert(detail::GradientAbilities<Gradient<float>> && detail::GradientAbilities<Gradient<double>>);
static_assert(detail::GradientAbilities<Gradient<half_t>> && detail::GradientAbilities<Gradient<bhalf_t>>);

}  // namespace wring::inline v0
