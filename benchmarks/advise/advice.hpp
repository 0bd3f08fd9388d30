// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>

#include <wring/algorithm.hpp>

namespace wring_benchmark {

/// The fastest way with compression, and the fastest without, as predicted.
struct Advice {
  wring::detail::Outlook compressed, plain;

  bool pays() const { return compressed.seconds < plain.seconds; }
  const wring::detail::Outlook& best() const { return pays() ? compressed : plain; }
};

/// Predicts for one number of ranks and one compressor. Without compression the values themselves travel and are added, as by MPI.
class Adviser {
 public:
  Adviser(wring::Task task, int ranks, double ratio, bool measured) {
    compressed_.task = plain_.task = task, compressed_.ranks = plain_.ranks = ranks;
    compressed_.load.ratio = ratio, compressed_.load.combines = true, compressed_.load.finishes = ranks > 4;
    compressed_.load.measured = measured;
  }

  Advice advise(std::size_t bytes, const wring::Machine& machine) const {
    return {best(compressed_, bytes, machine, true), best(plain_, bytes, machine, false)};
  }

  /// The rate of the link, in bits per second, up to which compression pays; nothing if it pays nowhere between 1 Mb/s and 10 Tb/s, or
  /// everywhere.
  std::optional<double> break_even(std::size_t bytes, wring::Machine machine) const {
    const auto pays = [&](double rate) {
      machine.bandwidth = rate / 8;
      return advise(bytes, machine).pays();
    };
    double low = std::log(1e6), high = std::log(1e13);
    if (!pays(std::exp(low)) || pays(std::exp(high))) return std::nullopt;
    for (int i = 0; i < 12; ++i) {
      const double middle = (low + high) / 2;
      (pays(std::exp(middle)) ? low : high) = middle;
    }
    return std::exp((low + high) / 2);
  }

 private:
  static wring::detail::Outlook best(wring::Situation situation, std::size_t bytes,
                                     const wring::Machine& machine, bool compressed) {
    situation.load.bytes = bytes;
    return *wring::detail::Search(situation, machine).best(compressed);
  }

  wring::Situation compressed_, plain_;
};

}  // namespace wring_benchmark
