// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include <wring/collective/executor/memory/buffers.hpp>
#include <wring/collective/executor/segments/message.hpp>

namespace wring::inline v0::detail {

/// Where encoded pieces are written. While an image is open they go one behind the other, behind room for header and table: as in
/// the message that will carry them, so that nobody has to put it together. Otherwise each has a buffer of its own.
template <class Space> class Room {
 public:
  explicit Room(Pool<Space>& pool) : pool_(pool) {}

  /// Opens the image of a message for as long as this object lives.
  class Image {
   public:
    /// `most`: bytes of all its pieces, each rounded up to 64. No pieces: no image.
    Image(Room& room, std::size_t pieces, std::size_t most) : room_(room) {
      if (pieces > 0) room_.open(pieces, most);
    }
    ~Image() { room_.image_.reset(); }
    Image(const Image&) = delete;
    Image& operator=(const Image&) = delete;

   private:
    Room& room_;
  };

  /// Room for a piece of `most` bytes.
  Bytes<Space> take(std::size_t most) {
    if (!image_ || most > image_.span.size() - next_) return pool_.take(most);
    return {image_.buffer, image_.span.subspan(next_, most), image_.span.data()};
  }

  /// The piece has its size now: the next goes behind it.
  void keep(const Bytes<Space>& piece) {
    if (!image_ || piece.image != image_.span.data()) return;
    const std::size_t padding = round_up(piece.span.size(), 64) - piece.span.size();
    std::memset(piece.span.data() + piece.span.size(), 0, padding);
    next_ += piece.span.size() + padding;
  }

 private:
  void open(std::size_t pieces, std::size_t most) {
    next_ = header_bytes + table_bytes(pieces);
    image_ = pool_.take(next_ + most);
    std::memset(image_.span.data(), 0, next_);  // no header yet
  }

  Pool<Space>& pool_;
  Bytes<Space> image_;
  std::size_t next_ = 0;
};

}  // namespace wring::inline v0::detail
