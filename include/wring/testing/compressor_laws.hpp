// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <wring/compressor/concept.hpp>
#include <wring/detail/exact_reduction.hpp>
#include <wring/detail/value_kernels.hpp>
#include <wring/testing/detail/codec_calls.hpp>
#include <wring/testing/detail/samples.hpp>

namespace wring::inline v0::testing {

/// What a compressor may be excused from.
struct CompressorLawOptions {
  bool stateful =
      false;  ///< it keeps something from call to call (residuals), so that equal inputs may give different bytes
  bool specials = true;  ///< it takes NaN and infinities: they arrive, and leave their neighbours finite
  bool saturates =
      true;  ///< false: finite values beyond the range of its format become infinities, as its user chose
};

/// The laws of the concept Compressor and of each refined ability that Codec has. See check_compressor_laws.
template <class Codec, class Exec> class CompressorLaws {
 public:
  using T = typename Codec::value_type;
  using Calls = CodecCalls<Codec, Exec>;
  using Case = typename Calls::Case;

  CompressorLaws(const Codec& codec, const Exec& exec, CompressorLawOptions options)
      : codec_(codec), options_(options), calls_(exec) {}

  std::vector<std::string> check() {
    identity_names_it();
    sizes_are_worst_cases();
    for (const Sample kind : samples_of<T>()) {
      if (kind == Sample::specials && !options_.specials) continue;
      for (const std::size_t n : lengths) {
        const std::string where = name_of(kind);
        const std::vector<T> values = sample_values<T>(kind, n);
        encodes_and_decodes(values, where);
        if constexpr (CombiningCompressor<Codec, Exec>) combines(kind, n, where);
      }
    }
    if constexpr (AnticipatingCompressor<Codec, Exec>)
      for (const Operation operation : {Operation::sum, Operation::mean, Operation::min, Operation::max})
        for (const double allowed : {1e-3, 1.0, 64.0}) anticipates(operation, allowed);
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{513}, std::size_t{1000}})
      survives_damage(n);
    if (cases_ == 0) fail("prepare", "it declines every bound and every argument: nothing was tried");
    return calls_.failures();
  }

 private:
  static constexpr std::size_t lengths[] = {0, 1, 2, 511, 512, 513, 1000, 16383, 16384, 16385};
  static constexpr bool bounded = BoundedCompressor<Codec, Exec>, prepares = PreparedCompressor<Codec, Exec>;
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  void fail(const std::string& law, const std::string& what) { calls_.fail(law, what); }

  static std::string number(double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", x);
    return text;
  }

  /// A compressor prepared for `ranks` inputs of n values with magnitudes up to max_abs, of which it hears as in a collective: under a
  /// bound, or where it surveys. Nothing if it declines: an argument that it does not take, or a bound that it cannot hold.
  std::optional<Case> prepared(Collective collective, Operation operation, int ranks, std::size_t n,
                               double max_abs, double allowed, const std::string& where) {
    Case c{codec_, {}, where};
    c.context.collective = collective, c.context.operation = operation, c.context.ranks = ranks;
    c.context.count = c.context.total = n, c.context.allowed_error = allowed;
    if constexpr (prepares) {
      const bool measured = allowed < unlimited || SurveyingCompressor<Codec, Exec>;
      Agreed agreed{.collective = collective,
                    .operation = operation,
                    .ranks = ranks,
                    .total = n,
                    .max_abs = measured ? max_abs : 0,
                    .allowed_error = {},
                    .measured = measured};
      if (allowed < unlimited) agreed.allowed_error = allowed;
      try {
        c.codec.prepare(agreed);
      } catch (const InvalidArgument&) {
        return std::nullopt;
      } catch (const BoundUnattainable&) {
        return std::nullopt;
      }
    }
    ++cases_;
    return c;
  }

  void identity_names_it() {
    const Identity identity = codec_.identity(), copied = Codec(codec_).identity();
    if (identity.name.empty() || identity.name.find_first_of(" \t\n") != std::string::npos)
      fail("identity", "the name is empty or has spaces: \"" + identity.name + "\"");
    if (identity.name != copied.name || identity.version != copied.version ||
        identity.options != copied.options)
      fail("identity", "a copy has another identity");
  }

  /// Never decreasing in 64 bits; beyond what 64 bits can count, an Error.
  void sizes_are_worst_cases() {
    never_decreases("max_compressed_bytes",
                    [this](std::size_t n) -> std::size_t { return codec_.max_compressed_bytes(n); });
    if constexpr (CombiningCompressor<Codec, Exec>) {
      const double max_abs = 1, allowed = bounded ? 0.25 : unlimited;
      if (auto c = prepared(Collective::allreduce, Operation::sum, 3, 1000, max_abs, allowed, "sizes"))
        never_decreases("max_combined_bytes",
                        [&](std::size_t n) -> std::size_t { return c->codec.max_combined_bytes(n, 3); });
    }
  }

  template <class Size> void never_decreases(const std::string& name, Size size) {
    std::vector<std::size_t> counts;
    for (std::size_t n = 0; n <= 1026; ++n) counts.push_back(n);
    for (int power = 11; power < 62; ++power)
      for (const int step : {-1, 0, 1})
        counts.push_back((std::size_t{1} << power) + static_cast<std::size_t>(step));
    std::size_t last = 0;
    bool refused = false;
    for (const std::size_t n : counts) {
      try {
        const std::size_t bytes = size(n);
        if (refused || bytes < last)
          return fail("size", name + "(" + std::to_string(n) + ") is smaller than for fewer values");
        last = bytes;
      } catch (const Error&) {
        refused = true;
      }
    }
    if (!refused && last < (std::size_t{1} << 40))
      fail("size", name + "(2^61) is too small to be true: " + std::to_string(last));
  }

  /// The allowed errors to try for one encoding. A prepared compressor knows what it can hold only then, and may decline.
  std::vector<double> allowed_errors(double max_abs) const {
    if constexpr (bounded && prepares) {
      const double scale = max_abs > 0 ? max_abs : 1;
      return {scale * 0x1p-44, scale * 0x1p-20, scale / 64};
    } else if constexpr (bounded) {
      const double least = codec_.error(max_abs);
      return {least, std::max(16 * least, max_abs / 64)};
    } else {
      return {unlimited};
    }
  }

  void encodes_and_decodes(std::span<const T> values, const std::string& where) {
    const double max_abs = greatest_magnitude(values);
    for (const double allowed : allowed_errors(max_abs)) {
      auto c = prepared(Collective::broadcast, Operation::sum, 2, values.size(), max_abs, allowed, where);
      if (!c) continue;
      if constexpr (bounded) promises_an_error(c->codec, max_abs, allowed, where);
      const auto piece = calls_.encode(*c, values);
      if (!piece) continue;
      has_the_size_it_knows(c->codec, *piece, values.size());
      repeats(*c, *piece, values);
      const auto decoded = calls_.decode(*c, *piece, values.size());
      if (!decoded) continue;
      writes_every_value(*c, *piece, *decoded);
      keeps_its_word(values, *decoded, allowed, where);
      if (const auto again = calls_.encode(*c, *decoded)) calls_.decode(*c, *again, values.size());
      if constexpr (AddingCompressor<Codec, Exec>) adds_as_it_decodes(*c, *piece, *decoded);
    }
  }

  void promises_an_error(const Codec& codec, double max_abs, double allowed, const std::string& where) {
    const double e = codec.error(max_abs);
    if (!(e >= 0 && e >= codec.error(max_abs / 2)))
      fail("error", "error(" + number(max_abs) + ") is negative, NaN or less than for smaller values");
    if (max_abs > 0 && !(e <= allowed))
      fail("error", "prepare accepts the bound " + number(allowed) + ", but error(max_abs) is " + number(e) +
                        " (" + where + ")");
  }

  void has_the_size_it_knows(const Codec& codec, const Bytes& piece, std::size_t n) {
    if constexpr (WordSummingCompressor<Codec, Exec>)
      if (piece.size() != codec.max_compressed_bytes(n) || piece.size() % 8 != 0)
        fail("words", "a piece of " + std::to_string(n) + " values has " + std::to_string(piece.size()) +
                          " bytes: not max_compressed_bytes(), or no whole words");
    if constexpr (FixedSizeCompressor<Codec, Exec>)
      if (piece.size() != codec.compressed_bytes(n))
        fail("fixed size", "compress of " + std::to_string(n) + " values wrote " +
                               std::to_string(piece.size()) + " bytes, compressed_bytes says " +
                               std::to_string(codec.compressed_bytes(n)));
  }

  /// Equal input, equal bytes: again, on a copy, and whatever lay in the output before.
  void repeats(Case& c, const Bytes& piece, std::span<const T> values) {
    if (options_.stateful) return;
    Case copy = c;
    for (Case* which : {&c, &copy}) {
      const auto again = calls_.encode(*which, values, std::byte{0x5a});
      if (again && *again != piece)
        return fail("deterministic",
                    "compress of equal values gave other bytes the second time (" + c.where + ")");
    }
  }

  void writes_every_value(Case& c, const Bytes& piece, const std::vector<T>& decoded) {
    const auto again = calls_.decode(c, piece, decoded.size(), std::byte{0x5a});
    if (again && !same_bytes<T>(*again, decoded))
      fail("inverse", "decompress leaves values as they were, or is not deterministic (" + c.where + ")");
  }

  /// Within the bound, where there is one; and non-finite values arrive at their place and nowhere else.
  void keeps_its_word(std::span<const T> values, std::span<const T> decoded, double allowed,
                      const std::string& where) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (is_complex_v<T>) {
        check_scalar(values[i].real(), decoded[i].real(), allowed, where, i, values.size());
        check_scalar(values[i].imag(), decoded[i].imag(), allowed, where, i, values.size());
      } else {
        check_scalar(values[i], decoded[i], allowed, where, i, values.size());
      }
    }
  }

  template <class S> void check_scalar(S value, S decoded, double allowed, const std::string& where,
                                       std::size_t i, std::size_t n) {
    const auto place = [&] {
      return "value " + std::to_string(i) + " of " + std::to_string(n) + " (" + where + ")";
    };
    if constexpr (FloatElement<S>) {
      const double x = wring::detail::widen(value), y = wring::detail::widen(decoded);
      if (std::isfinite(x) && (std::isnan(y) || (std::isinf(y) && options_.saturates)))
        return fail("finite", "a finite value arrives as NaN or infinity: " + place());
      if (!std::isfinite(x) && !(y == x || (std::isnan(x) && std::isnan(y))))
        return fail("special values", "NaN or an infinity arrives as something else: " + place());
      if (std::isfinite(x) && bounded && !(std::fabs(y - x) <= allowed))
        fail("bound",
             place() + ": " + number(x) + " arrives as " + number(y) + ", allowed error " + number(allowed));
    } else if (bounded) {
      using U = std::make_unsigned_t<S>;
      const U difference = value < decoded ? static_cast<U>(static_cast<U>(decoded) - static_cast<U>(value))
                                           : static_cast<U>(static_cast<U>(value) - static_cast<U>(decoded));
      if (!(static_cast<double>(difference) <= allowed)) fail("bound", place());
    }
  }

  static bool same_value(const T& a, const T& b) {
    if (std::memcmp(&a, &b, sizeof(T)) == 0) return true;
    if constexpr (FloatElement<T>)
      return std::isnan(wring::detail::widen(a)) && std::isnan(wring::detail::widen(b));
    else
      return false;
  }

  /// decompress_add is decompress, then an addition of elements.
  void adds_as_it_decodes(Case& c, const Bytes& piece, const std::vector<T>& decoded) {
    const std::vector<T> before = sample_values<T>(Sample::normal, decoded.size(), 3);
    const auto sums = calls_.decode_add(c, piece, before);
    if (!sums) return;
    for (std::size_t i = 0; i < decoded.size(); ++i)
      if (!same_value((*sums)[i], wring::detail::add_values(before[i], decoded[i])))
        return fail("adding", "decompress_add differs from decompress and add at value " + std::to_string(i) +
                                  " (" + c.where + ")");
  }

  // ---- combination ----

  static constexpr int terms = 3;

  /// Inputs of three ranks. Their sum stays in the range of the type.
  static std::vector<std::vector<T>> inputs(Sample kind, std::size_t n) {
    std::vector<std::vector<T>> all;
    for (int rank = 0; rank < terms; ++rank) {
      all.push_back(sample_values<T>(kind, n, 11 + static_cast<std::uint64_t>(rank)));
      if constexpr (FloatElement<T>)
        if (kind == Sample::huge)
          for (T& x : all.back())
            x = wring::detail::narrow<T>(static_cast<double>(wring::detail::widen(x)) / 4);
    }
    return all;
  }

  void combines(Sample kind, std::size_t n, const std::string& where) {
    const auto values = inputs(kind, n);
    double max_abs = 0;
    for (const auto& rank : values) max_abs = std::max(max_abs, greatest_magnitude<T>(rank));
    for (const Operation operation : {Operation::sum, Operation::mean, Operation::min, Operation::max}) {
      const std::string name = where + ", " + name_of(operation) + " of 3";
      if constexpr (!bounded) {
        if (auto c = prepared(Collective::allreduce, operation, terms, n, max_abs, unlimited, name))
          combines(*c, values, n, rounding_of_sums(max_abs));
        continue;
      }
      const double scale = max_abs > 0 ? max_abs : 1;
      const double first = std::max(operation == Operation::sum ? scale / 64 : scale / 200,
                                    std::numeric_limits<double>::denorm_min());
      for (double allowed = first; allowed < 4 * scale; allowed *= 16)
        if (auto c = prepared(Collective::allreduce, operation, terms, n, max_abs, allowed, name)) {
          combines(*c, values, n, allowed);
          break;
        }
    }
  }

  /// What three values up to max_abs, added one after the other and divided, may be off by.
  static double rounding_of_sums(double max_abs) {
    if constexpr (FloatElement<T>)
      return terms *
             (terms * max_abs * FloatTraits<T>::unit_roundoff * 1.01 + FloatTraits<T>::least_subnormal);
    return unlimited;
  }

  void combines(Case& c, const std::vector<std::vector<T>>& values, std::size_t n, double allowed) {
    std::vector<Bytes> pieces;
    for (int rank = 0; rank < terms; ++rank) {
      Case own = c;
      own.context.rank = rank, own.context.allowed_error = unlimited;
      const auto piece = calls_.encode(own, values[static_cast<std::size_t>(rank)]);
      if (!piece) return;
      pieces.push_back(*piece);
    }
    const auto ab = calls_.combine(c, pieces[0], pieces[1], n, 2),
               ba = calls_.combine(c, pieces[1], pieces[0], n, 2);
    const auto bc = calls_.combine(c, pieces[1], pieces[2], n, 2);
    if (!ab || !ba || !bc) return;
    const auto left = calls_.combine(c, *ab, pieces[2], n, 3),
               right = calls_.combine(c, pieces[0], *bc, n, 3);
    if (!left || !right) return;
    if (c.codec.reproducible()) {
      if (*ab != *ba) fail("commutative", "combine(a, b) and combine(b, a) differ (" + c.where + ")");
      if (*left != *right)
        fail("associative",
             "combine(combine(a, b), c) and combine(a, combine(b, c)) differ (" + c.where + ")");
      combines_wide(c, values, pieces, *ab, n);
    }
    if constexpr (MeasuringCompressor<Codec, Exec>)
      for (std::size_t rank = 0; rank < pieces.size(); ++rank) measures(c, values[rank], pieces[rank]);
    if constexpr (AccumulatingCompressor<Codec, Exec>)
      if (c.codec.accumulates()) accumulates(c, values, pieces, *ab);
    if constexpr (bounded)
      decodes_to_the_result(c, values, *left, n, allowed);
    else
      decodes_to_the_result(c, decoded_inputs(c, pieces, n), *left, n, allowed);
  }

  /// Without a bound a combination is that of what the pieces decode to.
  std::vector<std::vector<T>> decoded_inputs(Case& c, const std::vector<Bytes>& pieces, std::size_t n) {
    std::vector<std::vector<T>> all;
    Case own = Calls::with(c, Phase::own, 1);
    for (const Bytes& piece : pieces) all.push_back(calls_.decode(own, piece, n).value_or(std::vector<T>(n)));
    return all;
  }

  /// What is measured while it is encoded: the same bytes, and no value is larger.
  void measures(Case& c, const std::vector<T>& values, const Bytes& expected) {
    Case own = c;
    own.context.allowed_error = unlimited;
    double max_abs = 0;
    const auto piece = calls_.encode_and_measure(own, values, max_abs);
    if (!piece) return;
    if (*piece != expected)
      fail("measuring", "compress_and_measure and compress write different bytes (" + c.where + ")");
    if (max_abs < greatest_magnitude<T>(values))
      fail("measuring", "compress_and_measure misses the largest value (" + c.where + ")");
  }

  /// One pass gives what encoding, combining and decoding give: from values and from bytes, in place, for pieces of both forms.
  void accumulates(Case& c, const std::vector<std::vector<T>>& values, const std::vector<Bytes>& pieces,
                   const Bytes& ab) {
    const std::size_t n = values[0].size();
    accumulates(c, values[0], pieces[1], ab, n);
    accumulates(c, pieces[0], pieces[1], ab, n);
    std::vector<T> there(n), here = values[0];
    const auto sum = calls_.accumulate(c, values[0], pieces[1], n, 2, std::span(there)),
               in_place = calls_.accumulate_in_place(c, here, pieces[1], 2);
    if (sum && in_place && (*sum != *in_place || !same_bytes<T>(there, here)))
      fail("accumulating", "accumulate is not the same in place (" + c.where + ")");
    Case wide = c;
    wide.context.wide = true;
    const auto a = calls_.encode(wide, values[0]), b = calls_.encode(wide, values[1]);
    if (!a || !b) return;
    if (const auto mixed = calls_.combine(c, pieces[0], *b, n, 2)) accumulates(c, values[0], *b, *mixed, n);
    if (const auto both = calls_.combine(c, *a, *b, n, 2)) accumulates(c, *a, *b, *both, n);
    if (const auto sum_wide = calls_.combine(wide, *a, *b, n, 2)) accumulates(wide, *a, *b, *sum_wide, n);
  }

  template <class Own> void accumulates(Case& c, const std::vector<Own>& own, const Bytes& piece,
                                        const Bytes& expected, std::size_t n) {
    std::vector<T> result(n);
    const auto alone = calls_.accumulate(c, own, piece, n, 2, {}),
               decoded = calls_.accumulate(c, own, piece, n, 2, std::span(result));
    if (!alone || !decoded) return;
    if (*alone != expected || *decoded != expected)
      fail("accumulating", "accumulate and combine write different bytes (" + c.where + ")");
    Case complete = Calls::with(c, Phase::final, 2);
    const auto values = calls_.decode(complete, expected, n);
    if (values && !same_bytes<T>(*values, result))
      fail("accumulating", "accumulate and decompress give different values (" + c.where + ")");
  }

  /// What was encoded for speed combines with what was encoded for size, to the same values.
  void combines_wide(Case& c, const std::vector<std::vector<T>>& values, const std::vector<Bytes>& pieces,
                     const Bytes& ab, std::size_t n) {
    Case wide = c;
    wide.context.wide = true;
    const auto a = calls_.encode(wide, values[0]);
    const auto mixed = a ? calls_.combine(c, *a, pieces[1], n, 2) : std::nullopt;
    if (!mixed) return;
    Case two = Calls::with(c, Phase::hop, 2);
    const auto expected = calls_.decode(two, ab, n), decoded = calls_.decode(two, *mixed, n);
    if (expected && decoded && !same_bytes<T>(*expected, *decoded))
      fail("wide", "a wide and a coded piece combine to other values than two coded ones (" + c.where + ")");
    finishes_wide(c, wide, *a, values[1], ab, n);
  }

  /// A sum that was added in the wide form becomes the result that a coded one becomes.
  void finishes_wide(Case& c, Case& wide, const Bytes& a, const std::vector<T>& second, const Bytes& ab,
                     std::size_t n) {
    Case other_rank = wide;
    other_rank.context.rank = 1;  // whose draws are its own
    const auto b = calls_.encode(other_rank, second);
    const auto sum = b ? calls_.combine(wide, a, *b, n, 2) : std::nullopt;
    const auto finished = sum ? calls_.finish(c, *sum, n, 2) : std::nullopt,
               expected = calls_.finish(c, ab, n, 2);
    if (!finished || !expected) return;
    Case last = Calls::with(c, Phase::final, 2);
    const auto result = calls_.decode(last, *finished, n), other = calls_.decode(last, *expected, n);
    if (result && other && !same_bytes<T>(*result, *other))
      fail("wide", "a wide sum finishes to other values than a coded one (" + c.where + ")");
  }

  void decodes_to_the_result(Case& c, const std::vector<std::vector<T>>& values, const Bytes& sum,
                             std::size_t n, double allowed) {
    const auto finished = calls_.finish(c, sum, n, terms);
    if (!finished) return;
    Case last = Calls::with(c, Phase::final, terms);
    const auto result = calls_.decode(last, *finished, n);
    if constexpr (FloatElement<T>) {
      wring::detail::ExactCheck<T> exact({c.context.operation, allowed, FloatTraits<T>::greatest});
      std::vector<const T*> inputs;
      for (const auto& of_rank : values) inputs.push_back(of_rank.data());
      const std::size_t wrong = result ? exact.first_wrong(inputs, *result) : n;
      if (wrong < n)
        fail("combination", "value " + std::to_string(wrong) + " of " + std::to_string(n) + " (" + c.where +
                                ") is " + number(wring::detail::widen((*result)[wrong])) +
                                ", not the result within " + number(allowed));
    }
  }

  // ---- anticipation ----

  /// Parameters for larger and larger inputs, against those for zeros: interchangeable up to some magnitude and never beyond, and
  /// those that are give the same bytes.
  void anticipates(Operation operation, double allowed) {
    const std::size_t n = 700;
    const std::string where = "anticipation, " + std::string(name_of(operation)) + " of 3";
    auto zero = prepared(Collective::allreduce, operation, terms, n, 0, allowed, where);
    if (!zero) return;
    if (!zero->codec.interchangeable(zero->codec)) fail("anticipation", "a compressor differs from itself");
    bool alike = true;
    for (double max_abs = allowed * 0x1p-20; max_abs < allowed * 0x1p40; max_abs *= 1.5) {
      auto c = prepared(Collective::allreduce, operation, terms, n, max_abs, allowed, where);
      const bool before = alike;
      alike = c && c->codec.interchangeable(zero->codec);
      if (alike && !before)
        return fail("anticipation", "inputs of " + number(max_abs) +
                                        " are not too large, but smaller ones are (bound " + number(allowed) +
                                        ")");
      if (alike) gives_the_same_bytes(*zero, *c, scaled_to(max_abs, n));
    }
  }

  /// Values of all signs with magnitudes up to max_abs.
  static std::vector<T> scaled_to(double max_abs, std::size_t n) {
    std::vector<T> values(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double share = static_cast<double>(random_bits(31, i) % 2001) / 1000 - 1;
      if constexpr (FloatElement<T>) values[i] = wring::detail::narrow<T>(0.99 * share * max_abs);
    }
    return values;
  }

  void gives_the_same_bytes(Case& a, Case& b, const std::vector<T>& values) {
    const auto one = calls_.encode(a, values), other = calls_.encode(b, values);
    if (one && other && *one != *other)
      fail("anticipation",
           "two interchangeable compressors encode the same values differently (" + a.where + ")");
  }

  // ---- damage ----

  /// Bytes that were cut, lengthened or changed give a CodecError or values, nothing else.
  void survives_damage(std::size_t n) {
    const Sample kind = FloatElement<scalar_t<T>> && options_.specials ? Sample::specials : Sample::normal;
    const std::vector<T> values = sample_values<T>(kind, n);
    const double max_abs = greatest_magnitude<T>(values);
    if (auto c = prepared(Collective::broadcast, Operation::sum, 2, n, max_abs,
                          allowed_errors(max_abs).back(), "damage"))
      if (const auto piece = calls_.encode(*c, values))
        damages(*piece, [&](const Bytes& bytes, const std::string& how) {
          const bool refused = calls_.decode_damaged(*c, bytes, n, how);
          if (FixedSizeCompressor<Codec, Exec> && bytes.size() != piece->size() && !refused)
            fail("damage", "bytes that were " + how + " are accepted, although the size is known");
        });
    if constexpr (CombiningCompressor<Codec, Exec>) {
      survives_damage(Operation::sum, values, max_abs, 0x1p-4);
      survives_damage(Operation::max, values, max_abs, 0x1p-60);  // elements, where integers are too coarse
    }
  }

  /// The same of what is combined, with a bound of this part of the greatest magnitude.
  void survives_damage(Operation operation, const std::vector<T>& values, double max_abs, double part) {
    const std::size_t n = values.size();
    if (auto c = prepared(Collective::allreduce, operation, 2, n, max_abs, std::max(max_abs, 1e-3) * part,
                          "damage, " + std::string(name_of(operation))))
      if (const auto piece = calls_.encode(*c, values))
        damages(*piece, [&](const Bytes& bytes, const std::string& how) {
          calls_.combine_damaged(*c, bytes, *piece, n, how);
          calls_.decode_damaged(*c, bytes, n, how);
        });
  }

  template <class Try> static void damages(const Bytes& piece, Try attempt) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, piece.size() / 2, piece.size() - 1})
      if (size < piece.size())
        attempt(Bytes(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(size)),
                "cut to " + std::to_string(size));
    for (const std::size_t more : {1, 64, 4096}) {
      Bytes longer = piece;
      longer.resize(piece.size() + more);
      attempt(longer, "extended by " + std::to_string(more));
    }
    for (std::size_t i = 0; !piece.empty() && i < 128; ++i) {  // the first bytes, and others anywhere
      const std::size_t at = (i < 64 ? i : random_bits(21, i)) % piece.size();
      Bytes flipped = piece;
      flipped[at] ^= static_cast<std::byte>(1u << (random_bits(22, i) % 8));
      attempt(flipped, "flipped in byte " + std::to_string(at));
      flipped[at] = std::byte{0xff};
      attempt(flipped, "set in byte " + std::to_string(at));
    }
    for (const unsigned fill : {0x00u, 0x7fu, 0xffu})
      attempt(Bytes(piece.size(), static_cast<std::byte>(fill)), "all equal");
  }

  Codec codec_;
  CompressorLawOptions options_;
  Calls calls_;
  long cases_ = 0;  ///< how many preparations were accepted
};

/// Checks a compressor, anyone's, against the laws of its concepts, over lengths around the block sizes in use and data of every
/// kind. Returns one sentence for each law that is broken: nothing if it keeps them all. Needs no test framework. Run it under an
/// address sanitiser, too: what is read beyond the end of a span shows there alone.
///
/// Every Compressor: what it writes fits into max_compressed_bytes, which never decreases; it touches nothing else; equal input
/// gives equal bytes; decompress gives back every value and refuses or survives bytes that compress did not write; NaN and infinities
/// arrive where they were, finite values stay finite; decoded values can be encoded again. Bounded: no value is farther from the original than
/// the error allowed, as long as that is at least error(max_abs); what `prepare` accepts, it holds. Fixed size: the size is the one foretold. Adding: the same as
/// decompress and add. Combining: commutative and associative bit by bit (where reproducible), the result within the bound that
/// `prepare` was given (or, without one, that of what the pieces decode to, within the rounding of three additions), special values as in IEEE arithmetic, wide and coded pieces mix. Measuring: the same as compress, and no value is larger than what was measured.
/// Accumulating: the same as compress, combine and decompress. Anticipating: parameters are interchangeable
/// with those for zeros up to some magnitude and never beyond, and encode alike.
template <class Codec, class Exec = Kokkos::DefaultHostExecutionSpace>
  requires Compressor<Codec, Exec>
std::vector<std::string> check_compressor_laws(const Codec& codec, const Exec& exec = Exec{},
                                               CompressorLawOptions options = {}) {
  return CompressorLaws<Codec, Exec>(codec, exec, options).check();
}

}  // namespace wring::inline v0::testing
