// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One collective over sizes, compressors and algorithms, against what MPI does with the same values. See ../README.md.

#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <wring/wring.hpp>

#include "collective/forced.hpp"
#include "collective/measure.hpp"
#include "collective/mpi_candidates.hpp"
#include "collective/mpi_program.hpp"
#include "collective/problem.hpp"
#include "collective/row.hpp"
#include "collective/settings.hpp"
#include "collective/table.hpp"
#include "collective/wring_candidates.hpp"
#include "support/data.hpp"
#include "support/json.hpp"
#include "support/machine.hpp"
#include "support/result_file.hpp"

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

/// What a rank needs: its values and, on rank 0, the file for the results.
struct Prepared {
  Settings settings;
  std::vector<float> data;
  ResultFile json;
};

Prepared prepare(Arguments& arguments) {
  const Settings settings = settings_from(arguments);
  const auto rank = static_cast<std::size_t>(rank_of(MPI_COMM_WORLD));
  return {settings,
          settings.data.empty() ? made_values(std::size_t{1} << 20, rank)
                                : read_values<float>(settings.data[rank % settings.data.size()]),
          ResultFile(rank == 0 ? settings.json : "")};
}

class Sweep {
 public:
  explicit Sweep(Prepared& prepared)
      : settings_(prepared.settings), data_(prepared.data), json_(prepared.json), link_(MPI_COMM_WORLD),
        forced_(settings_.collective), nodes_(nodes()) {
    if (settings_.node == 0) settings_.node = (link_.size() + nodes_ - 1) / nodes_;
  }

  /// Whether all results were right.
  bool run() {
    if (link_.rank() == 0) print_heading(settings_, link_.size(), nodes_);
    bool right = true;
    for (const std::size_t bytes : settings_.sizes)
      for (const Row& row : measure(bytes)) {
        if (link_.rank() == 0) print(row);
        rows_.push_back(json(row)), right = right && row.right;
      }
    if (link_.rank() == 0)
      fmt::print("\n{}\n", right ? "All results are right." : "FAILED: a result is wrong.");
    if (json_.wanted()) json_.write(document() + "\n");
    return right;
  }

 private:
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
    settings.add("bound", text_of(settings_.bound)).add("data", joined(settings_.data, ","));
    settings.add("segment_bytes", settings_.options.segment_bytes).add("depth", settings_.options.depth);
    settings.add("ride_along_bytes", settings_.options.ride_along_bytes).add("node", settings_.node);
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

  Settings& settings_;
  const std::vector<float>& data_;
  ResultFile& json_;
  wring::MpiTransport link_;
  ForcedAlgorithms forced_;
  int nodes_;
  std::vector<std::string> rows_;
};

}  // namespace

int main(int count, char** arguments) {
  return run_mpi_program("collective.sweep", usage, count, arguments, prepare, [](Prepared& prepared) {
    const Kokkos::ScopeGuard kokkos;
    return Sweep(prepared).run() ? 0 : 1;
  });
}
