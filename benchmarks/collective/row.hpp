// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collective/measure.hpp"
#include "support/json.hpp"
#include "support/statistics.hpp"

namespace wring_benchmark {

/// One row of the table: a candidate on a size. Equal on all ranks.
struct Row {
  std::size_t bytes = 0;
  int calls = 1;
  Candidate candidate{};
  std::vector<double> seconds{}, of_mpi{}, of_fastest{};
  std::optional<double> ratio{};
  std::optional<std::uint64_t> sent{};  ///< bytes, by all ranks
  double measure = 0, encode = 0, wire = 0, combine = 0,
         decode = 0;  ///< parts of the time: medians, averaged over ranks
  bool wring = false, rode_along = false, right = false;
  double error = 0, allowed_error = 0;
};

/// The part of the operation's time that one of its members is: the median of all repetitions, averaged over the ranks.
inline double part_of_time(const Series& series, double wring::Report::* member, int ranks) {
  std::vector<double> parts;
  for (const auto& report : series.reports)
    parts.push_back(report.seconds > 0 ? report.*member / report.seconds : 0);
  return over_ranks(median(parts), MPI_SUM) / ranks;
}

/// A row without the quotients. Collective.
inline Row row_of(const Problem& problem, const Candidate& candidate, const Series& series, int calls) {
  Row row{.bytes = problem.bytes(), .calls = calls, .candidate = candidate, .seconds = series.seconds};
  row.wring = !candidate.algorithm.empty();
  row.ratio = candidate.nominal_ratio;
  if (row.wring) {
    const wring::Report& report = series.reports.back();
    const double sent = over_ranks(static_cast<double>(report.bytes_sent), MPI_SUM),
                 raw = over_ranks(static_cast<double>(report.bytes_raw), MPI_SUM);
    row.sent = static_cast<std::uint64_t>(sent), row.rode_along = report.rode_along;
    if (raw > 0 && sent > 0) row.ratio = raw / sent;
    row.measure = part_of_time(series, &wring::Report::measure_seconds, problem.ranks);
    row.encode = part_of_time(series, &wring::Report::encode_seconds, problem.ranks);
    row.wire = part_of_time(series, &wring::Report::wire_seconds, problem.ranks);
    row.combine = part_of_time(series, &wring::Report::combine_seconds, problem.ranks);
    row.decode = part_of_time(series, &wring::Report::decode_seconds, problem.ranks);
  }
  row.error = std::max(series.first.error, series.last.error);
  row.right = series.first.right && series.last.right;
  return row;
}

/// The quotients to MPI's own choice, which is the first of MPI's rows, and to MPI's fastest, of the same repetitions.
inline void add_quotients(std::vector<Row>& rows) {
  const auto is_mpi = [](const Row& row) { return row.candidate.uncompressed_mpi; };
  const auto first = std::ranges::find_if(rows, is_mpi);
  if (first == rows.end()) return;
  auto fastest = first;
  for (auto at = first; at != rows.end(); ++at)
    if (is_mpi(*at) && median(at->seconds) < median(fastest->seconds)) fastest = at;
  const std::vector<double> own = first->seconds, best = fastest->seconds;
  for (Row& row : rows)
    row.of_mpi = quotients(row.seconds, own), row.of_fastest = quotients(row.seconds, best);
}

inline void add_spread(JsonObject& object, const std::string& name, const std::vector<double>& values,
                       double unit) {
  if (values.empty()) return;
  object.add(name, unit * median(values))
      .add(name + "_quarter", unit * quantile(values, 0.25))
      .add(name + "_three_quarters", unit * quantile(values, 0.75));
}

inline std::string json(const Row& row) {
  JsonObject object;
  object.add("bytes", row.bytes).add("what", row.candidate.what);
  object.add("compressor", row.candidate.compressor).add("algorithm", row.candidate.algorithm);
  object.add("repetitions", row.seconds.size()).add("calls", row.calls);
  add_spread(object, "ms", row.seconds, 1e3);
  object.add("ms_least", 1e3 * quantile(row.seconds, 0));
  add_spread(object, "of_mpi", row.of_mpi, 1);
  add_spread(object, "of_fastest_mpi", row.of_fastest, 1);
  object.add("ratio", row.ratio).add("bytes_sent", row.sent);
  if (row.wring)
    object.add("measure", row.measure)
        .add("encode", row.encode)
        .add("wire", row.wire)
        .add("combine", row.combine)
        .add("decode", row.decode)
        .add("rode_along", row.rode_along);
  object.add("error", row.error).add("allowed_error", row.allowed_error).add("right", row.right);
  return object.text();
}

}  // namespace wring_benchmark
