// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <vector>

#include <Kokkos_Core.hpp>

#include <wring/wring.hpp>

#include "advise/settings.hpp"
#include "support/data.hpp"

namespace wring_benchmark {

/// What the compressor makes of the user's data, on one core of this machine.
struct TrialFigures {
  int ranks = 0;     ///< among which the sum was formed: more of them need more bits
  double ratio = 1;  ///< of all messages
  double measure = 0, encode = 0, combine = 0, decode = 0;  ///< bytes per second
};

/// Sums up the data of some ranks within this process, by the real executor, and takes the figures from its reports.
class CompressionTrial {
 public:
  static constexpr int most_ranks = 16, repetitions = 5;
  static constexpr std::size_t values = std::size_t{1} << 19;

  /// The data are taken in turn, one rank after the other; without any, they are made.
  CompressionTrial(const AdviseSettings& settings, const std::vector<std::vector<float>>& data, int ranks)
      : settings_(settings), ranks_(std::min(ranks, most_ranks)), world_(ranks_) {
    const wring::Options options{.segment_bytes = 128 * 1024, .ride_along_bytes = 0};
    for (int r = 0; r < ranks_; ++r) {
      sums_.emplace_back(wring::Grid<float>{}, world_.link(r), wring::Direct{}, options);
      in_.emplace_back("in", values), out_.emplace_back("out", values);
      const auto rank = static_cast<std::size_t>(r);
      const auto given = data.empty() ? made_values(values, rank) : data[rank % data.size()];
      fill(std::span<float>(in_.back().data(), values), std::span<const float>(given));
    }
  }

  /// Of the fastest of some repetitions, each part for itself.
  TrialFigures run() {
    TrialFigures figures{.ranks = ranks_};
    for (int i = 0; i < repetitions; ++i) take(figures, once());
    return figures;
  }

 private:
  using View = Kokkos::View<float*, Kokkos::HostSpace>;

  wring::Report once() {
    std::vector<wring::Request> requests;
    for (std::size_t r = 0; r < sums_.size(); ++r)
      requests.push_back(
          sums_[r].start(Kokkos::DefaultHostExecutionSpace{}, in_[r], out_[r], settings_.bound));
    wring::Report first = requests[0].wait();
    for (std::size_t r = 1; r < requests.size(); ++r) static_cast<void>(requests[r].wait());
    return first;
  }

  /// By `Direct` a rank encodes its whole vector, adds up the others' contributions to its block, and decodes all blocks.
  void take(TrialFigures& figures, const wring::Report& report) const {
    const double bytes = values * sizeof(float), p = ranks_;
    const auto most = [](double& kept, double done, double seconds) {
      if (seconds > 0) kept = std::max(kept, done / seconds);
    };
    figures.ratio = report.ratio();
    most(figures.measure, bytes, report.measure_seconds);
    most(figures.encode, bytes, report.encode_seconds);
    most(figures.combine, bytes * (p - 1) / p, report.combine_seconds);
    most(figures.decode, bytes, report.decode_seconds);
  }

  const AdviseSettings& settings_;
  int ranks_;
  wring::InProcess world_;
  std::deque<wring::Allreduce<wring::Grid<float>, wring::InProcessTransport, wring::Direct>> sums_;
  std::vector<View> in_, out_;
};

}  // namespace wring_benchmark
