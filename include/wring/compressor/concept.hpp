// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <wring/config.hpp>
#include <wring/narrow.hpp>
#include <wring/operation.hpp>

namespace wring::inline v0 {

/// Whose values a call encodes: the rank's own input, a partial sum on its way, or a complete result.
enum class Phase { own, hop, final };

/// What a compressor is told with every call. All of it is known to every rank in the same way.
struct Context {
  Collective collective = Collective::allreduce;
  Operation operation = Operation::sum;
  Phase phase = Phase::own;
  int rank = 0;            ///< the rank whose values these are (own), or that holds them (hop, final)
  int ranks = 1;           ///< number of ranks in the collective
  int terms = 1;           ///< how many ranks' inputs the values sum up so far
  std::uint64_t step = 0;  ///< the user's step number: Options::step
  std::size_t item = 0;    ///< index of the tensor within its group
  std::size_t first = 0;   ///< index of the first value within the tensor
  std::size_t count = 0;   ///< number of values
  std::size_t total = 0;   ///< number of values of the whole tensor
  double allowed_error =
      std::numeric_limits<double>::infinity();  ///< the most that this encoding may change a value
  bool wide = false;  ///< speed before size: inside a node, uncompressed but still combinable, where
                      ///< the compressor has such a form (WideFormCompressor)
  int encoding =
      0;  ///< how often this rank has encoded these values before, in this operation: by the plan alone
  std::span<std::byte> scratch{};  ///< scratch_bytes(count) bytes where the compressor asked for them
};

/// Name, version and options of a compressor: equal on all ranks, or the operation is refused. `options` holds everything that
/// changes a bit of the encoding. `name` has no spaces.
struct Identity {
  std::string name;
  std::uint32_t version = 1;
  std::string options;
};

/// What all ranks know of everybody's input once they have agreed; the same on every rank, whatever the order of ranks.
struct Agreed {
  Collective collective = Collective::allreduce;
  Operation operation = Operation::sum;
  int ranks = 1;
  std::size_t total = 0;  ///< number of values of the tensor on a rank (of all ranks for allgather)
  double max_abs = 0;     ///< greatest |x| over the finite inputs of all ranks
  std::optional<double> allowed_error;  ///< the user's bound on the result, absolute, if one was asked for
  bool measured = false;  ///< whether max_abs was measured (it is when a bound was asked for, or a survey)
  double root_mean_square = 0;  ///< of the finite inputs of all ranks, without a bound and with a survey
  double survey = 0;            ///< the least that `survey` returned on any rank, within 2^(1/512) of it
  bool finite =
      false;  ///< no input of any rank has NaN or infinities: looked for where the compressor sums words
  bool wide =
      false;  ///< whether this rank will be asked for the wide form: room for it, no more; not the same on every rank
  double wire_speed = 0;  ///< bytes per second of a rank's link; 0 unless a machine was given, or calibrated
};

/// Minimal definition: four members make a compressor that works in every collective.
/// - `value_type`: the element type.
/// - `max_compressed_bytes(n)`: a true worst case for n values, in bytes, never decreasing in n.
/// - `compress(exec, values, bytes, context)`: writes at most that many bytes at `bytes`, returns how many. The values and bytes
///   live in memory that `exec` can access; the bytes are there after `exec.fence()`, the size when the call returns.
/// - `decompress(exec, bytes, values, context)`: the inverse, context.count == values.size(). Must check what it reads:
///   bytes that compress did not write give a CodecError and never an access outside the spans.
/// - `identity()`.
/// A compressor is copied into the operation that uses it; what must outlive an operation (residuals) it refers to.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept Compressor =
    std::copy_constructible<C> && ElementType<typename C::value_type> &&
    requires(C& codec, const C& constant, const Exec& exec, std::span<const typename C::value_type> values,
             std::span<std::byte> bytes, std::span<const std::byte> encoded,
             std::span<typename C::value_type> decoded, const Context& context, std::size_t n) {
      { constant.max_compressed_bytes(n) } -> std::convertible_to<std::size_t>;
      { codec.compress(exec, values, bytes, context) } -> std::convertible_to<std::size_t>;
      codec.decompress(exec, encoded, decoded, context);
      { constant.identity() } -> std::convertible_to<Identity>;
    };

/// Promises a bound: `error(max_abs)` is the least `Context::allowed_error` that compress can obey for |values| <= max_abs
/// (0 for lossless ones), and every compress obeys the allowed error it is given, provided it is no smaller than that.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept BoundedCompressor = Compressor<C, Exec> && requires(const C& codec, double max_abs) {
  { codec.error(max_abs) } -> std::convertible_to<double>;
};

/// Changes no bit: `static constexpr bool lossless = true`. No part of a bound need be kept for its encodings.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept LosslessCompressor = BoundedCompressor<C, Exec> && requires { requires C::lossless; };

/// Writes the bytes of the values as they lie in memory: `static constexpr bool plain = true`. What is encoded can be added without being
/// decoded.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept PlainCompressor = LosslessCompressor<C, Exec> && requires { requires C::plain; };

/// Sets parameters (step, width, common scales) from what all ranks agreed upon, before anything is encoded. May throw
/// BoundUnattainable or InvalidArgument: every rank throws the same, because every rank prepares from the same values.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept PreparedCompressor =
    Compressor<C, Exec> && requires(C& codec, const Agreed& agreed) { codec.prepare(agreed); };

/// Looks at the whole of a rank's input before any of it is encoded: `inspect(exec, values, context)` is called once for each tensor of an
/// operation, on the operation's copy, after `prepare` and before the first `compress`, on every rank that has input for it.
/// `context.first` is the index of the first of the values, `context.count` their number. Where small inputs ride along and all ranks encode
/// everybody's, it is called before each of them, `context.rank` saying whose values they are. A compressor that can anticipate its parameters may be
/// prepared twice, and is then shown the input after either time.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept InspectingCompressor =
    Compressor<C, Exec> &&
    requires(C& codec, const Exec& exec, std::span<const typename C::value_type> values,
             const Context& context) { codec.inspect(exec, values, context); };

/// Sees this rank's values before the ranks agree, where no bound is asked for: `survey(exec, values, root_mean_square)`, called where
/// that of the finite values is not 0, returns a number that `prepare` can make use of, say a step in units of the root mean square.
/// Numbers that are not positive and finite count as none. Costs a pass over the values for their magnitudes.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept SurveyingCompressor =
    PreparedCompressor<C, Exec> && FloatElement<typename C::value_type> &&
    requires(const C& codec, const Exec& exec, std::span<const typename C::value_type> values,
             double root_mean_square) {
      { codec.survey(exec, values, root_mean_square) } -> std::convertible_to<double>;
    };

/// Combines encoded pieces without decoding them: exactly associative and commutative, so that every algorithm gives the same
/// bits. `combine(exec, a, b, out, context)` returns the number of bytes written at `out`, which overlaps neither a nor b;
/// `max_combined_bytes(n, terms)` is its worst case. A combining compressor answers for the bound on the result itself, in
/// `prepare`. `reproducible()` says whether the combination is exact with the parameters set; where it is not, the order of ranks may
/// change the last bits, and it need not be associative.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept CombiningCompressor =
    PreparedCompressor<C, Exec> &&
    requires(C& codec, const C& constant, const Exec& exec, std::span<const std::byte> a,
             std::span<std::byte> out, const Context& context, std::size_t n, int terms) {
      { constant.max_combined_bytes(n, terms) } -> std::convertible_to<std::size_t>;
      { codec.combine(exec, a, a, out, context) } -> std::convertible_to<std::size_t>;
      { constant.reproducible() } -> std::convertible_to<bool>;
    };

/// Has a second form, for speed: `static constexpr bool has_wide_form = true`. Where `Context::wide` is set, compress and combine write pieces
/// that are as large as the values and need no packing; they combine with those of the other form. Without it raw steps carry what is
/// always written, and `Automatic` has no uncompressed way to choose.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept WideFormCompressor = CombiningCompressor<C, Exec> && requires { requires C::has_wide_form; };

/// Pieces are 64-bit words whose sums, modulo 2^64, are the pieces of sums: `static constexpr bool sums_words = true`. Once prepared, a
/// piece of n values always has max_compressed_bytes(n) bytes, a multiple of 8, of one term or of many. Then the transport itself can
/// add them up, which knows nothing of what is in them (`Native`).
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept WordSummingCompressor = CombiningCompressor<C, Exec> && requires { requires C::sums_words; };

/// Can be prepared before the inputs are known: `prepare` with max_abs = 0 sets the parameters for all inputs that are not too large, and
/// `a.interchangeable(b)`, both prepared, says whether pieces of one mean the same to the other, bit by bit. What is too large
/// stays so: if parameters for max_abs = x are interchangeable with those for 0, so are those for anything below x. Small
/// operations with an absolute bound are then summed while the ranks agree.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept AnticipatingCompressor = CombiningCompressor<C, Exec> && requires(const C& codec, const C& other) {
  { codec.interchangeable(other) } -> std::convertible_to<bool>;
};

/// Measures while it encodes: `compress_and_measure(exec, values, bytes, context, max_abs)` is compress, and raises `max_abs` to a
/// bound of the finite |values| that may be coarse. Where values exceed what the parameters allow it returns any size and raises
/// max_abs to infinity instead of throwing. Inputs with an absolute bound are then read once: encoded before the ranks agree.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept MeasuringCompressor =
    AnticipatingCompressor<C, Exec> &&
    requires(C& codec, const Exec& exec, std::span<const typename C::value_type> values,
             std::span<std::byte> bytes, const Context& context, double& max_abs) {
      {
        codec.compress_and_measure(exec, values, bytes, context, max_abs)
      } -> std::convertible_to<std::size_t>;
    };

/// Combines in one pass with what comes before and after: `accumulate(exec, own, piece, out, result, context)` writes at `out` the
/// bytes of combine(own, piece), and returns their number. `own` is an encoded piece, or values: they are encoded on the way.
/// Unless `result` is empty, what decompress would make of the sum with Phase::final goes there; it may be the values' own memory.
/// `accumulates()` says whether that can be done with the parameters set.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept AccumulatingCompressor =
    CombiningCompressor<C, Exec> &&
    requires(C& codec, const C& constant, const Exec& exec, std::span<const typename C::value_type> values,
             std::span<const std::byte> encoded, std::span<std::byte> out,
             std::span<typename C::value_type> result, const Context& context) {
      { codec.accumulate(exec, values, encoded, out, result, context) } -> std::convertible_to<std::size_t>;
      { codec.accumulate(exec, encoded, encoded, out, result, context) } -> std::convertible_to<std::size_t>;
      { constant.accumulates() } -> std::convertible_to<bool>;
    };

/// Turns the encoded complete sum into the encoded result (a rounding shift, an entropy stage). Runs once per result element.
/// `finishes()` says whether there is anything to do with the parameters set; if not, `finish` is not called.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept FinishingCompressor =
    CombiningCompressor<C, Exec> &&
    requires(C& codec, const C& constant, const Exec& exec, std::span<const std::byte> sum,
             std::span<std::byte> out, const Context& context) {
      { constant.finishes() } -> std::convertible_to<bool>;
      { codec.finish(exec, sum, out, context) } -> std::convertible_to<std::size_t>;
    };

/// Adds while decoding: values[i] += decoded[i]. Without it the executor decodes into scratch and adds.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept AddingCompressor =
    Compressor<C, Exec> && requires(C& codec, const Exec& exec, std::span<const std::byte> bytes,
                                    std::span<typename C::value_type> values, const Context& context) {
      codec.decompress_add(exec, bytes, values, context);
    };

/// What a compressor that remembers is told of an operation before it begins.
struct Opening {
  Collective collective = Collective::allreduce;
  Operation operation = Operation::sum;
  int root = 0;  ///< of a broadcast
  int rank = 0, ranks = 1;
  std::size_t item = 0;              ///< index of the tensor within its group
  std::size_t total = 0;             ///< number of values of the whole tensor
  std::uint64_t shape = 0;           ///< a number for its extents
  std::size_t first = 0, count = 0;  ///< what this rank may have to encode of it
  std::span<const std::size_t>
      counts{};  ///< by rank, where ranks have parts of their own; pieces never span two
  /// Of plan and root, and of lengths and counts where they make a difference, the same on all ranks. Where it is equal, each value is encoded by
  /// the same ranks, equally often and as part of the same sums.
  std::uint64_t course = 0;
  /// So many of this rank's first encodings of a value are of sums that no other rank encodes as well.
  std::size_t alone = std::numeric_limits<std::size_t>::max();
};

/// Remembers something from one operation to the next (residuals). Every encoding then happens once in an operation, and not before
/// the ranks have agreed: such operations do not ride along.
/// - `open(opening)`, on the operation's copy and before any other call: the memory is in use from now on. Throws InvalidArgument
///   where it cannot serve: all ranks refuse.
/// - `begin(exec, inputs)`: the ranks have agreed, and what is encoded from now on is. `inputs`: a number for the call and for the inputs of all
///   ranks, the same on all of them.
/// - `close(completed)`: the operation has ended, well or not, and encodes no more. Must not throw.
/// - `history()`, once open: a number that all ranks must have in common (for the operations so far).
/// - `greatest(exec, max_abs)`, once open: a bound of what will be encoded for values up to max_abs of this rank. It takes the place of
///   the rank's max_abs in the agreement, where a bound was asked for.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept RememberingCompressor =
    Compressor<C, Exec> && requires(C& codec, const C& constant, const Exec& exec, const Opening& opening,
                                    double max_abs, std::uint64_t inputs, bool completed) {
      codec.open(opening);
      codec.begin(exec, inputs);
      { codec.close(completed) } noexcept;
      { constant.history() } -> std::convertible_to<std::uint64_t>;
      { constant.greatest(exec, max_abs) } -> std::convertible_to<double>;
    };

/// Knows the size of its output beforehand: compress of n values always writes compressed_bytes(n), and need not synchronise.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept FixedSizeCompressor = Compressor<C, Exec> && requires(const C& codec, std::size_t n) {
  { codec.compressed_bytes(n) } -> std::convertible_to<std::size_t>;
};

/// Needs scratch memory, which the executor supplies in Context::scratch (aligned to 64 bytes, in the memory of `exec`).
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept ScratchCompressor = Compressor<C, Exec> && requires(const C& codec, std::size_t n) {
  { codec.scratch_bytes(n) } -> std::convertible_to<std::size_t>;
};

/// Counts blocks that fell back to the raw form, for the report.
template <class C, class Exec = Kokkos::DefaultHostExecutionSpace>
concept CountsFallbacks = Compressor<C, Exec> && requires(const C& codec) {
  { codec.fallback_blocks() } -> std::convertible_to<std::uint64_t>;
};

}  // namespace wring::inline v0
