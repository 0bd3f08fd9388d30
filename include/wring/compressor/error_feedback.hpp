// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <wring/compressor/concept.hpp>
#include <wring/compressor/feedback_state.hpp>
#include <wring/detail/feedback/abilities.hpp>
#include <wring/detail/feedback/kernels.hpp>
#include <wring/detail/feedback/limits.hpp>
#include <wring/detail/feedback/memory.hpp>
#include <wring/detail/feedback/scratch.hpp>
#include <wring/detail/hash.hpp>
#include <wring/error.hpp>
#include <wring/narrow.hpp>

namespace wring::inline v0 {

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
/// its way (until reset() or restore()). MIN and MAX are refused: they have no errors that a later one could make good. Outside of an
/// operation this object encodes as `Inner` does.
///
/// **Bound.** With a bounded `Inner` the bound E holds for every single result, as without feedback: encodings err by 0.45 of it, and no
/// more than the rest is paid back in one operation. The quanta are thus about half as large. If E and the way in which the tensor is moved are the
/// same in all steps, the sum of all results is within E of the sum of the exact ones, too, after any number of steps, but for the rounding of the
/// element type in each of them. If E shrinks, or the way changes, what is owed is paid back over several steps. An E that could not be held for values as
/// large as what is owed is refused (BoundUnattainable): then reset(). Where a sum
/// (of a MEAN, before it is divided) may overflow its element type, and where E is 0, nothing is paid back and nothing kept.
///
/// Special values: NaN and infinities are sent as they are, and what is owed to their elements stays so. Finite values stay finite: what
/// v + e exceeds the element type by is kept.
///
/// A compressor that selects from the whole input (`TopK`) selects from values with what is owed to them. One that finds its step from the
/// values (`Gradient`) finds it from them alone.
///
/// A scale of `scaled(view, scale)` that changes from step to step changes the units of the residuals with it.
///
/// Abilities of `Inner` (docs/concepts.md), each in the execution spaces in which `Inner` has it:
///
///     has them, too    Bounded, Lossless, Prepared, Inspecting, Surveying, Combining, WideForm, Finishing, Adding, FixedSize, Scratch,
///                      CountsFallbacks
///     does without     Anticipating, Measuring (nothing is encoded before the ranks agree), Accumulating (it encodes unseen), Plain
///     is refused       WordSumming (what is lost in decoding cannot be kept), Remembering (feedback of feedback)
///
/// Cost: each encoding reads and writes the residuals and decodes what it has encoded: about three passes more; a look at 256 of the values.
/// Operations do not ride along with the agreement, and are not encoded ahead of it. Memory: the state, and scratch memory of one vector of what is
/// encoded at once; with a compressor that finishes (`Grid`) of two, and of two pieces; where `Inner` inspects its input (`TopK`) of the whole input.
template <class Inner, class Space = Kokkos::HostSpace>
class ErrorFeedback : public detail::feedback::Abilities<Inner, ErrorFeedback<Inner, Space>> {
  using T = typename Inner::value_type;
  static_assert(Compressor<Inner> && FloatElement<T>,
                "wring: ErrorFeedback is for compressors of floating-point values");
  static_assert(
      !WordSummingCompressor<Inner>,
      "wring: ErrorFeedback does not see what PackedWords rounds when it decodes sums; Grid has the same "
      "bits and can be compensated");
  static_assert(!RememberingCompressor<Inner>, "wring: ErrorFeedback within ErrorFeedback compensates twice");
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
  std::size_t scratch_bytes(std::size_t n) const { return scratch().bytes(n); }

  // ---- memory ----------------------------------------------------------------------------------------------------------------

  void open(const Opening& opening) {
    if (reduces(opening.collective) && !adds(opening.operation))
      throw InvalidArgument("error feedback is for sums and means: what a minimum or a maximum has lost, no "
                            "later one can make good");
    if constexpr (!lossless) {
      tensor_ = &memory_->open(opening), item_ = opening.item;
      residuals_ = &tensor_->courses[memory_->course_of(opening)];
    }
  }

  /// What other ways of moving the tensor have left is owed to this one's first encodings.
  template <class Exec> void begin(const Exec& exec, std::uint64_t inputs) {
    if constexpr (!lossless) {
      tensor_->template gather<T>(exec, *residuals_, memory_->eight_bits,
                                  {.rank = memory_->rank, .item = item_});
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

  /// What is encoded is a value and a residual, no more than the type holds; what is paid back to a sum takes a quantum's rounding more,
  /// which the second half makes room for.
  template <class Exec> double greatest(const Exec& exec, double max_abs) const {
    double most = max_abs;
    if constexpr (!lossless)
      if (residuals_)
        tensor_->for_each_owed(*residuals_, [&](const auto& run) {
          const auto& values = memory_->eight_bits ? run.scales : run.full;
          const std::span<const Wide> all(values.data(), values.extent(0));
          most += (memory_->eight_bits ? 127 : 1) * 2 * detail::feedback::greatest_magnitude<T>(exec, all);
        });
    return std::min(most * detail::feedback::above, FloatTraits<T>::greatest);
  }

  // ---- bound -----------------------------------------------------------------------------------------------------------------

  void prepare(const Agreed& agreed)
    requires PreparedCompressor<Inner>
  {
    limits_ = {};
    limits_ = detail::feedback::prepare(inner_, agreed);
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
    constexpr double above = detail::feedback::above;
    const double e = inner_.error(max_abs);
    if constexpr (lossless)
      return e;
    else if constexpr (combining)
      return limits_.own < detail::feedback::unlimited ? (e + limits_.own) * above : e;
    else
      return std::max(e / detail::feedback::inner_share,
                      20 * FloatTraits<T>::unit_roundoff * max_abs +
                          (max_abs > 0 ? 20 * FloatTraits<T>::least_subnormal : 0)) *
             above;
  }

  // ---- calls -----------------------------------------------------------------------------------------------------------------

  template <class Exec>
    requires Compressor<Inner, Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context) {
    if constexpr (!lossless)
      if (remembers()) return compress_and_remember(exec, values, bytes, context);
    return inner_.compress(exec, values, bytes, for_inner(context));
  }

  template <class Exec>
    requires Compressor<Inner, Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context& context) {
    inner_.decompress(exec, bytes, values, for_inner(context));
  }

  template <class Exec>
    requires CombiningCompressor<Inner, Exec>
  std::size_t combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                      std::span<std::byte> out, const Context& context) {
    return inner_.combine(exec, a, b, out, for_inner(context));
  }

  bool finishes() const
    requires FinishingCompressor<Inner>
  {
    return inner_.finishes();
  }

  template <class Exec>
    requires FinishingCompressor<Inner, Exec>
  std::size_t finish(const Exec& exec, std::span<const std::byte> sum, std::span<std::byte> out,
                     const Context& context) {
    if constexpr (!lossless)
      if (remembers()) return finish_and_remember(exec, sum, out, context);
    return inner_.finish(exec, sum, out, for_inner(context));
  }

 private:
  using Memory = detail::feedback::Memory<Wide, Space>;
  using Scratch = detail::feedback::Scratch<Inner>;
  friend detail::feedback::ForwardsAdding<Inner, ErrorFeedback>;
  friend detail::feedback::ForwardsInspecting<Inner, ErrorFeedback>;

  /// Whether this call is part of an operation that keeps residuals.
  bool remembers() const { return residuals_ && !limits_.still; }
  Scratch scratch() const { return {inner_, memory_->eight_bits}; }

  template <class Exec>
  std::size_t compress_and_remember(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                                    const Context& context) {
    scratch().expect(context);
    const Owed owed = load(exec, context, scratch().residuals(context));
    const std::span<T> meant = scratch().vector(context, 0);
    const Wide unit = unit_of(context);
    const double limit =
        combining ? limits_.own : (1 - detail::feedback::inner_share) * context.allowed_error;
    detail::feedback::compensate<T>(exec, values, owed.values.data(), meant,
                                    detail::feedback::rounded_down<Wide>(limit), unit);
    const std::size_t size = inner_.compress(exec, std::span<const T>(meant), bytes, for_inner(context));
    inner_.decompress(exec, std::span<const std::byte>(bytes.first(std::min(size, bytes.size()))), meant,
                      for_inner(context));
    detail::feedback::remember<T>(exec, values, std::span<const T>(meant), owed.values.data(), unit);
    store(exec, owed, context);
    return size;
  }

  /// What is owed to the sums is added to them as one more input; what the result lacks of them is owed from then on.
  template <class Exec>
  std::size_t finish_and_remember(const Exec& exec, std::span<const std::byte> sum, std::span<std::byte> out,
                                  const Context& context) {
    scratch().expect(context);
    const Owed owed = load(exec, context, scratch().residuals(context));
    Context partial = for_inner(context), result = partial;
    partial.phase = Phase::hop, result.operation = Operation::sum;  // without the division of a mean
    const std::span<T> meant = scratch().vector(context, 0), arrived = scratch().vector(context, 1);
    const std::span<std::byte> piece = scratch().piece(context), whole = scratch().sum(context);
    detail::feedback::pay_back<T>(exec, owed.values.data(), arrived,
                                  detail::feedback::rounded_down<Wide>(limits_.result));
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

  /// All own values as they will be encoded, for a compressor that looks at them first.
  template <class Exec> void show(const Exec& exec, std::span<const T> values, const Context& context) {
    if constexpr (!lossless)
      if (remembers()) {
        scratch().expect(context);
        const std::span<T> meant = scratch().vector(context, 0);
        Wide* const room = scratch().residuals(context);
        residuals_->for_each_part(context.first, context.count, [&](std::size_t first, std::size_t n) {
          Context part = context;
          part.first = first, part.count = n, part.encoding = 0;
          const std::size_t at = first - context.first;
          detail::feedback::compensate<T>(exec, values.subspan(at, n), load(exec, part, room).values.data(),
                                          meant.subspan(at, n),
                                          detail::feedback::rounded_down<Wide>(limits_.own), Wide(1));
        });
        return inner_.inspect(exec, std::span<const T>(meant), for_inner(context));
      }
    inner_.inspect(exec, values, for_inner(context));
  }

  /// Where the result is encoded after a mean's division, a residual counts p times in sums.
  static Wide unit_of(const Context& context) {
    const bool divided = !combining && reduces(context.collective) && context.phase == Phase::final &&
                         context.operation == Operation::mean;
    return static_cast<Wide>(divided ? context.ranks : 1);
  }

  /// Residuals to work on, and where they are kept.
  struct Owed {
    std::span<Wide> values;
    detail::feedback::Place<Wide> place;
  };

  /// `room`: for residuals of 8 bits.
  template <class Exec> Owed load(const Exec& exec, const Context& context, Wide* room) {
    static_assert(
        Kokkos::SpaceAccessibility<Exec, Space>::accessible,
        "wring: the memory space of the FeedbackState is not one that the execution space can access");
    tensor_->encoded = true;
    const auto place = residuals_->of(context.encoding, context.first, context.count, memory_->eight_bits);
    if (!memory_->eight_bits) return {{place.full, context.count}, place};
    const std::span<Wide> values(room, context.count);
    detail::feedback::expand<T>(exec, place.codes, place.scales, values);
    return {values, place};
  }

  template <class Exec> void store(const Exec& exec, const Owed& owed, const Context& context) {
    if (!memory_->eight_bits) return;
    detail::feedback::pack<T>(exec, {owed.values.data(), owed.place.codes, owed.place.scales, context.count,
                                     context.first, detail::feedback::residual_draws(context, tensor_->steps),
                                     static_cast<std::uint32_t>(context.encoding)});
  }

  /// The same call, as the compressor inside sees it.
  Context for_inner(const Context& context) const {
    Context inner = context;
    if constexpr (bounded && !combining && !lossless)
      if (remembers()) inner.allowed_error = detail::feedback::inner_share * context.allowed_error;
    inner.scratch = {};
    if constexpr (ScratchCompressor<Inner>) inner.scratch = scratch().rest(context);
    return inner;
  }

  Inner inner_;
  std::shared_ptr<Memory> memory_;
  detail::feedback::Tensor<Wide, Space>* tensor_ = nullptr;        ///< while open
  detail::feedback::Residuals<Wide, Space>* residuals_ = nullptr;  ///< of this operation's course
  std::size_t item_ = 0;                                           ///< of the tensor, in its group
  std::uint64_t next_ = 0;  ///< what stands for the operations so far once this one is completed
  detail::feedback::Limits limits_;
};

}  // namespace wring::inline v0
