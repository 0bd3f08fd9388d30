// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>

#include <wring/compressor/none.hpp>
#include <wring/testing/compressor_laws.hpp>

using namespace wring;

TEMPLATE_TEST_CASE("None keeps the laws", "[compressor][none]", float, half_t, std::int8_t, std::int64_t,
                   std::uint64_t, Kokkos::complex<double>) {
  CHECK(testing::check_compressor_laws(None<TestType>{}) == std::vector<std::string>{});
}

TEST_CASE("None copies bytes and keeps every bit", "[compressor][none]") {
  const Kokkos::DefaultHostExecutionSpace exec;
  const std::vector<float> values{
      -0.0f,  std::bit_cast<float>(0x7fa12345u),      std::bit_cast<float>(0xffc54321u),
      1e-45f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::max()};
  std::vector<std::byte> bytes(24);
  std::vector<float> back(6);
  const None<float> none;
  CHECK(none.compress(exec, std::span<const float>(values), std::span(bytes), Context{}) == 24);
  exec.fence();
  CHECK(std::memcmp(bytes.data(), values.data(), 24) == 0);
  none.decompress(exec, std::span<const std::byte>(bytes), std::span(back), Context{});
  exec.fence();
  CHECK(std::memcmp(back.data(), values.data(), 24) == 0);
}

TEST_CASE("None says its size and promises the bound 0", "[compressor][none]") {
  CHECK(None<double>::compressed_bytes(1000) == 8000);
  CHECK(None<half_t>::max_compressed_bytes((std::size_t{1} << 32) + 1) == (std::size_t{1} << 33) + 2);
  CHECK(None<double>::max_compressed_bytes(std::size_t{1} << 40) == std::size_t{1} << 43);
  CHECK_THROWS_AS(None<double>::max_compressed_bytes(std::size_t{1} << 61), InvalidArgument);
  CHECK(None<float>::error(1e30) == 0);
  CHECK(None<float>::identity().name == "none");
}

TEST_CASE("None refuses bytes of another length", "[compressor][none]") {
  const Kokkos::DefaultHostExecutionSpace exec;
  std::vector<std::byte> bytes(40);
  std::vector<float> values(10, 1.0f);
  const None<float> none;
  for (const std::size_t size : {0, 1, 36, 39})
    CHECK_THROWS_AS(
        none.decompress(exec, std::span<const std::byte>(bytes).first(size), std::span(values), Context{}),
        CodecError);
  CHECK_THROWS_AS(
      none.decompress(exec, std::span<const std::byte>(bytes), std::span(values).first(9), Context{}),
      CodecError);
  CHECK_THROWS_AS(none.compress(exec, std::span<const float>(values), std::span(bytes).first(39), Context{}),
                  CodecError);
  CHECK(values == std::vector<float>(10, 1.0f));
}

TEST_CASE("None takes nothing at all, null pointers included", "[compressor][none]") {
  const Kokkos::DefaultHostExecutionSpace exec;
  const None<float> none;
  CHECK(none.compress(exec, std::span<const float>{}, std::span<std::byte>{}, Context{}) == 0);
  CHECK_NOTHROW(none.decompress(exec, std::span<const std::byte>{}, std::span<float>{}, Context{}));
}
