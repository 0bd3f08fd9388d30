// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compressor laws accept honest compressors, and catch each fault under the name of the law that it breaks.
#include <string>
#include <vector>

#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/top_k.hpp>
#include <wring/testing/compressor_laws.hpp>

#include "laws_codecs.hpp"

using namespace wring;
using sample::Chopped;
using sample::Fault;
using sample::Steps;

namespace {

using Failures = std::vector<std::string>;

/// Whether a law is among the failures, and what they are where it is not.
template <class Codec> std::string breaks(const Codec& codec, const std::string& law,
                                          const testing::CompressorLawOptions& options = {}) {
  const Failures failures =
      testing::check_compressor_laws(codec, Kokkos::DefaultHostExecutionSpace(), options);
  std::string all;
  for (const std::string& failure : failures) {
    if (failure.starts_with(law + ":")) return law;
    all += failure + "\n";
  }
  return all.empty() ? "nothing" : all;
}

/// Values scaled to the range of a byte, as a user's page of code might do it; the laws apply, without special values.
struct Bytewise {
  using value_type = float;
  std::size_t max_compressed_bytes(std::size_t n) const { return n + 4; }
  Identity identity() const { return {.name = "bytewise", .version = 1, .options = {}}; }
  template <class Exec> std::size_t compress(const Exec&, std::span<const float> values,
                                             std::span<std::byte> bytes, const Context&) {
    float scale = 0;
    for (const float x : values) scale = std::max(scale, std::fabs(x) / 127);
    std::memcpy(bytes.data(), &scale, 4);
    for (std::size_t i = 0; i < values.size(); ++i)
      bytes[4 + i] = static_cast<std::byte>(scale > 1e-35f ? std::lrint(values[i] / scale) : 0);
    return 4 + values.size();
  }
  template <class Exec> void decompress(const Exec&, std::span<const std::byte> bytes,
                                        std::span<float> values, const Context&) {
    if (bytes.size() != 4 + values.size()) throw CodecError("bytewise: wrong number of bytes");
    float scale;
    std::memcpy(&scale, bytes.data(), 4);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = scale * static_cast<float>(static_cast<signed char>(bytes[4 + i]));
  }
};

/// Keeps what it rounded away, and adds it the next time.
struct Remembering : Chopped {
  std::vector<float>* residues;
  explicit Remembering(std::vector<float>& memory) : residues(&memory) {}
  template <class Exec> std::size_t compress(const Exec& exec, std::span<const float> values,
                                             std::span<std::byte> bytes, const Context& context) {
    std::vector<float> sums(values.begin(), values.end());
    residues->resize(sums.size());
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (std::isfinite(sums[i] + (*residues)[i])) sums[i] += (*residues)[i];
    const std::size_t size = Chopped::compress(exec, std::span<const float>(sums), bytes, context);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const float kept = sample::load<float>(bytes, i);
      (*residues)[i] = std::isfinite(sums[i] - kept) ? sums[i] - kept : 0;
    }
    return size;
  }
  double error(double) = delete;  // promises no bound
};
static_assert(!BoundedCompressor<Remembering>);

/// Decodes in units of the greatest magnitude, which nobody measures: it has neither a bound nor a survey.
struct Unmeasured : Bytewise {
  float greatest = 1;
  void prepare(const Agreed& agreed) { greatest = static_cast<float>(agreed.max_abs); }
  template <class Exec> void decompress(const Exec& exec, std::span<const std::byte> bytes,
                                        std::span<float> values, const Context& context) {
    Bytewise::decompress(exec, bytes, values, context);
    for (float& x : values)
      if (x != 0) x = x / greatest * greatest;
  }
};

/// Takes no bound, and its worst case of sums decreases.
struct SmallSums : TopK<float> {
  SmallSums() : TopK<float>({.ratio = 0.5}) {}
  std::size_t max_combined_bytes(std::size_t n, int terms) const {
    return n > std::size_t{1} << 40 ? 1 : TopK<float>::max_combined_bytes(n, terms);
  }
};

}  // namespace

TEST_CASE("the compressor laws accept honest compressors", "[compressor][laws]") {
  CHECK(testing::check_compressor_laws(Chopped{}) == Failures{});
  CHECK(testing::check_compressor_laws(Steps{}) == Failures{});
}

TEST_CASE("the compressor laws can leave out special values, and determinism", "[compressor][laws]") {
  const Kokkos::DefaultHostExecutionSpace exec;
  CHECK(testing::check_compressor_laws(Bytewise{}, exec, {.specials = false}) == Failures{});
  std::vector<float> memory;
  CHECK(testing::check_compressor_laws(Remembering(memory), exec, {.stateful = true}) == Failures{});
  CHECK(breaks(Bytewise{}, "special values") == "special values");
}

TEST_CASE("the compressor laws catch what is wrong with one encoding", "[compressor][laws]") {
  CHECK(breaks(Chopped{Fault::name_with_spaces}, "identity") == "identity");
  CHECK(breaks(Chopped{Fault::size_in_32_bits}, "size") == "size");
  CHECK(breaks(Chopped{Fault::more_than_worst_case}, "size") == "size");
  CHECK(breaks(Chopped{Fault::other_size_than_foretold}, "fixed size") == "fixed size");
  CHECK(breaks(Chopped{Fault::throws_for_nothing}, "total") == "total");
  CHECK(breaks(Chopped{Fault::writes_beyond}, "bounds") == "bounds");
  CHECK(breaks(Chopped{Fault::writes_beyond_values}, "bounds") == "bounds");
  CHECK(breaks(Chopped{Fault::changes_input}, "input") == "input");
  CHECK(breaks(Chopped{Fault::leaves_bytes}, "deterministic") == "deterministic");
  CHECK(breaks(Chopped{Fault::counts_calls}, "deterministic") == "deterministic");
  CHECK(breaks(Chopped{Fault::leaves_values}, "inverse") == "inverse");
  CHECK(breaks(Chopped{Fault::too_coarse}, "bound") == "bound");
  CHECK(breaks(Chopped{Fault::error_decreases}, "error") == "error");
  CHECK(breaks(Chopped{Fault::loses_nan}, "special values") == "special values");
  CHECK(breaks(Chopped{Fault::infinity_from_nothing}, "finite") == "finite");
  CHECK(breaks(Unmeasured{}, "finite", {.specials = false}) == "finite");
  CHECK(breaks(Chopped{Fault::adds_twice_rounded}, "adding") == "adding");
  CHECK(breaks(Chopped{Fault::accepts_cut_bytes}, "damage") == "damage");
  CHECK(breaks(Chopped{Fault::throws_out_of_range}, "damage") == "damage");
  CHECK(breaks(Chopped{Fault::overflows_scratch}, "scratch") == "scratch");
}

TEST_CASE("the compressor laws catch what is wrong with a combination", "[compressor][laws]") {
  CHECK(breaks(Steps{Fault::declines_everything}, "prepare") == "prepare");
  CHECK(breaks(Steps{Fault::error_after_prepare}, "error") == "error");
  CHECK(breaks(Steps{Fault::too_coarse}, "combination") == "combination");
  CHECK(breaks(Steps{Fault::not_commutative}, "commutative") == "commutative");
  CHECK(breaks(Steps{Fault::not_associative}, "associative") == "associative");
  CHECK(breaks(Steps{Fault::wrong_minimum}, "combination") == "combination");
  CHECK(breaks(Steps{Fault::forgets_a_term}, "combination") == "combination");
  CHECK(breaks(Steps{Fault::combined_size}, "size") == "size");
  CHECK(breaks(SmallSums{}, "size") == "size");
  CHECK(breaks(Steps{Fault::wide_differs}, "wide") == "wide");
  CHECK(breaks(Steps{Fault::finish_is_wrong}, "combination") == "combination");
  CHECK(breaks(Steps{Fault::misjudges_parameters}, "anticipation") == "anticipation");
  CHECK(breaks(Steps{Fault::differs_from_itself}, "anticipation") == "anticipation");
  CHECK(breaks(Steps{Fault::large_becomes_small}, "anticipation") == "anticipation");
  CHECK(breaks(Steps{Fault::accumulates_other_bytes}, "accumulating") == "accumulating");
  CHECK(breaks(Steps{Fault::accumulates_other_values}, "accumulating") == "accumulating");
  CHECK(breaks(Steps{Fault::accumulates_not_in_place}, "accumulating") == "accumulating");
  CHECK(breaks(Steps{Fault::accumulates_without_checks}, "damage") == "damage");
}
