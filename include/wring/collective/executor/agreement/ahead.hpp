// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <wring/collective/executor/agreement/parameters.hpp>
#include <wring/collective/executor/job.hpp>
#include <wring/collective/executor/segments/pieces.hpp>
#include <wring/collective/executor/shared.hpp>

namespace wring::inline v0::detail {

/// Encoding before the ranks agree. A compressor that can anticipate its parameters for an absolute bound, and measures while it
/// encodes, touches every input once: its own pass for the magnitudes is saved. Should the inputs of some rank turn out too large for
/// what was anticipated, all ranks see it alike and encode anew; nothing has been sent or overwritten.
///
/// The pieces are those of the plan, each block of a segment in the image of its message.
template <class Codec, class Link, class Exec> class Ahead {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;

  explicit Ahead(S& shared) : s_(shared) {}

  /// Nothing is encoded, until `choose` and `encode`.
  void clear() {
    pieces_.clear(), first_.clear(), originals_.clear(), anticipated_.clear();
    slab_.reset();
    chosen_ = false;
  }

  /// Whether encoding may come first: a function of what the ranks agree upon. Prepares the codecs if so.
  bool choose() {
    if constexpr (able) {
      for (const auto& t : s_.tensors)
        if (!t.bound || t.bound->kind != Bound::Kind::absolute) return false;
      if (s_.wide) return false;  // values in wide form have no use for a packed one
      if (!reduces(s_.task.collective) || s_.plan.ranks == 1) return false;
      for (auto& t : s_.tensors) {
        originals_.push_back(*t.codec);
        if (!prepare_for(s_, t, *t.codec, 0)) return false;
        anticipated_.push_back(*t.codec);
      }
      chosen_ = true;
    }
    return chosen_;
  }

  bool chosen() const { return chosen_; }

  /// Encodes all of this rank's input and leaves in each tensor's magnitudes what the compressor knows of it.
  void encode(std::span<const std::size_t> counts) {
    if constexpr (able) {
      s_.cut(counts);
      for (auto& t : s_.tensors) t.magnitudes = {};
      for (std::size_t i = 0; i < s_.tensors.size(); ++i) inspect_input(s_, i);
      for (std::size_t segment = 0; segment < s_.partition.segments(); ++segment) {
        first_.push_back(pieces_.size());
        s_.segment = static_cast<std::int64_t>(segment);
        for (int b = 0; b < s_.plan.blocks; ++b) encode(segment, b);
      }
      s_.segment = -1;
    }
  }

  /// Whether a tensor's magnitudes, as far as they are known, leave the parameters as they were anticipated. If not they must be
  /// measured: the parameters for all ranks will depend on them.
  bool serves(std::size_t item) const {
    if constexpr (able) {
      Codec codec = anticipated_[item];
      const Tensor<Codec>& t = s_.tensors[item];
      return prepare_for(s_, t, codec, t.magnitudes.max_abs) && codec.interchangeable(anticipated_[item]);
    }
    return false;
  }

  /// Once the codecs are prepared for all ranks' inputs: drops the pieces if they are of no use. The same on all ranks.
  void settle() {
    if constexpr (able) {
      bool holds = chosen_;
      for (std::size_t i = 0; i < anticipated_.size(); ++i)
        holds = holds && s_.tensors[i].codec->interchangeable(anticipated_[i]);
      if (!holds) clear();
    }
  }

  /// The rank leaves without knowing what the others will send: it may be longer than was anticipated.
  void give_up() {
    for (std::size_t i = 0; i < originals_.size(); ++i) s_.tensors[i].codec.emplace(originals_[i]);
  }

  /// The pieces of a segment, in the order of blocks, are handed over.
  template <class Pieces> void give(std::size_t segment, Pieces& pieces) {
    if (segment >= first_.size()) return;
    for (std::size_t i = 0; i < pieces.size(); ++i)
      pieces[i].encoded = std::move(pieces_[first_[segment] + i]);
  }

 private:
  using Space = typename S::Space;
  static constexpr bool able =
      MeasuringCompressor<Codec, Exec> && !RememberingCompressor<Codec, Exec> && !S::staged;

  void encode(std::size_t segment, int block) {
    std::size_t count = 0, most = 0;
    s_.partition.pieces(block, segment, [&](const PieceRange& range) {
      ++count, most += round_up(s_.tensors[range.item].codec->max_compressed_bytes(range.count), 64);
    });
    if (count == 0) return;
    const std::size_t start = header_bytes + table_bytes(count);
    std::byte* const image = make_room(start + most);
    std::memset(image, 0, start);  // no header yet
    std::byte* next = image + start;
    s_.partition.pieces(block, segment, [&](const PieceRange& range) {
      const std::size_t bytes = encode(range, {next, most});
      const std::size_t padded = round_up(bytes, 64);
      std::memset(next + bytes, 0, padded - bytes);
      pieces_.push_back({slab_.buffer, {next, bytes}, image});
      next += padded, most -= padded;
    });
    used_ = static_cast<std::size_t>(next - slab_.span.data());
  }

  std::size_t encode(const PieceRange& range, std::span<std::byte> out) {
    const Doing doing(s_, Work::encode, range.count * sizeof(T));
    Tensor<Codec>& t = s_.tensors[range.item];
    const Context context = s_.context(range, Phase::own, 1, std::numeric_limits<double>::infinity(), false);
    out = out.first(std::min(out.size(), t.codec->max_compressed_bytes(range.count)));
    const std::size_t bytes =
        t.codec->compress_and_measure(s_.exec, s_.input(range), out, context, t.magnitudes.max_abs);
    if (bytes > out.size())
      throw CodecError("the compressor wrote more bytes than max_compressed_bytes() allows");
    ++s_.report.encodings;
    return bytes;
  }

  /// Memory comes in slabs, a sixteenth of the input each, or what two blocks may need: what is encoded is much smaller than what it might
  /// have been, so that more than two share a slab.
  std::byte* make_room(std::size_t bytes) {
    if (!slab_ || slab_.span.size() - used_ < bytes) {
      std::size_t input = 0;
      for (const auto& t : s_.tensors) input += t.in.size_bytes();
      slab_ = s_.pool.take(std::max(2 * bytes, input / 16)), used_ = 0;
    }
    return slab_.span.data() + used_;
  }

  S& s_;
  std::vector<Codec> originals_;    ///< by tensor: not prepared
  std::vector<Codec> anticipated_;  ///< by tensor: prepared for inputs that are not too large
  std::vector<Bytes<Space>> pieces_;
  std::vector<std::size_t> first_;  ///< of each segment
  Bytes<Space> slab_;
  std::size_t used_ = 0;  ///< of the slab
  bool chosen_ = false;
};

}  // namespace wring::inline v0::detail
