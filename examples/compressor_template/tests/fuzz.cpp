// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes that no rank wrote: a CodecError or any values are right, anything else is a fault. libFuzzer calls this (the target `fuzz`), and
// so do the tests.
#include <common_step/common_step.hpp>

#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using Codec = common_step::CommonStep<float>;
  const Kokkos::DefaultHostExecutionSpace exec;
  if (size == 0) return 0;
  Codec codec;
  codec.prepare({.max_abs = 1, .allowed_error = data[0] < 85 ? 0.1 : data[0] < 170 ? 1e-3 : 1e-6});
  const std::vector<std::byte> piece(reinterpret_cast<const std::byte*>(data) + 1,
                                     reinterpret_cast<const std::byte*>(data) + size);
  for (const std::size_t n : {piece.size(), piece.size() / 2, piece.size() / 4}) {
    const wring::Context context{.count = n};
    std::vector<float> values(n);
    std::vector<std::byte> sum(codec.max_combined_bytes(n, 2));
    try {
      codec.combine(exec, piece, piece, sum, context);
      codec.decompress(exec, piece, values, context);
    } catch (const wring::CodecError&) {
    }
    exec.fence();
  }
  return 0;
}
