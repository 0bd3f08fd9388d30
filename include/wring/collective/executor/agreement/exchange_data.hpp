// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <wring/collective/executor/agreement/exchange.hpp>
#include <wring/collective/executor/agreement/magnitudes.hpp>
#include <wring/error.hpp>

/// What travels behind the heads: the magnitudes of a group's tensors, or everybody's data when they ride along.
namespace wring::inline v0::detail {

/// Magnitudes of many tensors, merged one by one.
class MagnitudeTable final : public ExchangeData {
 public:
  std::vector<Magnitudes>& entries() { return entries_; }

  std::size_t max_bytes() const override { return entries_.size() * sizeof(Magnitudes); }
  std::size_t write(std::byte* to) const override {
    if (!entries_.empty()) std::memcpy(to, entries_.data(), max_bytes());
    return max_bytes();
  }
  void merge(std::span<const std::byte> from) override {
    check(from);
    for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].merge(entry(from, i));
  }
  void replace(std::span<const std::byte> from) override {
    check(from);
    for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i] = entry(from, i);
  }

 private:
  void check(std::span<const std::byte> from) const {
    if (from.size() != max_bytes())
      throw TransportError("the magnitudes of a group arrived with the wrong size");
  }
  static Magnitudes entry(std::span<const std::byte> from, std::size_t i) {
    Magnitudes m;
    std::memcpy(&m, from.data() + i * sizeof m, sizeof m);
    return m;
  }
  std::vector<Magnitudes> entries_;
};
static_assert(sizeof(Magnitudes) == 64 && std::is_trivially_copyable_v<Magnitudes>);

/// Everybody's data: one run of bytes per rank, gathered on the way. Ranks that have nothing to say stay empty.
class Contributions final : public ExchangeData {
 public:
  void start(int ranks, std::size_t total_bytes) {
    runs_.resize(static_cast<std::size_t>(ranks));
    for (Run& run : runs_) run.present = false;
    total_bytes_ = total_bytes;
  }
  /// The memory for this rank's own contribution.
  std::span<std::byte> give(int rank, std::size_t bytes) {
    Run& run = runs_[static_cast<std::size_t>(rank)];
    run.bytes.resize(bytes), run.present = true;
    return run.bytes;
  }
  std::span<const std::byte> of(int rank) const { return runs_[static_cast<std::size_t>(rank)].bytes; }
  bool complete() const {
    for (const Run& run : runs_)
      if (!run.present) return false;
    return true;
  }

  std::size_t max_bytes() const override { return runs_.size() * sizeof(Entry) + total_bytes_; }
  std::size_t write(std::byte* to) const override {
    std::byte* at = to;
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      if (!runs_[r].present) continue;
      const Entry entry{static_cast<std::uint32_t>(r), static_cast<std::uint32_t>(runs_[r].bytes.size())};
      std::memcpy(at, &entry, sizeof entry);
      at += sizeof entry;
      if (entry.bytes) std::memcpy(at, runs_[r].bytes.data(), entry.bytes);
      at += entry.bytes;
    }
    return static_cast<std::size_t>(at - to);
  }
  void merge(std::span<const std::byte> from) override {
    while (!from.empty()) {
      Entry entry;
      if (from.size() < sizeof entry) throw TransportError("data that ride along arrived cut short");
      std::memcpy(&entry, from.data(), sizeof entry);
      from = from.subspan(sizeof entry);
      if (entry.rank >= runs_.size() || entry.bytes > from.size() || entry.bytes > total_bytes_)
        throw TransportError("data that ride along are damaged");
      Run& run = runs_[entry.rank];
      run.bytes.assign(from.begin(), from.begin() + entry.bytes), run.present = true;
      from = from.subspan(entry.bytes);
    }
  }
  void replace(std::span<const std::byte> from) override { merge(from); }

 private:
  struct Entry {
    std::uint32_t rank, bytes;
  };
  struct Run {
    std::vector<std::byte> bytes;
    bool present = false;
  };
  std::vector<Run> runs_;
  std::size_t total_bytes_ = 0;
};

}  // namespace wring::inline v0::detail
