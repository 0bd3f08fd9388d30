// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include <wring/compressor/concept.hpp>
#include <wring/detail/sparse/codec.hpp>
#include <wring/detail/sparse/select.hpp>
#include <wring/detail/sparse/team_select.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

/// Sends the k values of the greatest magnitude of each rank's input, as they are; the others count as zeros. For gradients, in
/// `ErrorFeedback`: what is not sent must not be lost.
///
/// k is a number of values, or a part of the input: the nearest whole number to ratio n, and at least 1. Each rank selects from the whole of
/// its own input, wherever it is cut into messages: exactly k values, but zeros are never sent. Of values with one magnitude those at the
/// lowest places are sent. NaN comes before all others and infinities come next; both arrive, NaN as the canonical quiet one.
/// Where k is no smaller than the input everything is sent.
///
/// Blocks of 512 values take 2 bytes, and for each value sent its bytes and one more for its place, or 64 for the places of all of them;
/// never more than the values themselves. Encoded sums grow: they hold what any rank has sent. They are added without being decoded, in T, so that
/// with three or more ranks the last bits of SUM and MEAN depend on the algorithm; all ranks have the same. MIN and MAX are those of the
/// values that were sent, and of zeros in place of the others.
///
/// Promises no bound. The options must be equal on all ranks. Cost: the input is read two or three times, once more
/// where values tie for the last place, then encoded. Memory: none.
template <FloatElement T = float> class TopK : public detail::sparse::Codec<T> {
  using Base = detail::sparse::Codec<T>;

 public:
  /// One of the two.
  struct Options {
    std::optional<std::size_t> k{};  ///< at least 1
    std::optional<double> ratio{};   ///< above 0, at most 1
    friend bool operator==(const Options&, const Options&) = default;
  };

  /// Throws InvalidArgument.
  explicit TopK(const Options& options) : options_(options) {
    if (options.k.has_value() == options.ratio.has_value())
      throw InvalidArgument("TopK: give one of the options k and ratio, not both");
    if (options.k && *options.k == 0) throw InvalidArgument("TopK: k is 0; it must be at least 1");
    if (options.ratio && !(*options.ratio > 0 && *options.ratio <= 1))
      throw InvalidArgument(
          fmt::format("TopK: ratio is {}; it must be above 0 and at most 1", *options.ratio));
  }

  const Options& options() const noexcept { return options_; }

  /// How many of n values are sent, if so many are not zeros.
  std::size_t selected(std::size_t n) const {
    if (options_.k) return std::min(*options_.k, n);
    const double part = std::nearbyint(*options_.ratio * static_cast<double>(n));
    return std::min(n, std::max(std::size_t{1}, static_cast<std::size_t>(part)));
  }

  Identity identity() const {
    const std::string how =
        options_.k ? fmt::format(" k={}", *options_.k) : fmt::format(" ratio={:a}", *options_.ratio);
    return {.name = "top_k", .version = 1, .options = Base::element_option() + how};
  }

  void prepare(const Agreed& agreed) {
    if (agreed.allowed_error) throw InvalidArgument("TopK promises no bound");
    Base::prepare(agreed);
  }

  /// Selects from this rank's whole input; every `compress` with Phase::own sends of it what was selected.
  template <class Exec>
  void inspect(const Exec& exec, std::span<const T> values, const Context& context) {
    selection_ = select(exec, values, context.first);
  }

  /// Before `inspect` the values are taken for the whole input.
  template <class Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context) const {
    if (context.phase != Phase::own) return Base::encode(exec, values, bytes, {}, context.first);
    return Base::encode(exec, values, bytes, selection_ ? *selection_ : select(exec, values, context.first),
                        context.first);
  }

 private:
  template <class Exec>
  detail::sparse::Selection<T> select(const Exec& exec, std::span<const T> values, std::size_t first) const {
    if constexpr (detail::RunsOnHost<Exec>)
      return detail::sparse::select_greatest<T>(exec, values, selected(values.size()), first,
                                                detail::sparse::best_kernels<T>());
    else
      return detail::sparse::team_select_greatest<T>(exec, values, selected(values.size()), first);
  }

  Options options_;
  std::optional<detail::sparse::Selection<T>> selection_{};
};

static_assert(CombiningCompressor<TopK<float>> && InspectingCompressor<TopK<half_t>>);
static_assert(AddingCompressor<TopK<double>> && !BoundedCompressor<TopK<float>>);

}  // namespace wring::inline v0
