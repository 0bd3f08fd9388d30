// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <wring/config.hpp>

namespace wring::inline v0::detail {

/// A compression ratio as it travels in the flags of a head: one bit for every threshold that it is below, so that a merge by OR leaves the
/// least ratio of all ranks.
struct RatioMarks {
  static constexpr std::array<double, 13> thresholds{1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 5, 6, 8, 12, 16};
  static constexpr int shift = 2;  ///< flags before these
  static constexpr std::uint16_t present = 1 << 15;

  static std::uint16_t of(double ratio) {
    unsigned marks = present;
    for (std::size_t i = 0; i < thresholds.size(); ++i)
      if (!(ratio >= thresholds[i])) marks |= 1u << (shift + i);
    return static_cast<std::uint16_t>(marks);
  }

  /// The greatest threshold that no rank was below, 1 if there is none; nothing if no rank had a ratio.
  static std::optional<double> least(std::uint16_t flags) {
    if (!(flags & present)) return std::nullopt;
    constexpr unsigned all = (1u << thresholds.size()) - 1;
    const int below = std::popcount((static_cast<unsigned>(flags) >> shift) & all),
              reached = static_cast<int>(thresholds.size()) - below;
    return reached > 0 ? thresholds[static_cast<std::size_t>(reached - 1)] : 1;
  }
};

/// What a collective has learnt from its own operations: how well its data compress. The ratio that a rank has seen travels in the
/// agreement of the next operation; what is then the least of all ranks serves those after it.
class Experience {
 public:
  /// An operation without compression teaches nothing. After so many of them the ratio is taken as unknown again.
  static constexpr int memory = 64;

  /// This rank's ratio, in the operation that has ended.
  void see(double ratio) { seen_ = ratio; }
  std::optional<double> seen() const { return seen_; }

  /// What the ranks have agreed upon in the operation with this number on its link; the same on all of them.
  void agree(std::optional<double> least, std::uint64_t operation) {
    seen_.reset();
    if (least && (!known_ || operation > since_)) known_ = least, since_ = operation, uses_ = 0;
  }

  /// For the operation that starts now. `told`: all ranks have heard of failures before that number. What was learnt before a failure may
  /// not be what other ranks have learnt.
  std::optional<double> ratio(std::uint64_t told) {
    if (known_ && (told > since_ || ++uses_ > memory)) known_.reset();
    return known_;
  }

 private:
  std::optional<double> seen_, known_;
  std::uint64_t since_ = 0;
  int uses_ = 0;
};

/// The experience of one object, which its operations share. A copy of an object learns for itself.
class OwnExperience {
 public:
  OwnExperience() = default;
  OwnExperience(const OwnExperience& other) { *this = other; }
  OwnExperience(OwnExperience&&) noexcept = default;
  OwnExperience& operator=(const OwnExperience& other) {
    if (this != &other) own_ = other.own_ ? std::make_shared<Experience>(*other.own_) : nullptr;
    return *this;
  }
  OwnExperience& operator=(OwnExperience&&) noexcept = default;
  ~OwnExperience() = default;

  const std::shared_ptr<Experience>& shared() {
    if (!own_) own_ = std::make_shared<Experience>();
    return own_;
  }

 private:
  std::shared_ptr<Experience> own_;
};

}  // namespace wring::inline v0::detail
