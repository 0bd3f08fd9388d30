// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <wring/compressor/concept.hpp>
#include <wring/error.hpp>

/// Two compressors as a user might write them, honest with Fault::none, and with one fault each otherwise.
namespace sample {

using namespace wring;
using Bytes = std::span<const std::byte>;
using Space = std::span<std::byte>;

enum class Fault {
  none,
  name_with_spaces,
  size_in_32_bits,
  more_than_worst_case,
  other_size_than_foretold,
  throws_for_nothing,
  writes_beyond,
  changes_input,
  leaves_bytes,
  counts_calls,
  writes_beyond_values,
  leaves_values,
  too_coarse,
  error_decreases,
  loses_nan,
  infinity_from_nothing,
  adds_twice_rounded,
  accepts_cut_bytes,
  throws_out_of_range,
  overflows_scratch,
  error_after_prepare,
  declines_everything,
  not_commutative,
  not_associative,
  wrong_minimum,
  forgets_a_term,
  combined_size,
  wide_differs,
  finish_is_wrong,
  misjudges_parameters,
  differs_from_itself,
  large_becomes_small,
  accumulates_other_bytes,
  accumulates_other_values,
  accumulates_not_in_place,
  accumulates_without_checks
};

template <class T> T load(Bytes from, std::size_t index) {
  T value;
  std::memcpy(&value, from.data() + index * sizeof(T), sizeof(T));
  return value;
}
template <class T> void store(Space to, std::size_t index, T value) {
  std::memcpy(to.data() + index * sizeof(T), &value, sizeof(T));
}

/// Each float without the last 12 bits of its mantissa, in 4 bytes: bounded, of known size, adding, with scratch memory.
struct Chopped {
  using value_type = float;
  Fault fault = Fault::none;
  int calls = 0;

  bool has(Fault which) const { return fault == which; }

  Identity identity() const { return {has(Fault::name_with_spaces) ? "chopped floats" : "chopped", 1, {}}; }
  std::size_t max_compressed_bytes(std::size_t n) const {
    if (has(Fault::size_in_32_bits)) return static_cast<std::uint32_t>(4 * n);
    return n > SIZE_MAX / 4 ? SIZE_MAX : 4 * n;
  }
  std::size_t compressed_bytes(std::size_t n) const {
    return has(Fault::other_size_than_foretold) && n > 600 ? 4 * n - 4 : 4 * n;
  }
  std::size_t scratch_bytes(std::size_t n) const { return n; }
  double error(double max_abs) const {
    if (has(Fault::error_decreases)) return 1 / (1 + max_abs);
    return max_abs * 0x1p-11 + 0x1p-137;
  }

  template <class Exec> std::size_t compress(const Exec&, std::span<const float> values, Space bytes,
                                             const Context& context) {
    const std::size_t n = values.size();
    if (has(Fault::throws_for_nothing) && n == 0) throw std::length_error("nothing to do");
    if (has(Fault::overflows_scratch)) context.scratch.data()[context.scratch.size()] = std::byte{1};
    if (has(Fault::changes_input) && n > 0) const_cast<float&>(values[0]) += 1;
    for (std::size_t i = 0; i < n; ++i) {
      if (has(Fault::leaves_bytes) && i == 3) continue;
      store(bytes, i, chopped(values[i]));
    }
    if (has(Fault::counts_calls) && n > 0)
      store(bytes, 0, chopped(values[0]) ^ static_cast<std::uint32_t>(++calls & 1));
    if (has(Fault::writes_beyond)) bytes.data()[bytes.size()] = std::byte{1};
    return 4 * n + (has(Fault::more_than_worst_case) ? 1 : 0);
  }

  template <class Exec> void decompress(const Exec&, Bytes bytes, std::span<float> values,
                                        const Context&) const {
    const std::size_t n = values.size();
    if (has(Fault::throws_out_of_range) && bytes.size() != 4 * n) throw std::out_of_range("too few bytes");
    if (has(Fault::accepts_cut_bytes) && bytes.size() != 4 * n) return;
    if (bytes.size() != 4 * n) throw CodecError("chopped: wrong number of bytes");
    for (std::size_t i = 0; i < n; ++i)
      if (!has(Fault::leaves_values) || i != 510) values[i] = load<float>(bytes, i);
    if (has(Fault::infinity_from_nothing) && n > 7 && !std::isfinite(values[5])) values[6] = INFINITY;
    if (has(Fault::infinity_from_nothing) && n > 7 && std::fabs(values[5]) > 1e37f) values[6] = INFINITY;
    if (has(Fault::writes_beyond_values)) std::memset(static_cast<void*>(values.data() + n), 0, 4);
  }

  template <class Exec> void decompress_add(const Exec&, Bytes bytes, std::span<float> values,
                                            const Context&) const {
    if (bytes.size() != 4 * values.size()) throw CodecError("chopped: wrong number of bytes");
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += load<float>(bytes, i);
      if (has(Fault::adds_twice_rounded)) values[i] = std::trunc(values[i] * 1024) / 1024;
    }
  }

 private:
  std::uint32_t chopped(float x) const {
    std::uint32_t bits;
    if (std::isnan(x)) x = has(Fault::loses_nan) ? 0 : NAN;
    std::memcpy(&bits, &x, 4);
    return bits & (has(Fault::too_coarse) ? 0xffff8000u : 0xfffff000u);
  }
};

/// Values as multiples of a step, 8 bytes each, and a byte that says whether a value is special: combining and finishing.
class Steps {
 public:
  using value_type = float;

  explicit Steps(Fault fault = Fault::none) : fault_(fault) {}

  Identity identity() const { return {"steps", 1, {}}; }
  std::size_t max_compressed_bytes(std::size_t n) const { return n > SIZE_MAX / 9 ? SIZE_MAX : 9 * n; }
  std::size_t max_combined_bytes(std::size_t n, int) const { return max_compressed_bytes(n); }
  bool reproducible() const { return true; }
  bool finishes() const { return true; }
  bool accumulates() const { return true; }

  void prepare(const Agreed& agreed) {
    if (!agreed.allowed_error || has(Fault::declines_everything))
      throw InvalidArgument("steps: needs a bound");
    const double most = agreed.ranks * agreed.max_abs + *agreed.allowed_error;
    if (*agreed.allowed_error <= 1e-3 * most || *agreed.allowed_error < 1e-40)
      throw BoundUnattainable("steps: too small a bound");
    step_ = *agreed.allowed_error / (has(Fault::too_coarse) ? 0.3 : 1.5) /
            (agreed.operation == Operation::sum ? agreed.ranks : 1);
    if (has(Fault::misjudges_parameters) && agreed.max_abs > *agreed.allowed_error) step_ /= 2;
    large_ = has(Fault::large_becomes_small) && agreed.max_abs > 2 * *agreed.allowed_error &&
             agreed.max_abs < 4 * *agreed.allowed_error;
  }
  bool interchangeable(const Steps& other) const {
    if (has(Fault::differs_from_itself)) return false;
    return large_ == other.large_ && (has(Fault::misjudges_parameters) || step_ == other.step_);
  }
  double error(double max_abs) const {
    return (has(Fault::error_after_prepare) ? 4 : 0.51) * step_ + 1e-7 * max_abs;
  }

  template <class Exec> std::size_t compress(const Exec&, std::span<const float> values, Space bytes,
                                             const Context& context) {
    const std::size_t n = values.size();
    for (std::size_t i = 0; i < n; ++i) {
      const bool finite = std::isfinite(values[i]);
      const double skew = has(Fault::wide_differs) && context.wide ? 1 : 0;
      store(bytes, i, finite ? std::llrint(values[i] / step_ + skew) : 0LL);
      bytes[8 * n + i] = finite                  ? std::byte{0}
                         : std::isnan(values[i]) ? std::byte{3}
                         : values[i] > 0         ? std::byte{1}
                                                 : std::byte{2};
    }
    return 9 * n;
  }

  template <class Exec> void decompress(const Exec&, Bytes bytes, std::span<float> values,
                                        const Context& context) const {
    const std::size_t n = checked(bytes, values.size());
    const bool mean = context.phase == Phase::final && context.operation == Operation::mean;
    for (std::size_t i = 0; i < n; ++i) {
      const auto code = std::to_integer<int>(bytes[8 * n + i]) & 3;
      const double y = static_cast<double>(load<std::int64_t>(bytes, i)) * step_ / (mean ? context.ranks : 1);
      values[i] = code == 3 ? NAN : code == 2 ? -INFINITY : code == 1 ? INFINITY : static_cast<float>(y);
    }
  }

  template <class Exec> std::size_t combine(const Exec&, Bytes a, Bytes b, Space out,
                                            const Context& context) const {
    const std::size_t n = checked(a, context.count);
    checked(b, n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto p = a[8 * n + i], q = b[8 * n + i];
      const auto x = load<std::int64_t>(a, i), y = load<std::int64_t>(b, i);
      out[8 * n + i] = p | q;
      std::int64_t z = sum(x, y);
      if (has(Fault::not_commutative) && i == 2) z = sum(z, x > y ? 1 : 0);
      if (has(Fault::not_associative) && i == 2) z = sum(z, z & 1);
      if (has(Fault::forgets_a_term) && i == 2) z = std::max(x, y);
      if (!adds(context.operation)) {
        const bool least = context.operation == Operation::min;
        const auto rank = [](std::byte c, std::int64_t v) {
          return c == std::byte{1} ? INT64_MAX : c == std::byte{2} ? INT64_MIN : v;
        };
        const bool first = least == (rank(p, x) < rank(q, y)) || (has(Fault::wrong_minimum) && i == 4);
        z = first ? x : y;
        out[8 * n + i] = (p | q) == std::byte{3} && (p == std::byte{3} || q == std::byte{3}) ? std::byte{3}
                         : first                                                             ? p
                                                                                             : q;
      }
      store(out, i, out[8 * n + i] == std::byte{0} ? z : std::int64_t{0});
    }
    if (has(Fault::combined_size)) return 9 * n + 8;
    return 9 * n;
  }

  template <class Exec>
  std::size_t accumulate(const Exec& exec, std::span<const float> values, Bytes piece, Space out,
                         std::span<float> result, const Context& context) {
    std::vector<std::byte> own(max_compressed_bytes(values.size()));
    if (has(Fault::accumulates_not_in_place) && result.size() > 9) result[9] = 0;
    compress(exec, values, own, context);
    return accumulate(exec, Bytes(own), piece, out, result, context);
  }
  template <class Exec> std::size_t accumulate(const Exec& exec, Bytes own, Bytes piece, Space out,
                                               std::span<float> result, const Context& context) {
    if (has(Fault::accumulates_without_checks) && piece.size() < own.size()) throw std::out_of_range("piece");
    const std::size_t bytes = combine(exec, own, piece, out, context);
    Context complete = context;
    complete.phase = Phase::final;
    if (!result.empty()) decompress(exec, out.first(bytes), result, complete);
    if (has(Fault::accumulates_other_values) && result.size() > 9) result[9] += 1;
    if (has(Fault::accumulates_other_bytes) && context.count > 9) out[9] ^= std::byte{1};
    return bytes;
  }

  template <class Exec> std::size_t finish(const Exec&, Bytes sum, Space out, const Context& context) const {
    const std::size_t n = checked(sum, context.count);
    std::copy(sum.begin(), sum.end(), out.begin());
    if (has(Fault::finish_is_wrong) && n > 9) store(out, 9, std::int64_t{123456789});
    return sum.size();
  }

 private:
  bool has(Fault which) const { return fault_ == which; }
  static std::int64_t sum(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
  static std::size_t checked(Bytes bytes, std::size_t n) {
    if (bytes.size() != 9 * n) throw CodecError("steps: wrong number of bytes");
    return n;
  }

  Fault fault_;
  double step_ = 1;
  bool large_ = false;
};

static_assert(BoundedCompressor<Chopped> && FixedSizeCompressor<Chopped> && AddingCompressor<Chopped> &&
              ScratchCompressor<Chopped>);
static_assert(BoundedCompressor<Steps> && FinishingCompressor<Steps> && AnticipatingCompressor<Steps> &&
              AccumulatingCompressor<Steps>);

}  // namespace sample
