// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <wring/compressor/concept.hpp>
#include <wring/detail/feedback/kernels.hpp>
#include <wring/detail/feedback/memory.hpp>
#include <wring/detail/feedback/saved.hpp>
#include <wring/detail/sizes.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>

namespace wring::inline v0 {

template <class Inner, class Space> class ErrorFeedback;

/// How residuals are kept. `eight_bits`: in groups of 128 with a scale each, 1.03 bytes a value (1.06 for double). They are rounded at
/// random by up to a 127th of the greatest in their group, so that what storing them loses is zero on average, but not made good: the sum of
/// T results is off by about sqrt(T) such roundings more. Ranks that encode the same sum round alike. Groups whose greatest is below
/// 127 * 2^-116 are zeros.
enum class ResidualStorage { full, eight_bits };

/// What error feedback keeps on one rank: for every encoding that the rank performs, what was lost in it. Owned by the caller; one for each
/// object that calls a collective, or for each tensor if there are several of the same length. Tensors of a group are told apart by their
/// place in it.
///
/// Residuals are float for float and the 16-bit types, double for double, in memory that `Space` names: one vector of the tensor for each
/// encoding of an element (one where every element is encoded once, as in `Ring` and `Direct`; one more with `Grid` on more than four
/// ranks; log2 p with `RecursiveDoubling`), allocated when first needed.
///
/// Where operations come to move the tensor in another way (another algorithm, what else `Automatic` chooses, other tensors in the
/// group), what this rank owes by itself is carried over, to its first encoding of each element; that synchronises, and may allocate. What
/// several ranks owe in common, having encoded the same partial sum (`RecursiveDoubling`), stays until the tensor is moved in that way again, as does what
/// is owed to copies from another root.
template <FloatElement T, class Space = Kokkos::HostSpace> class FeedbackState {
 public:
  using value_type = T;
  using residual_type = typename FloatTraits<T>::Wide;

  explicit FeedbackState(ResidualStorage storage = ResidualStorage::full)
      : memory_(std::make_shared<Memory>()) {
    memory_->eight_bits = storage == ResidualStorage::eight_bits;
  }
  FeedbackState(FeedbackState&&) noexcept = default;
  FeedbackState& operator=(FeedbackState&&) noexcept = default;
  FeedbackState(const FeedbackState&) = delete;
  FeedbackState& operator=(const FeedbackState&) = delete;

  /// Operations completed on a tensor of the group.
  std::uint64_t steps(std::size_t item = 0) const {
    return item < memory_->tensors.size() && memory_->tensors[item] ? memory_->tensors[item]->steps : 0;
  }

  /// What this rank has lost in its encodings number `encoding` of each element, in units of sums, of MEAN as well: as many doubles as
  /// the tensor has elements, or none. Of all courses together. Synchronises.
  std::vector<double> residuals(std::size_t item = 0, int encoding = 0) const;

  /// Forgets everything: on all ranks, or their next operation is refused. Throws InvalidArgument while an operation is in flight.
  void reset() {
    expect_idle();
    const bool eight_bits = memory_->eight_bits;
    *memory_ = Memory();
    memory_->eight_bits = eight_bits;
  }

  /// All of it as bytes (docs/stream_format.md), with number of rank and ranks. Throws InvalidArgument while an operation is in flight,
  /// and after one that has failed on its way.
  std::vector<std::byte> save() const {
    expect_idle();
    if (memory_->damaged())
      throw InvalidArgument("a feedback state that an operation has left halfway cannot be saved");
    return detail::feedback::save<T>(*memory_);
  }

  /// Takes over what `save` wrote, and drops what was here. Throws InvalidArgument for bytes of another version, byte order, element type,
  /// storage or length, and for damaged ones: nothing is changed then. A state of another rank, or of another number of ranks, is
  /// refused by the next operation, on all ranks.
  void restore(std::span<const std::byte> bytes) {
    expect_idle();
    *memory_ = detail::feedback::restored<T, residual_type, Space>(bytes, memory_->eight_bits);
  }

 private:
  using Memory = detail::feedback::Memory<residual_type, Space>;
  template <class Inner, class S> friend class ErrorFeedback;

  void expect_idle() const {
    if (memory_->in_flight())
      throw InvalidArgument("an operation with this feedback state is in flight: wait for it");
  }

  std::shared_ptr<Memory> memory_;
};

namespace detail::feedback {

/// Abilities that are known by their names: a compressor with feedback has those that the one inside has.
struct NoFixedSize {};
template <class Derived> struct ForwardsFixedSize {
  std::size_t compressed_bytes(std::size_t n) const {
    return static_cast<const Derived*>(this)->inner().compressed_bytes(n);
  }
};
template <class Derived> struct ForwardsFallbacks {
  std::uint64_t fallback_blocks() const {
    return static_cast<const Derived*>(this)->inner().fallback_blocks();
  }
};
template <class Derived, class T> struct ForwardsAdding {
  template <class Exec>
  void decompress_add(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                      const Context& context) {
    auto& self = *static_cast<Derived*>(this);
    self.inner_.decompress_add(exec, bytes, values, self.for_inner(context));
  }
};
/// Shows the compressor inside what it will be given: values with what is owed to them.
template <class Derived, class T> struct ForwardsInspecting {
  template <class Exec> void inspect(const Exec& exec, std::span<const T> values, const Context& context) {
    static_cast<Derived*>(this)->show(exec, values, context);
  }
};
/// What a step is found from: the values as they are.
template <class Derived, class T> struct ForwardsSurveying {
  template <class Exec>
  double survey(const Exec& exec, std::span<const T> values, double root_mean_square) const {
    return static_cast<const Derived*>(this)->inner().survey(exec, values, root_mean_square);
  }
};
struct NoSurveying {};
template <class Inner, class Derived>
using SurveyingOf = std::conditional_t<SurveyingCompressor<Inner>,
                                       ForwardsSurveying<Derived, typename Inner::value_type>, NoSurveying>;
struct NoInspecting {};
template <class Inner, class Derived>
using InspectingOf =
    std::conditional_t<InspectingCompressor<Inner>, ForwardsInspecting<Derived, typename Inner::value_type>,
                       NoInspecting>;
template <class Inner, class Derived>
using FixedSizeOf = std::conditional_t<FixedSizeCompressor<Inner>, ForwardsFixedSize<Derived>, NoFixedSize>;

struct NoFallbacks {};
template <class Inner, class Derived>
using FallbacksOf = std::conditional_t<CountsFallbacks<Inner>, ForwardsFallbacks<Derived>, NoFallbacks>;

struct NoAdding {};
template <class Inner, class Derived>
using AddingOf = std::conditional_t<AddingCompressor<Inner>,
                                    ForwardsAdding<Derived, typename Inner::value_type>, NoAdding>;

}  // namespace detail::feedback

/// Any compressor, with error feedback: what an encoding loses is kept and added to what is encoded in its place the next time,
///
///     v' = v + e,   C(v') is sent,   e <- v' - C(v'),
///
/// at every encoding that a rank performs: of its own values, of partial sums on their way, of the result. Then every loss is made good
/// but the last. Let S_t be the exact sum of step t, y_t the result, and R_t the sum of the residuals e of all encodings that the
/// result passes (those of ranks that encode the same partial sum are the same, and count once). Each encoding changes the result by -e
/// of this step and by +e of the step before, and nothing else does but the rounding of additions, hence
///
///     y_t = S_t + R_(t-1) - R_t,   y_1 + ... + y_T = S_1 + ... + S_T - R_T          (residuals are zero at first).
///
/// Sums over many steps do not drift, however long they are and whatever the compressor drops. Compressors that are not right on average
/// need this in iterations: docs/stability.md says which, and when.
///
/// `state` belongs to the caller; this object and its copies share it. Use it with one object that calls collectives, and on all ranks
/// alike: an operation is refused on all ranks where the states have seen different operations (other numbers of them, or other runs), where one
/// is in flight with the same state, where rank, number of ranks, extents or operation have changed, and after one that has failed on
/// its way (until reset() or restore()). MIN and MAX are refused: they have no errors that a later one could make good. Outside of an operation this object
/// encodes as `Inner` does.
///
/// **Bound.** With a bounded `Inner` the bound E holds for every single result, as without feedback: encodings err by 0.45 of it, and no
/// more than the rest is paid back in one operation. The quanta are thus about half as large. If E and the way in which the tensor is moved are the
/// same in all steps, the sum of all results is within E of the sum of the exact ones, too, after any number of steps, but for the rounding of the
/// element type in each of them. If E shrinks, or the way changes, what is owed is paid back over several steps. Where a sum (of a MEAN, before it is divided) may overflow its element type, and where E is 0,
/// nothing is paid back and nothing kept.
///
/// Special values: NaN and infinities are sent as they are, and what is owed to their elements stays so. Finite values stay finite: what
/// v + e exceeds the element type by is kept.
///
/// A compressor that selects from the whole input (`TopK`) selects from values with what is owed to them. One that finds its step from the
/// values (`Gradient`) finds it from them alone.
///
/// A scale of `scaled(view, scale)` that changes from step to step changes the units of the residuals with it.
///
/// Cost: each encoding reads and writes the residuals and decodes what it has encoded: about three passes more. Operations do not ride
/// along with the agreement, and are not encoded ahead of it. Memory: the state, and scratch memory of one or two vectors of what is encoded at once;
/// where `Inner` inspects its input (`TopK`) of the whole input.
template <class Inner, class Space = Kokkos::HostSpace>
class ErrorFeedback : public detail::feedback::FixedSizeOf<Inner, ErrorFeedback<Inner, Space>>,
                      public detail::feedback::FallbacksOf<Inner, ErrorFeedback<Inner, Space>>,
                      public detail::feedback::AddingOf<Inner, ErrorFeedback<Inner, Space>>,
                      public detail::feedback::InspectingOf<Inner, ErrorFeedback<Inner, Space>>,
                      public detail::feedback::SurveyingOf<Inner, ErrorFeedback<Inner, Space>> {
  using T = typename Inner::value_type;
  static_assert(Compressor<Inner> && FloatElement<T>,
                "wring: ErrorFeedback is for compressors of floating-point values");
  static_assert(
      !WordSummingCompressor<Inner>,
      "wring: ErrorFeedback does not see what PackedWords rounds when it decodes sums; Grid has the same "
      "bits and can be compensated");
  using Wide = typename FloatTraits<T>::Wide;
  static constexpr bool combining = CombiningCompressor<Inner>, bounded = BoundedCompressor<Inner>;

 public:
  using value_type = T;
  static constexpr bool lossless = LosslessCompressor<Inner>;  ///< nothing is lost, hence nothing kept
  static constexpr bool has_wide_form = WideFormCompressor<Inner>;

  ErrorFeedback(Inner inner, FeedbackState<T, Space>& state)
      : inner_(std::move(inner)), memory_(state.memory_) {}

  const Inner& inner() const { return inner_; }

  Identity identity() const {
    const Identity of = inner_.identity();
    return {"error_feedback", 1, of.name + " version=" + std::to_string(of.version) + " " + of.options};
  }

  std::size_t max_compressed_bytes(std::size_t n) const { return inner_.max_compressed_bytes(n); }
  std::size_t max_combined_bytes(std::size_t n, int terms) const
    requires combining
  {
    return inner_.max_combined_bytes(n, terms);
  }

  /// Two vectors; pieces of what is paid back to a sum, and of the sum; residuals that are kept in 8 bits; and what `Inner` needs.
  std::size_t scratch_bytes(std::size_t n) const {
    if constexpr (combining)
      return 2 * vector_bytes(n) + piece_bytes(n) + sum_bytes(n) + expanded_bytes(n) + inner_scratch_bytes(n);
    else
      return vector_bytes(n) + expanded_bytes(n) + inner_scratch_bytes(n);
  }

  // ---- memory ----------------------------------------------------------------------------------------------------------------

  void open(const Opening& opening) {
    if (reduces(opening.collective) && !adds(opening.operation))
      throw InvalidArgument("error feedback is for sums and means: what a minimum or a maximum has lost, no "
                            "later one can make good");
    if constexpr (!lossless) {
      tensor_ = &memory_->open(opening);
      residuals_ = &tensor_->courses[memory_->course_of(opening)];
      item_ = opening.item;
    }
  }

  /// What other ways of moving the tensor have left is owed to this one's first encodings.
  template <class Exec> void begin(const Exec& exec, std::uint64_t inputs) {
    if constexpr (!lossless) {
      tensor_->template gather<T>(exec, *residuals_, memory_->eight_bits, item_);
      next_ = detail::Hasher().add(tensor_->past).add(inputs).value();
    }
  }

  void close(bool completed) noexcept {
    if constexpr (!lossless) {
      tensor_->open = false;
      if (completed)
        ++tensor_->steps, tensor_->past = next_;
      else
        tensor_->damaged = tensor_->damaged || tensor_->encoded;
      tensor_ = nullptr, residuals_ = nullptr;
    }
  }

  /// Of the operations so far, and of how residuals are kept.
  std::uint64_t history() const {
    detail::Hasher hasher;
    if (tensor_) hasher.add(tensor_->steps).add(tensor_->past);
    return hasher.add(memory_->eight_bits).value();
  }

  /// What is encoded is a value and a residual; what is paid back to a sum takes a quantum's rounding more, which the second half
  /// makes room for.
  template <class Exec> double greatest(const Exec& exec, double max_abs) const {
    double most = max_abs;
    if (residuals_)
      tensor_->for_each_owed(*residuals_, [&](const auto& run) {
        const auto& values = memory_->eight_bits ? run.scales : run.full;
        const std::span<const Wide> all(values.data(), values.extent(0));
        most += (memory_->eight_bits ? 127 : 1) * 2 * detail::feedback::greatest_magnitude<T>(exec, all);
      });
    return most * (1 + 0x1p-40);
  }

  // ---- bound -----------------------------------------------------------------------------------------------------------------

  void prepare(const Agreed& agreed)
    requires PreparedCompressor<Inner>
  {
    own_limit_ = result_limit_ = unlimited, still_ = false;
    if constexpr (combining && bounded) {
      if (agreed.allowed_error) return divide(agreed);
    }
    still_ = agreed.measured && agreed.max_abs == 0;
    inner_.prepare(agreed);
  }

  bool reproducible() const
    requires combining
  {
    return inner_.reproducible();
  }

  /// Compressors whose values are added decoded: encodings err by 0.45 of the error that they are allowed, and 0.55 are for what is paid back, of which
  /// 0.1 must hold the rounding of v + e.
  double error(double max_abs) const
    requires bounded
  {
    const double e = inner_.error(max_abs);
    if constexpr (lossless)
      return e;
    else if constexpr (combining)
      return own_limit_ < unlimited ? (e + own_limit_) * up : e;
    else
      return std::max(e / inner_share, 20 * FloatTraits<T>::unit_roundoff * max_abs +
                                           (max_abs > 0 ? 20 * FloatTraits<T>::least_subnormal : 0)) *
             up;
  }

  // ---- calls -----------------------------------------------------------------------------------------------------------------

  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context) {
    if (!remembers()) return inner_.compress(exec, values, bytes, for_inner(context));
    expect_scratch(context);
    const Owed owed = load(exec, context);
    const std::span<T> meant = vector(context, 0);
    const double limit = combining ? own_limit_ : (1 - inner_share) * context.allowed_error;
    const Wide unit = unit_of(context);
    detail::feedback::compensate<T>(exec, values, owed.values.data(), meant, rounded_down(limit), unit);
    const std::size_t size = inner_.compress(exec, std::span<const T>(meant), bytes, for_inner(context));
    inner_.decompress(exec, std::span<const std::byte>(bytes.first(std::min(size, bytes.size()))), meant,
                      for_inner(context));
    detail::feedback::remember<T>(exec, values, std::span<const T>(meant), owed.values.data(), unit);
    store(exec, owed, context);
    return size;
  }

  template <class Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context& context) {
    inner_.decompress(exec, bytes, values, for_inner(context));
  }

  template <class Exec>
    requires combining
  std::size_t combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                      std::span<std::byte> out, const Context& context) {
    return inner_.combine(exec, a, b, out, for_inner(context));
  }

  bool finishes() const
    requires FinishingCompressor<Inner>
  {
    return inner_.finishes();
  }

  /// What is owed to the sums is added to them as one more input; what the result lacks of them is owed from then on.
  template <class Exec>
    requires FinishingCompressor<Inner, Exec>
  std::size_t finish(const Exec& exec, std::span<const std::byte> sum, std::span<std::byte> out,
                     const Context& context) {
    if (!remembers()) return inner_.finish(exec, sum, out, for_inner(context));
    expect_scratch(context);
    const Owed owed = load(exec, context);
    const std::size_t n = context.count;
    Context partial = for_inner(context), result = partial;
    partial.phase = Phase::hop, result.operation = Operation::sum;  // without the division of a mean
    const std::span<T> meant = vector(context, 0), arrived = vector(context, 1);
    const std::span<std::byte> piece = context.scratch.subspan(2 * vector_bytes(n), piece_bytes(n)),
                               whole = context.scratch.subspan(2 * vector_bytes(n) + piece_bytes(n),
                                                               sum_bytes(n));
    detail::feedback::pay_back<T>(exec, owed.values.data(), arrived, rounded_down(result_limit_));
    const std::size_t paid = inner_.compress(exec, std::span<const T>(arrived), piece, partial);
    const std::size_t size =
        inner_.combine(exec, sum, std::span<const std::byte>(piece.first(paid)), whole, partial);
    const std::size_t bytes =
        inner_.finish(exec, std::span<const std::byte>(whole.first(size)), out, for_inner(context));
    inner_.decompress(exec, sum, meant, partial);
    inner_.decompress(exec, std::span<const std::byte>(out.first(bytes)), arrived, result);
    detail::feedback::remember<T>(exec, std::span<const T>(meant), std::span<const T>(arrived),
                                  owed.values.data(), Wide(1));
    store(exec, owed, context);
    return bytes;
  }

 private:
  using Memory = detail::feedback::Memory<Wide, Space>;
  friend detail::feedback::AddingOf<Inner, ErrorFeedback>;
  friend detail::feedback::InspectingOf<Inner, ErrorFeedback>;
  static constexpr double unlimited = std::numeric_limits<double>::infinity(), up = 1 + 0x1p-40,
                          down = 1 - 0x1p-40;
  static constexpr double inner_share = 0.45;  ///< of a bound

  /// Whether this call is part of an operation that keeps residuals.
  bool remembers() const { return !lossless && residuals_ && !still_; }

  /// All own values as they will be encoded, for a compressor that looks at them first.
  template <class Exec> void show(const Exec& exec, std::span<const T> values, const Context& context) {
    if (!remembers()) return inner_.inspect(exec, values, for_inner(context));
    expect_scratch(context);
    const std::span<T> meant = vector(context, 0);
    residuals_->for_each_part(context.first, context.count, [&](std::size_t first, std::size_t n) {
      Context part = context;
      part.first = first, part.count = n, part.encoding = 0;
      const std::size_t at = first - context.first;
      detail::feedback::compensate<T>(exec, values.subspan(at, n),
                                      load(exec, part, room(context)).values.data(), meant.subspan(at, n),
                                      rounded_down(own_limit_), Wide(1));
    });
    inner_.inspect(exec, std::span<const T>(meant), for_inner(context));
  }

  /// From the bound on the result to the limits of what is paid back, in units of sums: F is p E of a mean, else E.
  ///
  ///     0.45 F + n l + r + a <= F,
  ///
  /// n the encodings of own values (p, or 1), a the error of one, l = a + 2 u max|x| what is paid back to each (its next residual is no larger,
  /// rounding of v + e included), r what is paid back to a sum before it is finished, encoded with one a more.
  void divide(const Agreed& agreed) {
    const bool sums = reduces(agreed.collective) && adds(agreed.operation);
    const bool averages = sums && agreed.operation == Operation::mean;
    const double terms = sums ? agreed.ranks : 1, error = *agreed.allowed_error;
    const bool may_overflow = sums && terms * agreed.max_abs * up > FloatTraits<T>::greatest;
    still_ = error == 0 || may_overflow;
    if (still_) return inner_.prepare(agreed);
    Agreed share = agreed;
    share.allowed_error = inner_share * error;
    prepare_inner(share, error);
    const double whole = averages ? terms * error : error, a = inner_.error(agreed.max_abs);
    own_limit_ =
        (a + 2 * FloatTraits<T>::unit_roundoff * agreed.max_abs + 2 * FloatTraits<T>::least_subnormal) * up;
    double left = (1 - inner_share) * whole * down - terms * own_limit_ * up;
    if constexpr (FinishingCompressor<Inner>) left -= inner_.finishes() ? a : 0;
    if (!(left >= 0))
      throw BoundUnattainable(fmt::format(
          "error feedback: an error of {:g} cannot hold the rounding of values and residuals to {}", error,
          FloatTraits<T>::name));
    result_limit_ = left * down;
  }

  void prepare_inner(const Agreed& share, double error) {
    try {
      inner_.prepare(share);
    } catch (const BoundUnattainable& refusal) {
      throw BoundUnattainable(fmt::format("error feedback encodes with {} of the bound of {:g}: {}",
                                          inner_share, error, refusal.what()));
    }
  }

  /// Where the result is encoded after a mean's division, a residual counts p times in sums.
  static Wide unit_of(const Context& context) {
    const bool divided = !combining && reduces(context.collective) && context.phase == Phase::final &&
                         context.operation == Operation::mean;
    return static_cast<Wide>(divided ? context.ranks : 1);
  }

  static Wide rounded_down(double limit) {
    const Wide x = static_cast<Wide>(limit);
    return static_cast<double>(x) > limit ? std::nextafter(x, Wide(0)) : x;
  }

  /// Residuals to work on, and where they are kept.
  struct Owed {
    std::span<Wide> values;
    detail::feedback::Place<Wide> place;
  };

  template <class Exec> Owed load(const Exec& exec, const Context& context) {
    return load(exec, context, room(context));
  }

  /// Where residuals of 8 bits are expanded to: the last part of the scratch memory of a call.
  std::byte* room(const Context& context) const {
    return context.scratch.data() + scratch_bytes(context.count) - inner_scratch_bytes(context.count) -
           expanded_bytes(context.count);
  }

  template <class Exec> Owed load(const Exec& exec, const Context& context, std::byte* room) {
    static_assert(
        Kokkos::SpaceAccessibility<Exec, Space>::accessible,
        "wring: the memory space of the FeedbackState is not one that the execution space can access");
    tensor_->encoded = true;
    const auto place = residuals_->of(context.encoding, context.first, context.count, memory_->eight_bits);
    if (!memory_->eight_bits) return {{place.full, context.count}, place};
    const std::span<Wide> values(reinterpret_cast<Wide*>(room), context.count);
    detail::feedback::expand<T>(exec, place.codes, place.scales, values);
    return {values, place};
  }

  template <class Exec> void store(const Exec& exec, const Owed& owed, const Context& context) {
    if (!memory_->eight_bits) return;
    const std::uint64_t step = tensor_->steps;
    detail::feedback::pack<T>(exec, {owed.values.data(),
                                     owed.place.codes,
                                     owed.place.scales,
                                     context.count,
                                     context.first,
                                     {detail::low_word(step), detail::high_word(step)},
                                     static_cast<std::uint32_t>(context.item),
                                     static_cast<std::uint32_t>(context.encoding)});
  }

  // ---- scratch memory: vectors, pieces, what Inner needs ---------------------------------------------------------------------

  static std::size_t padded(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  static std::size_t vector_bytes(std::size_t n) { return padded(detail::checked_bytes(n, sizeof(T))); }
  std::size_t expanded_bytes(std::size_t n) const {
    return memory_->eight_bits ? padded(detail::checked_bytes(n, sizeof(Wide))) : 0;
  }
  std::size_t piece_bytes(std::size_t n) const { return padded(inner_.max_compressed_bytes(n)); }
  std::size_t sum_bytes(std::size_t n) const { return padded(inner_.max_combined_bytes(n, 2)); }
  std::size_t inner_scratch_bytes(std::size_t n) const {
    if constexpr (ScratchCompressor<Inner>)
      return inner_.scratch_bytes(n);
    else
      return 0;
  }

  void expect_scratch(const Context& context) const {
    if (context.scratch.size() < scratch_bytes(context.count))
      throw CodecError("error feedback: scratch memory of scratch_bytes() is missing");
  }

  std::span<T> vector(const Context& context, std::size_t k) const {
    return {reinterpret_cast<T*>(context.scratch.data() + k * vector_bytes(context.count)), context.count};
  }

  /// The same call, as the compressor inside sees it.
  Context for_inner(const Context& context) const {
    Context inner = context;
    if constexpr (bounded && !combining && !lossless)
      if (remembers()) inner.allowed_error = inner_share * context.allowed_error;
    if constexpr (ScratchCompressor<Inner>) {
      const std::size_t own = scratch_bytes(context.count) - inner_scratch_bytes(context.count);
      inner.scratch = context.scratch.subspan(std::min(own, context.scratch.size()));
    } else {
      inner.scratch = {};
    }
    return inner;
  }

  Inner inner_;
  std::shared_ptr<Memory> memory_;
  detail::feedback::Tensor<Wide, Space>* tensor_ = nullptr;        ///< while open
  detail::feedback::Residuals<Wide, Space>* residuals_ = nullptr;  ///< of this operation's course
  std::size_t item_ = 0;                                           ///< of the tensor, in its group
  std::uint64_t next_ = 0;  ///< what stands for the operations so far once this one is completed
  double own_limit_ = unlimited, result_limit_ = unlimited;  ///< of what is paid back to values, and to sums
  bool still_ = false;                                       ///< nothing is paid back, nothing kept
};

template <FloatElement T, class Space>
std::vector<double> FeedbackState<T, Space>::residuals(std::size_t item, int encoding) const {
  std::vector<double> all;
  if (item >= memory_->tensors.size() || !memory_->tensors[item]) return all;
  const auto& tensor = *memory_->tensors[item];
  for (const auto& [key, course] : tensor.courses) {
    const auto k = static_cast<std::size_t>(encoding);
    if (k >= course.runs.size() || course.runs[k].empty()) continue;
    const std::vector<residual_type> values = course.values(k);
    all.resize(tensor.total);
    for (std::size_t i = 0; i < values.size(); ++i) all[course.first + i] += static_cast<double>(values[i]);
  }
  return all;
}

}  // namespace wring::inline v0
