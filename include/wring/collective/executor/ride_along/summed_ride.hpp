// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <wring/collective/executor/agreement/exchange_data.hpp>
#include <wring/collective/executor/agreement/parameters.hpp>
#include <wring/collective/executor/ride_along/ride_data.hpp>
#include <wring/detail/pipeline.hpp>

namespace wring::inline v0::detail {

/// A small sum that grows on its way: pieces combined by the agreement's own messages. The compressor's parameters are those for
/// small inputs; should the inputs turn out larger than that, the sum is of no use, and the data move by the plan. All ranks see
/// that alike. A sum is void if some rank knew beforehand that its input is too large.
template <class Codec, class Link, class Exec> class SummedRide final : public ExchangeData {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;

  explicit SummedRide(S& shared) : s_(shared), combining_(shared) {}

  /// Whether the data may ride in this form: sums, with a bound that does not depend on the inputs.
  bool choose() {
    Tensor<Codec>& t = s_.tensors[0];
    if (!reduces(s_.task.collective) || !t.bound || t.bound->kind != Bound::Kind::absolute) return false;
    if (t.total == 0 || t.total > std::min(s_.options.ride_along_bytes, ride_along_room) / sizeof(T))
      return false;
    original_.emplace(*t.codec);
    anticipated_.emplace(*t.codec);
    if (!prepare_for(s_, t, *anticipated_, 0)) return false;
    t.codec.emplace(*anticipated_);
    range_ = {0, 0, t.total};
    worst_bytes_ = std::max<std::size_t>(t.codec->max_compressed_bytes(t.total),
                                         t.codec->max_combined_bytes(t.total, s_.plan.ranks));
    sum_.reset(), terms_ = 0;
    return max_bytes() <= ride_along_room;
  }

  /// The rank leaves without knowing whether the data rode: what comes may be longer than was anticipated.
  void give_up() { s_.tensors[0].codec.swap(original_); }

  /// Adds this rank's input, unless it is too large.
  void give() {
    Codec mine = *anticipated_;
    const Tensor<Codec>& t = s_.tensors[0];
    if (!prepare_for(s_, t, mine, t.magnitudes.max_abs) || !mine.interchangeable(*anticipated_)) return;
    inspect_input(s_, 0);
    sum_ = encode(s_, s_.input(range_), ride_context(s_, range_, s_.plan.rank, Phase::own, 1));
    terms_ = 1;
  }

  /// Once all ranks' magnitudes are known, and the compressor is prepared for them: whether the sum is of use.
  bool holds() const { return terms_ > 0 && s_.tensors[0].codec->interchangeable(*anticipated_); }

  void finish() {
    if (terms_ != s_.plan.ranks) throw TransportError("a sum that rides along has the wrong number of terms");
    publish(s_, range_, combining_.finish(range_, std::move(sum_), 1), terms_);
  }

  std::size_t max_bytes() const override { return sizeof(std::uint64_t) + worst_bytes_; }

  std::size_t write(std::byte* to) const override {
    const std::size_t bytes = terms_ > 0 ? sum_.span.size() : 0;
    const std::uint64_t word = PieceEntry{bytes, terms_}.word();
    std::memcpy(to, &word, sizeof word);
    if (bytes > 0) to_host(s_, sum_.span, to + sizeof word);
    return sizeof word + bytes;
  }

  void merge(std::span<const std::byte> from) override {
    const PieceEntry theirs = open(from);
    if (terms_ == 0 || theirs.terms == 0) return void(terms_ = 0);
    const int terms = terms_ + theirs.terms;
    const auto copy = to_device(s_, from);
    sum_ = combining_.combine(range_, sum_.span, copy.span, terms, false);
    if constexpr (!host_accessible_v<Exec>) s_.exec.fence("wring::ride");  // `copy` goes back to the pool
    terms_ = terms;
  }

  void replace(std::span<const std::byte> from) override {
    terms_ = open(from).terms;
    if (terms_ > 0) sum_ = to_device(s_, from);
  }

 private:
  /// Checks what stands in front of a sum, and leaves the sum.
  PieceEntry open(std::span<const std::byte>& from) const {
    std::uint64_t word = 0;
    if (from.size() < sizeof word) throw TransportError("a sum that rides along arrived cut short");
    std::memcpy(&word, from.data(), sizeof word);
    from = from.subspan(sizeof word);
    const PieceEntry entry = PieceEntry::from(word);
    if (entry.bytes != from.size() || entry.bytes > worst_bytes_ || entry.terms > s_.plan.ranks)
      throw TransportError("a sum that rides along is damaged");
    return entry;
  }

  S& s_;
  CombiningPieces<Codec, Link, Exec> combining_;
  std::optional<Codec> original_;     ///< not prepared
  std::optional<Codec> anticipated_;  ///< prepared for inputs that are not too large
  PieceRange range_;
  std::size_t worst_bytes_ = 0;
  Bytes<typename S::Space> sum_;
  int terms_ = 0;  ///< how many ranks' inputs are in it; 0: void
};

/// Where parameters are known only after the agreement, nothing rides in this form.
class NoSummedRide final {
 public:
  template <class S> explicit NoSummedRide(S&) {}
  bool choose() { return false; }
};

}  // namespace wring::inline v0::detail
