// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether compression pays on this machine, with these data: measured codec, predicted collectives. See ../README.md.

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include <wring/wring.hpp>

#include "advise/advice.hpp"
#include "advise/settings.hpp"
#include "advise/trial.hpp"
#include "collective/mpi_program.hpp"
#include "support/arguments.hpp"
#include "support/bound.hpp"
#include "support/data.hpp"
#include "support/json.hpp"
#include "support/machine.hpp"
#include "support/result_file.hpp"

namespace {

using namespace wring_benchmark;

std::string rate_text(double bits_per_second) { return fmt::format("{:.3g}", bits_per_second / 1e9); }

/// Rank 0 has the data and the file for the results.
struct Prepared {
  AdviseSettings settings;
  std::vector<std::vector<float>> data;
  ResultFile json;
};

Prepared prepare(Arguments& arguments) {
  const AdviseSettings settings = advise_settings_from(arguments);
  const bool first = rank_of(MPI_COMM_WORLD) == 0;
  std::vector<std::vector<float>> data;
  for (const auto& path : settings.data)
    if (first) data.push_back(read_values<float>(path));
  return {settings, data, ResultFile(first ? settings.json : "")};
}

/// Rank 0 tries the codec, predicts and prints; the others help to measure the link.
class Advising {
 public:
  Advising(Prepared& prepared, wring::MpiTransport& link)
      : settings_(prepared.settings), data_(prepared.data), json_(prepared.json), link_(link),
        started_(link.size()), ranks_(settings_.ranks > 0 ? settings_.ranks : std::max(4, link.size())) {}

  void run() {
    TrialFigures trial;
    if (link_.rank() == 0) trial = CompressionTrial(settings_, data_, ranks_).run();
    measure_link();
    if (link_.rank() == 0) advise(trial);
  }

 private:
  /// After some operations: on their way the first messages open connections and touch buffers.
  void measure_link() {
    const Kokkos::DefaultHostExecutionSpace exec;
    warm_up(exec);
    machine_ = wring::calibrate(exec, wring::Grid<float>{}, link_);
  }

  /// Over the links that a calibration uses, too.
  void warm_up(const Kokkos::DefaultHostExecutionSpace& exec) {
    constexpr int operations = 8;
    const auto made = made_values(std::size_t{1} << 20, static_cast<std::size_t>(link_.rank()));
    const Kokkos::View<float*, Kokkos::HostSpace> in("in", made.size()), out("out", made.size());
    fill(std::span<float>(in.data(), in.size()), std::span<const float>(made));
    wring::Allreduce<wring::Grid<float>, wring::MpiTransport, wring::RecursiveDoubling> sum({}, link_);
    for (int i = 0; i < operations; ++i) sum(exec, in, out, wring::relative_to_rms(0.01));
  }

  void advise(const TrialFigures& trial) {
    machine_.measure = trial.measure > 0 ? trial.measure : machine_.measure;
    machine_.encode = trial.encode, machine_.combine = trial.combine, machine_.decode = trial.decode;
    // The calibration's own values, in the caches, say nothing of these data.
    machine_.cached_measure = machine_.cached_encode = machine_.cached_combine = machine_.cached_decode = 0;
    const Adviser adviser({settings_.collective, 0}, ranks_, trial.ratio,
                          settings_.bound.kind != wring::Bound::Kind::absolute);
    print_heading(trial);
    print_rates(adviser);
    print_break_even(adviser);
    if (started_ > 1) print_this_link(adviser);
    if (json_.wanted()) json_.write(document(trial) + "\n");
  }

  /// The machine with a link of another rate.
  wring::Machine with_rate(double bits_per_second) const {
    wring::Machine m = machine_;
    m.bandwidth = bits_per_second / 8, m.latency = settings_.latency;
    m.overhead = wring::typical_node().overhead;
    return m;
  }

  void print_heading(const TrialFigures& t) const {
    fmt::print("{} of {} ranks, one core each, {}; {}\n\n", wring::name_of(settings_.collective), ranks_,
               text_of(settings_.bound), settings_.data.empty() ? "made data" : joined(settings_.data));
    fmt::print("grid on this machine: encode {:.3g} GB/s, combine {:.3g}, decode {:.3g}; compression ratio "
               "{:.3g} among {} ranks\n\n",
               t.encode / 1e9, t.combine / 1e9, t.decode / 1e9, t.ratio, t.ranks);
  }

  static void print_columns() {
    fmt::print("{:>8} {:>10} {:>14} {:>14} {:>9}  {}\n", "bytes", "Gb/s", "compressed ms", "without ms",
               "quotient", "advice");
  }

  /// The algorithm and, where a block has more than one, the segments.
  std::string way_text(const wring::detail::Outlook& way, std::size_t bytes) const {
    const auto blocks = static_cast<std::size_t>(way.route.plan({settings_.collective, 0}, 0, ranks_).blocks);
    const std::string what = (way.route.compressed() ? "compress, " : "do not, ") + way.route.name();
    if (bytes <= blocks * way.segment_bytes) return what + ", in one segment";
    return fmt::format("{}, segments of {}, depth {}", what, size_text(way.segment_bytes), way.depth);
  }

  void print_row(std::size_t bytes, double rate, const Advice& a) const {
    fmt::print("{:>8} {:>10} {:>14.4g} {:>14.4g} {:>9.2f}  {}\n", size_text(bytes), rate_text(rate),
               1e3 * a.compressed.seconds, 1e3 * a.plain.seconds, a.plain.seconds / a.compressed.seconds,
               way_text(a.best(), bytes));
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
    settings.add("bound", text_of(settings_.bound)).add("data", joined(settings_.data, ","));
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
  const std::vector<std::vector<float>>& data_;
  ResultFile& json_;
  wring::MpiTransport& link_;
  int started_, ranks_;
  wring::Machine machine_{};
  std::vector<std::string> rows_, break_even_;
};

}  // namespace

int main(int count, char** arguments) {
  return run_mpi_program("advise.advise", advise_usage, count, arguments, prepare, [](Prepared& prepared) {
    const Kokkos::ScopeGuard kokkos;
    wring::MpiTransport link(MPI_COMM_WORLD);
    Advising(prepared, link).run();
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
  });
}
