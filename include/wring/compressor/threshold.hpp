// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include <wring/compressor/concept.hpp>
#include <wring/detail/sparse/codec.hpp>
#include <wring/detail/sparse/threshold.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

/// Sends the values of each rank's input whose magnitude is not below a threshold, as they are; the others count as zeros. NaN and
/// infinities are always sent, zeros never.
///
/// The threshold is given as an option, or follows from the bound asked for on the result, or both: then the smaller one holds. Without either
/// every value but zeros is sent. What is not sent is an error below the threshold: t = E for values that are moved and for MIN and MAX, where
/// they count as zeros; with r the rounding of the additions, t = E - r for MEAN and (E - r) / p for SUM.
/// So the bound is kept with any distribution of values; it pays where most of them are small.
///
/// The bytes, sums and special values are those of `TopK`. The options must be equal on all ranks. Cost: one pass. Memory: none.
template <FloatElement T = float> class Threshold : public detail::sparse::Codec<T> {
  using Base = detail::sparse::Codec<T>;

 public:
  struct Options {
    std::optional<double> threshold{};  ///< in the units of the values, not negative
    friend bool operator==(const Options&, const Options&) = default;
  };

  /// Throws InvalidArgument.
  explicit Threshold(const Options& options = {})
      : options_(options), threshold_(options.threshold.value_or(0)) {
    if (options.threshold && !(*options.threshold >= 0))
      throw InvalidArgument(
          fmt::format("Threshold: threshold is {}; it must not be negative", *options.threshold));
  }

  const Options& options() const noexcept { return options_; }

  /// Values of a smaller magnitude than this are not sent; set by `prepare` where there is a bound.
  double threshold() const noexcept { return threshold_; }

  Identity identity() const {
    const std::string how =
        options_.threshold ? fmt::format(" threshold={:a}", *options_.threshold) : std::string();
    return {.name = "threshold", .version = 1, .options = Base::element_option() + how};
  }

  /// Throws BoundUnattainable where the additions alone may be off by more than the bound.
  void prepare(const Agreed& agreed) {
    Base::prepare(agreed);
    threshold_ = options_.threshold.value_or(0);
    if (!agreed.allowed_error) return;
    const double most = detail::sparse::threshold_for<T>(agreed);
    threshold_ = options_.threshold ? std::min(most, *options_.threshold) : most;
  }

  /// What is not sent is below the threshold.
  double error(double max_abs) const noexcept { return std::min(threshold_, max_abs); }

  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context) const {
    if (context.phase != Phase::own) return Base::encode(exec, values, bytes, {}, context.first);
    return Base::encode(exec, values, bytes, detail::sparse::not_below<T>(threshold_), context.first);
  }

 private:
  Options options_;
  double threshold_;
};

static_assert(CombiningCompressor<Threshold<float>> && BoundedCompressor<Threshold<half_t>>);
static_assert(AddingCompressor<Threshold<double>> && !InspectingCompressor<Threshold<float>>);

}  // namespace wring::inline v0
