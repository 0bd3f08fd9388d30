// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether compression pays on this machine, with these data: measured codec, predicted collectives. See ../README.md.

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <wring/wring.hpp>

#include "advise/advice.hpp"
#include "advise/settings.hpp"
#include "advise/trial.hpp"
#include "support/json.hpp"
#include "support/machine.hpp"

namespace {

using namespace wring_benchmark;

std::string rate_text(double bits_per_second) { return fmt::format("{:.3g}", bits_per_second / 1e9); }

std::string way_text(const wring::detail::Outlook& way) {
  return fmt::format("{}{}, segments of {}, depth {}", way.route.compressed() ? "compress, " : "do not, ",
                     way.route.name(), size_text(way.segment_bytes), way.depth);
}

/// Rank 0 predicts and prints; the others help to measure the link.
class Advising {
 public:
  Advising(const AdviseSettings& settings, wring::MpiTransport& link)
      : settings_(settings), started_(link.size()),
        ranks_(settings.ranks > 0 ? settings.ranks : std::max(4, link.size())),
        machine_(wring::calibrate(Kokkos::DefaultHostExecutionSpace{}, wring::Grid<float>{}, link)) {}

  void run() {
    const TrialFigures trial = CompressionTrial(settings_, ranks_).run();
    machine_.measure = trial.measure > 0 ? trial.measure : machine_.measure;
    machine_.encode = trial.encode, machine_.combine = trial.combine, machine_.decode = trial.decode;
    const Adviser adviser({settings_.collective, 0}, ranks_, trial.ratio,
                          settings_.bound.kind != wring::Bound::Kind::absolute);
    print_heading(trial);
    print_rates(adviser);
    print_break_even(adviser);
    if (started_ > 1) print_this_link(adviser);
    if (!settings_.json.empty()) std::ofstream(settings_.json) << document(trial) << "\n";
  }

 private:
  /// The machine with a link of another rate.
  wring::Machine with_rate(double bits_per_second) const {
    wring::Machine m = machine_;
    m.bandwidth = bits_per_second / 8, m.latency = settings_.latency;
    m.overhead = wring::typical_node().overhead;
    return m;
  }

  void print_heading(const TrialFigures& t) const {
    fmt::print("{} of {} ranks, one core each, {}; {}\n\n", wring::name_of(settings_.collective), ranks_,
               settings_.bound_text, settings_.data.empty() ? "made data" : "given data");
    fmt::print("grid on this machine: encode {:.3g} GB/s, combine {:.3g}, decode {:.3g}; compression ratio "
               "{:.3g} among {} "
               "ranks\n\n",
               t.encode / 1e9, t.combine / 1e9, t.decode / 1e9, t.ratio, t.ranks);
  }

  static void print_columns() {
    fmt::print("{:>8} {:>10} {:>14} {:>14} {:>9}  {}\n", "bytes", "Gb/s", "compressed ms", "without ms",
               "quotient", "advice");
  }

  static void print_row(std::size_t bytes, double rate, const Advice& a) {
    fmt::print("{:>8} {:>10} {:>14.4g} {:>14.4g} {:>9.2f}  {}\n", size_text(bytes), rate_text(rate),
               1e3 * a.compressed.seconds, 1e3 * a.plain.seconds, a.plain.seconds / a.compressed.seconds,
               way_text(a.best()));
  }

  void print_rates(const Adviser& adviser) {
    print_columns();
    for (const std::size_t bytes : settings_.sizes) {
      for (const double rate : settings_.rates) {
        const Advice advice = adviser.advise(bytes, with_rate(rate));
        print_row(bytes, rate, advice);
        rows_.push_back(row(bytes, rate, advice));
      }
      fmt::print("\n");
    }
  }

  void print_break_even(const Adviser& adviser) {
    fmt::print("{:>8}  compression pays on links of up to\n", "bytes");
    for (const std::size_t bytes : settings_.sizes) {
      const auto rate = adviser.break_even(bytes, with_rate(1e9));
      const bool always = !rate && adviser.advise(bytes, with_rate(1e13)).pays();
      fmt::print("{:>8}  {}\n", size_text(bytes),
                 rate     ? rate_text(*rate) + " Gb/s"
                 : always ? "any rate"
                          : "no rate");
      break_even_.push_back(JsonObject()
                                .add("bytes", bytes)
                                .add("gbits", rate     ? *rate / 1e9
                                              : always ? INFINITY
                                                       : 0)
                                .text());
    }
  }

  void print_this_link(const Adviser& adviser) const {
    fmt::print("\nthis link, measured with {} ranks at once: {} Gb/s, latency {:.3g} us, {:.3g} us of work "
               "per message\n",
               started_, rate_text(8 * machine_.bandwidth), 1e6 * machine_.latency, 1e6 * machine_.overhead);
    print_columns();
    for (const std::size_t bytes : settings_.sizes)
      print_row(bytes, 8 * machine_.bandwidth, adviser.advise(bytes, machine_));
  }

  static std::string row(std::size_t bytes, double rate, const Advice& a) {
    JsonObject object;
    object.add("bytes", bytes).add("gbits", rate / 1e9);
    object.add("compressed_ms", 1e3 * a.compressed.seconds)
        .add("compressed_algorithm", a.compressed.route.name());
    object.add("plain_ms", 1e3 * a.plain.seconds).add("plain_algorithm", a.plain.route.name());
    object.add("segment_bytes", a.best().segment_bytes).add("depth", a.best().depth);
    return object.text();
  }

  std::string document(const TrialFigures& t) const {
    JsonObject settings, machine_object, figures, all;
    settings.add("collective", wring::name_of(settings_.collective)).add("ranks", ranks_);
    settings.add("bound", settings_.bound_text)
        .add("data", fmt::format("{}", fmt::join(settings_.data, ",")));
    settings.add("latency_us", 1e6 * settings_.latency);
    for (const auto& [name, value] : machine()) machine_object.add(name, value);
    figures.add("encode", t.encode)
        .add("combine", t.combine)
        .add("decode", t.decode)
        .add("measure", machine_.measure);
    figures.add("copy", machine_.copy)
        .add("add", machine_.add)
        .add("launch", machine_.launch)
        .add("ratio", t.ratio);
    if (started_ > 1)
      figures.add("link_gbits", 8e-9 * machine_.bandwidth).add("link_latency", machine_.latency);
    all.add("benchmark", "advise.advise").add_raw("machine", machine_object.text());
    all.add_raw("settings", settings.text()).add_raw("figures", figures.text());
    all.add_raw("rows", json_array(rows_)).add_raw("break_even", json_array(break_even_));
    return all.text();
  }

  const AdviseSettings& settings_;
  int started_, ranks_;
  wring::Machine machine_;
  std::vector<std::string> rows_, break_even_;
};

/// Exit status: 0 done, 2 not understood.
int run(int count, char** arguments) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (count > 1 && std::strcmp(arguments[1], "--help") == 0) {
    if (rank == 0) fmt::print("{}", advise_usage);
    return 0;
  }
  AdviseSettings settings;
  try {
    settings = advise_settings_from(Arguments(count, arguments));
  } catch (const std::exception& error) {
    if (rank == 0) fmt::print(stderr, "{}\n{}", error.what(), advise_usage);
    return 2;
  }
  const Kokkos::ScopeGuard kokkos;
  wring::MpiTransport link(MPI_COMM_WORLD);
  Advising advising(settings, link);
  if (rank == 0) advising.run();
  MPI_Barrier(MPI_COMM_WORLD);
  return 0;
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
