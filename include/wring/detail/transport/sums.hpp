// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace wring::inline v0::detail {

/// What one rank hands to a sum: its words, where the sum comes too.
struct Summand {
  std::span<std::uint64_t> words;
  std::vector<std::uint64_t> kept;  ///< instead of them, if the rank has given the sum up
};

/// The sums of a world whose ranks share a thread: the k-th of a rank is the k-th of all. `Posting` has a member `summand`.
template <class Posting> class Sums {
 public:
  explicit Sums(int ranks) : ranks_(static_cast<std::size_t>(ranks)), next_(ranks_, 0) {}

  /// A rank comes to its next sum. If it is the last of them, the words are added up, and `complete(postings, fit)` is called for those of all
  /// ranks. `fit`: false if some rank has handed in another number of words than the others; nothing is added then.
  template <class Complete> void join(std::size_t rank, Posting* posting, Complete complete) {
    const std::size_t number = next_[rank]++ - first_;
    while (rounds_.size() <= number) rounds_.emplace_back();
    rounds_[number].push_back(posting);
    while (!rounds_.empty() && rounds_.front().size() == ranks_) {
      complete(std::span<Posting* const>(rounds_.front()), add_up(rounds_.front()));
      rounds_.pop_front(), ++first_;
    }
  }

 private:
  static std::span<std::uint64_t> words_of(Posting& posting) {
    Summand& s = posting.summand;
    return s.kept.empty() ? s.words : std::span<std::uint64_t>(s.kept);
  }

  static bool add_up(const std::vector<Posting*>& round) {
    const std::span<std::uint64_t> sum = words_of(*round[0]);
    for (Posting* posting : round)
      if (words_of(*posting).size() != sum.size()) return false;
    for (std::size_t r = 1; r < round.size(); ++r) {
      const std::span<const std::uint64_t> more = words_of(*round[r]);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
    }
    for (std::size_t r = 1; r < round.size(); ++r)
      std::copy(sum.begin(), sum.end(), words_of(*round[r]).begin());
    return true;
  }

  std::size_t ranks_;
  std::vector<std::size_t> next_;  ///< by rank: the number of its next sum
  std::size_t first_ = 0;          ///< the number of the first round that is not complete
  std::deque<std::vector<Posting*>> rounds_;
};

}  // namespace wring::inline v0::detail
