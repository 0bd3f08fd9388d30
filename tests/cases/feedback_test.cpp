// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory between calls: applied, of the right quantity, in the precision it says, saved and restored.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/block_scaled.hpp>
#include <wring/compressor/error_feedback.hpp>
#include <wring/compressor/top_k.hpp>

#include "support/feedback_team.hpp"

using namespace wring_test;
using namespace wring;

namespace {

template <class T> PerRank<T> inputs_of(int ranks, std::size_t n, std::uint64_t step) {
  PerRank<T> inputs;
  for (int r = 0; r < ranks; ++r)
    inputs.push_back(real_numbers<T>(n, 90 * step + static_cast<std::uint64_t>(r)));
  return inputs;
}

using TwoBits = BlockScaled<float, 2>;

/// The operations of the steps [from, to), whose random numbers depend on the step.
std::vector<PerRank<float>> results_of(FeedbackTeam<TwoBits>& team, std::uint64_t from, std::uint64_t to) {
  std::vector<PerRank<float>> results;
  team.steps = from;
  for (std::uint64_t t = from; t < to; ++t) {
    REQUIRE(all_ok(team.step(inputs_of<float>(team.ranks, 1500, t))));
    results.push_back(team.results);
  }
  return results;
}

TwoBits stochastic() { return TwoBits({.rounding = StochasticRounding{7}, .rotation = {}}); }

/// Files of one test, in a folder.
class Folder {
 public:
  explicit Folder(const std::filesystem::path& path) : path_(path) {}
  std::filesystem::path path() const { return path_; }
  void write(const std::string& name, std::size_t number, std::span<const std::byte> bytes) const {
    std::ofstream file(path_ / (name + std::to_string(number)), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    REQUIRE(file.flush());
  }
  std::vector<std::byte> read(const std::string& name, std::size_t number) const {
    std::ifstream file(path_ / (name + std::to_string(number)), std::ios::binary);
    REQUIRE(file);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

 private:
  std::filesystem::path path_;
};

/// A folder that is there for as long as this is.
struct NewFolder {
  std::filesystem::path path;
  explicit NewFolder(const std::string& name) : path(std::filesystem::temp_directory_path() / name) {
    std::filesystem::remove_all(path);
    std::filesystem::create_directory(path);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

/// All results of some steps, one after the other.
std::vector<std::byte> bytes_of(const std::vector<PerRank<float>>& steps) {
  std::vector<std::byte> all;
  for (const PerRank<float>& ranks : steps)
    for (const auto& result : ranks) {
      const auto bytes = std::as_bytes(std::span(result));
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
  return all;
}

}  // namespace

// sands-lab/grace#10
TEST_CASE("feedback that is configured is applied: what is dropped arrives later", "[cases][feedback]") {
  const std::vector<double> x{1, 0.4};
  for (const int ranks : {1, 2}) {
    const PerRank<double> inputs(static_cast<std::size_t>(ranks), x);
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
      INFO(ranks << " ranks, " << algorithm.name());
      FeedbackTeam<TopK<double>> team(ranks, algorithm, mean, TopK<double>({.k = 1, .ratio = {}}));
      std::vector<double> totals(2);
      for (int t = 1; t <= 5; ++t) {
        REQUIRE(all_ok(team.step(inputs)));
        CHECK(std::fabs(team.results[0][1] - (t == 3 ? 1.2 : 0)) < 1e-15);
        for (std::size_t i = 0; i < 2; ++i) totals[i] += team.results[0][i];
      }
      CHECK((std::fabs(totals[0] - 5) < 1e-14 && std::fabs(totals[1] - 1.2) < 1e-14));
    }
  }
}

TEST_CASE("without feedback what is dropped is lost, in every step", "[cases][feedback]") {
  for (const int ranks : {1, 2})
    for (const AnyAlgorithm& algorithm : all_algorithms(ranks)) {
      InProcess world(ranks);
      std::deque<wring::Allreduce<TopK<double>, InProcessTransport, AnyAlgorithm>> means;
      for (int r = 0; r < ranks; ++r)
        means.emplace_back(TopK<double>({.k = 1, .ratio = {}}), world.link(r), algorithm,
                           wring::Options{.operation = mean});
      for (int t = 1; t <= 5; ++t) {
        PerRank<double> data(static_cast<std::size_t>(ranks), {1, 0.4});
        const auto outcomes = on_all_ranks(world, [&](int rank) {
          const auto r = static_cast<std::size_t>(rank);
          return means[r].start(Exec{}, Values<double>(data[r].data(), 2));
        });
        INFO(ranks << " ranks, " << algorithm.name() << ", step " << t << describe(outcomes));
        REQUIRE(all_ok(outcomes));
        for (const auto& x : data) REQUIRE((x == std::vector<double>{1, 0}));
      }
    }
}

TEST_CASE("feedback as a user writes it", "[cases][feedback]") {
  const Exec exec;
  InProcess world(1);
  InProcessTransport& link = world.link(0);
  const AnyAlgorithm algorithm = Ring{};
  const Kokkos::View<double*, Kokkos::HostSpace> gradient("gradient", 1000);
  wring::FeedbackState<double> state;  // one for this gradient, as long as the training goes on
  wring::Allreduce mean(wring::ErrorFeedback(wring::BlockScaled<double, 2>{}, state), link, algorithm,
                        {.operation = wring::mean});
  for (int step = 0; step < 3; ++step) mean(exec, gradient);
  const std::vector<std::byte> saved = state.save();  // for a restart: state.restore(saved) on the same rank
  CHECK((state.steps() == 3 && !saved.empty()));
}

// epfml/powersgd#3
TEST_CASE("residuals are a rank's own minus its own compressed", "[cases][feedback]") {
  FeedbackTeam<BlockScaled<double, 2>> team(2, Direct{}, mean);
  const EncodingTrace trace(Direct{}, 2, false, false);
  std::vector<double> results(900), averages(900);
  double gap_at_5 = 0, gap = 0;
  for (std::uint64_t t = 0; t < 50; ++t) {
    const auto inputs = inputs_of<double>(2, 900, t);
    REQUIRE(all_ok(team.step(inputs)));
    const auto sums = exact_sums(inputs);
    const auto residuals = owed(team, trace, 900);
    REQUIRE(!residuals.empty());
    gap = 0;
    for (std::size_t i = 0; i < 900; ++i) {
      results[i] += team.results[0][i], averages[i] += sums[i] / 2;
      REQUIRE(std::fabs(results[i] - (averages[i] - residuals[i] / 2)) < 1e-12);
      gap = std::max(gap, std::fabs(results[i] - averages[i]));
    }
    if (t == 4) gap_at_5 = gap;
  }
  CHECK(gap < 3 * gap_at_5);  // it does not grow with the number of steps
}

// pytorch/pytorch#50985
TEST_CASE("residuals of bfloat16 values are kept in float", "[cases][feedback]") {
  FeedbackTeam<BlockScaled<bhalf_t, 4>> team(2, RecursiveDoubling{}, mean);
  const std::vector<bhalf_t> x{bhalf_t(1.0f), bhalf_t(1e-4f)};
  int sent = 0, when = 0;
  double value = 0;
  for (int t = 1; t <= 1000; ++t) {
    REQUIRE(all_ok(team.step({x, x})));
    const double second = as_double(team.results[0][1]);
    if (second != 0) ++sent, when = t, value = second;
  }
  CHECK(sent == 1);
  CHECK((when > 690 && when < 740));
  CHECK(std::fabs(value - 1.0 / 7) < 0.002);
}

// pytorch/pytorch#79334, #102721, #74556
TEST_CASE("a state that is saved and restored goes on as if nothing had happened", "[cases][feedback]") {
  for (const AnyAlgorithm& algorithm : all_algorithms(2)) {
    FeedbackTeam<TwoBits> whole(2, algorithm, mean, stochastic()), first(2, algorithm, mean, stochastic()),
        second(2, algorithm, mean, stochastic());
    results_of(whole, 0, 5), results_of(first, 0, 5);
    for (int r = 0; r < 2; ++r) {
      const auto saved = first.state(r).save();
      CHECK((saved == whole.state(r).save()));
      second.state(r).restore(saved);
      CHECK(second.state(r).steps() == 5);
      CHECK((second.state(r).save() == saved));
    }
    const auto expected = results_of(whole, 5, 10), got = results_of(second, 5, 10);
    for (std::size_t t = 0; t < 5; ++t)
      for (std::size_t r = 0; r < 2; ++r) REQUIRE(same_bits(got[t][r], expected[t][r]));
  }
  for (const ResidualStorage storage : {ResidualStorage::full, ResidualStorage::eight_bits}) {
    FeedbackTeam<TwoBits> before(2, Ring{}, mean, stochastic(), storage),
        after(2, Ring{}, mean, stochastic(), storage);
    results_of(before, 0, 2);
    after.state(0).restore(before.state(0).save());
    CHECK(!before.state(0).residuals().empty());
    CHECK(after.state(0).residuals() == before.state(0).residuals());  // at once, without an operation
  }
  FeedbackTeam<TwoBits> two(2, Ring{}, mean), three(3, Ring{}, mean), swapped(2, Ring{}, mean);
  results_of(two, 0, 1);
  for (int r = 0; r < 3; ++r) three.state(r).restore(two.state(r % 2).save());
  auto outcomes = three.step(inputs_of<float>(3, 1500, 1));
  CHECK(all_failed(outcomes, Cause::argument));
  CHECK(outcomes[0].text.find("rank 0 of 2, this is rank 0 of 3") != std::string::npos);
  for (int r = 0; r < 2; ++r) swapped.state(r).restore(two.state(1 - r).save());
  outcomes = swapped.step(inputs_of<float>(2, 1500, 1));
  CHECK(all_failed(outcomes, Cause::argument));
  CHECK(outcomes[1].text.find("rank 1 of 2, this is rank 0 of 2") != std::string::npos);
}

TEST_CASE("another process goes on with saved states as if nothing had happened", "[cases][feedback]") {
  char self[4096] = {};
  REQUIRE(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  const NewFolder made("wring-states-" + std::to_string(getpid()));
  const Folder folder(made.path);
  const auto algorithms = all_algorithms(2);
  std::vector<std::vector<std::byte>> expected;
  for (std::size_t a = 0; a < algorithms.size(); ++a) {
    FeedbackTeam<TwoBits> team(2, algorithms[a], mean, stochastic());
    results_of(team, 0, 5);
    for (std::size_t r = 0; r < 2; ++r)
      folder.write("state", 2 * a + r, team.state(static_cast<int>(r)).save());
    expected.push_back(bytes_of(results_of(team, 5, 10)));  // what was never interrupted
  }
  const std::string command = "WRING_TEST_STATES='" + made.path.string() + "' '" + self +
                              "' '[.restart]' >'" + made.path.string() + "/output' 2>&1";
  const int status = std::system(command.c_str());
  std::ifstream output(folder.path() / "output");
  INFO(std::string((std::istreambuf_iterator<char>(output)), {}));
  REQUIRE(status == 0);
  for (std::size_t a = 0; a < algorithms.size(); ++a) REQUIRE((folder.read("results", a) == expected[a]));
}

// Run by the test above, in a process of its own.
TEST_CASE("goes on with saved states", "[.restart]") {
  const char* path = std::getenv("WRING_TEST_STATES");
  REQUIRE(path != nullptr);
  const Folder folder(path);
  const auto algorithms = all_algorithms(2);
  for (std::size_t a = 0; a < algorithms.size(); ++a) {
    FeedbackTeam<TwoBits> team(2, algorithms[a], mean, stochastic());
    for (std::size_t r = 0; r < 2; ++r)
      team.state(static_cast<int>(r)).restore(folder.read("state", 2 * a + r));
    folder.write("results", a, bytes_of(results_of(team, 5, 10)));
  }
  FeedbackTeam<TwoBits> three(3, Ring{}, mean, stochastic());
  for (std::size_t r = 0; r < 3; ++r) three.state(static_cast<int>(r)).restore(folder.read("state", r % 2));
  REQUIRE(all_failed(three.step(inputs_of<float>(3, 1500, 5)), Cause::argument));
}

// llnl/H5Z-ZFP#95, #100; szcompressor/SZ2#115
TEST_CASE("a saved state of another version or byte order, or a damaged one, is refused",
          "[cases][feedback]") {
  FeedbackTeam<BlockScaled<float, 2>> team(2, Ring{}, mean);
  REQUIRE(all_ok(team.step(inputs_of<float>(2, 700, 1))));
  FeedbackState<float>& state = team.state(0);
  const auto saved = state.save();
  const auto refusal = [&](std::vector<std::byte> bytes) {
    std::string text = "taken";
    try {
      state.restore(bytes);
    } catch (const InvalidArgument& error) {
      text = error.what();
    }
    return text;
  };
  const auto altered = [&](std::size_t at, int value) {
    auto bytes = saved;
    bytes[at] = static_cast<std::byte>(value);
    return bytes;
  };
  const auto has = [](const std::string& text, const char* words) {
    INFO(text);
    return text.find(words) != std::string::npos;
  };
  CHECK(has(refusal(altered(16, 3)), "version 3, this library reads version 2"));
  auto swapped = saved;
  for (std::size_t i = 0; i < 8; ++i) swapped[8 + i] = saved[15 - i];
  CHECK(has(refusal(swapped), "byte order"));
  CHECK(has(refusal(altered(0, 'x')), "does not begin"));
  CHECK(has(refusal({}), "does not begin"));
  CHECK(has(refusal({saved.begin(), saved.end() - 8}), "bytes, not the"));
  for (std::size_t at = 40; at < saved.size(); at += 1 + saved.size() / 300) {
    auto bytes = saved;
    bytes[at] ^= std::byte{0x10};
    REQUIRE(has(refusal(bytes), "damaged"));
  }
  const auto resealed = [](std::vector<std::byte> bytes) {
    const std::uint64_t sum = wring::detail::checksum(std::span<const std::byte>(bytes).subspan(40));
    std::memcpy(bytes.data() + 32, &sum, 8);
    return bytes;
  };
  constexpr std::size_t place =
      40 + 5 * 8 + 5 * 8;               // of the operation: behind what is said of state and extents
  CHECK(saved[place] == std::byte{1});  // a mean
  CHECK(has(refusal(resealed(altered(place, 4))), "damaged"));
  for (std::size_t at = 40; at < saved.size(); at += 1 + at / 20) {  // damaged before it was sealed
    auto bytes = saved;
    bytes[at] ^= std::byte{0x21};
    bytes = resealed(std::move(bytes));
    FeedbackTeam<BlockScaled<float, 2>> other(2, Ring{}, mean);
    try {
      other.state(0).restore(bytes), other.state(1).restore(team.state(1).save());
    } catch (const InvalidArgument&) {
      continue;
    }
    for (const Outcome& o : other.step(inputs_of<float>(2, 700, 2)))
      REQUIRE((o.ok() || o == Cause::argument || o == Cause::mismatch));
  }
  FeedbackState<half_t> half;
  CHECK_THROWS_AS(half.restore(saved), InvalidArgument);
  CHECK((state.save() == saved));  // what was refused has changed nothing
  CHECK(refusal(saved) == "taken");
}
