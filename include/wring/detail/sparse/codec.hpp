// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <span>
#include <string>

#include <wring/compressor/concept.hpp>
#include <wring/detail/sizes.hpp>
#include <wring/detail/spaces.hpp>
#include <wring/detail/sparse/piece.hpp>
#include <wring/detail/sparse/team.hpp>

namespace wring::inline v0::detail::sparse {

/// What compressors of sparse pieces have in common: all but what they send.
template <FloatElement T> class Codec {
 public:
  using value_type = T;

  static constexpr std::size_t max_compressed_bytes(std::size_t n) { return largest_piece<T>(n); }
  static constexpr std::size_t max_combined_bytes(std::size_t n, int /*terms*/) {
    return largest_piece<T>(n);
  }

  void prepare(const Agreed& agreed) {
    exact_ = !reduces(agreed.collective) || !adds(agreed.operation) || agreed.ranks <= 2;
  }

  /// Sums of three or more floating-point numbers depend on their order; minima, maxima and copies do not.
  bool reproducible() const noexcept { return exact_; }

  template <class Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context& context) const {
    if constexpr (RunsOnHost<Exec>)
      sparse_decode<false, T>(exec, bytes, values, divisor(context), best_kernels<T>());
    else
      team_sparse_decode<T>(exec, bytes, values, divisor(context));
  }

  /// Hosts only.
  template <class Exec>
    requires RunsOnHost<Exec>
  void decompress_add(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                      const Context& context) const {
    sparse_decode<true, T>(exec, bytes, values, divisor(context), best_kernels<T>());
  }

  template <class Exec>
  std::size_t combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                      std::span<std::byte> out, const Context& context) const {
    expect_space("sparse", out.size(), largest_piece<T>(context.count));
    if constexpr (RunsOnHost<Exec>)
      return sparse_combine<T>(exec, a, b, context.count, out, context.operation, best_kernels<T>());
    else
      return team_sparse_combine<T>(exec, a, b, context.count, out, context.operation);
  }

 protected:
  static std::string element_option() { return std::string("element=") + FloatTraits<T>::name; }

  /// Encodes what a selection takes of values whose first has the index `first` in its tensor.
  template <class Exec>
  static std::size_t encode(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                            const Selection<T>& selection, std::size_t first) {
    expect_space("sparse", bytes.size(), largest_piece<T>(values.size()));
    if constexpr (RunsOnHost<Exec>)
      return sparse_encode<T>(exec, values, bytes, selection, first, best_kernels<T>());
    else
      return team_sparse_encode<T>(exec, values, bytes, selection, first);
  }

 private:
  /// MEAN divides a complete sum when it is decoded.
  static int divisor(const Context& context) {
    const bool averages =
        context.phase == Phase::final && reduces(context.collective) && context.operation == Operation::mean;
    return averages ? context.ranks : 1;
  }

  bool exact_ = false;
};

}  // namespace wring::inline v0::detail::sparse
