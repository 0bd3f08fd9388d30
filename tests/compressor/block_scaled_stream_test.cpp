// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes of a piece: the same from every kernel (each level of the instruction set, teams as on a GPU), and golden hashes, which no
// compiler, flag, instruction set or number of threads may change.
#include "compressor/block_scaled_support.hpp"

#include <wring/detail/checksum.hpp>

using namespace block_scaled_test;
namespace kernels = wring::detail::block_scaled;
using kernels::Coding;
using kernels::Layout;
using wring::detail::Level;
using wring::detail::Purpose;
using wring::detail::RandomStream;

namespace {

/// Nearest or stochastic, rotated or not.
std::vector<Coding> all_codings() {
  std::vector<Coding> all;
  for (const bool draws : {false, true})
    for (const bool rotates : {false, true})
      all.push_back({.draws = draws,
                     .rotates = rotates,
                     .rounding = RandomStream::of_encoding(3, Purpose::rounding, {.rank = 1}),
                     .rotation = RandomStream::shared(4, Purpose::rotation, {}),
                     .first = 1024});
  return all;
}

template <class T> struct Decoded {
  std::vector<T> values, sums;
  bool operator==(const Decoded& other) const {
    const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
      return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
    };
    return same(values, other.values) && same(sums, other.sums);
  }
};

/// One set of kernels on a host.
template <class T, int Bits> struct HostKernels {
  const kernels::Kernels* table;
  Bytes encode(const std::vector<T>& x, const Coding& coding, const Layout& layout) const {
    Bytes bytes(layout.bytes(), std::byte{0x5a});
    const kernels::EncodeBlocks<T, Bits> body{{table, coding, layout}, x.data(), bytes.data()};
    for (std::size_t task = 0; task < (x.size() + 4095) / 4096; ++task) body(task);
    return bytes;
  }
  Decoded<T> decode(const Bytes& bytes, std::size_t n, const Coding& coding, const Layout& layout) const {
    Decoded<T> decoded{std::vector<T>(n), testing::sample_values<T>(testing::Sample::normal, n, 8)};
    const kernels::DecodeBlocks<T, Bits, false> body{
        {table, coding, layout}, bytes.data(), decoded.values.data()};
    const kernels::DecodeBlocks<T, Bits, true> adding{
        {table, coding, layout}, bytes.data(), decoded.sums.data()};
    for (std::size_t task = 0; task < (n + 4095) / 4096; ++task) body(task), adding(task);
    return decoded;
  }
};

/// Those for GPUs, here on the host.
template <class T, int Bits> struct TeamKernels {
  static Bytes encode(const std::vector<T>& x, const Coding& coding, const Layout& layout) {
    Bytes bytes(layout.bytes(), std::byte{0x5a});
    kernels::encode_in_teams<Bits>(Exec{}, std::span(x), bytes.data(), coding, layout);
    Exec{}.fence();
    return bytes;
  }
  static Decoded<T> decode(const Bytes& bytes, std::size_t n, const Coding& coding, const Layout& layout) {
    Decoded<T> decoded{std::vector<T>(n), testing::sample_values<T>(testing::Sample::normal, n, 8)};
    kernels::decode_in_teams<Bits, false>(Exec{}, bytes.data(), std::span(decoded.values), coding, layout);
    kernels::decode_in_teams<Bits, true>(Exec{}, bytes.data(), std::span(decoded.sums), coding, layout);
    Exec{}.fence();
    return decoded;
  }
};

/// Bytes that were never written: random fields, and scales of any pattern.
Bytes damaged(const Bytes& bytes, std::uint64_t seed) {
  Bytes other = bytes;
  for (std::size_t i = 0; i < other.size(); ++i)
    other[i] = static_cast<std::byte>(testing::random_bits(seed, i));
  return other;
}

template <class T, int Bits, class Check> void with_all_kernels(const Check& check) {
  for (const Level level : {Level::scalar, Level::vector16, Level::avx2, Level::avx512})
    if (wring::detail::can_run(level)) check(HostKernels<T, Bits>{&kernels::kernels_for<Bits>(level)});
  check(TeamKernels<T, Bits>{});
}

template <class T, int Bits> void all_kernels_agree() {
  for (const Coding& coding : all_codings())
    for (const std::size_t n : {1, 17, 129, 513, 4097})
      for (const std::vector<T>& x : data<T>(n, Bits)) {
        const Layout layout{n, Bits, coding.rotates};
        const HostKernels<T, Bits> best{&kernels::best_kernels<Bits>()};
        const Bytes bytes = best.encode(x, coding, layout), nonsense = damaged(bytes, n);
        const Decoded<T> right = best.decode(bytes, n, coding, layout);
        INFO(Bits << " bits, " << n << " values" << (coding.draws ? ", stochastic" : "")
                  << (coding.rotates ? ", rotated" : ""));
        with_all_kernels<T, Bits>([&](const auto& others) {
          REQUIRE(others.encode(x, coding, layout) == bytes);
          REQUIRE(others.decode(bytes, n, coding, layout) == right);
          if (!coding.rotates)  // where sums overflow, the bits of NaN are anyone's
            REQUIRE(others.decode(nonsense, n, coding, layout) == best.decode(nonsense, n, coding, layout));
        });
      }
}

template <class T, int Bits> std::uint64_t hash_of_all() {
  std::uint64_t hash = 0;
  for (const Rounding& rounding : {Rounding(NearestRounding{}), Rounding(StochasticRounding{5})})
    for (const auto& rotation : {std::optional<RandomRotation>(), std::optional(RandomRotation{3})}) {
      const BlockScaled<T, Bits> codec({rounding, rotation});
      const Context context{.rank = 2, .step = 7};
      for (const testing::Sample kind : testing::samples_of<T>()) {
        const auto x = testing::sample_values<T>(kind, 5000);
        const Bytes bytes = encoded(codec, x, context);
        const auto y = decoded(codec, bytes, x.size(), context);
        hash = hash * 31 + wring::detail::checksum(std::span(bytes));
        hash = hash * 31 + wring::detail::checksum(std::as_bytes(std::span(y)));
      }
    }
  return hash;
}

}  // namespace

TEMPLATE_TEST_CASE("BlockScaled: every kernel writes the same bytes and reads the same values",
                   "[compressor][block_scaled]", float, double, half_t, bhalf_t) {
  all_kernels_agree<TestType, 8>();
  all_kernels_agree<TestType, 5>();
  all_kernels_agree<TestType, 2>();
}

TEST_CASE("BlockScaled: every width in every kernel", "[compressor][block_scaled]") {
  all_kernels_agree<float, 3>();
  all_kernels_agree<float, 4>();
  all_kernels_agree<float, 6>();
}

TEST_CASE("BlockScaled: golden hashes", "[compressor][block_scaled]") {
  CHECK(hash_of_all<float, 8>() == 0x952b7596919ec7b0u);
  CHECK(hash_of_all<float, 6>() == 0x64f7136450d2bf0bu);
  CHECK(hash_of_all<float, 5>() == 0x52945e5b5d09f299u);
  CHECK(hash_of_all<float, 4>() == 0x66ea77bf312251ccu);
  CHECK(hash_of_all<float, 3>() == 0x5c25e32a22e598f4u);
  CHECK(hash_of_all<float, 2>() == 0x68e6225c6fe90786u);
  CHECK(hash_of_all<double, 4>() == 0xbd24b9de653bfbbfu);
  CHECK(hash_of_all<half_t, 4>() == 0x72073ef950d265a0u);
  CHECK(hash_of_all<bhalf_t, 4>() == 0x2105e33221dbde96u);
}
