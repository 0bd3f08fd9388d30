// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collective/trial.hpp"

/// Every message of an operation in turn meets every kind of fault, and the contract is checked on every rank.
namespace wring_test {

using wring::Cause;
using wring::testing::Fault;
using wring::testing::FaultKind;
using wring::testing::MessageKind;
using wring::testing::Side;

/// What went wrong, by kind, with an example of each.
class Verdicts {
 public:
  void add(const std::string& kind, const std::string& where) {
    ++found_[kind].first;
    if (found_[kind].second.empty()) found_[kind].second = where;
  }
  bool none() const { return found_.empty(); }
  std::string text() const {
    std::string text = std::to_string(faults) + " faults in " + std::to_string(exercises) + " exercises";
    for (const auto& [kind, cases] : found_)
      text += "\n" + kind + ", " + std::to_string(cases.first) + " times; for instance " + cases.second;
    return text;
  }
  std::size_t faults = 0, exercises = 0;

 private:
  std::map<std::string, std::pair<std::size_t, std::string>> found_;
};

/// Faults after which a rank may have to wait for its deadline: something never comes.
inline bool silences(FaultKind kind) {
  return kind == FaultKind::lose || kind == FaultKind::stop || kind == FaultKind::die;
}

inline bool names_a_rank(const Outcome& o) {
  const std::size_t at = o.text.find("rank ");
  return o.rank >= 0 || (at != std::string::npos && at + 5 < o.text.size() && o.text[at + 5] >= '0' &&
                         o.text[at + 5] <= '9');
}

/// Runs an exercise with a fault, and judges what came of it and of the operations after it.
template <class Codec> class Judge {
 public:
  using T = typename Codec::value_type;

  Judge(const Exercise& exercise, Verdicts& verdicts) : e_(exercise), verdicts_(verdicts) {
    Trial<Codec> trial(e_);
    clean_ = trial.run(100'000);
    rounds_ = clean_.rounds;
    if (clean_.failed() > 0 || clean_.endless || clean_.any_timed_out() || !exact(trial))
      note("a clean run went wrong", clean_);
    for (int r = 0; r < e_.ranks; ++r)
      for (const Side side : {Side::send, Side::receive})
        for (const MessageKind kind : {MessageKind::agreement, MessageKind::data})
          counts_.push_back(trial.link(r).messages(side, kind));
    ++verdicts_.exercises;
  }

  /// How many messages of this kind the rank sends (receives) in one operation.
  std::uint64_t messages(int rank, Side side, MessageKind kind) const {
    return counts_[static_cast<std::size_t>(rank) * 4 + (side == Side::receive ? 2 : 0) +
                   (kind == MessageKind::data ? 1 : 0)];
  }

  void judge(const Fault& fault) {
    what_ = fault;
    Trial<Codec> trial(e_, {.faults = {fault}});
    const Ending<T> end = trial.run(most_rounds());
    const auto& injected = trial.link(fault.rank).injected();
    if (injected.size() != 1) return note("the fault was not injected", end);
    ++verdicts_.faults;
    judge_ending(fault, end, injected[0].peer);
    if (!trial.settle(most_rounds())) note("the link is never at rest afterwards", end);
    judge_later(trial, fault.kind == FaultKind::stop || fault.kind == FaultKind::die, end);
  }

  /// What must hold of any ending, however it came about.
  void judge_any(const Ending<T>& end, bool may_time_out) {
    if (end.endless) note("progress has no end", end);
    if (!may_time_out && end.any_timed_out()) note("hangs", end);
    for (std::size_t r = 0; r < end.outcomes.size(); ++r) {
      const Outcome& o = end.outcomes[r];
      if (!end.took_part[r]) continue;
      if (end.timed_out[r] && o.ok()) note("succeeds only after its deadline", end);
      if (o.ok() && !right(end, r)) note("a wrong value in silence", end);
      if (!o.ok() && !names_a_rank(o)) note("an error names no rank", end);
    }
  }

  /// The next operation tells all ranks what some do not know, then all is well; or the link says that it is retired. `gone`: a
  /// rank that takes part no more.
  void judge_later(Trial<Codec>& trial, bool gone, const Ending<T>& end) {
    const bool retired = trial.retired();
    const Ending<T> second = trial.run(most_rounds());
    later_ = "\n afterwards:" + describe(second.outcomes);
    judge_any(second, gone || retired);
    if (gone || retired) {
      if (retired && second.failed() == 0 && second.present() > 0)
        note("an operation succeeds on a retired link", end);
    } else {
      judge_recovery(trial, end, second);
    }
    later_.clear();
  }

  void judge_recovery(Trial<Codec>& trial, const Ending<T>& end, const Ending<T>& second) {
    const bool nobody = end.failed() == 0, all = end.failed() == end.present();
    if (second.failed() == 0) {
      if (!nobody && !all) note("a failure is kept secret", end);
      return;
    }
    const bool told =
        second.failed() == second.present() && second.alike() && second.outcomes[0] == Cause::abandoned;
    if (!told) note("not the same news of a failure on all ranks", end);
    if (nobody || (e_.options.confirm && all && !in_confirmation(what_)))
      note("news of a failure that nobody met, or all know", end);
    const Ending<T> third = trial.run(most_rounds());
    later_ += "\n and then:" + describe(third.outcomes);
    judge_any(third, false);
    if (third.failed() > 0) note("the link does not recover", end);
  }

  void note(const std::string& kind, const Ending<T>& end) {
    if (!story_.empty())
      return verdicts_.add(kind + (e_.options.confirm ? " [confirm]" : ""),
                           describe(e_) + ", " + story_ + describe(end.outcomes) + later_);
    verdicts_.add(kind + " [" + wring::testing::name_of(what_.kind) +
                      (what_.messages == MessageKind::agreement ? ", agreement" : ", data") +
                      (what_.side == Side::receive ? ", receive" : "") +
                      (e_.options.confirm ? ", confirm]" : "]"),
                  describe(e_) + ", " + wring::testing::describe(what_) + describe(end.outcomes) + later_);
  }

  /// What happens instead of a fault of the link.
  void tell(std::string story) { story_ = std::move(story); }

  std::size_t most_rounds() const { return 5 * rounds_ + 300; }
  std::size_t clean_rounds() const { return rounds_; }

 private:
  void judge_ending(const Fault& fault, const Ending<T>& end, int peer) {
    judge_any(end, silences(fault.kind));
    const bool harmless = fault.kind == FaultKind::delay || fault.kind == FaultKind::reorder;
    if (harmless && end.failed() > 0) note("late messages do harm", end);
    const auto failed = [&](int rank) { return !end.outcomes[static_cast<std::size_t>(rank)].ok(); };
    const bool noticed_by_peer = wring::testing::damages(fault.kind);
    if (noticed_by_peer && !failed(peer)) note("damage is not noticed where it arrives", end);
    if (fault.side == Side::receive && fault.kind == FaultKind::throw_at_test && !failed(fault.rank))
      note("an error of the transport is not noticed", end);
    if (noticed_by_peer && !silences(fault.kind))
      for (const Outcome& o : end.outcomes)
        if (!o.ok() && !(o == Cause::transport)) note("an error of another kind", end);
    if (!e_.options.confirm || harmless || silences(fault.kind) || fault.kind == FaultKind::throw_at_start ||
        in_confirmation(fault))
      return;
    if (end.failed() > 0 && end.failed() < end.present()) note("some fail, some succeed", end);
    if (end.failed() == end.present() && !end.alike()) note("not the same error everywhere", end);
  }

  /// Whether it hits the exchange that closes an operation, which nothing can confirm.
  bool in_confirmation(const Fault& fault) const {
    if (!e_.options.confirm || fault.messages != MessageKind::agreement) return false;
    const std::uint64_t exchanges = e_.lengths.size() > 1 ? 3 : 2;
    return fault.number >=
           messages(fault.rank, fault.side, MessageKind::agreement) / exchanges * (exchanges - 1);
  }

  bool right(const Ending<T>& end, std::size_t rank) const {
    for (std::size_t i = 0; i < end.results.size(); ++i)
      if (!same_bits(end.results[i][rank], clean_.results[i][rank])) return false;
    return true;
  }

  /// Against the sum of all inputs, element by element; ranks that get the same must hold the same bits.
  bool exact(Trial<Codec>& trial) const {
    const bool scatters = e_.collective == wring::Collective::reduce_scatter;
    for (std::size_t i = 0; i < clean_.results.size(); ++i) {
      std::size_t at = 0;
      for (std::size_t r = 0; r < clean_.results[i].size(); ++r) {
        const std::vector<T>& result = clean_.results[i][r];
        if (!scatters && r > 0) {
          if (!same_bits(result, clean_.results[i][0])) return false;
          continue;
        }
        const double bound = e_.bounded ? clean_.outcomes[r].report.bound.value() : 0;
        for (const T& x : result)
          if (!reduced_within(e_.options.operation, terms_of(e_.collective, e_.root, trial.inputs(i), at++),
                              x, bound))
            return false;
      }
    }
    return true;
  }

  Exercise e_;
  Verdicts& verdicts_;
  Ending<T> clean_;
  std::size_t rounds_ = 0;
  std::vector<std::uint64_t> counts_;
  Fault what_{};
  std::string story_, later_;
};

/// The faults that a message can meet: what is damaged where it is sent, and what goes wrong on either side.
inline std::vector<Fault> faults_at(int rank, Side side, MessageKind messages, std::uint64_t number,
                                    std::uint64_t seed) {
  std::vector<Fault> all;
  const auto add = [&](FaultKind kind, std::uint64_t amount) {
    all.push_back(
        {.kind = kind, .rank = rank, .messages = messages, .number = number, .amount = amount, .side = side});
  };
  const auto draw = [&](std::uint64_t i, std::uint64_t end) { return random_bits(seed, i) % end; };
  add(FaultKind::delay, 1 + draw(0, 40));
  add(FaultKind::reorder, 1 + draw(1, 40));
  for (const FaultKind kind :
       {FaultKind::throw_at_start, FaultKind::throw_at_test, FaultKind::stop, FaultKind::die})
    add(kind, 1);
  if (side == Side::receive) return all;
  add(FaultKind::flip, draw(2, 64 * 8));         // the header, or the first words of a head
  add(FaultKind::flip, draw(3, 1'000'000'007));  // any bit
  add(FaultKind::truncate, 1 + draw(4, 64));
  add(FaultKind::truncate, 1 + draw(5, 2000));
  add(FaultKind::truncate, 1'000'000'000);
  add(FaultKind::extend, 1 + draw(6, 64));
  add(FaultKind::extend, 200'000);  // more than any receive has room for
  add(FaultKind::noise, draw(7, 1'000'000'007));
  add(FaultKind::lose, 1);
  return all;
}

/// All exercises: ranks, algorithms, collectives, ways to run them.
inline std::vector<Exercise> exercises(bool bounded) {
  using namespace wring;
  std::vector<Exercise> all;
  std::uint64_t number = 0;
  for (int ranks = 2; ranks <= 6; ++ranks)
    for (const AnyAlgorithm& algorithm :
         {AnyAlgorithm(Ring{}), AnyAlgorithm(Direct{}), AnyAlgorithm(RecursiveDoubling{}),
          AnyAlgorithm(HalvingDoubling{}), AnyAlgorithm(Hierarchical<>(2))})
      for (const Collective collective : collectives)
        for (const char* way : {"plain", "segments", "rides", "group"})
          for (const bool confirm : {false, true}) {
            Exercise e{.collective = collective, .ranks = ranks, .algorithm = algorithm, .bounded = bounded};
            e.seed = ++number;
            e.root = static_cast<int>(number) % ranks;
            e.options.confirm = confirm;
            e.options.operation = reduces(collective) && number % 5 == 0 ? wring::max : wring::sum;
            e.options.ride_along_bytes = way == std::string("rides") ? 65536 : 0;
            e.options.segment_bytes = 512 * 4;
            e.options.depth = 1 + static_cast<int>(number % 3);
            if (way == std::string("segments")) e.lengths = {static_cast<std::size_t>(1100 * ranks)};
            if (way == std::string("group")) e.lengths = {30, 7};
            all.push_back(e);
          }
  return all;
}

/// Judges about one in `every` of all faults at all messages of all exercises.
template <class Codec> void campaign(Verdicts& verdicts, bool bounded, std::uint64_t every) {
  for (const Exercise& e : exercises(bounded)) {
    Judge<Codec> judge(e, verdicts);
    for (int rank = 0; rank < e.ranks; ++rank)
      for (const Side side : {Side::send, Side::receive})
        for (const MessageKind kind : {MessageKind::agreement, MessageKind::data})
          for (std::uint64_t n = 0; n < judge.messages(rank, side, kind); ++n) {
            const std::uint64_t place =
                ((e.seed * 8 + static_cast<std::uint64_t>(rank)) * 4 + static_cast<std::uint64_t>(kind) * 2 +
                 static_cast<std::uint64_t>(side)) *
                    1000 +
                n;
            const std::vector<Fault> faults = faults_at(rank, side, kind, n, place);
            for (std::size_t i = 0; i < faults.size(); ++i)
              if (random_bits(place, 100 + i) % every == 0) judge.judge(faults[i]);
          }
  }
}

}  // namespace wring_test
