// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <wring/config.hpp>
#include <wring/error.hpp>

namespace wring::inline v0 {

/// What a machine and its codec are capable of, as far as the time of a collective depends on it: what a calibration measures, and what
/// `predict` and `SimulatedNetwork` compute with. Times in seconds, speeds in bytes per second; all from 1e-100 to 1e100, but for
/// `launch` and the speeds in the caches, which may be 0. The defaults are those of a slow network, 100 Mb/s, and one core.
struct Machine {
  double latency = 50e-6;     ///< from the departure of a message's first byte to its arrival
  double overhead = 5e-6;     ///< work of the sender, and of the receiver, per message
  double bandwidth = 12.5e6;  ///< of a node's link, each direction for itself

  // Work of one rank, in bytes of uncompressed values that come from memory.
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

  // The same work on values that lie in the caches. 0: no faster than from memory.
  double cached_measure = 0, cached_encode = 0, cached_combine = 0, cached_decode = 0, cached_add = 0;

  friend bool operator==(const Machine&, const Machine&) = default;
};

/// A node whose figures nobody has measured: what `Automatic` goes by until it knows better. Its network has
/// 10 Gb/s; all else is assumed, to be replaced by what a calibration finds.
inline Machine typical_node() {
  Machine m;
  m.latency = 10e-6, m.overhead = 2e-6, m.bandwidth = 1.25e9, m.launch = 1e-6;
  return m;
}

namespace detail {

/// A figure of a machine, and its name in text and in messages.
struct MachineFigure {
  const char* name;
  double Machine::* value;
};
inline constexpr std::array<MachineFigure, 17> machine_figures{
    {{"latency", &Machine::latency},
     {"overhead", &Machine::overhead},
     {"bandwidth", &Machine::bandwidth},
     {"measure", &Machine::measure},
     {"encode", &Machine::encode},
     {"combine", &Machine::combine},
     {"decode", &Machine::decode},
     {"launch", &Machine::launch},
     {"add", &Machine::add},
     {"copy", &Machine::copy},
     {"inside_latency", &Machine::inside_latency},
     {"inside_bandwidth", &Machine::inside_bandwidth},
     {"cached_measure", &Machine::cached_measure},
     {"cached_encode", &Machine::cached_encode},
     {"cached_combine", &Machine::cached_combine},
     {"cached_decode", &Machine::cached_decode},
     {"cached_add", &Machine::cached_add}}};

/// A speed of work on values from memory, and the one in the caches.
struct CachedSpeed {
  double Machine::* from_memory;
  double Machine::* cached;
};
inline constexpr std::array<CachedSpeed, 5> cached_speeds{{{&Machine::measure, &Machine::cached_measure},
                                                           {&Machine::encode, &Machine::cached_encode},
                                                           {&Machine::combine, &Machine::cached_combine},
                                                           {&Machine::decode, &Machine::cached_decode},
                                                           {&Machine::add, &Machine::cached_add}}};

/// Whether a figure may be 0.
inline bool may_vanish(const MachineFigure& figure) {
  return figure.value == &Machine::launch ||
         std::any_of(cached_speeds.begin(), cached_speeds.end(),
                     [&](const CachedSpeed& speed) { return figure.value == speed.cached; });
}

/// Values of up to `cached_bytes` lie in the caches, of `memory_bytes` and more in memory; calibrations measure both.
inline constexpr std::size_t cached_bytes = 256 * 1024, memory_bytes = 8 * 1024 * 1024;

/// The machine with the speeds at which it works on a vector of so many bytes: between the two lengths, time goes over from one speed to the
/// other in proportion. Nothing is left of the speeds in the caches.
inline Machine machine_for(const Machine& machine, std::size_t bytes) {
  Machine m = machine;
  const double past = static_cast<double>(std::clamp(bytes, cached_bytes, memory_bytes) - cached_bytes) /
                      static_cast<double>(memory_bytes - cached_bytes);
  for (const auto& [from_memory, cached] : cached_speeds) {
    if (m.*cached > 0) m.*from_memory = 1 / (past / m.*from_memory + (1 - past) / m.*cached);
    m.*cached = 0;
  }
  return m;
}

}  // namespace detail

/// Throws InvalidArgument if a machine has a speed of zero, or less, or figures so far from 1 that predictions would not be numbers.
inline void expect_possible(const Machine& m) {
  constexpr double least = 1e-100, greatest = 1e100;  // no sum or product of them overflows
  for (const auto& figure : detail::machine_figures) {
    const double value = m.*figure.value;
    const bool vanishes = detail::may_vanish(figure);
    if (!((value >= least && value <= greatest) || (vanishes && value == 0)))
      throw InvalidArgument("machine: " + std::string(figure.name) + " is " + std::to_string(value) +
                            ", but must be greater than 0, from 1e-100 to 1e100" +
                            (vanishes ? ", or 0" : ""));
  }
  if (m.ranks_per_node < 1) throw InvalidArgument("machine: a node has less than one rank");
}

/// A machine as text, to be kept in a file: for each figure a line `name value`, exact to the last bit.
inline std::string to_string(const Machine& m) {
  std::string text;
  std::array<char, 32> digits;
  for (const auto& figure : detail::machine_figures) {
    const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), m.*figure.value).ptr;
    text.append(figure.name).append(" ").append(std::string_view(digits.data(), end)).append("\n");
  }
  return text + "ranks_per_node " + std::to_string(m.ranks_per_node) + "\n";
}

namespace detail {

/// Takes the next word of a line, and the blanks around it, away from its front.
inline std::string_view take_word(std::string_view& line) {
  constexpr const char* blanks = " \t\r";
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(word.size());
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  return word;
}

/// Whether all of a word is a number that fits, which is then in `value`.
inline bool read_number(std::string_view word, int& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
}
inline bool read_number(std::string_view word, double& value) {
#ifdef __cpp_lib_to_chars
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size();
#else  // a standard library that reads numbers only as the locale has them
  const std::string copy(word);
  char* end = nullptr;
  value = std::strtod(copy.c_str(), &end);
  return !word.empty() && end == copy.c_str() + copy.size();
#endif
}

template <class Number> void read_figure(std::string_view name, std::string_view word, Number& value) {
  if (!read_number(word, value))
    throw InvalidArgument("machine: " + std::string(name) + " is '" + std::string(word) + "', which is no " +
                          (std::is_integral_v<Number> ? "whole number" : "number") + " that fits");
}

/// Reads what belongs to a name. Returns the number of the figure; that of ranks per node is the last.
inline std::size_t read_figure(std::string_view name, std::string_view word, Machine& m) {
  for (std::size_t i = 0; i < machine_figures.size(); ++i)
    if (name == machine_figures[i].name) return read_figure(name, word, m.*machine_figures[i].value), i;
  if (name != "ranks_per_node")
    throw InvalidArgument("machine: there is no figure '" + std::string(name) + "'");
  read_figure(name, word, m.ranks_per_node);
  return machine_figures.size();
}

}  // namespace detail

/// The machine that `to_string` has written: the same doubles. Lines may come in any order; empty ones, and those that start with #, are
/// passed over. Throws InvalidArgument, which names the figure, for one that is unknown, missing, there twice, no number, or impossible.
inline Machine machine_from(std::string_view text) {
  Machine m;
  std::array<bool, detail::machine_figures.size() + 1> read{};
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view name = detail::take_word(line), word = detail::take_word(line);
    if (name.empty() || name.front() == '#') continue;
    if (!line.empty())
      throw InvalidArgument("machine: '" + std::string(line) + "' follows the value of " + std::string(name));
    bool& seen = read[detail::read_figure(name, word, m)];
    if (seen) throw InvalidArgument("machine: " + std::string(name) + " is there twice");
    seen = true;
  }
  for (std::size_t i = 0; i < read.size(); ++i)
    if (!read[i])
      throw InvalidArgument("machine: " +
                            std::string(i < detail::machine_figures.size() ? detail::machine_figures[i].name
                                                                           : "ranks_per_node") +
                            " is missing");
  expect_possible(m);
  return m;
}

}  // namespace wring::inline v0
