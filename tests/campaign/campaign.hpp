// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bounds at scale: seeded operations of every kind on hard data, each result compared with the exact one.
#pragma once

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <wring/algorithm.hpp>
#include <wring/collective.hpp>
#include <wring/compressor.hpp>
#include <wring/detail/exact_reduction.hpp>
#include <wring/transport/in_process.hpp>

#include "support/algorithms.hpp"
#include "support/values.hpp"

namespace wring_test {

/// What all inputs of an operation look like.
enum class Data { normal, midpoints, alike, huge_and_tiny, subnormal, alternating, outlier };
inline constexpr const char* data_names[] = {"normal values",           "midpoints",  "all ranks alike",
                                             "huge with tiny",          "subnormals", "alternating signs",
                                             "one outlier in a million"};
inline constexpr std::size_t data_kinds = std::size(data_names);

/// Rounds to multiples of twice the allowed error, so that its bound is used up: the least that a compressor of a user may do.
template <class T> struct Coarse {
  using value_type = T;
  std::size_t max_compressed_bytes(std::size_t n) const { return n * sizeof(T); }
  wring::Identity identity() const { return {.name = "coarse", .version = 1, .options = {}}; }
  double error(double largest) const {
    return 4 * wring::FloatTraits<T>::unit_roundoff * largest + 4 * wring::FloatTraits<T>::least_subnormal;
  }
  /// Rounding to a multiple of the step, and of that to T: the step leaves room for the latter.
  std::size_t compress(const auto&, std::span<const T> values, std::span<std::byte> bytes,
                       const wring::Context& c) const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = static_cast<double>(wring::detail::widen(values[i]));
      const double room = wring::FloatTraits<T>::unit_roundoff * (std::fabs(x) + c.allowed_error) * 1.01 +
                          wring::FloatTraits<T>::least_subnormal;
      const double step = 2 * (c.allowed_error - room) * (1 - 0x1p-40);
      double y = x;
      if (std::isfinite(x) && step > 0 && std::fabs(x / step) < 0x1p40) y = std::nearbyint(x / step) * step;
      const T coarse = wring::detail::narrow<T>(y);
      std::memcpy(bytes.data() + i * sizeof(T), &coarse, sizeof(T));
    }
    return values.size_bytes();
  }
  void decompress(const auto&, std::span<const std::byte> bytes, std::span<T> values,
                  const wring::Context&) const {
    if (bytes.size() != values.size_bytes()) throw wring::CodecError("coarse: a wrong number of bytes");
    if (!values.empty()) std::memcpy(static_cast<void*>(values.data()), bytes.data(), bytes.size());
  }
};

/// What became of the operations of one kind.
struct Tally {
  std::size_t operations = 0, refused = 0, elements = 0, violations = 0;
  double tightness = 0;

  void add(const Tally& t) {
    operations += t.operations, refused += t.refused, elements += t.elements, violations += t.violations;
    tightness = std::max(tightness, t.tightness);
  }
};

/// One operation: everything about it follows from its number.
struct Plot {
  int ranks = 1, algorithm = 0;
  wring::Operation operation = wring::sum;
  Data data = Data::normal;
  wring::Bound::Kind kind = wring::Bound::Kind::absolute;
  double share = 1e-3;  ///< bound relative to the data
  std::size_t count = 0;
  std::uint64_t seed = 0;
};

/// Operations on elements of type T. The memory is used again and again.
template <class T> class Campaign {
 public:
  using Traits = wring::FloatTraits<T>;

  /// Runs one operation and checks all of its elements on all ranks. `codec_of(r)` is the compressor of rank r; `failures` collects what
  /// went wrong, in words.
  template <class CodecOf>
  Tally run(const CodecOf& codec_of, const Plot& plot, std::vector<std::string>& failures) {
    const wring::Identity identity = codec_of(0).identity();
    Tally tally;
    const double bound = fill(plot);
    const auto algorithms = all_algorithms(plot.ranks);
    const AnyAlgorithm& algorithm = algorithms[static_cast<std::size_t>(plot.algorithm) % algorithms.size()];
    const auto complain = [&](const std::string& what) {
      ++tally.violations;
      failures.push_back(
          fmt::format("{} of {} by {} over {}, {} ranks, {} elements, {}, bound {} {}, seed {}: {}",
                      wring::name_of(plot.operation), Traits::name, identity.name + " " + identity.options,
                      algorithm.name(), plot.ranks, plot.count, data_names[static_cast<int>(plot.data)],
                      static_cast<int>(plot.kind), bound, plot.seed, what));
    };
    wring::Report report;
    try {
      report = operate(codec_of, algorithm, plot, wring::Bound{plot.kind, bound});
    } catch (const wring::BoundUnattainable&) {
      tally.operations = tally.refused = 1;
      return tally;
    } catch (const wring::Error& error) {
      complain(error.what());
      return tally;
    }
    tally.operations = 1, tally.elements = plot.count;
    for (std::size_t r = 1; r < out_.size(); ++r)
      if (std::memcmp(out_[r].data(), out_[0].data(), plot.count * sizeof(T)) != 0)
        complain("the ranks' bits differ");
    if (!report.bound) {
      complain("no bound was reported");
      return tally;
    }
    wring::detail::ExactCheck<T> check({plot.operation, report.bound, Traits::greatest});
    std::vector<const T*> terms;
    for (const auto& x : in_) terms.push_back(x.data());
    if (const std::size_t wrong = check.first_wrong(terms, out_[0]); wrong < plot.count)
      complain(fmt::format(
          "element {} is {}, {} exactly, bound {}", wrong, wring::detail::widen(out_[0][wrong]),
          wring::detail::exact_result(check.terms_of(terms, wrong), {plot.operation, {}, Traits::greatest}),
          *report.bound));
    tally.tightness = check.tightness();
    if (!(tally.tightness <= 1) && tally.violations == 0) complain("an error beyond the bound was not found");
    return tally;
  }

 private:
  using Exec = Kokkos::DefaultHostExecutionSpace;
  using View = Kokkos::View<T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  template <class CodecOf>
  wring::Report operate(const CodecOf& codec_of, const AnyAlgorithm& algorithm, const Plot& plot,
                        wring::Bound bound) {
    using Codec = std::decay_t<decltype(codec_of(0))>;
    using Sum = wring::Allreduce<Codec, wring::InProcessTransport, AnyAlgorithm>;
    std::vector<wring::Report> reports(in_.size());
    struct Operation {
      Sum sum;
      wring::Request request;
      wring::Report* report;
      bool test() {
        if (!request.test()) return false;
        *report = request.wait();
        return true;
      }
    };
    wring::in_process(plot.ranks, [&](wring::InProcessTransport& link) {
      const auto r = static_cast<std::size_t>(link.rank());
      auto operation = std::make_unique<Operation>(
          Operation{Sum(codec_of(r), link, algorithm, {.operation = plot.operation}), {}, &reports[r]});
      operation->request = operation->sum.start(Exec{}, View(in_[r].data(), plot.count),
                                                View(out_[r].data(), plot.count), bound);
      return operation;
    });
    return reports[0];
  }

  static constexpr bool narrow_type = sizeof(T) == 2;

  /// Makes the inputs of all ranks and returns the value of the bound.
  double fill(const Plot& plot) {
    in_.resize(static_cast<std::size_t>(plot.ranks)), out_.resize(in_.size());
    for (std::size_t r = 0; r < in_.size(); ++r) {
      in_[r].resize(plot.count), out_[r].assign(plot.count, T(0.0F));
      if (plot.data == Data::midpoints) continue;
      const std::uint64_t seed = plot.seed * 64 + (plot.data == Data::alike ? 0 : r + 1);
      for (std::size_t i = 0; i < plot.count; ++i)
        in_[r][i] = wring::detail::narrow<T>(value(plot.data, random_bits(seed, i), (i + r) % 2 == 0));
    }
    if (plot.data == Data::midpoints) return relative(plot, fill_midpoints(plot));
    const bool total = plot.operation == wring::sum;
    return plot.share *
           (plot.kind == wring::Bound::Kind::absolute ? scale(plot.data) * (total ? plot.ranks : 1) : 1);
  }

  static double uniform(std::uint64_t bits) {
    return static_cast<double>(static_cast<std::int64_t>(bits)) * 0x1p-63;
  }

  static double scale(Data data) {
    if (data == Data::subnormal) return 4096 * Traits::least_subnormal;
    return data == Data::huge_and_tiny ? Traits::greatest / 32 : narrow_type ? 4 : 1000;
  }

  static double value(Data data, std::uint64_t bits, bool even) {
    const double x = uniform(bits), whole = x * scale(data);
    switch (data) {
    case Data::huge_and_tiny: return bits & 1 ? whole : x * 1e-3;
    case Data::alternating: return (even ? 0.5 : -0.5) * scale(data) * (1 + std::fabs(x));
    case Data::outlier: return bits % 1000000 == 0 ? whole * 100 : whole * 0x1p-4;
    default: return whole;
    }
  }

  /// Values halfway between even and odd multiples of the step D = 1 of `Grid`: such ties go to the even one, down, all errors add
  /// up. On more than four ranks complete sums are rounded to multiples of 2^shift: they too are ties that go down. Returns the
  /// bound that gives this step and hardly more.
  double fill_midpoints(const Plot& plot) {
    const bool sums = wring::adds(plot.operation);
    int shift = 0;
    while (sums && plot.ranks > 4 && (2 << shift) <= plot.ranks) ++shift;
    const std::int64_t unit = std::int64_t{1} << shift, most = Traits::unit_roundoff > 0x1p-10 ? 0
                                                               : narrow_type                   ? 2
                                                                                               : 32;
    double greatest = 0.5;
    for (std::size_t i = 0; i < plot.count; ++i) {
      const std::uint64_t bits = random_bits(plot.seed, i);
      std::int64_t last =
          shift == 0 ? 0 : unit * 2 * (most == 0 ? 0 : static_cast<std::int64_t>(bits % 3) - 1) + unit / 2;
      for (std::size_t r = 0; r < in_.size(); ++r) {
        std::int64_t q = most == 0 ? 0
                                   : static_cast<std::int64_t>(random_bits(plot.seed * 64 + r, i) %
                                                               static_cast<std::uint64_t>(most + 1)) /
                                             2 * 2 -
                                         most / 2 / 2 * 2;
        if (shift != 0 && r + 1 == in_.size()) q = last;
        last -= q;
        const double x = static_cast<double>(q) + 0.5;
        in_[r][i] = wring::detail::narrow<T>(x), greatest = std::max(greatest, std::fabs(x));
      }
    }
    const double p = plot.ranks, steps = sums ? (p + (shift != 0 ? static_cast<double>(unit) : 0)) / 2 : 0.5;
    const double exact = plot.operation == wring::mean ? steps / p : steps,
                 terms = plot.operation == wring::sum ? p : 1;
    return exact +
           3.1 * Traits::unit_roundoff * (terms * greatest + exact * 1.02) * (sizeof(T) == 8 ? 1 : 0.33) +
           Traits::least_subnormal;
  }

  /// An absolute bound as the kind that is asked for.
  double relative(const Plot& plot, double bound) const {
    if (plot.kind == wring::Bound::Kind::absolute || plot.count == 0) return bound;
    double least = 1e300, most = -1e300, squares = 0;
    for (const auto& values : in_)
      for (const T v : values) {
        const double x = static_cast<double>(wring::detail::widen(v));
        least = std::min(least, x), most = std::max(most, x), squares += x * x;
      }
    const double rms = std::sqrt(squares / static_cast<double>(plot.count * in_.size())) *
                       (plot.operation == wring::sum ? plot.ranks : 1);
    const double unit = plot.kind == wring::Bound::Kind::range ? most - least : rms;
    return unit > 0 ? bound / unit * (1 + 0x1p-30) : bound;
  }

  std::vector<std::vector<T>> in_, out_;
};

/// The operation of a number, for elements of type T.
template <class T> Plot plot_of(std::uint64_t seed, std::uint64_t number) {
  const auto draw = [&](std::uint64_t what, std::uint64_t n) {
    return random_bits(seed * 1000003 + number, what) % n;
  };
  Plot plot;
  plot.seed = seed * 1000003 + number;
  plot.ranks = 1 + static_cast<int>(draw(1, 9));
  plot.algorithm = static_cast<int>(draw(2, 64));
  plot.operation = static_cast<wring::Operation>(draw(3, 4));
  plot.data = static_cast<Data>(number % data_kinds);
  plot.kind = static_cast<wring::Bound::Kind>(draw(5, 3));
  const double digits = sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 5 : 11;  // 16-bit types hold no tighter bounds
  plot.share = 0.4 * std::pow(10.0, -digits * static_cast<double>(draw(6, 10000)) / 10000);
  const std::size_t sizes[] = {2000, 2000, 5000, 5000, 10000, 10000, 20000, 60000};
  plot.count = draw(8, sizes[draw(9, 8)]);
  return plot;
}

/// A compressor in the campaign. The grid's step is used up where the name begins with "grid".
template <class T> struct Contender {
  const char* name;
  std::function<Tally(Campaign<T>&, const Plot&, std::vector<std::string>&)> run;
  bool sums_only = false;  ///< it refuses MIN and MAX
};

template <class Codec, class T = typename Codec::value_type>
Contender<T> contender(const char* name, const Codec& codec) {
  const auto run = [codec](Campaign<T>& campaign, const Plot& plot, std::vector<std::string>& failures) {
    return campaign.run([&](std::size_t) -> const Codec& { return codec; }, plot, failures);
  };
  return {name, run, wring::WordSummingCompressor<Codec>};
}

/// Twice, so that what the first operation has lost is paid back in the second.
template <class T> Contender<T> with_feedback() {
  const auto run = [](Campaign<T>& campaign, const Plot& plot, std::vector<std::string>& failures) {
    std::deque<wring::FeedbackState<T>> states(static_cast<std::size_t>(plot.ranks));
    const auto codec_of = [&](std::size_t r) { return wring::ErrorFeedback(wring::Grid<T>(), states[r]); };
    Tally both = campaign.run(codec_of, plot, failures);
    both.add(campaign.run(codec_of, plot, failures));
    return both;
  };
  return {"feedback", run, true};
}

/// All kinds for float; for other types some, which would take too long to compile.
template <class T> std::vector<Contender<T>> contenders() {
  using Grid = wring::Grid<T>;
  constexpr bool all_kinds = std::is_same_v<T, float>;
  std::vector<Contender<T>> all{contender("grid", Grid()),
                                contender("grid, power of two", Grid({.step = Grid::StepKind::power_of_two})),
                                contender("grid, delta", Grid({.delta = true})),
                                contender("none", wring::None<T>()), contender("a user's", Coarse<T>())};
  if constexpr (all_kinds || std::is_same_v<T, double>)
    all.push_back(contender("grid, words", wring::PackedWords<T>()));
  if constexpr (all_kinds || std::is_same_v<T, wring::half_t>)
    all.push_back(contender("threshold", wring::Threshold<T>()));
  if constexpr (all_kinds || std::is_same_v<T, wring::bhalf_t>) {
    all.push_back(contender("grid, gradient", wring::Gradient<T>()));
    all.push_back(
        contender("gradient, drawn", wring::Gradient<T>({.rounding = wring::StochasticRounding{1}})));
  }
  if constexpr (all_kinds) {
    using Entropy = wring::EntropyGrid<T>;
    all.push_back(contender("grid, entropy", Entropy()));
    all.push_back(
        contender("grid, entropy last", Entropy({.grid = {}, .stage = Entropy::Stage::distribution})));
    all.push_back(with_feedback<T>());
  }
  return all;
}

/// Runs operations until so many elements have been checked; `report` gets the tally of each kind of data and compressor.
template <class T, class Report> void run_campaign(std::uint64_t seed, std::size_t elements,
                                                   std::vector<std::string>& failures, Report report) {
  const std::vector<Contender<T>> all = contenders<T>();
  Campaign<T> campaign;
  std::vector<std::array<Tally, data_kinds>> tallies(all.size());
  std::uint64_t number = 0;
  for (std::size_t done = 0; done < elements && failures.size() < 100; ++number) {
    Plot plot = plot_of<T>(seed, number);
    const std::size_t c = number / data_kinds % all.size();
    if (all[c].sums_only && !wring::adds(plot.operation))
      plot.operation = plot.operation == wring::min ? wring::sum : wring::mean;
    const Tally tally = all[c].run(campaign, plot, failures);
    tallies[c][static_cast<std::size_t>(plot.data)].add(tally);
    done += tally.elements;
  }
  for (std::size_t c = 0; c < all.size(); ++c)
    for (std::size_t d = 0; d < data_kinds; ++d) report(all[c].name, static_cast<Data>(d), tallies[c][d]);
}

}  // namespace wring_test
