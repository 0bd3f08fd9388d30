// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a user reads whose compressor lacks something.
#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/cast.hpp>
#include <wring/detail/compressor_diagnostics.hpp>
#include <wring/view/common_scale.hpp>

namespace {

struct Complete {
  using value_type = float;
  std::size_t max_compressed_bytes(std::size_t n) const { return 4 * n; }
  template <class Exec>
  std::size_t compress(const Exec&, std::span<const float>, std::span<std::byte>, const wring::Context&) {
    return 0;
  }
  template <class Exec>
  void decompress(const Exec&, std::span<const std::byte>, std::span<float>, const wring::Context&) {}
  wring::Identity identity() const { return {.name = "complete", .version = 1, .options = {}}; }
};

/// Complete, but for what a case replaces.
struct Codec : Complete {
// CASE_copy expects: wring: the compressor cannot be copied
#if defined(CASE_copy)
  Codec(const Codec&) = delete;
#endif
// CASE_value_type expects: wring: the compressor has no member type value_type
#if defined(CASE_value_type)
  struct Hidden {};

 private:
  using value_type = Hidden;

 public:
#endif
// CASE_element_type expects: wring: the compressor's value_type is no element type
#if defined(CASE_element_type)
  using value_type = bool;
#endif
// CASE_max_compressed_bytes expects: wring: the compressor has no const member max_compressed_bytes
#if defined(CASE_max_compressed_bytes)
  std::size_t max_compressed_bytes(std::size_t) = delete;
#endif
// CASE_const_max_compressed_bytes expects: wring: the compressor has no const member max_compressed_bytes
#if defined(CASE_const_max_compressed_bytes)
  std::size_t max_compressed_bytes(std::size_t n) { return n; }
#endif
// CASE_compress expects: wring: the compressor has no member compress
#if defined(CASE_compress)
  void compress(int, std::span<const float>, std::span<std::byte>) = delete;
#endif
// CASE_compress_returns expects: compress.*that returns the number of bytes written
#if defined(CASE_compress_returns)
  template <class Exec> void compress(const Exec&, std::span<const float>, std::span<std::byte>,
                                      const wring::Context&) {}
#endif
// CASE_decompress expects: wring: the compressor has no member decompress
#if defined(CASE_decompress)
  template <class Exec> void decompress(const Exec&, std::span<const std::byte>, std::span<float>) {}
#endif
// CASE_identity expects: wring: the compressor has no const member identity
#if defined(CASE_identity)
  const char* identity() const { return "me"; }
#endif
// CASE_error expects: wring: the compressor has a member error, which must be const
#if defined(CASE_error)
  double error(double) { return 0; }
#endif
// CASE_combine_prepare expects: wring: the compressor has combine but no member prepare
// CASE_combine_max_combined_bytes expects: wring: the compressor has combine but no const member max_combined_bytes
// CASE_combine_reproducible expects: wring: the compressor has combine but no const member reproducible
#if defined(CASE_combine_prepare) || defined(CASE_combine_max_combined_bytes) ||                             \
    defined(CASE_combine_reproducible)
  using Bytes = std::span<const std::byte>;
  template <class Exec> std::size_t combine(const Exec&, Bytes, Bytes, std::span<std::byte>,
                                            const wring::Context&) {
    return 0;
  }
#if !defined(CASE_combine_prepare)
  void prepare(const wring::Agreed&) {}
#endif
#if !defined(CASE_combine_max_combined_bytes)
  std::size_t max_combined_bytes(std::size_t n, int) const { return n; }
#endif
#if !defined(CASE_combine_reproducible)
  bool reproducible() const { return true; }
#endif
#endif
// CASE_interchangeable expects: wring: an anticipating compressor needs combine
#if defined(CASE_interchangeable)
  bool interchangeable(const Codec&) const { return true; }
#endif
// CASE_accumulate expects: wring: an accumulating compressor needs combine
#if defined(CASE_accumulate)
  bool accumulates() const { return true; }
#endif
// CASE_open expects: wring: a remembering compressor needs open
#if defined(CASE_open)
  void open(const wring::Opening&) {}
  void close(bool) {}
#endif
// CASE_finish expects: wring: a finishing compressor needs combine
#if defined(CASE_finish)
  bool finishes() const { return true; }
#endif
// CASE_compress_and_measure expects: wring: a measuring compressor needs interchangeable and combine
#if defined(CASE_compress_and_measure)
  template <class Exec> std::size_t compress_and_measure(const Exec&, std::span<const float>,
                                                         std::span<std::byte>, const wring::Context&,
                                                         double&) {
    return 0;
  }
#endif
// CASE_compressed_bytes expects: wring: the compressor has a member compressed_bytes, which must be const
#if defined(CASE_compressed_bytes)
  std::size_t compressed_bytes(std::size_t n) { return n; }
#endif
// CASE_decompress_add expects: wring: the compressor has a member decompress_add, which must take the arguments
#if defined(CASE_decompress_add)
  template <class Exec> void decompress_add(const Exec&, std::span<const std::byte>, std::span<float>) {}
#endif
// CASE_fallback_blocks expects: wring: the compressor has a member fallback_blocks, which must be const
#if defined(CASE_fallback_blocks)
  std::uint64_t fallback_blocks = 0;
#endif
// CASE_inspect expects: wring: the compressor has a member inspect, which must take
#if defined(CASE_inspect)
  template <class Exec> void inspect(const Exec&, std::span<const float>) {}
#endif
// CASE_scratch_bytes expects: wring: the compressor has a member scratch_bytes, which must be const
#if defined(CASE_scratch_bytes)
  std::size_t scratch_bytes() const { return 64; }
#endif
// CASE_survey expects: wring: the compressor has a member survey, which must be const
#if defined(CASE_survey)
  double survey(std::span<const float>) const { return 1; }
#endif
// CASE_lossless expects: wring: a lossless compressor needs a const member error
#if defined(CASE_lossless)
  static constexpr bool lossless = true;
#endif
// CASE_plain expects: wring: a plain compressor is lossless, too
#if defined(CASE_plain)
  static constexpr bool plain = true;
#endif
// CASE_sums_words expects: wring: a compressor that sums words needs combine
#if defined(CASE_sums_words)
  static constexpr bool sums_words = true;
#endif
  Codec() = default;
};

[[maybe_unused]] void use() {
  wring::detail::explain_compressor<Codec>();
  wring::detail::explain_compressor<wring::Cast<wring::half_t>>();
// CASE_bound expects: wring: this compressor promises no bound
#if defined(CASE_bound)
  wring::detail::explain_bound<wring::Cast<wring::half_t>>();
#endif
// CASE_cast_to_float first expects: wring: a Cast is to wring::half_t or wring::bhalf_t
#if defined(CASE_cast_to_float)
  wring::detail::explain_compressor<wring::Cast<Kokkos::Experimental::half_t>>();
#endif
// CASE_cast_to_itself first expects: wring: a Cast to the type that the values already have
#if defined(CASE_cast_to_itself)
  wring::detail::explain_compressor<wring::Cast<wring::half_t, wring::half_t>>();
#endif
// CASE_block_scaled_bits first expects: wring: BlockScaled takes 2, 3, 4, 5, 6 or 8 bits
#if defined(CASE_block_scaled_bits)
  wring::detail::explain_compressor<wring::BlockScaled<float, 7>>();
#endif
// CASE_block_scaled_no_bits first expects: wring: BlockScaled takes 2, 3, 4, 5, 6 or 8 bits
#if defined(CASE_block_scaled_no_bits)
  wring::detail::explain_compressor<wring::BlockScaled<float, 0>>();
#endif
// CASE_block_scaled_many_bits first expects: wring: BlockScaled takes 2, 3, 4, 5, 6 or 8 bits
#if defined(CASE_block_scaled_many_bits)
  wring::detail::explain_compressor<wring::BlockScaled<float, 33>>();
#endif
// CASE_scales_of_many_bits first expects: wring: measure_scales takes 2 to 16 bits
#if defined(CASE_scales_of_many_bits)
  const Kokkos::View<float*, Kokkos::HostSpace> values, scales;
  wring::measure_scales<33>(Kokkos::DefaultHostExecutionSpace(), values, scales);
#endif
}

}  // namespace
