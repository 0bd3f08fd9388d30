// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rate against error of compressors on real gradients, and what these look like. See ../README.md and docs/gradients.md.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>
#include <fmt/format.h>

#include "gradients/codecs.hpp"
#include "gradients/curve.hpp"
#include "gradients/rates.hpp"
#include "gradients/speed.hpp"
#include "gradients/statistics.hpp"
#include "gradients/tensors.hpp"
#include "support/arguments.hpp"
#include "support/json.hpp"
#include "support/machine.hpp"
#include "support/program.hpp"
#include "support/result_file.hpp"

namespace {

using namespace wring_benchmark;

constexpr const char* usage = R"(usage: benchmark.gradients.study [DATA ...] [--OPTION VALUE ...]
  DATA       NAME=TENSORS,FILE[,FILE ...]: names, kinds and sizes of tensors, and the gradients of workers, of which the
             first is encoded           (default: those of the repository)
  --levels   |x - y|^2 / |x|^2          (default 1e-4,3e-4,1e-3,3e-3,0.01,0.03,0.05,0.1,0.3)
  --codecs   some of them               (default: all that there are)
  --values   how many of each gradient, with k, m   (default: all)
  --speed    yes or no                  (default yes)
  --quick    yes: a few values, two levels, one repetition; for tests  (default no)
  --json     a file for the results
)";

std::vector<std::string> own_data() {
  const std::string folder = WRING_SOURCE_DIR "/benchmarks/data/", cnn = folder + "cnn.tensors,";
  std::string workers;
  for (const char* worker : {"0", "1", "2", "3"})
    workers += (workers.empty() ? "" : ",") + std::string(WRING_SOURCE_DIR "/examples/data/step0100_w") +
               worker + ".f32";
  return {"cnn_step0000=" + cnn + folder + "cnn_step0000_w0.f32," + folder + "cnn_step0000_w1.f32",
          "cnn_step0100=" + cnn + workers, "cnn_step0599=" + cnn + folder + "cnn_step0599_w0.f32",
          "cnn_step0100_kfac=" + folder + "cnn_kfac.tensors," + folder + "cnn_step0100_kfac.f32",
          "transformer_step0100=" + folder + "transformer.tensors," + folder + "transformer_step0100_w0.f32"};
}

struct Settings {
  std::vector<GradientSet> data;
  std::vector<double> levels;
  std::vector<Codec> codecs;
  std::size_t timed_values;
  int repetitions;
  bool speed;
  ResultFile file;
};

std::vector<Codec> codecs_from(Arguments& arguments) {
  std::vector<Codec> codecs = all_codecs();
  std::vector<std::string> names;
  for (const Codec& codec : codecs) names.push_back(codec.name);
  const auto wanted = arguments.choices("codecs", joined(names, ","), names);
  std::erase_if(codecs,
                [&](const Codec& codec) { return std::ranges::find(wanted, codec.name) == wanted.end(); });
  return codecs;
}

double level_from(const std::string& text) {
  if (const double level = number_from(text); level > 0 && level < 1) return level;
  throw std::invalid_argument("'" + text + "' is not between 0 and 1");
}

Settings settings_from(Arguments& arguments) {
  const bool quick = arguments.choice("quick", "no", {"yes", "no"}) == "yes";
  const std::string levels = quick ? "1e-3,0.1" : "1e-4,3e-4,1e-3,3e-3,0.01,0.03,0.05,0.1,0.3";
  Settings settings{.data = {},
                    .levels = arguments.list("levels", levels, level_from),
                    .codecs = codecs_from(arguments),
                    .timed_values = std::size_t{1} << (quick ? 14 : 22),
                    .repetitions = quick ? 1 : 15,
                    .speed = arguments.choice("speed", "yes", {"yes", "no"}) == "yes",
                    .file = ResultFile(arguments.text("json", ""))};
  const std::size_t values = arguments.size("values", quick ? "20k" : "1g");
  const auto words = arguments.words();
  arguments.expect_all_known();
  if (values == 0) throw std::invalid_argument("--values: there must be one at least");
  std::ranges::sort(settings.levels);
  for (const auto& text : words.empty() ? own_data() : words)
    settings.data.push_back(shortened(gradient_set_from(text), values));
  return settings;
}

class Study {
 public:
  explicit Study(Settings& settings) : settings_(settings) {}

  void run() {
    for (const GradientSet& set : settings_.data) {
      const Values& flat = set.workers[0];
      const auto kinds = set.by_kind(flat);
      std::printf("\n%s: bits per value at a normalised squared error of\n", set.name.c_str());
      print_heading();
      rates(set.name, "flat", {flat});
      std::vector<Values> all;
      for (const auto& [kind, runs] : kinds) all.insert(all.end(), runs.begin(), runs.end());
      if (all.size() > 1) rates(set.name, "tensors", all);
      for (const auto& [kind, runs] : kinds) rates(set.name, kind, runs);
      statistics(set, kinds);
    }
    if (settings_.speed) speeds();
    write();
  }

 private:
  void print_heading() const {
    std::printf("%-10s %-26s", "", "");
    for (const double level : settings_.levels) std::printf(" %7g", level);
    std::printf("\n");
  }

  /// A row for each codec; `runs` are encoded one by one.
  void rates(const std::string& data, const std::string& kind, const std::vector<Values>& runs) {
    for (const Codec& codec : settings_.codecs) {
      Rates rates(codec, runs);
      std::printf("%-10s %-26s", kind.c_str(), codec.name.c_str());
      std::vector<std::string> bits;
      for (const double level : settings_.levels) {
        const auto one = rates.bits_at(level);
        bits.push_back(one ? fmt::format("{:.3f}", *one) : "null");
        std::printf(" %7s", one ? bits.back().c_str() : "-");
      }
      std::printf("\n");
      std::fflush(stdout);
      JsonObject row;
      row.add("data", data).add("kind", kind).add("codec", codec.name).add("ideal", codec.is_ideal);
      rows_.push_back(row.add_raw("bits", "[" + joined(bits) + "]").text());
      if (kind == "flat" && codec.families[0].settings < Rates::few_settings)
        for (const Point& point : rates.points()) add_point(data, codec.name, point);
    }
  }

  void add_point(const std::string& data, const std::string& codec, const Point& point) {
    JsonObject row;
    row.add("data", data).add("codec", codec).add("bits", point.bits).add("error", point.error);
    points_.push_back(row.text());
  }

  void statistics(const GradientSet& set, const std::map<std::string, std::vector<Values>>& kinds) {
    statistics(set, "flat", {set.workers[0]},
               [](const GradientSet&, const Values& worker) { return std::vector<Values>{worker}; });
    for (const auto& [kind, runs] : kinds)
      statistics(set, kind, runs, [&kind = kind](const GradientSet& of, const Values& worker) {
        return of.by_kind(worker).at(kind);
      });
  }

  /// Means over runs, weighted by their values; the correlation is the mean over pairs of workers.
  template <class RunsOf> void statistics(const GradientSet& set, const std::string& kind,
                                          const std::vector<Values>& runs, RunsOf runs_of) {
    double count = 0, kurtosis = 0, largest = 0, octaves = 0;
    for (const Values& run : runs) {
      const auto n = static_cast<double>(run.size());
      count += n, kurtosis += n * excess_kurtosis(run), largest += n * share_of_largest(run);
      octaves += n * octaves_between_blocks(run);
    }
    std::vector<double> correlations;
    for (std::size_t a = 0; a < set.workers.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        correlations.push_back(correlation_of(runs_of(set, set.workers[a]), runs_of(set, set.workers[b])));
    JsonObject row;
    row.add("data", set.name).add("kind", kind).add("values", count).add("workers", set.workers.size());
    row.add("root_mean_square", root_mean_square(joined_values(runs)))
        .add("excess_kurtosis", kurtosis / count);
    row.add("share_of_largest_hundredth", largest / count).add("octaves_between_blocks", octaves / count);
    row.add("correlation_of_workers",
            correlations.empty() ? std::nullopt : std::optional(mean(correlations)));
    statistics_.push_back(row.text());
  }

  static double mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  static Values joined_values(const std::vector<Values>& runs) {
    Values all;
    for (const Values& run : runs) all.insert(all.end(), run.begin(), run.end());
    return all;
  }
  static double correlation_of(const std::vector<Values>& a, const std::vector<Values>& b) {
    return correlation(joined_values(a), joined_values(b));
  }

  /// The last gradient, repeated, at the settings with an error of at most 0.01.
  void speeds() {
    const Values values = repeated(settings_.data.back().workers[0], settings_.timed_values);
    std::printf("\n%s, repeated to %zu values, error 0.01: GB/s of values\n%-26s %8s %8s %8s %8s\n",
                settings_.data.back().name.c_str(), values.size(), "", "bits", "encode", "decode", "memcpy");
    for (const Codec& codec : settings_.codecs) {
      if (codec.is_ideal) continue;
      Curve curve(codec.families[0], values);
      const int setting = curve.setting_for(0.01);
      if (setting < 0) continue;
      const auto trial = codec.families[0].trial(values, setting);
      const Speed speed = speed_of(*trial, values, settings_.repetitions);
      const Point point = curve.at(setting);
      std::printf("%-26s %8.2f %8.2f %8.2f %8.2f\n", codec.name.c_str(), point.bits, speed.encode / 1e9,
                  speed.decode / 1e9, speed.copy / 1e9);
      JsonObject row;
      row.add("codec", codec.name).add("bits", point.bits).add("error", point.error);
      row.add("encode", speed.encode).add("decode", speed.decode).add("memcpy", speed.copy);
      speeds_.push_back(row.text());
    }
  }

  void write() {
    JsonObject machine_text;
    for (const auto& [name, value] : machine()) machine_text.add(name, value);
    JsonObject document;
    document.add("benchmark", "gradients.study").add_raw("machine", machine_text.text());
    std::vector<std::string> levels;
    for (const double level : settings_.levels) levels.push_back(json(level));
    document.add_raw("levels", "[" + joined(levels) + "]");
    document.add_raw("settings", JsonObject()
                                     .add("timed", settings_.data.back().name)
                                     .add("timed_values", settings_.timed_values)
                                     .text());
    document.add_raw("rows", json_array(rows_)).add_raw("points", json_array(points_));
    document.add_raw("statistics", json_array(statistics_)).add_raw("speeds", json_array(speeds_));
    settings_.file.write(document.text() + "\n");
  }

  Settings& settings_;
  std::vector<std::string> rows_, points_, statistics_, speeds_;
};

int run(Settings& settings) {
  const Kokkos::ScopeGuard kokkos;
  Study(settings).run();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  return run_program("gradients.study", usage, count, arguments, settings_from, run);
}
