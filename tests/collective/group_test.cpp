// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Several tensors in one operation: each with its own shape and bound, in one set of messages.
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <wring/compressor/grid.hpp>
#include <wring/compressor/none.hpp>

#include "collective/group_cases.hpp"
#include "support/executors.hpp"

using namespace wring_test;
using wring::Grid;
using wring::InProcess;
using wring::InProcessTransport;
using wring::None;

namespace {

using View = HostView<double>;
using OfDoubles = std::vector<double>;

const wring::Operation turns[] = {wring::sum, wring::mean, wring::min, wring::max};
constexpr double rounding = 8 * 40 * 0x1p-53;  // of 9 terms up to 4

}  // namespace

TEST_CASE("group: tensors of very different lengths, zero included", "[collective][group]") {
  unsigned number = 0;
  for (const int ranks : {1, 2, 3, 4, 8})
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks))
      for (const auto collective : collectives) {
        wring::Options options{.operation = turns[number++ % 4], .segment_bytes = 8192};
        run_group<None<double>>(
            algorithm,
            {.collective = collective, .options = options, .lengths = {0, 3, 1000, 0, 1, 5000, 512}}, ranks,
            rounding);
      }
}

TEST_CASE("group: nothing but empty tensors, and no tensor at all", "[collective][group]") {
  for (const auto collective : collectives) {
    run_group<None<double>>(wring::Ring{}, {.collective = collective, .lengths = {0, 0, 0}}, 3);
    run_group<None<double>>(wring::Ring{}, {.collective = collective}, 3);
    run_group<Grid<double>>(wring::Ring{}, {.collective = collective, .bounds = {wring::absolute(1)}}, 3);
  }
}

TEST_CASE("group: many tiny tensors", "[collective][group]") {
  Lengths lengths;
  for (std::size_t i = 0; i < 300; ++i) lengths.push_back(1 + random_bits(1, i) % 50);
  unsigned number = 0;
  for (const int ranks : {1, 3, 4})
    for (const auto collective : collectives) {
      const auto algorithms = all_algorithms(ranks);
      wring::Options options{.operation = turns[number % 4], .segment_bytes = 64 * 1024};
      run_group<None<double>>(algorithms[number++ % algorithms.size()],
                              {.collective = collective, .options = options, .lengths = lengths}, ranks,
                              rounding);
    }
}

TEST_CASE("group: more tensors than one message of the agreement was made for", "[collective][group]") {
  run_group<None<double>>(wring::Ring{}, {.lengths = Lengths(3000, 2), .bounds = {wring::absolute(1)}}, 2);
}

TEST_CASE("group: every tensor within its own bound", "[collective][group]") {
  unsigned number = 0;
  for (const int ranks : {1, 2, 3, 5})
    for (const auto collective : collectives) {
      const auto algorithms = all_algorithms(ranks);
      wring::Options options{.operation = turns[number % 4], .segment_bytes = 8192};
      run_group<Grid<double>>(
          algorithms[number++ % algorithms.size()],
          {.collective = collective,
           .options = options,
           .lengths = {700, 0, 3, 5000, 1},
           .bounds = {wring::absolute(1e-3), wring::absolute(0.5), wring::absolute(1e-9)}},
          ranks);
    }
}

TEST_CASE("group: one bound that cannot be held refuses all tensors, none is written",
          "[collective][group]") {
  InProcess world(3);
  std::deque<wring::Allreduce<wring::Grid<double>, InProcessTransport>> sums;
  std::vector<View> a, b;
  for (int r = 0; r < 3; ++r) {
    sums.emplace_back(wring::Grid<double>{}, world.link(r));
    a.push_back(view_of(OfDoubles{1, 2, 3})), b.push_back(view_of(OfDoubles{1e300, 1}));
  }
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(Exec{}, wring::group(wring::item(a[r], wring::absolute(0.1)),
                                              wring::item(b[r], wring::absolute(1e-3))));
  });
  INFO(describe(outcomes));
  REQUIRE(all_failed(outcomes, wring::Cause::unattainable));
  for (std::size_t r = 0; r < 3; ++r) {
    REQUIRE(copy_of(a[r]) == OfDoubles{1, 2, 3});
    REQUIRE(copy_of(b[r]) == OfDoubles{1e300, 1});
  }
}

TEST_CASE("group: a tuple of views of different types", "[collective][group]") {
  InProcess world(2);
  std::deque<wring::Allreduce<None<double>, InProcessTransport>> sums;
  std::vector<Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace>> matrix;
  std::vector<Kokkos::View<double, Kokkos::HostSpace>> scalar;
  std::vector<View> in, out;
  for (int r = 0; r < 2; ++r) {
    sums.emplace_back(None<double>{}, world.link(r));
    matrix.emplace_back("m", 3, 4), scalar.emplace_back("s");
    in.push_back(view_of(OfDoubles{1, 2, 3})), out.push_back(view_of(OfDoubles{0, 0, 0}));
    Kokkos::deep_copy(matrix.back(), r + 1), scalar.back()() = 10 * r + 1;
  }
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return sums[r].start(
        Exec{}, wring::group(wring::item(matrix[r]), wring::item(scalar[r]), wring::item(in[r], out[r])));
  });
  REQUIRE(all_ok(outcomes));
  for (std::size_t r = 0; r < 2; ++r) {
    REQUIRE(matrix[r](2, 3) == 3);
    REQUIRE(scalar[r]() == 12);
    REQUIRE(copy_of(out[r]) == OfDoubles{2, 4, 6});
    REQUIRE(copy_of(in[r]) == OfDoubles{1, 2, 3});
  }
}

TEST_CASE("group: ranks that disagree on the number of tensors, or on the bound of one",
          "[collective][group]") {
  InProcess world(2);
  std::deque<wring::Allreduce<None<double>, InProcessTransport>> sums;
  for (int r = 0; r < 2; ++r) sums.emplace_back(None<double>{}, world.link(r));
  const auto run = [&](std::vector<double> bounds0, std::vector<double> bounds1) {
    return on_all_ranks(world, [&](int r) {
      std::vector<wring::Item<View, View>> items;
      for (const double e : r == 0 ? bounds0 : bounds1)
        items.push_back(wring::item(view_of(OfDoubles{1, 2}), wring::absolute(e)));
      return sums[static_cast<std::size_t>(r)].start(Exec{}, wring::group(std::move(items)));
    });
  };
  REQUIRE(all_failed(run({1, 1}, {1, 1, 1}), wring::Cause::mismatch));
  REQUIRE(all_failed(run({1, 1}, {1}), wring::Cause::mismatch));
  const auto outcomes = run({1, 1, 2}, {1, 1, 3});
  REQUIRE(all_failed(outcomes, wring::Cause::mismatch));
  for (const Outcome& o : outcomes)
    REQUIRE(o.text ==
            "the ranks disagree on the error bound (or scale): rank 0 and rank 1 differ, first on tensor 2");
  REQUIRE(all_ok(run({1, 1, 2}, {1, 1, 2})));
}

TEST_CASE("group: with compressors of their own every tensor keeps its bound, and has the bits that it has "
          "by itself",
          "[collective][group]") {
  using Options = Grid<double>::Options;
  const Grid<double> coarse(Options{.step = Grid<double>::StepKind::power_of_two}),
      smooth(Options{.delta = true});
  unsigned number = 0;
  for (int ranks = 1; ranks <= 8; ++ranks)
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
      const wring::Collective collective = collectives[number % 4];
      const GroupCall<Grid<double>> all{
          .collective = collective,
          .options = {.operation = turns[number++ / 4 % 4], .segment_bytes = 8192},
          .lengths = {700, 0, 1300, 3, 511},
          .bounds = {wring::absolute(1e-3), wring::relative_to_rms(1e-2 * ranks), wring::absolute(1e-6)},
          .own = {std::nullopt, coarse, smooth, coarse}};
      const auto result = collect_group(algorithm, all, ranks);
      INFO(name_of(collective) << ", " << ranks << " ranks, " << algorithm.name()
                               << describe(result.outcomes));
      REQUIRE(all_ok(result.outcomes));
      for (const auto& t : result.tensors)
        if (t.call.bound->kind == wring::Bound::Kind::absolute)
          REQUIRE(judge(t.call, t.inputs, t.got, t.call.bound->value) == "");
      REQUIRE(as_alone(algorithm, result));
    }
}

TEST_CASE("group: hundreds of tensors, each with its own compressor, cost the messages of one",
          "[collective][group]") {
  const Lengths lengths(300, 40);
  const Grid<double> smooth(Grid<double>::Options{.delta = true});
  for (const AnyAlgorithm& algorithm : all_algorithms(4)) {
    const GroupCall<Grid<double>> all{.options = {.segment_bytes = 1 << 21, .ride_along_bytes = 0},
                                      .lengths = lengths,
                                      .bounds = {wring::absolute(1e-3), wring::absolute(1e-6)},
                                      .own = {smooth, std::nullopt, Grid<double>()}};
    const auto result = run_group(algorithm, all, 4);
    for (int rank = 0; rank < 4; ++rank) {
      std::uint64_t sends = 0;
      for (const wring::Step& step : algorithm.plan({}, rank, 4).steps)
        sends += step.kind == wring::Kind::send;
      const wring::Report& report = result.outcomes[static_cast<std::size_t>(rank)].report;
      INFO(algorithm.name() << ", rank " << rank);
      REQUIRE(report.messages == sends * report.segments);
      REQUIRE(report.segments == 1);
    }
  }
}

namespace {

/// Sends values as they are, and notes what it is told. Two of them differ in their option alone.
class Noting {
 public:
  using value_type = double;
  struct Note {
    int option;
    std::size_t item;
    std::uint64_t step;
    friend bool operator==(const Note&, const Note&) = default;
  };

  explicit Noting(int option, std::shared_ptr<std::vector<Note>> notes = nullptr)
      : option_(option), notes_(std::move(notes)) {}

  int option() const { return option_; }
  wring::Identity identity() const { return {"noting", 1, "option=" + std::to_string(option_)}; }
  std::size_t max_compressed_bytes(std::size_t n) const { return plain_.max_compressed_bytes(n); }
  std::size_t compressed_bytes(std::size_t n) const { return plain_.compressed_bytes(n); }
  std::size_t compress(const auto& exec, std::span<const double> x, std::span<std::byte> bytes,
                       const wring::Context& context) const {
    if (notes_) notes_->push_back({option_, context.item, context.step});
    return plain_.compress(exec, x, bytes, context);
  }
  void decompress(const auto& exec, std::span<const std::byte> bytes, std::span<double> x,
                  const wring::Context& context) const {
    plain_.decompress(exec, bytes, x, context);
  }

 private:
  int option_;
  std::shared_ptr<std::vector<Note>> notes_;
  None<double> plain_;
};

using NotingSum = wring::Allreduce<Noting, InProcessTransport>;

/// The options of the operation's compressor and of the tensors' own ones; none for those that have none.
struct Configured {
  int all;
  std::vector<std::optional<int>> own;
  std::vector<double> bounds = {};
  std::size_t length = 3;
};

/// One sum on two ranks that are configured so.
std::vector<Outcome> sum_configured(const std::vector<Configured>& ranks) {
  InProcess world(static_cast<int>(ranks.size()));
  std::deque<NotingSum> sums;
  std::vector<View> data;
  std::vector<Outcome> outcomes = on_all_ranks(world, [&](int rank) {
    const Configured& c = ranks[static_cast<std::size_t>(rank)];
    std::vector<wring::Item<View, View, Noting>> items;
    for (const auto& option : c.own) {
      data.push_back(view_of(OfDoubles(c.length, 1)));
      const auto plain = wring::item(data.back());
      if (option)
        items.push_back(plain.with(Noting(*option)));
      else
        items.push_back(plain);
      if (!c.bounds.empty()) items.back().bound = wring::absolute(c.bounds[items.size() - 1]);
    }
    return sums.emplace_back(Noting(c.all), world.link(rank)).start(Exec{}, wring::group(std::move(items)));
  });
  for (const View& view : data)
    for (const double x : copy_of(view))
      REQUIRE(x == (all_ok(outcomes) ? static_cast<double>(ranks.size()) : 1));
  const auto again = on_all_ranks(world, [&](int rank) {  // the link is as good as before
    return sums[static_cast<std::size_t>(rank)].start(Exec{}, view_of(OfDoubles{1}));
  });
  const bool alike =
      std::all_of(ranks.begin(), ranks.end(), [&](const Configured& c) { return c.all == ranks[0].all; });
  REQUIRE((alike ? all_ok(again) : all_failed(again, wring::Cause::mismatch)));
  return outcomes;
}

bool names(const std::vector<Outcome>& outcomes, const std::string& field, const std::string& tensor) {
  return std::all_of(outcomes.begin(), outcomes.end(), [&](const Outcome& o) {
    return o.text == outcomes[0].text && o.text.find(field) != std::string::npos && o.text.ends_with(tensor);
  });
}

}  // namespace

TEST_CASE("group: each compressor sees its own options, its place in the group, and the step",
          "[collective][group]") {
  InProcess world(2);
  const auto notes = std::make_shared<std::vector<Noting::Note>>();
  std::deque<NotingSum> sums;
  const auto outcomes = on_all_ranks(world, [&](int rank) {
    NotingSum& sum =
        sums.emplace_back(Noting(0, notes), world.link(rank), wring::Ring{}, wring::Options{.step = 41});
    const View a = view_of(OfDoubles{1}), b = view_of(OfDoubles{1, 2, 3, 4}), c = view_of(OfDoubles{1, 2, 3});
    return sum.start(Exec{}, wring::group(wring::item(a).with(Noting(7, notes)), wring::item(b),
                                          wring::item(c).with(Noting(9, notes))));
  });
  REQUIRE(all_ok(outcomes));
  constexpr int option_of[] = {7, 0, 9};
  REQUIRE(notes->size() >= 6);
  for (const Noting::Note& note : *notes) REQUIRE(note == Noting::Note{option_of[note.item], note.item, 41});
}

TEST_CASE("group: ranks that disagree on the compressor or the bound of a tensor are told which tensor",
          "[collective][group]") {
  const auto disagree = [](const Configured& a, const Configured& b, const char* field, const char* tensor) {
    for (const std::vector<Configured>& ranks : {std::vector{a, b}, {b, a}, {a, a, b}, {a, b, a, a, b}}) {
      const auto outcomes = sum_configured(ranks);
      INFO(describe(outcomes) << "\nexpected: " << field << ", " << tensor);
      REQUIRE(all_failed(outcomes, wring::Cause::mismatch));
      REQUIRE(names(outcomes, field, tensor));
    }
  };
  disagree({0, {1, 2, 3}}, {0, {1, 2, 4}}, "the compressor", ", first on tensor 2");
  disagree({0, {1, {}, 3}}, {0, {1, 2, 3}}, "the compressor", ", first on tensor 1");
  disagree({0, {1, 2, 3}}, {0, {1, 3, 2}}, "the compressor", ", first on tensor 1");  // their order
  disagree({0, {{}, {}}}, {1, {{}, {}}}, "the compressor", ", first on tensor 0");
  disagree({0, {2, 2}}, {1, {2, 2}}, "the compressor", "differ");  // that no tensor uses
  disagree({0, {1}}, {0, {2}}, "the compressor", "differ");
  disagree({0, {1, 2}}, {0, {1, 3}}, "the compressor", ", first on tensor 1");
  disagree({0, {1, 2}}, {0, {1, 2, 2}}, "the length", "differ");
}

TEST_CASE("group: options are compared, not where they come from", "[collective][group]") {
  CHECK(all_ok(sum_configured({{5, {5, {}, 6}}, {5, {{}, 5, 6}}})));
  CHECK(all_ok(sum_configured({{5, {5}}, {5, {{}}}})));
}

TEST_CASE("group: a ratio that is known beforehand is that of all tensors together", "[collective][group]") {
  struct Sized : Noting {
    using Noting::Noting;
    std::size_t compressed_bytes(std::size_t n) const { return n * static_cast<std::size_t>(option()); }
  };
  using wring::detail::Tensor;
  std::vector<Tensor<Sized>> tensors(2);
  tensors[0].total = 100, tensors[1].total = 300;
  const auto ratio = [&] {
    return *wring::detail::fixed_ratio(std::span<const Tensor<Sized>>(tensors), Sized(8));
  };
  CHECK(ratio() == 1);
  tensors[1].codec.emplace(2), tensors[1].codec_hash = 1;
  CHECK(ratio() == 400.0 * 8 / (100 * 8 + 300 * 2));
  tensors[0].total = tensors[1].total = 0;
  CHECK(ratio() == 1);
}

TEST_CASE("group: an argument that is wrong comes before a disagreement", "[collective][group]") {
  const auto outcomes = sum_configured({{0, {1, 2}}, {0, {1, 3}, {1, -1}}});
  INFO(describe(outcomes));
  CHECK(all_failed(outcomes, wring::Cause::argument, 1));
}

TEST_CASE(
    "a lossy and an exact operation share a link, in flight at once; what is small goes to the exact one",
    "[collective][cases]") {
  constexpr std::size_t minimum = 1024;
  for (const AnyAlgorithm& algorithm : all_algorithms(2)) {
    InProcess world(2, {.eager_limit = 0, .delay = 2, .seed = 3});
    std::deque<wring::Allreduce<Grid<double>, InProcessTransport, AnyAlgorithm>> lossy;
    std::deque<wring::Allreduce<None<double>, InProcessTransport, AnyAlgorithm>> exact;
    std::vector<View> large, small;
    std::vector<wring::Request> large_requests, small_requests;
    for (int rank = 0; rank < 2; ++rank) {
      lossy.emplace_back(Grid<double>{}, world.link(rank), algorithm);
      exact.emplace_back(None<double>{}, world.link(rank), algorithm);
      const auto start = [&](const View& x) {
        return x.size() < minimum ? exact.back().start(Exec{}, x)
                                  : lossy.back().start(Exec{}, x, wring::absolute(1e-2));
      };
      const auto seed = static_cast<std::uint64_t>(rank);
      large.push_back(view_of(real_numbers<double>(minimum, seed)));
      small.push_back(view_of(real_numbers<double>(minimum - 1, seed)));
      large_requests.push_back(start(large.back()));
      small_requests.push_back(start(small.back()));
    }
    const auto of_small = complete(world, small_requests), of_large = complete(world, large_requests);
    INFO(algorithm.name() << describe(of_small) << describe(of_large));
    REQUIRE((all_ok(of_small) && all_ok(of_large)));
    const auto a = real_numbers<double>(minimum, 0), b = real_numbers<double>(minimum, 1);
    std::size_t rounded = 0;
    for (std::size_t rank = 0; rank < 2; ++rank)
      for (std::size_t i = 0; i < minimum; ++i) {
        if (i < minimum - 1) REQUIRE(small[rank](i) == a[i] + b[i]);
        REQUIRE(std::abs(large[rank](i) - (a[i] + b[i])) <= 1e-2);
        rounded += large[rank](i) != a[i] + b[i];
      }
    CHECK(rounded > minimum);
    CHECK((of_small[0].report.compressor == "none" && of_large[0].report.compressor == "grid"));
  }
}
