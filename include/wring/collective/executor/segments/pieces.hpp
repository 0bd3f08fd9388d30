// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>

#include <wring/collective/executor/shared.hpp>
#include <wring/collective/executor/working.hpp>
#include <wring/detail/value_kernels.hpp>

/// What becomes of one piece: encoded, combined, finished, decoded. Two ways, with the same interface: compressors that combine
/// encoded pieces never decode in between; for all others values are what is added.
namespace wring::inline v0::detail {

template <class Codec, class Exec> struct Piece {
  PieceRange range;
  int block = 0;
  int terms = 1;
  int encodings = 0;  ///< how often this rank has encoded it
  bool finished = false;
  bool delivered = false;                        ///< the user has what this rank holds
  Bytes<typename Exec::memory_space> encoded;    ///< valid encoding of what this rank holds, if any
  Bytes<typename Exec::memory_space> memory;     ///< of `values`, where they are not the user's
  std::span<typename Codec::value_type> values;  ///< what this rank holds (value pieces)
};

/// The bytes that a compressor says it wrote: no more than it had announced.
template <class Space> void keep(Bytes<Space>& out, std::size_t bytes, const char* announced) {
  if (bytes > out.span.size())
    throw CodecError(std::string("the compressor wrote more bytes than ") + announced + " allows");
  out.span = out.span.first(bytes);
}

/// Shows a rank's whole input to a compressor that wants to see it before any of it is encoded.
template <class S> void inspect(S& s, std::span<const typename S::T> values, const Context& context) {
  using Codec = std::decay_t<decltype(*s.tensors[context.item].codec)>;
  if constexpr (InspectingCompressor<Codec, decltype(s.exec)>) {
    if (values.empty()) return;
    const Doing doing(s, Work::measure, values.size_bytes());
    s.tensors[context.item].codec->inspect(s.exec, values, context);
  }
}

/// Shows this rank's input of a tensor.
template <class S> void inspect_input(S& s, std::size_t item) {
  using Codec = std::decay_t<decltype(*s.tensors[item].codec)>;
  if constexpr (InspectingCompressor<Codec, decltype(s.exec)>) {
    const auto& t = s.tensors[item];
    const PieceRange all{item, t.in_offset, t.in.size()};
    inspect(s, t.in, s.context(all, Phase::own, 1, std::numeric_limits<double>::infinity(), false));
  }
}

/// Encodes values.
template <class S> auto encode(S& s, std::span<const typename S::T> values, const Context& context) {
  const Doing doing(s, Work::encode, values.size_bytes());
  auto& codec = *s.tensors[context.item].codec;
  Bytes<typename S::Space> out = s.room.take(codec.max_compressed_bytes(values.size()));
  keep(out, codec.compress(s.exec, values, out.span, context), "max_compressed_bytes()");
  s.room.keep(out);
  ++s.report.encodings;
  return out;
}

template <class S> void decode(S& s, std::span<const std::byte> bytes, std::span<typename S::T> values,
                               const Context& context) {
  const Doing doing(s, Work::decode, values.size_bytes());
  s.tensors[context.item].codec->decompress(s.exec, bytes, values, context);
}

/// Pieces of compressors that combine what is encoded.
template <class Codec, class Link, class Exec> class CombiningPieces {
 public:
  using S = Shared<Codec, Link, Exec>;
  using P = Piece<Codec, Exec>;
  explicit CombiningPieces(S& shared) : s_(shared) {}

  /// Whether a step leaves the piece as something that it has encoded.
  bool encodes(const Step& step, const P& piece) const {
    if (step.kind == Kind::finish) return finishes(piece.range.item);
    return step.kind != Kind::store;
  }

  /// Whether own values that are not encoded yet can be added to a piece in one pass: it is then better not to encode them, but
  /// while there is nothing else to do.
  bool accumulates(const P& piece) const {
    if constexpr (AccumulatingCompressor<Codec, Exec>)
      return !piece.encoded && s_.has_input(piece.block) && s_.tensors[piece.range.item].codec->accumulates();
    return false;
  }

  /// Encodes this rank's own values, if nothing is encoded yet.
  void own(P& piece, bool wide) {
    if (piece.encoded) return;
    if (!s_.has_input(piece.block)) throw CodecError("the plan sends a block that this rank does not hold");
    piece.encoded =
        encode(s_, s_.input(piece.range), context(piece.range, Phase::own, 1, wide, piece.encodings++));
  }

  /// The bytes that a send of this piece carries.
  std::span<const std::byte> to_send(P& piece, Wire wire, int /*budget*/, bool /*read_later*/) {
    own(piece, wire == Wire::raw);
    return piece.encoded.span;
  }

  /// A complete sum, if it is the result, goes to the user's memory at once, where the compressor can do that in the same pass. What
  /// leaves a node next (`sent_next`) is packed for it.
  void combine(P& piece, Bytes<typename S::Space> theirs, int terms, Wire wire, int /*budget*/,
               bool sent_next) {
    const bool values = accumulates(piece), wide = wire == Wire::raw && !sent_next;
    if (!values) own(piece, wire == Wire::raw);
    piece.terms += terms;
    const bool complete = piece.terms == s_.plan.ranks && s_.is_output(piece.block);
    piece.delivered = complete && delivers(piece);
    if (values)
      piece.encoded = accumulate(piece, s_.input(piece.range), theirs.span, wide);
    else if (piece.delivered)
      piece.encoded = accumulate(piece, std::span<const std::byte>(piece.encoded.span), theirs.span, wide);
    else
      piece.encoded = combine(piece.range, piece.encoded.span, theirs.span, piece.terms, wide);
  }

  /// Whether the result can be decoded while the last terms are added.
  bool delivers(const P& piece) const {
    if constexpr (AccumulatingCompressor<Codec, Exec>)
      return s_.tensors[piece.range.item].codec->accumulates() && !finishes(piece.range.item);
    return false;
  }

  /// `own`: this rank's values, or what it holds encoded.
  template <class Own>
  Bytes<typename S::Space> accumulate(const P& piece, Own own, std::span<const std::byte> theirs, bool wide) {
    Bytes<typename S::Space> out;
    if constexpr (AccumulatingCompressor<Codec, Exec>) {
      const Doing doing(s_, Work::combine, piece.range.count * sizeof(typename S::T));
      auto& codec = *s_.tensors[piece.range.item].codec;
      if constexpr (VirtualTimeTransport<Link>) {  // as in the cost model, a pass takes the time of its parts
        if (std::is_same_v<Own, std::span<const typename S::T>>)
          s_.link->spend(Work::encode, piece.range.count * sizeof(typename S::T));
        if (piece.delivered) s_.link->spend(Work::decode, piece.range.count * sizeof(typename S::T));
      }
      out = s_.room.take(codec.max_combined_bytes(piece.range.count, piece.terms));
      const auto result = piece.delivered ? s_.output(piece.range) : std::span<typename S::T>();
      keep(out,
           codec.accumulate(s_.exec, own, theirs, out.span, result,
                            context(piece.range, Phase::hop, piece.terms, wide)),
           "max_combined_bytes()");
      s_.room.keep(out);
    }
    return out;
  }

  Bytes<typename S::Space> combine(const PieceRange& range, std::span<const std::byte> a,
                                   std::span<const std::byte> b, int terms, bool wide) {
    const Doing doing(s_, Work::combine, range.count * sizeof(typename S::T));
    auto& codec = *s_.tensors[range.item].codec;
    Bytes<typename S::Space> out = s_.room.take(codec.max_combined_bytes(range.count, terms));
    keep(out, codec.combine(s_.exec, a, b, out.span, context(range, Phase::hop, terms, wide)),
         "max_combined_bytes()");
    s_.room.keep(out);
    return out;
  }

  void store(P& piece, Bytes<typename S::Space> theirs, int terms, Wire /*wire*/) {
    piece.encoded = std::move(theirs), piece.terms = terms, piece.finished = true, piece.delivered = false;
  }

  /// The sum over all ranks takes the place of what this one held.
  void take_sum(P& piece, Bytes<typename S::Space> sum) {
    piece.encoded = std::move(sum), piece.terms = s_.plan.ranks, piece.delivered = false;
  }

  void finish(P& piece, Wire /*wire*/, int /*budget*/) {
    own(piece, false);
    piece.finished = true;
    if (!finishes(piece.range.item)) return;
    piece.encoded = finish(piece.range, std::move(piece.encoded), piece.encodings++);
    piece.delivered = false;
  }

  bool finishes(std::size_t item) const {
    if constexpr (FinishingCompressor<Codec, Exec>) return s_.tensors[item].codec->finishes();
    return false;
  }

  /// `encoding`: how often this rank has encoded the piece before.
  Bytes<typename S::Space> finish(const PieceRange& range, Bytes<typename S::Space> sum, int encoding) {
    if (!finishes(range.item)) return sum;
    if constexpr (FinishingCompressor<Codec, Exec>) {
      const Doing doing(s_, Work::combine, range.count * sizeof(typename S::T));
      auto& codec = *s_.tensors[range.item].codec;
      Bytes<typename S::Space> out = s_.room.take(std::max<std::size_t>(
          codec.max_combined_bytes(range.count, s_.plan.ranks), codec.max_compressed_bytes(range.count)));
      keep(out,
           codec.finish(s_.exec, sum.span, out.span,
                        context(range, Phase::final, s_.plan.ranks, false, encoding)),
           "max_combined_bytes()");
      s_.room.keep(out);
      return out;
    }
    return sum;
  }

  /// A complete result goes to the user's memory, where that is still to be done; it can go before the last step.
  bool deliver(P& piece) {
    if (!piece.finished || piece.delivered || !piece.encoded) return false;
    close(piece);
    return true;
  }

  /// The result goes to the user's memory.
  void close(P& piece) {
    if (piece.delivered || !s_.is_output(piece.block)) return void(piece.delivered = true);
    own(piece, false);
    piece.delivered = true;
    decode(s_, piece.encoded.span, s_.output(piece.range),
           context(piece.range, Phase::final, s_.plan.ranks, false));
  }

 private:
  Context context(const PieceRange& range, Phase phase, int terms, bool wide, int encoding = 0) {
    return s_.context(range, phase, terms, std::numeric_limits<double>::infinity(), wide, encoding);
  }

  S& s_;
};

/// Pieces of compressors whose values must be decoded to be added.
template <class Codec, class Link, class Exec> class ValuePieces {
 public:
  using S = Shared<Codec, Link, Exec>;
  using T = typename S::T;
  using P = Piece<Codec, Exec>;
  explicit ValuePieces(S& shared) : s_(shared) {}

  bool accumulates(const P&) const { return false; }

  bool encodes(const Step& step, const P&) const {
    return step.wire == Wire::coded && (step.kind == Kind::send || step.kind == Kind::finish);
  }

  /// What combining starts from; nothing, where it reads the input itself.
  void own(P& piece, bool wide) {
    if (!wide && !plain) load(piece);
  }

  /// Encoding a piece replaces it by its decoded value, so that this rank holds what its peers get.
  std::span<const std::byte> to_send(P& piece, Wire wire, int budget, bool read_later) {
    if (wire == Wire::raw) return std::as_bytes(held(piece));
    if (!piece.encoded) encode_piece(piece, budget, read_later);
    return piece.encoded.span;
  }

  void combine(P& piece, Bytes<typename S::Space> theirs, int terms, Wire wire, int budget,
               bool /*sent_next*/) {
    piece.encoded.reset();
    piece.terms += terms;
    if (wire == Wire::raw || plain) {  // one pass, from wherever this rank's values are
      const std::span<const T> mine = held(piece);
      return add_plain(mine, theirs.span, place(piece));
    }
    const std::span<T> mine = load(piece);
    add(mine, theirs.span, wire, context(piece, Phase::hop, budget));
  }

  void store(P& piece, Bytes<typename S::Space> theirs, int terms, Wire wire) {
    const std::span<T> values = place(piece);
    piece.terms = terms, piece.finished = true;
    if (wire == Wire::raw) {
      copy_values<T>(s_.exec, raw_values(theirs.span, values.size()), values);
      piece.encoded.reset();
    } else {
      decode(s_, theirs.span, values, context(piece, Phase::final, 0));
      piece.encoded = std::move(theirs);
    }
  }

  void finish(P& piece, Wire wire, int budget) {
    finish(load(piece));
    piece.encoded.reset();
    piece.finished = true;
    if (wire == Wire::coded) encode_piece(piece, budget, true);
  }

  bool deliver(P&) { return false; }  // values are the user's as soon as they are there

  void close(P& piece) {
    if (s_.is_output(piece.block)) load(piece);
  }

  /// mine op= theirs.
  void add(std::span<T> mine, std::span<const std::byte> theirs, Wire wire, const Context& c) {
    if (wire == Wire::raw || plain) return add_plain(mine, theirs, mine);
    const Doing doing(s_, Work::combine, mine.size_bytes());
    auto& codec = *s_.tensors[c.item].codec;
    if constexpr (AddingCompressor<Codec, Exec>)
      if (adds(s_.options.operation)) return codec.decompress_add(s_.exec, theirs, mine, c);
    const Bytes<typename S::Space> memory = s_.pool.take(mine.size() * sizeof(T));
    const std::span<T> decoded(reinterpret_cast<T*>(memory.span.data()), mine.size());
    codec.decompress(s_.exec, theirs, decoded, c);
    combine_values<T>(s_.exec, mine, decoded, s_.options.operation);
    if constexpr (!host_accessible_v<Exec>)
      s_.exec.fence("wring::combine");  // `memory` goes back to the pool
  }

  /// A complete sum becomes the result.
  void finish(std::span<T> sum) {
    const Doing doing(s_, Work::combine, sum.size_bytes());
    finish_values(s_.exec, sum, s_.options.operation == Operation::mean ? s_.plan.ranks : 1);
  }

 private:
  /// Whether encoded pieces are values as they are.
  static constexpr bool plain = PlainCompressor<Codec, Exec>;

  /// out = mine op theirs, where `theirs` are values as they are.
  void add_plain(std::span<const T> mine, std::span<const std::byte> theirs, std::span<T> out) {
    const Doing doing(s_, Work::combine, mine.size_bytes());
    combine_values<T>(s_.exec, out, mine, raw_values(theirs, mine.size()), s_.options.operation);
  }

  /// This rank's values of the piece, wherever they are: the input is not copied.
  std::span<const T> held(const P& piece) const {
    if (!piece.values.empty()) return piece.values;
    if (!s_.has_input(piece.block)) throw CodecError("the plan uses a block that this rank does not hold");
    return s_.input(piece.range);
  }

  /// Where this rank's values of the piece are or will be.
  std::span<T> place(P& piece) {
    if (!piece.values.empty()) return piece.values;
    if (s_.is_output(piece.block)) return piece.values = s_.output(piece.range);
    piece.memory = s_.pool.take(piece.range.count * sizeof(T));
    return piece.values = {reinterpret_cast<T*>(piece.memory.span.data()), piece.range.count};
  }

  std::span<T> load(P& piece) {
    if (!piece.values.empty()) return piece.values;
    if (!s_.has_input(piece.block)) throw CodecError("the plan uses a block that this rank does not hold");
    copy_values<T>(s_.exec, s_.input(piece.range), place(piece));
    return piece.values;
  }

  void encode_piece(P& piece, int budget, bool read_later) {
    const bool replaced = read_later && !LosslessCompressor<Codec, Exec>;
    const std::span<const T> values = replaced ? std::span<const T>(load(piece)) : held(piece);
    const Phase phase = piece.finished ? Phase::final : piece.terms == 1 ? Phase::own : Phase::hop;
    const Context c = context(piece, phase, budget);
    piece.encoded = encode(s_, values, c);
    ++piece.encodings;
    if (replaced) decode(s_, piece.encoded.span, piece.values, c);
  }

  static std::span<const T> raw_values(std::span<const std::byte> bytes, std::size_t count) {
    if (bytes.size() != count * sizeof(T)) throw CodecError("a raw piece has the wrong size");
    return {reinterpret_cast<const T*>(bytes.data()), count};
  }

  Context context(P& piece, Phase phase, int budget) {
    const auto& allowed = s_.tensors[piece.range.item].allowed;
    const auto j = static_cast<std::size_t>(budget);
    return s_.context(piece.range, phase, piece.terms,
                      j < allowed.size() ? allowed[j] : std::numeric_limits<double>::infinity(), false,
                      piece.encodings);
  }

  S& s_;
};

template <class Codec, class Link, class Exec>
using Pieces = std::conditional_t<CombiningCompressor<Codec, Exec>, CombiningPieces<Codec, Link, Exec>,
                                  ValuePieces<Codec, Link, Exec>>;

}  // namespace wring::inline v0::detail
