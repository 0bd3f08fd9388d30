// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <wring/collective/executor/segments/message.hpp>
#include <wring/collective/executor/segments/pieces.hpp>
#include <wring/collective/executor/shared.hpp>
#include <wring/collective/executor/working.hpp>

namespace wring::inline v0::detail {

/// The pieces of one segment, and how those of a step become a message and come out of one. What is encoded for a message lies in it
/// from the start, where that is possible: it is then only sealed.
template <class Codec, class Link, class Exec> class Parcels {
 public:
  using S = Shared<Codec, Link, Exec>;
  using P = Piece<Codec, Exec>;
  using HostBytes = Bytes<typename S::HostSpace>;

  explicit Parcels(S& shared) : s_(shared), work_(shared) {}

  /// The pieces of a segment, in the order of blocks, with nothing done to them.
  void cut(std::size_t segment) {
    segment_ = segment;
    pieces_.clear();
    first_piece_.assign(1, 0);
    for (int b = 0; b < s_.plan.blocks; ++b) {
      s_.partition.pieces(b, segment, [&](const PieceRange& range) {
        pieces_.emplace_back();
        pieces_.back().range = range, pieces_.back().block = b;
      });
      first_piece_.push_back(pieces_.size());
    }
  }

  std::vector<P>& pieces() { return pieces_; }
  std::size_t segment() const { return segment_; }
  Pieces<Codec, Link, Exec>& work() { return work_; }

  template <class Visit> void each_piece(const Step& step, Visit visit) {
    const auto begin = first_piece_[static_cast<std::size_t>(step.first)],
               end = first_piece_[static_cast<std::size_t>(step.last)];
    for (std::size_t i = begin; i < end; ++i) visit(pieces_[i]);
  }

  MessageHeader header(const Step& step) {
    MessageHeader h;
    h.agreed = s_.agreed, h.segment = static_cast<std::uint32_t>(segment_), h.first = step.first,
    h.last = step.last;
    h.raw = step.wire == Wire::raw ? 1 : 0;
    each_piece(step, [&](auto&) { ++h.pieces; });
    return h;
  }

  /// The longest message that can come in a step.
  std::size_t most_bytes(const Step& step) {
    std::size_t count = 0;
    each_piece(step, [&](auto&) { ++count; });
    return header_bytes + std::max(table_bytes(count) + most_piece_bytes(step), poison_text_bytes);
  }

  /// The complete sums of a step become results.
  void finish(const Step& step) {
    [[maybe_unused]] const auto image = image_of(step);
    each_piece(step, [&](auto& piece) { work_.finish(piece, step.wire, step.budget); });
  }

  /// The message of a step: encodes what is not yet encoded, and puts together what lies apart. `read_later(block)`: whether this rank,
  /// or its user, reads the values of a block after this.
  template <class ReadLater> HostBytes assemble(const Step& step, const ReadLater& read_later) {
    encode(step, read_later);
    HostBytes message;
    if (!in_place(step, message)) message = put_together(step);
    each_piece(step, [&](auto& piece) { s_.report.bytes_raw += piece.range.count * sizeof(typename S::T); });
    return message;
  }

  /// How many bytes every rank hands to the transport for a sum.
  std::size_t sum_bytes(const Step& step) {
    std::size_t count = 0;
    each_piece(step, [&](auto&) { ++count; });
    return header_bytes + table_bytes(count) + most_piece_bytes(step);
  }

  /// The words of a sum, but for their header: encodes what is not yet encoded, and puts together what lies apart.
  HostBytes assemble_sum(const Step& step) {
    encode(step, [](int) { return false; });
    std::size_t i = 0;
    each_piece(step, [&](auto& piece) {
      if (sending_[i++].size() != s_.worst_bytes(piece.range))
        throw CodecError("a compressor that sums words wrote a piece of another size than it had announced");
      s_.report.bytes_raw += piece.range.count * sizeof(typename S::T);
    });
    HostBytes words;
    if (lies_as_message(step, words) && words.span.size() == sum_bytes(step)) {
      s_.exec.fence("wring::send");
      return words;
    }
    return lay_out(step);
  }

  /// Takes the pieces out of a sum whose checksum is right.
  void accept_sum(const Step& step, const HostBytes& words) {
    std::size_t count = 0;
    each_piece(step, [&](auto&) { ++count; });
    std::size_t at = header_bytes + table_bytes(count);
    each_piece(step, [&](auto& piece) {
      const std::size_t bytes = s_.worst_bytes(piece.range);
      work_.take_sum(piece, on_device({words.buffer, words.span.subspan(at, bytes), nullptr}));
      at += round_up(bytes, 64);
    });
    if constexpr (S::staged) s_.exec.fence("wring::receive");
  }

  /// Takes the pieces out of a message whose checksum is right; every size in it is checked all the same. `sent_next(block)`: whether
  /// what comes of it is sent on as it is encoded then.
  template <class SentNext>
  void accept(const Step& step, const HostBytes& message, const SentNext& sent_next) {
    std::size_t count = 0;
    each_piece(step, [&](auto&) { ++count; });
    const std::byte* entry = message.span.data() + header_bytes;
    std::size_t at = header_bytes + table_bytes(count);
    if (at > message.span.size()) throw TransportError("a message is too short for its table");
    [[maybe_unused]] const auto image = image_of(step);
    each_piece(step, [&](auto& piece) {
      std::uint64_t word = 0;
      std::memcpy(&word, entry, 8);
      entry += 8;
      const PieceEntry e = PieceEntry::from(word);
      if (e.bytes > message.span.size() - at) throw TransportError("a piece is longer than its message");
      auto theirs = on_device({message.buffer, message.span.subspan(at, e.bytes), message.span.data()});
      at += std::min(round_up(e.bytes, 64), message.span.size() - at);
      if (step.kind == Kind::combine)
        work_.combine(piece, std::move(theirs), e.terms, step.wire, step.budget, sent_next(piece.block));
      else
        work_.store(piece, std::move(theirs), e.terms, step.wire);
    });
    if (at != message.span.size()) throw TransportError("a message is longer than its pieces");
    if constexpr (S::staged) s_.exec.fence("wring::receive");
  }

 private:
  /// Leaves in `sending_` what the message carries.
  template <class ReadLater> void encode(const Step& step, const ReadLater& read_later) {
    [[maybe_unused]] const auto image = image_of(step);
    sending_.clear();
    each_piece(step, [&](auto& piece) {
      sending_.push_back(work_.to_send(piece, step.wire, step.budget, read_later(piece.block)));
    });
  }

  /// Opens room for a message with the pieces that a step encodes, if it does, for as long as the result lives. Devices have their
  /// pieces in other memory.
  struct NoImage {};
  auto image_of(const Step& step) {
    if constexpr (S::staged) {
      return NoImage{};
    } else {
      std::size_t count = 0;
      bool wanted = false, encoded = false;
      each_piece(step, [&](auto& piece) {
        ++count, wanted = wanted || work_.encodes(step, piece), encoded = encoded || piece.encoded;
      });
      if ((step.kind == Kind::send || step.kind == Kind::sum) && encoded) wanted = false;
      return typename Room<typename S::Space>::Image(s_.room, wanted ? count : 0,
                                                     wanted ? most_piece_bytes(step) : 0);
    }
  }

  /// Whether the pieces of a step lie as in a message, which is left in `message`.
  bool lies_as_message(const Step& step, HostBytes& message) {
    if (S::staged || sending_.empty()) return false;
    const P& first = pieces_[first_piece_[static_cast<std::size_t>(step.first)]];
    if (!first.encoded || first.encoded.image == nullptr) return false;
    const std::byte* next = first.encoded.image + header_bytes + table_bytes(sending_.size());
    bool right = true;
    std::size_t i = 0;
    each_piece(step, [&](auto& piece) {
      right = right && piece.encoded && piece.encoded.image == first.encoded.image &&
              sending_[i].data() == piece.encoded.span.data() && sending_[i].data() == next;
      next += round_up(sending_[i++].size(), 64);
    });
    if (!right) return false;
    message = {first.encoded.buffer,
               {first.encoded.image, static_cast<std::size_t>(next - first.encoded.image)},
               first.encoded.image};
    return true;
  }

  /// Whether that message need only be sealed, or has been sent before.
  bool in_place(const Step& step, HostBytes& message) {
    if (!lies_as_message(step, message)) return false;
    const MessageHeader h = header(step);
    if (message.span[0] != std::byte{0}) return sealed_as(message.span, h);
    const Doing doing(s_, Work::wire, message.span.size());
    s_.exec.fence("wring::send");
    write_table(step, message.span);
    seal(message.span, h);
    return true;
  }

  void write_table(const Step& step, std::span<std::byte> message) {
    std::byte* entry = message.data() + header_bytes;
    std::memset(entry, 0, table_bytes(sending_.size()));
    std::size_t i = 0;
    each_piece(step, [&](auto& piece) {
      const std::uint64_t word = PieceEntry{sending_[i++].size(), piece.terms}.word();
      std::memcpy(entry, &word, 8);
      entry += 8;
    });
  }

  /// Copies the pieces behind header and table.
  HostBytes put_together(const Step& step) {
    HostBytes message = lay_out(step);
    const Doing doing(s_, Work::wire, message.span.size());
    write_table(step, message.span);
    seal(message.span, header(step));
    return message;
  }

  /// Copies the pieces behind room for header and table, which are zeros.
  HostBytes lay_out(const Step&) {
    std::size_t bytes = header_bytes + table_bytes(sending_.size());
    for (const auto& piece : sending_) bytes += round_up(piece.size(), 64);
    const Doing doing(s_, Work::wire, bytes);
    HostBytes message = s_.messages.take(bytes);
    std::memset(message.span.data(), 0, header_bytes + table_bytes(sending_.size()));
    std::byte* to = message.span.data() + header_bytes + table_bytes(sending_.size());
    for (const auto& piece : sending_) {
      copy_bytes<typename S::HostSpace, typename S::Space>(s_.exec, piece, to);
      const std::size_t padded = round_up(piece.size(), 64);
      std::memset(to + piece.size(), 0, padded - piece.size());
      to += padded;
    }
    s_.exec.fence("wring::send");
    return message;
  }

  std::size_t most_piece_bytes(const Step& step) {
    std::size_t bytes = 0;
    each_piece(step, [&](auto& piece) { bytes += round_up(s_.worst_bytes(piece.range), 64); });
    return bytes;
  }

  /// The bytes of a received piece in the memory of the execution space: the message's own, or a copy.
  Bytes<typename S::Space> on_device(HostBytes received) {
    if constexpr (S::staged) {
      Bytes<typename S::Space> copy = s_.pool.take(received.span.size());
      copy_bytes<typename S::Space, typename S::HostSpace>(s_.exec, received.span, copy.span.data());
      return copy;
    } else {
      return received;
    }
  }

  S& s_;
  Pieces<Codec, Link, Exec> work_;
  std::size_t segment_ = 0;
  std::vector<P> pieces_;
  std::vector<std::size_t> first_piece_;
  std::vector<std::span<const std::byte>> sending_;
};

}  // namespace wring::inline v0::detail
