// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace wring::inline v0::detail {

/// Postings that wait for their partner at one rank, oldest first. They are linked by their members `next`.
template <class Posting> class PostingQueue {
 public:
  void append(Posting* posting) {
    posting->next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = posting;
    last_ = posting;
  }

  /// Takes out the oldest posting that fits; null if there is none.
  template <class Fits> Posting* take(Fits fits) {
    for (Posting *before = nullptr, *at = first_; at != nullptr; before = at, at = at->next) {
      if (!fits(*at)) continue;
      (before == nullptr ? first_ : before->next) = at->next;
      if (last_ == at) last_ = before;
      return at;
    }
    return nullptr;
  }

  /// The oldest that is from the same rank and on the same channel as `other`.
  Posting* take_partner(const Posting& other) {
    return take([&](const Posting& p) { return p.from == other.from && p.channel == other.channel; });
  }

 private:
  Posting* first_ = nullptr;
  Posting* last_ = nullptr;
};

}  // namespace wring::inline v0::detail
