// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include <wring/compressor/concept.hpp>
#include <wring/compressor/grid.hpp>
#include <wring/detail/entropy/direct.hpp>
#include <wring/detail/spaces.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

/// Grid with an entropy stage: the same steps, the same quanta, the same bound and the same result bit by bit, in fewer bytes. Quanta
/// are coded by interleaved range asymmetric numeral systems, with a model for each block of 128 by the scale of its values, or with a table
/// of its own for each chunk of 32768, whichever is smaller: near the entropy of the quanta, and below it where their scale varies from place to place, as in gradients. Beyond 8 bits tables are
/// coarse, and it takes up to 0.7 bits more.
///
/// Pieces are combined by decoding them to integers, adding and coding again. Cost on one core with AVX-512: 1.2 to 2.2 GB/s of floats to
/// encode, 2.3 to 3 to decode (2 to 2.7 with delta); for slow links. Scratch memory: three Grid pieces. Hosts only.
template <FloatElement T> class EntropyGrid {
 public:
  using value_type = T;
  static constexpr bool has_wide_form = true;

  /// Where the entropy stage is: in every message, or only in those of complete results, which are coded once and then forwarded,
  /// or in none.
  enum class Stage { everywhere, distribution, nowhere };

  struct Options {
    typename Grid<T>::Options grid{};
    Stage stage = Stage::everywhere;
  };

  EntropyGrid() = default;
  explicit EntropyGrid(Options options) : options_(options), grid_(options.grid) {}

  Identity identity() const {
    Identity inner = grid_.identity();
    return {"entropy_grid", 1,
            inner.options + (options_.stage == Stage::everywhere     ? " stage=everywhere"
                             : options_.stage == Stage::distribution ? " stage=distribution"
                                                                     : " stage=nowhere")};
  }

  /// As for Grid.
  void prepare(const Agreed& agreed) { grid_.prepare(agreed); }
  double error(double max_abs) const { return grid_.error(max_abs); }
  bool reproducible() const { return grid_.reproducible(); }
  std::optional<double> step() const { return grid_.step(); }
  bool interchangeable(const EntropyGrid& other) const { return grid_.interchangeable(other.grid_); }
  std::uint64_t fallback_blocks() const { return grid_.fallback_blocks(); }

  std::size_t max_compressed_bytes(std::size_t n) const {
    return detail::entropy::largest_piece(grid_.max_compressed_bytes(n), n);
  }
  std::size_t max_combined_bytes(std::size_t n, int /*terms*/) const { return max_compressed_bytes(n); }
  std::size_t scratch_bytes(std::size_t n) const { return 3 * room(n); }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context) {
    return compress(exec, values, bytes, context, detail::entropy::AsTheyAre{});
  }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  void decompress(const Exec& exec, std::span<const std::byte> bytes, std::span<T> values,
                  const Context& context) const {
    if (const auto stored = detail::entropy::stored_piece(bytes))
      return grid_.decompress(exec, *stored, values, context);
    detail::entropy::expect_piece(quanta_are_coded());
    detail::entropy::decode_values(exec, bytes, values, grid_.parameters(context),
                                   Grid<T>::is_streamed(context));
  }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  std::size_t combine(const Exec& exec, std::span<const std::byte> a, std::span<const std::byte> b,
                      std::span<std::byte> out, const Context& context) const {
    if (codes(context) && quanta_are_coded() && !grid_.parameters_.delta && adds(context.operation) &&
        !detail::entropy::stored_piece(a) && !detail::entropy::stored_piece(b))
      return detail::entropy::combine_pieces(exec, a, b, context.count, grid_.parameters(context), out,
                                             tries_);
    const std::span<const std::byte> first = read(exec, a, 0, context), second = read(exec, b, 1, context);
    return write(exec, 2, out, context, [&](std::span<std::byte> piece) {
      return grid_.combine(exec, first, second, piece, context);
    });
  }

  /// Grid's rounding shift, and the entropy stage of complete results.
  bool finishes() const { return grid_.finishes() || options_.stage == Stage::distribution; }

  template <class Exec>
    requires detail::RunsOnHost<Exec>
  std::size_t finish(const Exec& exec, std::span<const std::byte> sum, std::span<std::byte> out,
                     const Context& context) const {
    const std::span<const std::byte> piece = read(exec, sum, 0, context);
    if (!grid_.finishes()) return encode(exec, piece, out, context);
    return write(exec, 1, out, context,
                 [&](std::span<std::byte> finished) { return grid_.finish(exec, piece, finished, context); });
  }

 private:
  bool quanta_are_coded() const {
    return grid_.prepared_ && grid_.parameters_.form == detail::GridParameters::Form::int32;
  }

  /// `change` is asked for the values of each block.
  template <class Exec, class Change>
  std::size_t compress(const Exec& exec, std::span<const T> values, std::span<std::byte> bytes,
                       const Context& context, const Change& change) {
    if (codes(context) && quanta_are_coded())
      return detail::entropy::encode_values<T>(exec, values, grid_.parameters(context), bytes, tries_, change,
                                               grid_.fallback_blocks_);
    return detail::entropy::store_piece(bytes, context.count, [&](std::span<std::byte> piece) {
      return grid_.compress(exec, values, piece, context);
    });
  }

  std::size_t room(std::size_t n) const { return detail::grid::padded(grid_.max_compressed_bytes(n)); }

  /// Whether a call writes through the entropy stage.
  bool codes(const Context& context) const {
    if (context.wide || options_.stage == Stage::nowhere) return false;
    return options_.stage == Stage::everywhere || !reduces(context.collective) ||
           context.phase == Phase::final;
  }

  /// What `make` writes as a Grid piece, in the form that the call asks for.
  template <class Exec, class Make>
  std::size_t write(const Exec& exec, std::size_t slot, std::span<std::byte> out, const Context& context,
                    const Make& make) const {
    if (!codes(context)) return detail::entropy::store_piece(out, context.count, make);
    const std::span<std::byte> piece = scratch(slot, context);
    return encode(exec, piece.first(make(piece)), out, context);
  }

  template <class Exec>
  std::size_t encode(const Exec& exec, std::span<const std::byte> piece, std::span<std::byte> out,
                     const Context& context) const {
    return detail::entropy::encode_piece<T>(exec, piece, context.count, grid_.parameters_, out, tries_);
  }

  /// The Grid piece that `bytes` stand for: a part of them where it is stored.
  template <class Exec>
  std::span<const std::byte> read(const Exec& exec, std::span<const std::byte> bytes, std::size_t slot,
                                  const Context& context) const {
    if (const auto stored = detail::entropy::stored_piece(bytes)) return *stored;
    const std::span<std::byte> piece = scratch(slot, context);
    return piece.first(
        detail::entropy::decode_piece<T>(exec, bytes, context.count, grid_.parameters_, piece));
  }

  std::span<std::byte> scratch(std::size_t slot, const Context& context) const {
    const std::size_t bytes = room(context.count);
    if (context.scratch.size() < 3 * bytes)
      throw CodecError("EntropyGrid: scratch memory of scratch_bytes() is missing");
    return context.scratch.subspan(slot * bytes, bytes);
  }

  friend class Gradient<T>;
  explicit EntropyGrid(detail::entropy::Tries tries) : tries_(tries) {}

  Options options_;
  Grid<T> grid_;
  detail::entropy::Tries tries_{.tables = true};
};

namespace detail {
template <class C>
concept EntropyGridAbilities = BoundedCompressor<C> && FinishingCompressor<C> && AnticipatingCompressor<C> &&
                               ScratchCompressor<C> && CountsFallbacks<C> && !MeasuringCompressor<C>;
}
static_assert(detail::EntropyGridAbilities<EntropyGrid<float>> &&
              detail::EntropyGridAbilities<EntropyGrid<double>>);
static_assert(detail::EntropyGridAbilities<EntropyGrid<half_t>> &&
              detail::EntropyGridAbilities<EntropyGrid<bhalf_t>>);

}  // namespace wring::inline v0
