// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "collective/row.hpp"
#include "collective/settings.hpp"
#include "support/arguments.hpp"
#include "support/bound.hpp"
#include "support/statistics.hpp"

namespace wring_benchmark {

inline std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string version;
  for (const char c : std::string_view(text).substr(0, std::string_view(text).find_first_of("\n,")))
    if (const char plain = c == '\t' ? ' ' : c; plain != ' ' || !version.ends_with(' ')) version += plain;
  return version;
}

inline void print_heading(const Settings& s, int ranks, int nodes) {
  fmt::print("{}{} of float32, {} ranks on {} node{}, {}\n", wring::name_of(s.collective),
             wring::reduces(s.collective) ? " (sum)" : "", ranks, nodes, nodes == 1 ? "" : "s",
             mpi_version());
  fmt::print("bound {}, segments of {}, {} in flight, ride-along {}{}{}\n", text_of(s.bound),
             size_text(s.options.segment_bytes), s.options.depth, size_text(s.options.ride_along_bytes),
             s.link.empty() ? "" : ", link " + s.link, s.label.empty() ? "" : ", " + s.label);
  fmt::print("data {}{}\n\n", s.data.empty() ? "made" : joined(s.data),
             std::ranges::count(s.compressors, "cast") ? "; cast is to bfloat16" : "");
  fmt::print("{:>6} {:<50} {:>4} {:>9} {:>9} {:>6} {:>7} {:>6} {:>10} {:>26} {:>8}\n", "", "", "rep.",
             "median", "least", "time/", "time/", "", "bytes", "meas./enc./wire/comb./dec.", "error/");
  fmt::print("{:>6} {:<50} {:>4} {:>9} {:>9} {:>6} {:>7} {:>6} {:>10} {:>26} {:>8}\n", "size", "", "", "ms",
             "ms", "MPI", "fastest", "ratio", "sent", "% of the time", "allowed");
}

inline void print(const Row& row) {
  const auto percent = [](double part) { return fmt::format("{:.0f}", 100 * part); };
  const std::string shares = !row.wring ? ""
                             : row.rode_along
                                 ? "rode along"
                                 : fmt::format("{}/{}/{}/{}/{}", percent(row.measure), percent(row.encode),
                                               percent(row.wire), percent(row.combine), percent(row.decode));
  const auto number = [](const std::vector<double>& values) {
    return values.empty() ? std::string("-") : fmt::format("{:.2f}", median(values));
  };
  fmt::print("{:>6} {:<50} {:>4} {:>9.4f} {:>9.4f} {:>6} {:>7} {:>6} {:>10} {:>26} {:>8.1e} {}\n",
             size_text(row.bytes), row.candidate.what, row.seconds.size(), 1e3 * median(row.seconds),
             1e3 * quantile(row.seconds, 0), number(row.of_mpi), number(row.of_fastest),
             row.ratio ? fmt::format("{:.2f}", *row.ratio) : "-", row.sent ? std::to_string(*row.sent) : "-",
             shares, row.allowed_error > 0 ? row.error / row.allowed_error : 0, row.right ? "" : "WRONG");
}

}  // namespace wring_benchmark
