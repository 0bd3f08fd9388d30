// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <wring/algorithm/concept.hpp>
#include <wring/algorithm/cost.hpp>
#include <wring/algorithm/situation.hpp>
#include <wring/detail/automatic/route.hpp>
#include <wring/detail/automatic/search.hpp>
#include <wring/detail/hash.hpp>
#include <wring/machine.hpp>

namespace wring::inline v0 {

namespace detail {

/// The nearest number with three significant binary digits: sizes that are nearly equal share a choice.
constexpr std::size_t rounded_bytes(std::size_t bytes) {
  const int surplus = std::bit_width(bytes) - 3;
  if (surplus <= 0) return bytes;
  const std::size_t unit = std::size_t(1) << surplus;
  return std::max(bytes, bytes + unit / 2) / unit *
         unit;  // without overflow: the sum of what is too great is less
}

inline std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.3g} us", 1e6 * seconds);
  return seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

inline std::string size_text(std::size_t bytes) {
  if (bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  return bytes % 1024 == 0 ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} B", bytes);
}

inline const char* text_of(RatioSource source) {
  constexpr std::array<const char*, 3> words{"assumed", "seen", "fixed"};
  return words[static_cast<std::size_t>(source)];
}

/// A number for a machine as it is, bit by bit.
inline std::uint64_t identity_of(const Machine& m) {
  Hasher h;
  for (const MachineFigure& figure : machine_figures) h.add(m.*figure.value);
  return h.add(m.ranks_per_node).value();
}

}  // namespace detail

/// Chooses for every operation, by the cost model (`predict`): `Ring`, `Direct`, `HalvingDoubling` or `RecursiveDoubling`; segments and depth;
/// whether small data travel with the agreement; and whether to compress at all. Where compression does not pay, values travel as they are,
/// with `Grid` as unpacked integers, so that results have the same bits whatever is chosen. Compressors that combine and have no such form
/// (`TopK`, `Threshold`, `PackedWords`) always compress.
///
/// Collectives ask it before each operation. What it goes by is equal on all ranks: collective, length, type, operation, the machine, and
/// the compression ratio that the ranks have last agreed upon (at first, 4 where the compressor does not say). `segment_bytes`, `depth` and
/// `ride_along_bytes` of the options are chosen, too, unless they differ from their defaults: then they are the user's. The report says what was
/// chosen and why, and whether ratio and machine are assumed or known.
///
/// Without a machine it goes by `typical_node()`, until the collective's `calibrate` has measured this one.
///
/// Cost: predictions for every new size (sizes that differ by less than an eighth share a choice), then a look-up. 64 choices are kept.
class Automatic {
 public:
  static constexpr std::size_t most_choices = 64;

  Automatic() : Automatic(typical_node()) {}
  /// Throws InvalidArgument for a machine that cannot be.
  explicit Automatic(const Machine& machine) { take(machine, "given"); }

  const Machine& machine() const { return machine_; }

  /// Chooses from now on by this machine, which a calibration has found. It must be the same on all ranks.
  void use(const Machine& machine) { take(machine, "calibrated"); }

  std::uint64_t identity() const { return identity_; }

  // ---- the algorithm that was chosen last

  std::string name() const { return "automatic: " + route_.name(); }
  Plan plan(Task task, int rank, int ranks) const { return route_.plan(task, rank, ranks); }
  EdgeCount edges(Task task, int ranks) const { return route_.edges(task, ranks); }
  bool symmetric(Task task, int ranks) const { return route_.symmetric(task, ranks); }

  /// Chooses for an operation, or remembers what was chosen for one like it.
  const Choice& adapt(const Situation& situation) {
    const Situation s = outline(situation);
    std::size_t at = 0;
    while (at < made_.size() && !(made_[at].first == s)) ++at;
    if (at == made_.size()) at = remember(s);
    route_ = detail::Route(made_[at].second.variant);
    return made_[at].second;
  }

  /// What is best for an operation. Throws InvalidArgument for what cannot be.
  Choice choose(const Situation& situation) const {
    const Situation s = outline(situation);
    const detail::Search search(s, machine_);
    const auto compressed = search.best(true), plain = search.best(false);
    if (!compressed)
      throw InvalidArgument("automatic: segments of " + std::to_string(s.load.segment_bytes) +
                            " bytes are too long for this number of ranks");
    const bool compresses = !plain || compressed->seconds < detail::Search::enough * plain->seconds;
    const detail::Outlook& best = compresses ? *compressed : *plain;
    Choice choice{.variant = best.route.number(),
                  .compressed = compresses,
                  .segment_bytes = best.segment_bytes,
                  .depth = best.depth,
                  .seconds = best.seconds,
                  .reason = explain(best, compresses ? plain : compressed, s),
                  .ride_reason = "rode along"};
    if (s.ride && !s.ride_given) consider_riding(s, choice);
    return choice;
  }

 private:
  void take(const Machine& machine, const char* source) {
    expect_possible(machine);
    machine_ = machine, identity_ = detail::identity_of(machine);
    source_ = machine == typical_node() ? "assumed" : source;
    made_.clear(), next_ = 0;
  }

  /// A situation with all that makes no difference to the choice left out.
  static Situation outline(Situation s) {
    s.load.bytes = detail::rounded_bytes(s.load.bytes);
    s.load.confirm = false, s.task.root = 0;
    return s;
  }

  std::size_t remember(const Situation& s) {
    std::pair<Situation, Choice> made{s, choose(s)};
    if (made_.size() < most_choices) {
      made_.push_back(std::move(made));
      return made_.size() - 1;
    }
    const std::size_t at = next_++ % most_choices;
    made_[at] = std::move(made);
    return at;
  }

  void consider_riding(const Situation& s, Choice& choice) const {
    Load load = s.load;
    load.measured = s.measured_otherwise, load.ahead = false;
    const double seconds = predict_riding_along(*s.ride, s.task, s.ranks, load, machine_).seconds;
    if (seconds > choice.seconds) return;
    choice.rides_along = true;
    choice.ride_reason =
        fmt::format("rode along: {} predicted; {} by {} ({})", detail::time_text(seconds),
                    detail::time_text(choice.seconds), detail::Route(choice.variant).name(), basis(s));
    choice.seconds = seconds;
  }

  /// What the figures of a reason rest on.
  std::string basis(const Situation& s) const {
    return fmt::format("ratio {:.3g} {}; machine {}, {:.3g} Gb/s", s.load.ratio,
                       detail::text_of(s.ratio_source), source_, 8e-9 * machine_.bandwidth);
  }

  std::string explain(const detail::Outlook& best, const std::optional<detail::Outlook>& other,
                      const Situation& s) const {
    const bool compresses = best.route.compressed();
    std::string text =
        fmt::format("{}, {} segments, depth {}: {} predicted", compresses ? "compressed" : "uncompressed",
                    detail::size_text(best.segment_bytes), best.depth, detail::time_text(best.seconds));
    if (other)
      text += fmt::format("; {} {} {}", compresses ? "uncompressed" : "compressed", other->route.name(),
                          detail::time_text(other->seconds));
    return text + " (" + basis(s) + ")";
  }

  Machine machine_;
  std::uint64_t identity_ = 0;
  const char* source_ = "";  ///< of the machine
  detail::Route route_;
  std::vector<std::pair<Situation, Choice>> made_;
  std::size_t next_ = 0;  ///< to be replaced, when there are too many
};

static_assert(AdaptiveAlgorithm<Automatic> && EdgeCountedAlgorithm<Automatic> &&
              SymmetricAlgorithm<Automatic>);

}  // namespace wring::inline v0
