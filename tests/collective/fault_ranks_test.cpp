// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What goes wrong on one rank: its compressor throws, memory runs out, its operation is destroyed early, it never starts one.
#include <catch2/catch_test_macros.hpp>

#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include <wring/compressor/grid.hpp>

#include "collective/fault_campaign.hpp"

using namespace wring_test;

namespace {

enum class Breaks { never, codec, memory, strange };

/// Counts calls, and breaks one of them.
struct Strain {
  Breaks how = Breaks::never;
  int at = 0, calls = 0;
  bool broken = false;

  void call() {
    if (how == Breaks::never || calls++ != at) return;
    broken = true;
    if (how == Breaks::memory) throw std::bad_alloc();
    if (how == Breaks::strange) throw 42;
    throw std::runtime_error("the compressor broke");
  }
};

/// Values as they are, until a call fails.
struct Brittle {
  using value_type = float;
  static constexpr bool bounded = false;
  std::shared_ptr<Strain> strain = std::make_shared<Strain>();

  std::size_t max_compressed_bytes(std::size_t n) const { return 4 * n; }
  wring::Identity identity() const { return {"brittle", 1, {}}; }
  template <class E> std::size_t compress(const E&, std::span<const float> x, std::span<std::byte> bytes,
                                          const wring::Context&) {
    strain->call();
    if (!x.empty()) std::memcpy(bytes.data(), x.data(), x.size_bytes());
    return x.size_bytes();
  }
  template <class E> void decompress(const E&, std::span<const std::byte> bytes, std::span<float> x,
                                     const wring::Context&) {
    strain->call();
    if (bytes.size() != x.size_bytes()) throw wring::CodecError("wrong size");
    if (!x.empty()) std::memcpy(x.data(), bytes.data(), bytes.size());
  }
};

/// A Grid of which a call fails: it also prepares, combines and finishes.
struct BrittleGrid : wring::Grid<float> {
  using Base = wring::Grid<float>;
  static constexpr bool bounded = true;
  std::shared_ptr<Strain> strain = std::make_shared<Strain>();

  void prepare(const wring::Agreed& agreed) {
    strain->call();
    Base::prepare(agreed);
  }
  template <class E> std::size_t compress(const E& exec, std::span<const float> x, std::span<std::byte> bytes,
                                          const wring::Context& c) {
    strain->call();
    return Base::compress(exec, x, bytes, c);
  }
  template <class E> void decompress(const E& exec, std::span<const std::byte> bytes, std::span<float> x,
                                     const wring::Context& c) {
    strain->call();
    Base::decompress(exec, bytes, x, c);
  }
  template <class E> std::size_t combine(const E& exec, std::span<const std::byte> a,
                                         std::span<const std::byte> b, std::span<std::byte> out,
                                         const wring::Context& c) {
    strain->call();
    return Base::combine(exec, a, b, out, c);
  }
  template <class E> std::size_t finish(const E& exec, std::span<const std::byte> sum,
                                        std::span<std::byte> out, const wring::Context& c) {
    strain->call();
    return Base::finish(exec, sum, out, c);
  }
};
static_assert(wring::FinishingCompressor<BrittleGrid>);

Cause cause_of(Breaks how) { return how == Breaks::codec ? Cause::codec : Cause::other; }

/// With `confirm` all fail, and all with the same error; else those who fail blame this rank for this cause.
template <class Codec>
void judge_blame(Judge<Codec>& judge, const Exercise& e, const Ending<float>& end, Cause cause, int culprit) {
  for (std::size_t r = 0; r < end.outcomes.size(); ++r) {
    const Outcome& o = end.outcomes[r];
    if (end.took_part[r] && !o.ok() && (!(o == cause) || o.rank != culprit))
      judge.note("blames another", end);
  }
  if (!e.options.confirm || end.failed() == 0) return;
  if (end.failed() < end.present()) judge.note("some fail, some succeed", end);
}

/// Calls `test(exercise, culprit)` for some exercises with some ranks.
template <class Test> void for_some(std::uint64_t every, Test test, bool bounded = false) {
  for (const Exercise& e : exercises(bounded))
    for (int rank = 0; rank < e.ranks; ++rank)
      if (random_bits(5, e.seed * 8 + static_cast<std::uint64_t>(rank)) % every == 0) test(e, rank);
}

template <class Codec> void break_codecs(Verdicts& verdicts, std::uint64_t every) {
  const auto test = [&](const Exercise& e, int culprit) {
    Judge<Codec> judge(e, verdicts);
    for (const Breaks how : {Breaks::codec, Breaks::memory, Breaks::strange})
      for (int k = 0;; k = k < 6 ? k + 1 : 2 * k) {
        std::vector<Codec> codecs(static_cast<std::size_t>(e.ranks));
        Strain& strain = *codecs[static_cast<std::size_t>(culprit)].strain;
        strain.how = how, strain.at = k;
        Trial<Codec> trial(e, {}, [&](int r) { return codecs[static_cast<std::size_t>(r)]; });
        judge.tell("call " + std::to_string(k) + " of the compressor of rank " + std::to_string(culprit) +
                   (how == Breaks::memory ? " has no memory" : " throws"));
        const Ending<float> end = trial.run(judge.most_rounds());
        if (!strain.broken) break;  // no further calls
        ++verdicts.faults;
        judge.judge_any(end, false);
        judge_blame(judge, e, end, cause_of(how), culprit);
        if (end.outcomes[static_cast<std::size_t>(culprit)].ok())
          judge.note("the error of a compressor is lost", end);
        judge.judge_later(trial, false, end);
      }
  };
  for_some(every, test, Codec::bounded);
}

void destroy_early(Verdicts& verdicts, std::uint64_t every) {
  for_some(every, [&](const Exercise& e, int culprit) {
    Judge<Brittle> judge(e, verdicts);
    for (std::size_t round = 1; round <= judge.clean_rounds(); ++round) {
      Trial<Brittle> trial(e);
      judge.tell("the request of rank " + std::to_string(culprit) + " is destroyed in round " +
                 std::to_string(round));
      bool destroyed = false;
      const Ending<float> end =
          trial.run(judge.most_rounds(), {}, [&](int rank, std::size_t now, wring::Request& request) {
            if (rank != culprit || now != round || destroyed) return false;
            request = wring::Request();
            return destroyed = true;
          });
      if (!destroyed) break;  // it had ended
      ++verdicts.faults;
      judge.judge_any(end, false);
      judge_blame(judge, e, end, Cause::abandoned, culprit);
      if (!trial.settle(judge.most_rounds())) judge.note("never at rest", end);
      const Ending<float> second = trial.run(judge.most_rounds());
      judge.judge_any(second, false);
      if (second.failed() == 0) continue;
      if (second.failed() < second.present() || !(second.outcomes[0] == Cause::abandoned) ||
          second.outcomes[0].rank != culprit)
        judge.note("not the same news of the culprit on all ranks", second);
      const Ending<float> third = trial.run(judge.most_rounds());
      judge.judge_any(third, false);
      if (third.failed() > 0) judge.note("the link does not recover", third);
    }
  });
}

void never_start(Verdicts& verdicts, std::uint64_t every) {
  for_some(every, [&](const Exercise& e, int culprit) {
    Judge<Brittle> judge(e, verdicts);
    Trial<Brittle> trial(e);
    judge.tell("rank " + std::to_string(culprit) + " does not start");
    const Ending<float> end = trial.run(judge.most_rounds(), {culprit});
    ++verdicts.faults;
    judge.judge_any(end, true);
    if (end.failed() < end.present()) judge.note("succeeds without a rank", end);
    for (std::size_t r = 0; r < end.outcomes.size(); ++r)
      if (end.took_part[r] && !(end.outcomes[r] == Cause::timeout)) judge.note("not a timeout", end);
    for (int r = 0; r < e.ranks; ++r)  // whoever has timed out is retired
      if (end.timed_out[static_cast<std::size_t>(r)] && !trial.link(r).session().retired())
        judge.note("not retired", end);
    if (!trial.settle(judge.most_rounds())) judge.note("never at rest", end);
    std::vector<int> others;
    for (int r = 0; r < e.ranks; ++r)
      if (r != culprit) others.push_back(r);
    judge.tell("rank " + std::to_string(culprit) + " starts when the others have given up");
    const Ending<float> late = trial.run(judge.most_rounds(), others);
    judge.judge_any(late, false);
    if (e.options.confirm && late.failed() == 0) judge.note("a confirmed operation succeeds alone", late);
    judge.judge_later(trial, true, end);
  });
}

}  // namespace

TEST_CASE("faults: a compressor throws on one rank, or memory runs out", "[collective][faults]") {
  Verdicts verdicts;
  break_codecs<Brittle>(verdicts, 40);
  break_codecs<BrittleGrid>(verdicts, 40);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 500);
  CHECK(verdicts.none());
}

TEST_CASE("faults: an operation is destroyed early on one rank", "[collective][faults]") {
  Verdicts verdicts;
  destroy_early(verdicts, 15);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 500);
  CHECK(verdicts.none());
}

TEST_CASE("faults: a rank never starts", "[collective][faults]") {
  Verdicts verdicts;
  never_start(verdicts, 6);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 500);
  CHECK(verdicts.none());
}

TEST_CASE("faults: what goes wrong on one rank, everywhere", "[collective][faults][nightly]") {
  Verdicts verdicts;
  break_codecs<Brittle>(verdicts, 4);
  break_codecs<BrittleGrid>(verdicts, 4);
  destroy_early(verdicts, 2);
  never_start(verdicts, 1);
  INFO(verdicts.text());
  CHECK(verdicts.faults > 10'000);
  CHECK(verdicts.none());
}
