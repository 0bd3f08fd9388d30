// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <string>
#include <utility>

#include <wring/config.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

/// What a machine and its codec are capable of, as far as the time of a collective depends on it: what a calibration measures, and what
/// `predict` and `SimulatedNetwork` compute with. Times in seconds, speeds in bytes per second; all from 1e-100 to 1e100, but for
/// `launch`, which may be 0. The defaults are those of a slow network, 100 Mb/s, and one core.
struct Machine {
  double latency = 50e-6;     ///< from the departure of a message's first byte to its arrival
  double overhead = 5e-6;     ///< work of the sender, and of the receiver, per message
  double bandwidth = 12.5e6;  ///< of a node's link, each direction for itself

  // Work of one rank, in bytes of uncompressed values.
  double measure = 8e9;  ///< the greatest magnitude of an input
  double encode = 4e9;
  double combine = 2e9;  ///< two encoded pieces become one, or one is decoded and added to values
  double decode = 5e9;
  double launch = 0;  ///< seconds, once for every piece that is encoded, combined, or decoded

  double add = 5e9;   ///< values added as they are
  double copy = 6e9;  ///< bytes put together to a message and sealed; opened and checked by the receiver

  /// Ranks are numbered node by node; those of a node share its link, and reach one another by links of their own.
  int ranks_per_node = 1;
  double inside_latency = 1e-6;
  double inside_bandwidth = 5e9;  ///< of one rank's link within the node

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// A node whose figures nobody has measured: what `Automatic` goes by until it knows better. Its network has
/// 10 Gb/s; all else is assumed, to be replaced by what a calibration finds.
inline Machine typical_node() {
  Machine m;
  m.latency = 10e-6, m.overhead = 2e-6, m.bandwidth = 1.25e9, m.launch = 1e-6;
  return m;
}

/// Throws InvalidArgument if a machine has a speed of zero, or less, or figures so far from 1 that predictions would not be numbers.
inline void expect_possible(const Machine& m) {
  const std::array<std::pair<const char*, double>, 11> all{{{"latency", m.latency},
                                                            {"overhead", m.overhead},
                                                            {"bandwidth", m.bandwidth},
                                                            {"measure", m.measure},
                                                            {"encode", m.encode},
                                                            {"combine", m.combine},
                                                            {"decode", m.decode},
                                                            {"add", m.add},
                                                            {"copy", m.copy},
                                                            {"inside_latency", m.inside_latency},
                                                            {"inside_bandwidth", m.inside_bandwidth}}};
  constexpr double least = 1e-100, greatest = 1e100;  // no sum or product of them overflows
  for (const auto& [name, value] : all)
    if (!(value >= least && value <= greatest))
      throw InvalidArgument("machine: " + std::string(name) + " is " + std::to_string(value) +
                            ", but must be greater than 0, from 1e-100 to 1e100");
  if (!(m.launch >= 0 && m.launch <= greatest))
    throw InvalidArgument("machine: the time of a launch is not 0 to 1e100");
  if (m.ranks_per_node < 1) throw InvalidArgument("machine: a node has less than one rank");
}

}  // namespace wring::inline v0
