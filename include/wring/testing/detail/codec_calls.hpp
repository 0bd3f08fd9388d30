// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <wring/compressor/concept.hpp>
#include <wring/error.hpp>
#include <wring/testing/detail/guarded.hpp>

namespace wring::inline v0::testing {

using Bytes = std::vector<std::byte>;

/// Calls of a compressor's members as an executor makes them, with guards around everything that is written, and exact
/// allocations for everything that is read. What a call does wrong becomes a sentence, the first one for each law.
template <class Codec, class Exec> class CodecCalls {
 public:
  using T = typename Codec::value_type;
  static_assert(Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Exec::memory_space>::accessible,
                "wring: the compressor laws need an execution space whose memory the host can access");

  /// A compressor that is ready for one tensor, and what it is told.
  struct Case {
    Codec codec;
    Context context;
    std::string where;  ///< in words, for the failures
  };

  explicit CodecCalls(const Exec& exec) : exec_(exec) {}

  const std::vector<std::string>& failures() const { return failures_; }

  void fail(const std::string& law, const std::string& what) {
    for (const std::string& known : failures_)
      if (known.starts_with(law + ":")) return;
    failures_.push_back(law + ": " + what);
  }

  std::optional<Bytes> encode(Case& c, std::span<const T> values, std::byte fill = std::byte{0xa5}) {
    const auto input = Guarded<T>::exactly(values);
    const std::string call = "compress of " + std::to_string(values.size()) + " values (" + c.where + ")";
    auto piece = written(c, call, values.size(), c.codec.max_compressed_bytes(values.size()), fill,
                         [&](auto out, const Context& context) {
                           return c.codec.compress(exec_, input.constant(), out, context);
                         });
    if (!same_bytes<T>(input.constant(), values)) fail("input", call + " changed its input");
    return piece;
  }

  std::optional<Bytes> encode_and_measure(Case& c, std::span<const T> values, double& max_abs)
    requires MeasuringCompressor<Codec, Exec>
  {
    const auto input = Guarded<T>::exactly(values);
    const std::string call =
        "compress_and_measure of " + std::to_string(values.size()) + " values (" + c.where + ")";
    return written(c, call, values.size(), c.codec.max_compressed_bytes(values.size()), std::byte{0xa5},
                   [&](auto out, const Context& context) {
                     return c.codec.compress_and_measure(exec_, input.constant(), out, context, max_abs);
                   });
  }

  std::optional<Bytes> combine(Case& c, const Bytes& a, const Bytes& b, std::size_t n, int terms)
    requires CombiningCompressor<Codec, Exec>
  {
    const auto left = exact(a), right = exact(b);
    const std::string call = "combine of " + std::to_string(n) + " values (" + c.where + ")";
    Case hop = with(c, Phase::hop, terms);
    return written(hop, call, n, c.codec.max_combined_bytes(n, terms), std::byte{0xa5},
                   [&](auto out, const Context& context) {
                     return hop.codec.combine(exec_, left.constant(), right.constant(), out, context);
                   });
  }

  /// What `accumulate` makes of `own`, values or bytes, and a piece: the sum, and in `result` its values.
  template <class Own> std::optional<Bytes> accumulate(Case& c, const std::vector<Own>& own,
                                                       const Bytes& piece, std::size_t n, int terms,
                                                       std::span<T> result) {
    const auto mine = Guarded<Own>::exactly(own);
    const auto theirs = exact(piece);
    Guarded<T> values(result.size());
    Case hop = with(c, Phase::hop, terms);
    const std::string call = "accumulate of " + std::to_string(n) + " values (" + c.where + ")";
    const auto sum = written(hop, call, n, c.codec.max_combined_bytes(n, terms), std::byte{0xa5},
                             [&](auto out, const Context& context) {
                               return hop.codec.accumulate(exec_, mine.constant(), theirs.constant(), out,
                                                           values.span(), context);
                             });
    if (!values.intact()) fail("bounds", call + " wrote outside the values");
    std::copy(values.span().begin(), values.span().end(), result.begin());
    return sum;
  }

  /// The same for values whose own memory takes the result.
  std::optional<Bytes> accumulate_in_place(Case& c, std::vector<T>& values, const Bytes& piece, int terms) {
    Guarded<T> memory(values.size());
    std::copy(values.begin(), values.end(), memory.span().begin());
    const auto theirs = exact(piece);
    Case hop = with(c, Phase::hop, terms);
    const std::string call =
        "accumulate in place of " + std::to_string(values.size()) + " values (" + c.where + ")";
    const auto sum = written(hop, call, values.size(), c.codec.max_combined_bytes(values.size(), terms),
                             std::byte{0xa5}, [&](auto out, const Context& context) {
                               return hop.codec.accumulate(exec_, std::span<const T>(memory.span()),
                                                           theirs.constant(), out, memory.span(), context);
                             });
    if (!memory.intact()) fail("bounds", call + " wrote outside the values");
    std::copy(memory.span().begin(), memory.span().end(), values.begin());
    return sum;
  }

  std::optional<Bytes> finish(Case& c, const Bytes& sum, std::size_t n, int terms) {
    if constexpr (FinishingCompressor<Codec, Exec>) {
      if (!c.codec.finishes()) return sum;
      const auto input = exact(sum);
      Case last = with(c, Phase::final, terms);
      return written(last, "finish of " + std::to_string(n) + " values (" + c.where + ")", n,
                     c.codec.max_combined_bytes(n, terms), std::byte{0xa5},
                     [&](auto out, const Context& context) {
                       return last.codec.finish(exec_, input.constant(), out, context);
                     });
    } else {
      return sum;
    }
  }

  /// The values of a piece that `encode`, `combine` or `finish` wrote.
  std::optional<std::vector<T>> decode(Case& c, const Bytes& piece, std::size_t n,
                                       std::byte fill = std::byte{0xa5}) {
    const std::string call = "decompress of " + std::to_string(n) + " values (" + c.where + ")";
    Guarded<T> out(n, fill);
    const std::optional<std::string> thrown =
        attempt(c, call, piece, n, [&](auto bytes, const Context& context) {
          c.codec.decompress(exec_, bytes, out.span(), context);
        });
    if (!out.intact()) fail("bounds", call + " wrote outside the values");
    if (thrown) return fail("inverse", call + " threw " + *thrown), std::nullopt;
    return std::vector<T>(out.span().begin(), out.span().end());
  }

  /// values += decoded piece.
  std::optional<std::vector<T>> decode_add(Case& c, const Bytes& piece, std::span<const T> values)
    requires AddingCompressor<Codec, Exec>
  {
    const std::string call =
        "decompress_add of " + std::to_string(values.size()) + " values (" + c.where + ")";
    Guarded<T> sums(values.size());
    std::copy(values.begin(), values.end(), sums.span().begin());
    const std::optional<std::string> thrown =
        attempt(c, call, piece, values.size(), [&](auto bytes, const Context& context) {
          c.codec.decompress_add(exec_, bytes, sums.span(), context);
        });
    if (!sums.intact()) fail("bounds", call + " wrote outside the values");
    if (thrown) return fail("adding", call + " threw " + *thrown), std::nullopt;
    return std::vector<T>(sums.span().begin(), sums.span().end());
  }

  /// Bytes that no `compress` wrote: a CodecError or any values are right. Returns whether it was an error.
  bool decode_damaged(Case& c, const Bytes& piece, std::size_t n, const std::string& damage) {
    const std::string call =
        "decompress of " + std::to_string(n) + " values (" + c.where + ") from bytes that were " + damage;
    Guarded<T> out(n);
    bool refused = false;
    const auto thrown = attempt(c, call, piece, n, [&](auto bytes, const Context& context) {
      refused = refuses([&] { c.codec.decompress(exec_, bytes, out.span(), context); });
    });
    if (!out.intact()) fail("bounds", call + " wrote outside the values");
    if (thrown) fail("damage", call + " threw " + *thrown + ", not a CodecError");
    return refused;
  }

  void combine_damaged(Case& c, const Bytes& damaged, const Bytes& good, std::size_t n,
                       const std::string& damage)
    requires CombiningCompressor<Codec, Exec>
  {
    const std::string call =
        "combine of " + std::to_string(n) + " values (" + c.where + ") with bytes that were " + damage;
    Guarded<std::byte> out(c.codec.max_combined_bytes(n, 2));
    Case hop = with(c, Phase::hop, 2);
    const auto other = exact(good);
    const auto thrown = attempt(hop, call, damaged, n, [&](auto bytes, const Context& context) {
      refuses([&] { hop.codec.combine(exec_, bytes, other.constant(), out.span(), context); });
      refuses([&] { hop.codec.combine(exec_, other.constant(), bytes, out.span(), context); });
      if constexpr (FinishingCompressor<Codec, Exec>)
        if (hop.codec.finishes()) refuses([&] { hop.codec.finish(exec_, bytes, out.span(), context); });
      if constexpr (AccumulatingCompressor<Codec, Exec>)
        if (hop.codec.accumulates()) accumulate_damaged(hop, bytes, other.constant(), out.span(), context);
    });
    if (!out.intact()) fail("bounds", call + " wrote outside its space");
    if (thrown) fail("damage", call + " threw " + *thrown + ", not a CodecError");
  }

  void accumulate_damaged(Case& hop, std::span<const std::byte> damaged, std::span<const std::byte> good,
                          std::span<std::byte> out, const Context& context) {
    const std::vector<T> zeros(context.count);
    Guarded<T> result(context.count);
    const auto accumulate = [&](auto own, std::span<const std::byte> piece) {
      refuses([&] { hop.codec.accumulate(exec_, own, piece, out, result.span(), context); });
    };
    accumulate(damaged, good), accumulate(good, damaged);
    accumulate(std::span<const T>(zeros), damaged);
    if (!result.intact())
      fail("bounds", "accumulate of damaged bytes wrote outside the values (" + hop.where + ")");
  }

  static Case with(const Case& c, Phase phase, int terms) {
    Case other = c;
    other.context.phase = phase, other.context.terms = terms;
    return other;
  }

 private:
  static Guarded<std::byte> exact(const Bytes& bytes) { return Guarded<std::byte>::exactly(bytes); }

  template <class Call> bool refuses(Call call) {
    try {
      call();
      exec_.fence();
      return false;
    } catch (const CodecError&) {
      return true;
    }
  }

  /// Runs `call(context)` with scratch memory of the size that the compressor asks for; what it threw, in words.
  template <class Call> std::optional<std::string> guarded_call(Case& c, const std::string& name,
                                                                std::size_t n, Call call) {
    std::size_t scratch_size = 0;
    if constexpr (ScratchCompressor<Codec, Exec>) scratch_size = c.codec.scratch_bytes(n);
    Guarded<std::byte> scratch(scratch_size);
    Context context = c.context;
    context.count = n, context.scratch = scratch.span();
    std::optional<std::string> thrown;
    try {
      call(std::as_const(context));
      exec_.fence();
    } catch (const std::exception& error) {
      thrown = std::string("\"") + error.what() + "\"";
    } catch (...) {
      thrown = "something that is no std::exception";
    }
    if (!scratch.intact()) fail("scratch", name + " wrote outside its scratch memory");
    return thrown;
  }

  template <class Call> std::optional<std::string> attempt(Case& c, const std::string& name,
                                                           const Bytes& piece, std::size_t n, Call call) {
    const auto bytes = exact(piece);
    return guarded_call(c, name, n, [&](const Context& context) { call(bytes.constant(), context); });
  }

  /// What `call` wrote into `most` bytes: checked against the size it returned and the guards.
  template <class Call>
  std::optional<Bytes> written(Case& c, const std::string& name, std::size_t n, std::size_t most,
                               std::byte fill, Call call) {
    Guarded<std::byte> out(most, fill);
    std::size_t size = 0;
    const auto thrown =
        guarded_call(c, name, n, [&](const Context& context) { size = call(out.span(), context); });
    if (!out.intact())
      fail("bounds", name + " wrote outside its space of " + std::to_string(most) + " bytes");
    if (thrown) return fail("total", name + " threw " + *thrown), std::nullopt;
    if (size > most) {
      fail("size",
           name + " returned " + std::to_string(size) + " bytes, its worst case is " + std::to_string(most));
      return std::nullopt;
    }
    return Bytes(out.span().begin(), out.span().begin() + static_cast<std::ptrdiff_t>(size));
  }

  Exec exec_;
  std::vector<std::string> failures_;
};

}  // namespace wring::inline v0::testing
