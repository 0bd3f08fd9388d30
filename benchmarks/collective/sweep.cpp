// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One collective over sizes, compressors and algorithms, against what MPI does with the same values. See ../README.md.

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <wring/wring.hpp>

#include "collective/forced.hpp"
#include "collective/measure.hpp"
#include "collective/mpi_candidates.hpp"
#include "collective/problem.hpp"
#include "collective/row.hpp"
#include "collective/settings.hpp"
#include "collective/table.hpp"
#include "collective/wring_candidates.hpp"
#include "support/data.hpp"
#include "support/json.hpp"
#include "support/machine.hpp"

namespace {

using namespace wring_benchmark;

/// Sets of ranks that share memory.
int nodes() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  const double leads = rank_of(node) == 0;
  MPI_Comm_free(&node);
  return static_cast<int>(over_ranks(leads, MPI_SUM));
}

class Sweep {
 public:
  explicit Sweep(const Settings& settings)
      : settings_(settings), link_(MPI_COMM_WORLD), forced_(settings.collective), nodes_(nodes()),
        data_(data_of(link_.rank())) {}

  /// Whether all results were right.
  bool run() {
    if (link_.rank() == 0) print_heading(settings_, link_.size(), nodes_);
    bool right = true;
    for (const std::size_t bytes : settings_.sizes)
      for (const Row& row : measure(bytes)) {
        if (link_.rank() == 0) print(row);
        rows_.push_back(json(row)), right = right && row.right;
      }
    if (link_.rank() == 0 && !settings_.json.empty()) std::ofstream(settings_.json) << document() << "\n";
    if (link_.rank() == 0)
      fmt::print("\n{}\n", right ? "All results are right." : "FAILED: a result is wrong.");
    return right;
  }

 private:
  std::vector<float> data_of(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    if (!settings_.data.empty()) return read_values<float>(settings_.data[r % settings_.data.size()]);
    return made_values(std::size_t{1} << 20, r);
  }

  std::vector<Row> measure(std::size_t bytes) {
    const Problem problem(settings_.collective, bytes, data_);
    const double allowed = problem.allowed_error(settings_.bound);
    auto candidates = mpi_candidates(problem, settings_.mpi, forced_);
    for (auto& candidate : WringCandidates(problem, settings_, allowed, link_).all())
      candidates.push_back(candidate);
    Measurement measurement(problem, candidates, settings_);
    const auto& series = measurement.run();
    std::vector<Row> rows;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      rows.push_back(row_of(problem, candidates[i], series[i], measurement.calls()));
      rows.back().allowed_error = allowed;
    }
    add_quotients(rows);
    if (link_.rank() == 0) std::fflush(stdout);
    return rows;
  }

  std::string document() const {
    JsonObject settings, all;
    settings.add("collective", wring::name_of(settings_.collective))
        .add("ranks", link_.size())
        .add("nodes", nodes_);
    settings.add("bound", settings_.bound_text)
        .add("data", fmt::format("{}", fmt::join(settings_.data, ",")));
    settings.add("segment_bytes", settings_.options.segment_bytes).add("depth", settings_.options.depth);
    settings.add("ride_along_bytes", settings_.options.ride_along_bytes);
    settings.add("link", settings_.link).add("label", settings_.label);
    all.add("benchmark", "collective.sweep");
    all.add_raw("machine", machine_text());
    all.add_raw("settings", settings.text()).add_raw("rows", json_array(rows_));
    return all.text();
  }

  static std::string machine_text() {
    JsonObject object;
    for (const auto& [name, value] : machine()) object.add(name, value);
    return object.add("mpi", mpi_version()).text();
  }

  const Settings& settings_;
  wring::MpiTransport link_;
  ForcedAlgorithms forced_;
  int nodes_;
  std::vector<float> data_;
  std::vector<std::string> rows_;
};

/// Exit status: 0 right, 1 wrong or failed, 2 not understood.
int run(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--help") == 0) {
    if (rank_of(MPI_COMM_WORLD) == 0) fmt::print("{}", usage);
    return 0;
  }
  Settings settings;
  try {
    settings = settings_from(Arguments(count, arguments));
  } catch (const std::exception& error) {
    if (rank_of(MPI_COMM_WORLD) == 0) fmt::print(stderr, "{}\n{}", error.what(), usage);
    return 2;
  }
  const Kokkos::ScopeGuard kokkos;
  return Sweep(settings).run() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  try {
    const int status = run(count, arguments);
    MPI_Finalize();
    return status;
  } catch (const std::exception& error) {  // the other ranks may wait for this one
    fmt::print(stderr, "{}\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return 1;
}
